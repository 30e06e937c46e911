package slack

import (
	"strings"

	"github.com/claybot/claybot"
)

// principal returns who acts: a user in a channel, qualified against the workspace that
// auth.test named. It is the only constructor of identities: messages, slash commands,
// buttons and forms go through it. teams is what the payload says about the user's
// workspace; the first that is not empty counts. User ids are unique only within a
// workspace, so users of others are TEAM/USER, and outsider. ok is false if the payload
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
	if team != i.Team {
		user, outsider = team+"/"+user, true
	}
	return claybot.User(connector, i.Team+"/"+channel, user), outsider, true
}
