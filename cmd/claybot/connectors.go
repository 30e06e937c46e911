package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/connectors/discord"
	"github.com/claybot/claybot/connectors/heartbeat"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/telegram"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// constructors make the connectors of an instance, by its type. A new type is its package
// and a line here.
var constructors = map[string]func(d *daemon, c configs.Config, i configs.Instance) connectors.Connector{
	platforms.Telegram: newTelegram,
	platforms.Slack:    newSlack,
	platforms.Discord:  newDiscord,
	platforms.Webhook:  newWebhook,
}

// gateOf returns the gate of an instance.
func (d *daemon) gateOf(i configs.Instance) connectors.Gate {
	return d.config.gate(func(c configs.Config) string { return c.Connectors.Off(i.Name) })
}

func newTelegram(d *daemon, c configs.Config, i configs.Instance) connectors.Connector {
	s := i.Settings.(*configs.Telegram) //nolint:forcetypeassert // the type says so
	cfg := telegram.Config{
		Name: i.Name, Token: s.Token.Value(), BaseURL: s.APIURL, Log: d.log, Gate: d.gateOf(i), TokenName: i.Names()[0],
		LocalFiles: s.LocalFiles, Delivery: s.Delivery, OnAmbiguous: s.OnAmbiguous, Marks: d.stores.db,
		Rate: telegram.Rate(s.Rate), Nodes: d.stores.memberCount(),
		Operators: func() (ids []string) {
			for _, o := range d.system.People.Operators() {
				if id, ours := strings.CutPrefix(o, i.Name+"/"); ours {
					ids = append(ids, id)
				}
			}
			return ids
		},
	}
	if s.Hooked() {
		cfg.Hook = hookURL(c, "", i.Name)
	}
	return telegram.New(cfg)
}

func newSlack(d *daemon, c configs.Config, i configs.Instance) connectors.Connector {
	s := i.Settings.(*configs.Slack) //nolint:forcetypeassert // the type says so
	names := i.Names()
	cfg := slack.Config{
		Name: i.Name, BotToken: s.BotToken.Value(), AppToken: s.AppToken.Value(), APIURL: s.APIURL, Log: d.log, Gate: d.gateOf(i),
		BotTokenName: names[0], AppTokenName: i.NameOf("app_token", "SLACK_APP_TOKEN", s.AppToken), SigningSecretName: names[1], Bots: &d.bots,
		Marks: d.stores.db, Nodes: d.stores.memberCount(), NoBackfill: !s.Backfill,
		Mixed: d.stores.members.Mixed, Without: slackWithout(c, i.Name, s),
	}
	if s.Feedback {
		cfg.Feedback = func(to claybot.Descriptor) bool { return d.profile(to).Reactions.Rated() }
	}
	if s.Rotates() {
		cfg.Rotation = &slack.Rotation{
			ClientID: s.ClientID, ClientSecret: s.ClientSecret.Value(), RefreshToken: s.Refresh.Value(), ClientIDName: clientIDName(i), ClientSecretName: names[2],
			Secrets: d.stores.secrets(slack.Folder),
		}
	}
	if s.Hooked() {
		cfg.Hook, cfg.SigningSecret = hookURL(c, "", i.Name), s.Signing.Value()
	}
	if s.Install {
		return slack.NewWorkspaces(cfg, slackOAuth(c, i, s, d.stores.secrets(slack.Folder)))
	}
	return slack.New(cfg)
}

// clientIDName is how the operator sets the client ID of a Slack app.
func clientIDName(i configs.Instance) string {
	return i.NameOf("client_id", "SLACK_CLIENT_ID", configs.Secret{})
}

func newDiscord(d *daemon, _ configs.Config, i configs.Instance) connectors.Connector {
	s := i.Settings.(*configs.Discord) //nolint:forcetypeassert // the type says so
	return discord.New(discord.Config{
		Name: i.Name, Token: s.Token.Value(), BaseURL: s.APIURL, Log: d.log, Gate: d.gateOf(i), TokenName: i.Names()[0], Bots: &d.bots,
		Marks: d.stores.db, Nodes: d.stores.memberCount(),
	})
}

// addSchedules adds cron and the heartbeat.
func (d *daemon) addSchedules(c configs.Config) {
	s, people := d.stores, d.system.People
	if c.Schedule.Cron.Enabled {
		tree, dir := s.folder(cron.Layout)
		tasks := cron.New(cron.Config{
			Dir: filepath.Join(c.DataDir, cron.Layout.Folder), TaskDir: dir, Tree: tree, Claims: s.db, Node: s.members.Node, Ledger: s.db, Index: s.db, Log: d.log,
			Gate: d.config.gate(func(c configs.Config) string { return c.Schedule.Cron.Off() }),
			Limits: func() cron.Limits {
				now := d.config.Load().Schedule.Cron
				return cron.Limits{Tasks: now.MaxTasks, Hourly: now.MaxNewPerHour}
			},
			Person: func(owner string) string { return people.Identities(owner)[0] },
			Zone:   d.zone, Gates: c.Schedule.Cron.Gates, Known: d.roster.sends, Notice: people.Notify, Unusable: d.system.Unusable,
			Dead: d.system.DeadRoute, Flow: d.library.fires,
		})
		d.library.tasks = tasks
		d.roster.add(tasks)
		d.tooling.box.tasks, d.tooling.box.memories = tasks, tasks
	} else if why := c.Schedule.Cron.Off(); why != "" {
		d.roster.add(offConnector{"cron", why})
	}
	if c.Schedule.Heartbeat.Enabled {
		tree, _ := s.folder(heartbeat.Layout)
		heartbeats := heartbeat.New(heartbeat.Config{
			Dir: filepath.Join(c.DataDir, heartbeat.Layout.Folder), Tree: tree, Claims: s.db, Node: s.members.Node, Receipts: s.db, Log: d.log,
			Gate:  d.config.gate(func(c configs.Config) string { return c.Schedule.Heartbeat.Off() }),
			Place: d.livePlace,
			Notice: func(ctx context.Context, key string, say func(texts.Voice) string) error {
				return people.Notify(ctx, "", key, say)
			},
			Settings: func() heartbeat.Settings {
				h := d.config.Load().Schedule.Heartbeat
				return heartbeat.Settings{
					Every: h.Every, ActiveHours: h.ActiveHours, Zone: h.Zone,
					MaxUnattended: h.MaxUnattended, Route: h.Route, Gates: h.Gates,
				}
			},
		})
		d.roster.add(heartbeats)
		d.tooling.box.heartbeats = heartbeats
	} else if why := c.Schedule.Heartbeat.Off(); why != "" {
		d.roster.add(offConnector{"heartbeat", why})
	}
}

// language is that of people whose own one is unknown.
func (d *daemon) language() texts.Language { return texts.Language(d.config.Load().Language) }

// replaced are the texts that the configuration replaces.
func (d *daemon) replaced() texts.Replaced { return d.config.Load().Texts.By() }

// livePlace is where the heartbeat answers: nowhere while the route there is dead.
func (d *daemon) livePlace(ctx context.Context) (claybot.Route, claybot.Time, error) {
	r, at, err := d.system.People.Foreground(ctx)
	if err != nil {
		return r, at, err
	}
	if why, _ := d.system.DeadRoute(r); why != "" {
		return claybot.Route{}, 0, fmt.Errorf("the route %s/%s is dead: %s: %w", r.Connector, r.ChannelID, why, storage.ErrNotFound)
	}
	return r, at, nil
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
func (c offConnector) Health() connectors.Health { return connectors.SwitchedOff(c.why) }
