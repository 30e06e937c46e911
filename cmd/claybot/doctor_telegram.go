package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/telegram"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/storage/sqlite"
)

// platformTime bounds a question to a platform.
const platformTime = 10 * time.Second

// bot returns the bot of a Telegram connector.
func bot(name string, s *configs.Telegram) *telegram.Connector {
	return telegram.New(telegram.Config{Name: name, Token: s.Token.Value(), BaseURL: s.APIURL, Log: slog.New(slog.DiscardHandler)})
}

// privacy asks Telegram whether the bot sees all messages of the groups whose profiles have
// context, or respond to messages without a mention. Without such groups it asks nothing.
func (d *doctor) privacy(ctx context.Context, name string, s *configs.Telegram) {
	groups := d.groups(ctx, name, func(p configs.Profile) bool {
		context := p.Context != nil && *p.Context > 0 && p.Respond != profiles.RespondOff
		return context || p.Respond == profiles.RespondThread || p.Respond == profiles.RespondAll
	})
	if len(groups) == 0 {
		return
	}
	c := bot(name, s)
	all, err := c.SeesAll(ctx)
	if all {
		d.ok("sees all messages of groups, because its privacy mode is off")
		return
	}
	for _, group := range groups {
		admin := false
		if err == nil {
			admin, err = c.Administers(ctx, group)
		}
		switch {
		case err != nil:
			d.warn("connector-failing", fmt.Sprintf("cannot find out whether the bot sees all messages of the group %s: %s", group, reason(err)), keepsTrying)
			return
		case !admin:
			d.warn("telegram-privacy-on", fmt.Sprintf("sees only mentions, replies and commands in the group %s, because its privacy mode is on and it is not an administrator there; context and respond need all messages", group),
				"turn privacy mode off with /setprivacy at @BotFather and add the bot to the group again, or make it an administrator there")
		default:
			d.ok("sees all messages of the group " + group)
		}
	}
}

// reactions asks Telegram whether the bot is an administrator of the groups in which
// reactions stop or approve: it learns of none there otherwise. Without such groups it
// asks nothing.
func (d *doctor) reactions(ctx context.Context, name string, s *configs.Telegram) {
	groups := d.groups(ctx, name, func(p configs.Profile) bool { return len(p.Reactions.Stop)+len(p.Reactions.Approve) > 0 })
	if len(groups) == 0 {
		return
	}
	c := bot(name, s)
	for _, group := range groups {
		admin, err := c.Administers(ctx, group)
		switch {
		case err != nil:
			d.warn("connector-failing", fmt.Sprintf("cannot find out whether the bot is an administrator of the group %s, which reactions need: %s", group, reason(err)), keepsTrying)
		case !admin:
			d.warn("telegram-not-admin", fmt.Sprintf("reactions do nothing in the group %s, because the bot is not an administrator there", group),
				"make the bot an administrator of the group; it needs no further rights")
		default:
			d.ok("takes reactions in the group " + group)
		}
	}
}

// groups returns the groups of a Telegram connector that have access, by the configuration or
// by an operator, and a profile that asks for something. Of a database on a server it knows those
// of the configuration alone.
func (d *doctor) groups(ctx context.Context, name string, asks func(configs.Profile) bool) (groups []string) {
	known, _ := d.admitted(ctx, name)
	for _, p := range d.config.Agents.Profiles {
		for _, match := range p.Match {
			if group, ok := strings.CutPrefix(match, name+":"); ok {
				known = append(known, group)
			}
		}
	}
	slices.Sort(known)
	for _, group := range slices.Compact(known) {
		if strings.HasPrefix(group, "-") && asks(d.config.Profile(claybot.User(name, group, ""))) {
			groups = append(groups, group)
		}
	}
	return groups
}

// admitted returns the people and groups of a connector with access, by the configuration or by an
// operator. all is false where it cannot know those of an operator: a database on a server, or
// one that cannot be read, which another check reports.
func (d *doctor) admitted(ctx context.Context, name string) (known []string, all bool) {
	for _, x := range d.config.Access.Allow {
		if x.Connector == name {
			known = append(known, x.Subject)
		}
	}
	if d.config.Storage.Shared() {
		return known, false
	}
	granted, err := sqlite.LookGranted(ctx, filepath.Join(d.config.DataDir, "claybot.db"), d.holder == "", name)
	return append(known, granted...), err == nil || errors.Is(err, fs.ErrNotExist)
}

// paired says how the first person gets access to a bot. It makes no link: a link gives access.
func (d *doctor) paired(ctx context.Context, name string) {
	known, all := d.admitted(ctx, name)
	if d.config.Access.Mode != configs.AccessPairing || !all || len(known) > 0 {
		return
	}
	command := "claybot pair link"
	if name != platforms.Telegram {
		command += " " + name
	}
	d.say(postgres.CodeOK, postgres.LevelOK, "no person or group has access yet", "while claybot serve runs, "+command+" prints a link that gives one person access")
}
