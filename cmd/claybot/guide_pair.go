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

// known returns the people with access to a connector, once the daemon runs what was checked.
func (s *guide) known(config configs.Config, name string) ([]storage.Grant, error) {
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

// operatorsWith is the value of operators with a person more.
func (s *guide) operatorsWith(who storage.Grant) (string, error) {
	config, _, err := s.load()
	all := append(slices.Clone(config.Access.Operators), who.Connector+"/"+who.Subject)
	slices.Sort(all)
	return "[" + strings.Join(slices.Compact(all), ", ") + "]", err
}

// operate makes a person an operator.
func (s *guide) operate(who storage.Grant, greeted string) error {
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
func (s *guide) own(who storage.Grant) error {
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
	if err := s.call(http.MethodPut, path, web.RoleOrder{Role: storage.RoleOwner, By: s.by}, nil); err != nil {
		return err
	}
	s.say("✓ %s: this person is the owner, who may change roles: claybot people\n", who.Connector)
	return nil
}

// delivered waits until the outbox is empty, for a while: a daemon that ends earlier sends the rest
// after its next start.
func (s *guide) delivered() {
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

// operatorOf returns the operator of a connector among the people with access to it; empty for none.
func operatorOf(config configs.Config, known []storage.Grant) string {
	for _, g := range known {
		if o := g.Connector + "/" + g.Subject; slices.Contains(config.Access.Operators, o) {
			return o
		}
	}
	return ""
}

// A pairing gives the first operator access to a bot: the person who opens a link, or sends a code,
// that the face of the guide alone shows. No other person gets access.
type pairing struct {
	name  string
	bot   string          // name of the Telegram bot that was checked; empty if unknown
	known []storage.Grant // with access before
	// began is when it began to wait for the connector, or for the bot to know its name.
	began      time.Time
	up         bool            // the daemon runs the connector
	invitation *web.Invitation // nil until there is one
	grants     []storage.Grant // with access at the last look
}

// runs looks whether the daemon runs the connector of a pairing. That of a change that was just
// applied may not run yet.
func (s *guide) runs(p *pairing) error {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	var st overview.Status
	if err := s.get("/status", &st); err != nil {
		return err
	}
	i := slices.IndexFunc(st.Connectors, func(c overview.ConnectorStatus) bool { return c.Name == p.name })
	switch {
	case i < 0 && time.Since(p.began) < appearTime: // the daemon may be about to start it
	case i < 0:
		return fmt.Errorf("the running daemon does not run %s; see claybot status%s", p.name, s.again(p.name))
	case st.Connectors[i].State == connectors.StateLive:
		p.up, p.began = true, time.Time{}
	case st.Connectors[i].State == connectors.StateStopped && time.Since(p.began) > appearTime, time.Since(p.began) > startTime:
		return fmt.Errorf("%s does not run: %s%s", p.name, strings.TrimPrefix(st.Connectors[i].Err, p.name+": "), s.again(p.name))
	}
	return nil
}

// invite makes the link or code of a pairing. A bot that has just started may not know its name yet,
// which is part of a link.
func (s *guide) invite(p *pairing) error {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	var out web.Decided
	err := s.call(http.MethodPost, "/pairing", web.Decision{Invite: p.name}, &out)
	var no *refusal
	switch {
	case errors.As(err, &no) && time.Since(p.began) <= nameTime:
		return nil
	case err != nil:
		return fmt.Errorf("%w%s", err, s.again(p.name))
	}
	i := out.Invitation
	if link := "https://t.me/" + p.bot + "?"; i.URL != "" && p.bot != "" && (len(i.URL) < len(link) || !strings.EqualFold(i.URL[:len(link)], link)) {
		bot, _, _ := strings.Cut(i.URL, "?")
		return fmt.Errorf("the running daemon uses another bot, %s, than that of the token that was checked, @%s; run claybot config get telegram.token where the daemon runs%s", bot, p.bot, s.again(p.name))
	}
	p.invitation = i
	return nil
}

// redeemed looks whether a person has used the link or code of a pairing; nil for not yet. A daemon
// that ends meanwhile has stored it, and the next one takes it.
func (s *guide) redeemed(p *pairing) (*storage.Grant, error) {
	var list web.PairingList
	if err := s.get("/pairing", &list); err != nil {
		if s.ctx.Err() != nil {
			return nil, errInterrupted
		}
		if no := (*refusal)(nil); errors.As(err, &no) || s.elsewhere != "" || s.leave() != nil {
			return nil, fmt.Errorf("%w%s", err, s.again(p.name))
		}
		s.read = false // the next daemon may be another
	} else if err := s.same(p.name); err != nil {
		return nil, err
	}
	for _, r := range list.Redeemed {
		if r.Code == p.invitation.Code {
			return &storage.Grant{Connector: r.Connector, Subject: r.Subject, Name: r.Name}, nil
		}
	}
	p.grants = peopleOf(list.Grants, p.name)
	if !time.Now().Before(p.invitation.Expires.Time()) {
		return nil, errUnused
	}
	return nil, nil
}

// errUnused is of a pairing whose link or code has expired.
var errUnused = errors.New("no person used the link or code while it was valid")

// advance does what can be done of a pairing now. It returns the person once there is one.
func (s *guide) advance(p *pairing) (*storage.Grant, error) {
	switch {
	case !p.up:
		return nil, s.runs(p)
	case p.invitation == nil:
		return nil, s.invite(p)
	}
	return s.redeemed(p)
}
