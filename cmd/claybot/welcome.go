package main

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// welcomeEvery is how often claybot looks whether a bot knows its name by now.
const welcomeEvery = 250 * time.Millisecond

// welcome shows a pairing link on the terminal for each bot that has links and to which no person
// or group has access yet, once the bot is connected, also for those that a reload brings. The link stands in no log: it gives access.
func (d *daemon) welcome(ctx context.Context) {
	if d.greet == nil {
		return
	}
	var done map[connectors.Connector]bool
	for {
		changed, waits := d.roster.changed(), false
		known := done
		done = make(map[connectors.Connector]bool)
		for _, c := range d.roster.all() {
			if bot, ok := c.(connectors.Inviter); ok {
				done[c] = known[c] || d.welcomed(ctx, bot)
				waits = waits || !done[c]
			}
		}
		soon := time.Duration(math.MaxInt64)
		if waits {
			soon = welcomeEvery
		}
		timer := time.NewTimer(soon)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// welcomed shows the pairing link of a bot, if it needs one. It reports false while that is unknown.
// An open link stays valid: it may have been passed on.
func (d *daemon) welcomed(ctx context.Context, bot connectors.Inviter) bool {
	if h := bot.Health(); h.State == connectors.StateStopped {
		return true
	}
	if bot.Invitation("") == "" {
		return false
	}
	if d.config.Load().Access.Mode != configs.AccessPairing || d.stores.members.Mixed() {
		return true
	}
	grants, err := d.system.People.Grants(ctx)
	of := func(g storage.Grant) bool { return g.Connector == bot.Name() }
	allowed := func(a configs.Allowed) bool { return a.Connector == bot.Name() }
	if err == nil && (slices.ContainsFunc(grants, of) || slices.ContainsFunc(d.config.Load().Access.Allow, allowed)) {
		return true
	}
	var p storage.Pairing
	open := false
	if err == nil {
		p, open, err = d.system.People.Invited(ctx, bot.Name())
	}
	if err == nil && !open {
		p, err = d.system.People.Invite(ctx, bot.Name())
	}
	if err != nil {
		d.log.Warn("failed to make a pairing link", "connector", bot.Name(), "err", err, "next", "claybot pair link "+bot.Name())
		return true
	}
	link := bot.Invitation(p.Code)
	d.greet("\nNo person has access to " + bot.Name() + " yet. " + pairingText(link, p.Expires) + "\n" + picture(link) + "\n")
	return true
}
