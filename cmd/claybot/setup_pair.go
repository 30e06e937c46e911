package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

const (
	// setupEvery is how often setup asks the daemon while it waits.
	setupEvery = 200 * time.Millisecond
	// unsureAfter is how often a person with access is seen, whose code this member did not get,
	// before setup asks about them: another cluster member may have got it.
	unsureAfter = 10
	// appearTime bounds the wait until a daemon that runs has replaced a connector, or knows a new one.
	appearTime = 3 * time.Second
	// nameTime bounds the wait until a bot knows its name.
	nameTime = 15 * time.Second
	// mostAsked is about how many people with access setup asks at most.
	mostAsked = 3
	// noticeTime bounds the wait until the greeting of the bot is sent.
	noticeTime = 10 * time.Second
)

// owner pairs the first operator with a bot: the person who opens a link, or sends a code, that this
// terminal alone shows. No other person gets access.
func (s *setup) owner(name string) error {
	config, _, err := s.load()
	if err != nil {
		return err
	}
	later := "claybot setup " + name
	switch {
	case s.elsewhere == "" && s.same(name) != nil:
		return s.same(name)
	case s.flags.NoPair:
		s.say("Pair with the bot later: %s\n", later)
		return nil
	case config.Access.Mode == configs.AccessOpen:
		s.say("! Access is open: anyone who finds the bot can use it, and there is nothing to pair. Restrict it: claybot config set access.mode pairing; then: %s\n", later)
		return nil
	}
	known, err := s.known(config, name)
	if err != nil {
		return err
	}
	for _, g := range known {
		if o := g.Connector + "/" + g.Subject; slices.Contains(config.Access.Operators, o) {
			s.say("✓ %s: %s is an operator.\n", name, o)
			return nil
		}
	}
	if err := s.running(name); err != nil {
		return err
	}
	if done, err := s.recognize(known, name); done || err != nil {
		return err
	}
	who, err := s.paired(name, known)
	if err != nil {
		return err
	}
	if s.daemon != nil {
		s.delivered()
	}
	return s.operate(who, " The bot has greeted you.")
}

// known returns the people with access to a connector, once the daemon runs what was checked.
func (s *setup) known(config configs.Config, name string) ([]storage.Grant, error) {
	var list web.PairingList
	if err := s.get("/pairing", &list); err != nil {
		return nil, err
	}
	if err := s.same(name); err != nil {
		return nil, err
	}
	for _, a := range config.Access.Allow {
		list.Grants = append(list.Grants, storage.Grant{Connector: a.Connector, Subject: a.Subject})
	}
	return peopleOf(list.Grants, name), nil
}

// running waits until the daemon runs a connector.
func (s *setup) running(name string) error {
	began := time.Now()
	for {
		var st overview.Status
		if err := s.get("/status", &st); err != nil {
			return err
		}
		i := slices.IndexFunc(st.Connectors, func(c overview.ConnectorStatus) bool { return c.Name == name })
		switch {
		case i < 0 && time.Since(began) < appearTime: // the daemon may be about to start it
		case i < 0:
			return fmt.Errorf("the running daemon does not run %s; see claybot status; then: claybot setup %s", name, name)
		case st.Connectors[i].State == connectors.StateLive:
			return nil
		case st.Connectors[i].State == connectors.StateStopped && time.Since(began) > appearTime, time.Since(began) > startTime:
			return fmt.Errorf("%s does not run: %s; then: claybot setup %s", name, strings.TrimPrefix(st.Connectors[i].Err, name+": "), name)
		}
		if !connectors.Sleep(s.ctx, setupEvery) {
			return errInterrupted
		}
	}
}

// peopleOf returns the people with access to a connector.
func peopleOf(grants []storage.Grant, name string) []storage.Grant {
	return slices.DeleteFunc(slices.Clone(grants), func(g storage.Grant) bool {
		channel := name == platforms.Slack && !strings.HasPrefix(g.Subject, "U") && !strings.HasPrefix(g.Subject, "W")
		return g.Connector != name || channel || strings.HasPrefix(g.Subject, "-") || strings.Contains(g.Subject, "/")
	})
}

// personOf is how a person is shown. Their name is what they call themselves.
func personOf(g storage.Grant) string {
	if g.Name == "" {
		return g.Connector + ":" + g.Subject
	}
	return fmt.Sprintf("%s:%s (%s)", g.Connector, g.Subject, oneLine(g.Name))
}

// recognize asks which of the people with access is the operator: an earlier setup may have ended
// before it was noted. Without a terminal, it says how to set them. Where many have access, it says
// that as well, and leaves it to the link or code.
func (s *setup) recognize(known []storage.Grant, name string) (done bool, err error) {
	if len(known) == 0 {
		return false, nil
	}
	if s.term == nil || len(known) > mostAsked {
		shown := known[:min(len(known), mostAsked)]
		for _, g := range shown {
			value, err := s.operatorsWith(g)
			if err != nil {
				return true, err
			}
			s.say("! %s has access, and no operator of %s has. If that is you: claybot config set operators '%s'\n", personOf(g), name, value)
		}
		if more := len(known) - len(shown); more > 0 {
			s.say("! %d more have access: claybot pair list\n", more)
		}
		return s.term == nil, nil
	}
	for _, g := range known {
		mine, err := s.yes(personOf(g) + " has access. Are you that person, and the operator of this bot?")
		if err != nil {
			return true, err
		}
		if mine {
			return true, s.operate(g, "")
		}
	}
	return false, nil
}

