package agentsystem

import (
	"context"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// A spelling finds what was stored of a chat before it got a new id. The ids of its messages stay,
// but claybot stores them with that of the chat.
type spelling struct {
	people    *people.Directory
	connector func(name string) connectors.Connector
}

// channels returns the ids of a chat under which messages of it may be stored: the one that is
// named first. If a connector follows a chat to its new id by itself, its platform counts the
// messages there anew: then no other id says anything about one.
func (s spelling) channels(connector, channel string) []string {
	all := []string{channel}
	if _, anew := s.connector(connector).(connectors.MoveFollower); anew {
		return all
	}
	now := s.people.Current(connector, channel)
	for _, id := range append([]string{now}, s.people.Former(connector, now)...) {
		if id != channel {
			all = append(all, id)
		}
	}
	return all
}

// find is storage.Receipts.FindMessages for a message that its platform names by another id of
// the chat than the one that was stored.
func (s spelling) find(ctx context.Context, in storage.Receipts, connector, channel string, ref claybot.MessageID) ([]claybot.MessageID, error) {
	refs, all := []string{string(ref)}, s.channels(connector, channel)
	part := func(id string) string { return "/" + id + "/" }
	if i := slices.IndexFunc(all, func(id string) bool { return strings.Contains(string(ref), part(id)) }); i >= 0 {
		for _, id := range slices.Delete(slices.Clone(all), i, i+1) {
			refs = append(refs, strings.Replace(string(ref), part(all[i]), part(id), 1))
		}
	}
	for _, ref := range refs {
		if ids, err := in.FindMessages(ctx, ref); err != nil || len(ids) > 0 {
			return ids, err
		}
	}
	return nil, nil
}
