package main

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/connectors/heartbeat"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/telegram"
)

// A roster is all connectors of a daemon.
type roster []connectors.Connector

// sends reports whether a connector of that name can send.
func (r *roster) sends(name string) bool {
	return slices.ContainsFunc(*r, func(c connectors.Connector) bool {
		_, sends := c.(connectors.Sender)
		return sends && c.Name() == name
	})
}

// settled reports whether every connector has had its first success or has given up, and
// lists those that fail. A page whose port is taken does not count: the port may stay
// taken.
func (r *roster) settled(page connectors.Connector) (settled bool, failing []string) {
	settled = true
	for _, c := range *r {
		h := c.Health()
		settled = settled && (h.Settled() || h.State == connectors.StateFailing && c == page)
		if !h.Well() {
			failing = append(failing, c.Name()+": "+strings.TrimPrefix(h.Err, c.Name()+": "))
		}
	}
	return settled, failing
}

// addPlatforms adds the connectors to chat platforms that the configuration asks for.
func (d *daemon) addPlatforms(c configs.Config) {
	off := func(c configs.Config) string { return c.Connectors.Telegram.Off() }
	if why := c.Connectors.Telegram.Off(); why != "" {
		d.chats = append(d.chats, offConnector{"telegram", why})
	} else if c.Connectors.Telegram.Wanted() {
		d.chats = append(d.chats, gatedTelegram{telegram.New(telegram.Config{
			Name: "telegram", Token: c.Connectors.Telegram.Token.Value(), BaseURL: c.Connectors.Telegram.APIURL, Log: d.log, Off: d.config.off(off),
			Delivery: c.Connectors.Telegram.Delivery, OnAmbiguous: c.Connectors.Telegram.OnAmbiguous, Marks: d.stores.db,
		}), d.config.gate(off)})
	}
	off = func(c configs.Config) string { return c.Connectors.Slack.Off() }
	if why := c.Connectors.Slack.Off(); why != "" {
		d.chats = append(d.chats, offConnector{"slack", why})
	} else if c.Connectors.Slack.Wanted() {
		d.chats = append(d.chats, gatedSlack{slack.New(slack.Config{
			Name: "slack", BotToken: c.Connectors.Slack.BotToken.Value(), AppToken: c.Connectors.Slack.AppToken.Value(), APIURL: c.Connectors.Slack.APIURL, Log: d.log, Marks: d.stores.db,
			Nodes: d.stores.memberCount(), NoBackfill: !c.Connectors.Slack.Backfill, Off: d.config.off(off),
		}), d.config.gate(off)})
	}
}

// addSchedules adds cron and the heartbeat.
func (d *daemon) addSchedules(c configs.Config) {
	s, people := d.stores, d.system.People
	if c.Schedule.Cron.Enabled {
		tree, dir := s.folder(cron.Layout)
		tasks := cron.New(cron.Config{
			Dir: filepath.Join(c.DataDir, cron.Layout.Folder), TaskDir: dir, Tree: tree, Claims: s.db, Node: s.members.Node, Ledger: s.db, Index: s.db, Log: d.log,
			Limits: func() cron.Limits {
				now := d.config.Load().Schedule.Cron
				return cron.Limits{Tasks: now.MaxTasks, Hourly: now.MaxNewPerHour}
			},
			Person: func(owner string) string { return people.Identities(owner)[0] },
			Zone:   d.zone, Gates: c.Schedule.Cron.Gates, Known: d.chats.sends, Notice: people.Notify, Unusable: d.system.Unusable,
		})
		d.chats = append(d.chats, gatedCron{tasks, d.config.gate(func(c configs.Config) string { return c.Schedule.Cron.Off() })})
		d.tooling.box.tasks, d.tooling.box.memories = tasks, tasks
	} else if why := c.Schedule.Cron.Off(); why != "" {
		d.chats = append(d.chats, offConnector{"cron", why})
	}
	if c.Schedule.Heartbeat.Enabled {
		tree, _ := s.folder(heartbeat.Layout)
		heartbeats := heartbeat.New(heartbeat.Config{
			Dir: filepath.Join(c.DataDir, heartbeat.Layout.Folder), Tree: tree, Claims: s.db, Node: s.members.Node, Receipts: s.db, Log: d.log,
			Place:  people.Foreground,
			Notice: func(ctx context.Context, key, text string) error { return people.Notify(ctx, "", key, text) },
			Settings: func() heartbeat.Settings {
				h := d.config.Load().Schedule.Heartbeat
				return heartbeat.Settings{
					Every: h.Every, ActiveHours: h.ActiveHours, Zone: h.Zone,
					MaxUnattended: h.MaxUnattended, Route: h.Route, Gates: h.Gates,
				}
			},
		})
		d.chats = append(d.chats, gatedHeartbeat{heartbeats, d.config.gate(func(c configs.Config) string { return c.Schedule.Heartbeat.Off() })})
		d.tooling.box.heartbeats = heartbeats
	} else if why := c.Schedule.Heartbeat.Off(); why != "" {
		d.chats = append(d.chats, offConnector{"heartbeat", why})
	}
}

