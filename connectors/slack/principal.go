package slack

import (
	"cmp"
	"strings"

	"github.com/claybot/claybot"
)

// home is the workspace whose users have ids without a prefix: the bot's own one, or with several
// workspaces the first that installed the app.
func (i identity) home() string { return cmp.Or(i.Home, i.Team) }

// qualified returns the id of a user of a workspace.
func (i identity) qualified(team, user string) string {
	if team == i.home() {
		return user
	}
	return team + "/" + user
}

// local returns the id by which Slack knows a user, and their workspace.
func (i identity) local(id string) (user, team string) {
	if team, user, ok := strings.Cut(id, "/"); ok {
		return user, team
	}
	if id == "" || id == claybot.Everyone {
		return id, i.Team
	}
	return id, i.home()
}

// me is the identity of the bot as far as it is known.
func (c *Connector) me() identity {
	if self := c.self.Load(); self != nil {
		return *self
	}
	if x := c.cfg.Installed; x != nil {
		return identity{Team: x.Team, Home: x.Home}
	}
	return identity{}
}

// local returns the id by which Slack knows a user, and whether they are of the bot's own workspace.
func (c *Connector) local(id string) (user string, own bool) {
	me := c.me()
	user, team := me.local(id)
	return user, team == me.Team
}

// principal returns who acts: a user in a channel, qualified against the workspace that
// auth.test named. It is the only constructor of identities: messages, slash commands,
// buttons and forms go through it. teams is what the payload says about the user's
// workspace; the first that is not empty counts. User ids are unique only within a
// workspace, so users of others than home are TEAM/USER. outsider says that they are of another one than the bot. ok is false if the payload
// does not say who acts, where or of which workspace.
func (i identity) principal(connector, channel, user string, teams ...string) (d claybot.Descriptor, outsider, ok bool) {
	team := ""
	for _, t := range teams {
		if t != "" {
			team = t
			break
		}
	}
	for _, id := range []string{i.Team, team, channel, user} {
		if id == "" || strings.ContainsRune(id, '/') {
			return d, false, false
		}
	}
	return claybot.User(connector, i.Team+"/"+channel, i.qualified(team, user)), team != i.Team, true
}
