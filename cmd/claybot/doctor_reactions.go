package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/telegram"
	"github.com/claybot/claybot/storage/sqlite"
)

// reactionTime bounds the question to Telegram about one group.
const reactionTime = 10 * time.Second

// reactions asks Telegram whether the bot is an administrator of the groups in which
// reactions stop or approve: it learns of none there otherwise. Without such groups it
// asks nothing.
func (d *doctor) reactions(ctx context.Context, name string, s *configs.Telegram) {
	groups := d.reactingGroups(ctx, name)
	if len(groups) == 0 {
		return
	}
	c := telegram.New(telegram.Config{Name: name, Token: s.Token.Value(), BaseURL: s.APIURL, Log: slog.New(slog.DiscardHandler)})
	for _, group := range groups {
		ctx, cancel := context.WithTimeout(ctx, reactionTime)
		admin, err := c.Administers(ctx, group)
		cancel()
		switch {
		case err != nil:
			d.warn(fmt.Sprintf("cannot find out whether the bot is an administrator of the group %s, which reactions need: %s", group, reason(err)), "")
		case !admin:
			d.warn(fmt.Sprintf("reactions do nothing in the group %s, because the bot is not an administrator there", group),
				"make the bot an administrator of the group; it needs no further rights")
		default:
			d.ok("takes reactions in the group " + group)
		}
	}
}

// reactingGroups returns the groups of a Telegram connector that have access, by the
// configuration or by an operator, and whose profile has reactions that stop or approve. Of
// a database on a server it knows those of the configuration alone.
func (d *doctor) reactingGroups(ctx context.Context, name string) (groups []string) {
	var known []string
	for _, x := range d.config.Access.Allow {
		if x.Connector == name {
			known = append(known, x.Subject)
		}
	}
	for _, p := range d.config.Agents.Profiles {
		for _, match := range p.Match {
			if group, ok := strings.CutPrefix(match, name+":"); ok {
				known = append(known, group)
			}
		}
	}
	if !d.config.Storage.Shared() {
		granted, err := sqlite.LookGranted(ctx, filepath.Join(d.config.DataDir, "claybot.db"), d.holder == "", name)
		if err == nil { // another check reports a database that cannot be read
			known = append(known, granted...)
		}
	}
	slices.Sort(known)
	for _, group := range slices.Compact(known) {
		r := d.config.Profile(claybot.User(name, group, "")).Reactions
		if strings.HasPrefix(group, "-") && len(r.Stop)+len(r.Approve) > 0 {
			groups = append(groups, group)
		}
	}
	return groups
}