// zone is the time zone of schedules and of the times that users write.
func (d *daemon) zone() *time.Location { return d.config.Load().Schedule.Cron.Zone }

// An offConnector stands for a connector that a bad setting switches off. It is stopped,
// and messages for it wait in the outbox.
type offConnector struct{ name, why string }

var _ connectors.Connector = offConnector{}

// Name implements connectors.Connector.
func (c offConnector) Name() string { return c.name }

// Run implements connectors.Connector.
func (c offConnector) Run(context.Context, connectors.Handler) error {
	return &connectors.PermanentError{Err: errors.New(c.why)}
}

// Health implements connectors.Connector.
func (c offConnector) Health() connectors.Health { return offHealth(c.why) }

// correctConnector is the next step for settings that switch a connector off.
const correctConnector = "Correct it, then restart claybot."

func offHealth(why string) connectors.Health {
	return connectors.Health{State: connectors.StateStopped, Err: why + ". " + correctConnector}
}

// The connectors with a gate keep all their optional interfaces.
type (
	gatedTelegram struct {
		*telegram.Connector
		gate gate
	}
	gatedSlack struct {
		*slack.Connector
		gate gate
	}
	gatedCron struct {
		*cron.Cron
		gate gate
	}
	gatedHeartbeat struct {
		*heartbeat.Heartbeat
		gate gate
	}
)

// Run implements connectors.Connector.
func (s gatedTelegram) Run(ctx context.Context, h connectors.Handler) error {
	return s.gate.run(ctx, func(ctx context.Context) error { return s.Connector.Run(ctx, h) })
}

// Run implements connectors.Connector.
func (s gatedSlack) Run(ctx context.Context, h connectors.Handler) error {
	return s.gate.run(ctx, func(ctx context.Context) error { return s.Connector.Run(ctx, h) })
}

// Run implements connectors.Connector.
func (s gatedCron) Run(ctx context.Context, h connectors.Handler) error {
	return s.gate.run(ctx, func(ctx context.Context) error { return s.Cron.Run(ctx, h) })
}

// Run implements connectors.Connector.
func (s gatedHeartbeat) Run(ctx context.Context, h connectors.Handler) error {
	return s.gate.run(ctx, func(ctx context.Context) error { return s.Heartbeat.Run(ctx, h) })
}

// Health implements connectors.Connector.
func (s gatedTelegram) Health() connectors.Health { return s.gate.health(s.Connector.Health()) }

// Health implements connectors.Connector.
func (s gatedSlack) Health() connectors.Health { return s.gate.health(s.Connector.Health()) }

// Health implements connectors.Connector.
func (s gatedCron) Health() connectors.Health { return s.gate.health(s.Cron.Health()) }

// Health implements connectors.Connector.
func (s gatedHeartbeat) Health() connectors.Health { return s.gate.health(s.Heartbeat.Health()) }