// operatorsWith is the value of operators with a person more.
func (s *setup) operatorsWith(who storage.Grant) (string, error) {
	config, _, err := s.load()
	all := append(slices.Clone(config.Access.Operators), who.Connector+"/"+who.Subject)
	slices.Sort(all)
	return "[" + strings.Join(slices.Compact(all), ", ") + "]", err
}

// invited returns a new link or code. A bot that has just started may not know its name yet, which is
// part of a link.
func (s *setup) invited(name string) (web.Invitation, error) {
	for began := time.Now(); ; {
		var out web.Decided
		err := s.call(http.MethodPost, "/pairing", web.Decision{Invite: name}, &out)
		var no *refusal
		switch {
		case err == nil:
			return *out.Invitation, nil
		case !errors.As(err, &no) || time.Since(began) > nameTime:
			return web.Invitation{}, fmt.Errorf("%w; then: claybot setup %s", err, name)
		case !connectors.Sleep(s.ctx, setupEvery):
			return web.Invitation{}, errInterrupted
		}
	}
}

// paired shows a link or a code, and waits until a person has used it. A daemon that ends meanwhile
// has stored it, and the next one takes it.
func (s *setup) paired(name string, known []storage.Grant) (who storage.Grant, err error) {
	i, err := s.invited(name)
	if err != nil {
		return who, err
	}
	if link := "https://t.me/" + s.bot + "?"; i.URL != "" && s.bot != "" && (len(i.URL) < len(link) || !strings.EqualFold(i.URL[:len(link)], link)) {
		bot, _, _ := strings.Cut(i.URL, "?")
		return who, fmt.Errorf("the running daemon uses another bot, %s, than that of the token that was checked, @%s; run claybot config get telegram.token where the daemon runs; then: claybot setup %s", bot, s.bot, name)
	}
	s.say("\n%s", invitationText(i))
	if i.URL != "" && isTerminal(s.out) {
		fmt.Fprint(s.out, "\n"+picture(i.URL))
	}
	s.say("\nWaiting for you … (Ctrl-C ends setup, and keeps what is done)\n")
	seen := make(map[string]int)
	for time.Now().Before(i.Expires.Time()) {
		var list web.PairingList
		if err := s.get("/pairing", &list); err != nil {
			if s.ctx.Err() != nil {
				return who, errInterrupted
			}
			if no := (*refusal)(nil); errors.As(err, &no) || s.elsewhere != "" || s.leave() != nil {
				return who, fmt.Errorf("%w; then: claybot setup %s", err, name)
			}
			s.read = false // the next daemon may be another
		} else if err := s.same(name); err != nil {
			return who, err
		}
		for _, r := range list.Redeemed {
			if r.Code == i.Code {
				return storage.Grant{Connector: r.Connector, Subject: r.Subject, Name: r.Name}, nil
			}
		}
		for _, g := range peopleOf(list.Grants, name) {
			new := !slices.ContainsFunc(known, func(k storage.Grant) bool { return k.Subject == g.Subject })
			if seen[g.Subject]++; !new || seen[g.Subject] != unsureAfter || s.term == nil {
				continue
			}
			if mine, err := s.yes(personOf(g) + " has access now. Are you that person?"); err != nil || mine {
				return g, err
			}
		}
		if !connectors.Sleep(s.ctx, setupEvery) {
			return who, errInterrupted
		}
	}
	return who, errors.New("no person used the link or code while it was valid; get another one: claybot setup " + name)
}

// operate makes a person an operator.
func (s *setup) operate(who storage.Grant, greeted string) error {
	value, err := s.operatorsWith(who)
	if err != nil {
		return err
	}
	if err := s.save(setting{key: "operators", value: value}); err != nil {
		return err
	}
	if s.elsewhere != "" {
		return errors.New("the operator is not in force: " + s.elsewhere)
	}
	s.say("✓ %s: %s is the operator.%s\n", who.Connector, personOf(who), greeted)
	return s.own(who)
}

// own makes the first person whom setup pairs an owner: one who may change roles in their chat.
func (s *setup) own(who storage.Grant) error {
	var list web.PersonList
	if err := s.get("/people", &list); err != nil {
		return err
	}
	for _, p := range list.People {
		if slices.ContainsFunc(p.Identities, func(id overview.Identity) bool {
			return id.Role == storage.RoleOwner && id.RoleFrom == people.RoleGiven
		}) {
			return nil
		}
	}
	path := "/people/" + url.PathEscape(who.Connector+":"+who.Subject) + "/role"
	if err := s.call(http.MethodPut, path, web.RoleOrder{Role: storage.RoleOwner, By: userName()}, nil); err != nil {
		return err
	}
	s.say("✓ This person is the owner, who may change roles: claybot people\n")
	return nil
}

// delivered waits until the outbox is empty, for a while: a daemon that ends earlier sends the rest
// after its next start.
func (s *setup) delivered() {
	ctx, cancel := context.WithTimeout(s.ctx, noticeTime)
	defer cancel()
	for {
		var st overview.Status
		err := s.get("/status", &st)
		if err != nil || st.Outbox[claybot.SendWaiting]+st.Outbox[claybot.SendAttempted] == 0 {
			return
		}
		if !connectors.Sleep(ctx, setupEvery) {
			return
		}
	}
}
