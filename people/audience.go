package people

import (
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/platforms"
)

// AudienceOf returns who can read the conversation of an agent. Of an agent that has none
// of its own, such as that of a task, r says where it answers.
func (dir *Directory) AudienceOf(d claybot.Descriptor, r claybot.Route) claybot.Audience {
	a := claybot.Audience{Owner: d.OwnerID()}
	if d.Foreground() {
		r = claybot.Route{Connector: d.Connector, ChannelID: d.ChannelID, UserID: d.UserID}
	}
	r = dir.Moves.Route(r)
	if r.Connector != "" && r.ChannelID != "" && !dir.cfg.Instances().Direct(r.Connector, r.ChannelID, r.UserID) {
		a.Place = r.Connector + "/" + r.ChannelID
	}
	return a
}

// Discloses reports whether what one audience can read would be readable by more people
// if it came to another one. What agents without an owner know is the operators' to give.
func (dir *Directory) Discloses(source, sink claybot.Audience) bool {
	source, sink = placed(source), placed(sink)
	switch {
	case source == (claybot.Audience{}) || source == claybot.Everybody:
		return false
	case source.Owner == sink.Owner && dir.webhook(source.Owner): // all that it says goes to one place
		return false
	case sink.Place != "":
		return source.Place != sink.Place
	}
	return sink.Owner == "" || !slices.Contains(dir.Identities(source.Owner), sink.Owner)
}

// placed is a with its place, if its owner is a group that shares an agent: all members read
// what that agent and its notes have.
func placed(a claybot.Audience) claybot.Audience {
	if place, shared := claybot.SharedPlace(a.Owner); shared && a.Place == "" {
		a.Place = place
	}
	return a
}

// webhook reports whether an owner is a webhook.
func (dir *Directory) webhook(owner string) bool {
	connector, _, _ := strings.Cut(owner, "/")
	return dir.cfg.Instances().Type(connector) == platforms.Webhook
}
