package main

import (
	"context"
	"slices"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// welcomeEvery is how often claybot looks whether a bot knows its name by now.
const welcomeEvery = 250 * time.Millisecond

// welcome shows a pairing link on the terminal for each bot that has links and to which no person
// or group has access yet, once the bot is connected, also for those that a reload brings or an operator starts, until ctx
// is done. The link stands in no log: it gives access.
func (d *daemon) welcome(ctx context.Context) {
	if d.greet == nil {
		return
	}
	var done map[connectors.Connector]bool
	for ctx.Err() == nil {
		changed := d.roster.changed()
		done = d.welcomeAll(ctx, done)
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// welcomeAll shows the links of the bots but for those that are done, and returns when each is
// decided about, or ctx is done.
func (d *daemon) welcomeAll(ctx context.Context, done map[connectors.Connector]bool) map[connectors.Connector]bool {
	for {
		now, waits := make(map[connectors.Connector]bool), false
		for _, c := range d.roster.present() {
			bot, ok := c.(connectors.Inviter)
			switch stopped := d.orderOf(c.Name()) != nil; {
			case !ok:
			case done[c], stopped: // one that is stopped is decided about when it is started
				now[c] = done[c]
			default:
				now[c] = d.welcomed(ctx, bot)
				waits = waits || !now[c]
			}
		}
		done = now
		if !waits || !connectors.Sleep(ctx, welcomeEvery) {
			return done
		}
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
