package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// owner pairs the first operator with a bot: the person who opens a link, or sends a code, that this
// terminal alone shows. No other person gets access. bot is the name of a Telegram bot.
func (s *setup) owner(name, bot string) error {
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
	if o := operatorOf(config, known); o != "" {
		s.say("✓ %s: %s is an operator.\n", name, o)
		return nil
	}
	p := &pairing{name: name, bot: bot, known: known}
	for !p.up {
		if err := s.runs(p); err != nil {
			return err
		}
		if !p.up && !connectors.Sleep(s.ctx, setupEvery) {
			return errInterrupted
		}
	}
	if done, err := s.recognize(known, name); done || err != nil {
		return err
	}
	who, err := s.paired(p)
	if err != nil {
		return err
	}
	if s.daemon != nil {
		s.delivered()
	}
	return s.operate(who, " The bot has greeted you.")
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

// paired shows the link or the code of a pairing, and waits until a person has used it.
func (s *setup) paired(p *pairing) (who storage.Grant, err error) {
	seen := make(map[string]int)
	for {
		shown := p.invitation != nil
		one, err := s.advance(p)
		switch {
		case errors.Is(err, errUnused):
			return who, fmt.Errorf("%w; get another one: claybot setup %s", err, p.name)
		case err != nil:
			return who, err
		case one != nil:
			return *one, nil
		case p.invitation != nil && !shown:
			s.invites(*p.invitation)
		}
		for _, g := range p.grants {
			new := !slices.ContainsFunc(p.known, func(k storage.Grant) bool { return k.Subject == g.Subject })
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
}

// invites shows a link or a code.
func (s *setup) invites(i web.Invitation) {
	s.say("\n%s", invitationText(i))
	if i.URL != "" && isTerminal(s.out) {
		fmt.Fprint(s.out, "\n"+picture(i.URL))
	}
	s.say("\nWaiting for you … (Ctrl-C ends setup, and keeps what is done)\n")
}
