package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

const (
	// gapChats bounds how many chats one gap concerns, and gapThreads how many
	// threads of each.
	gapChats   = 500
	gapThreads = 20
	// gapRecent is how long before a gap a person must have written for their chat to be
	// notified when the source cannot say which are concerned.
	gapRecent = 30 * 24 * time.Hour
)

// A notices sends notices of claybot itself to chats.
type notices struct {
	index  Index
	people *people.Directory
	sender *delivery.Deliverer
	gaps   *gaps
	// members: one at a time handles a gap of all chats of a connector.
	members *cluster.Membership
	log     *slog.Logger
}

// recent is AgentSystem.Recent.
func (n *notices) recent(ctx context.Context, connector, prefix string, since time.Time) (chats []connectors.Chat, more int, err error) {
	listed := make(map[string]int) // in chats; -1: it is not listed
	wanted := func(channel string) bool {
		if !strings.HasPrefix(channel, prefix) {
			return false
		}
		if _, known := listed[channel]; !known && len(chats) == gapChats {
			listed[channel], more = -1, more+1
		}
		return listed[channel] >= 0
	}
	err = n.chatsSince(ctx, connector, since, wanted, func(r claybot.Route, _ storage.IndexEntry) (bool, error) {
		i, known := listed[r.ChannelID]
		if !known {
			i, chats = len(chats), append(chats, connectors.Chat{ChannelID: r.ChannelID})
			listed[r.ChannelID] = i
		}
		switch c := &chats[i]; {
		case r.ThreadID == "" || slices.Contains(c.Threads, r.ThreadID):
		case len(c.Threads) == gapThreads:
			more++
		default:
			c.Threads = append(c.Threads, r.ThreadID)
		}
		return true, nil
	})
	return chats, more, err
}

// chatsSince calls fn for each route where a person who still has access wrote last, at
// since or later, in a channel that is wanted, the newest first, until fn returns false.
func (n *notices) chatsSince(ctx context.Context, connector string, since time.Time, wanted func(channel string) bool, fn func(claybot.Route, storage.IndexEntry) (bool, error)) error {
	for e, err := range n.index.Foreground(ctx, nil) {
		if err != nil {
			return fmt.Errorf("find the chats of a gap: %w", err)
		}
		if e.LastUserAt.Time().Before(since) {
			return nil
		}
		if e.Descriptor.Connector != connector || !wanted(e.Descriptor.ChannelID) {
			continue
		}
		last, err := n.people.LastContext(ctx, e.ID)
		if err != nil {
			return err
		}
		r := claybot.AgentMessage{Context: last}.ReplyRoute(e.Descriptor)
		if !n.people.MayReceive(claybot.Outgoing{Route: r}) {
			continue
		}
		if more, err := fn(r, e); err != nil || !more {
			return err
		}
	}
	return nil
}

// missed is AgentSystem.Missed.
func (n *notices) missed(ctx context.Context, m connectors.Missed) (untold int, err error) {
	since := time.Unix(0, 0)
	if m.Channels == nil {
		var hold *cluster.Hold
		if hold, err = n.members.Claim(ctx, "gap/"+m.Connector); err != nil {
			return 0, fmt.Errorf("handle a gap of %s: %w", m.Connector, err) // the source tries again
		}
		defer func() { err = errors.Join(err, hold.Yield(ctx, false)) }()
		if m, err = n.gaps.outage(ctx, m); err != nil {
			return 0, err
		}
		since = m.From.Add(-gapRecent)
	}
	told, left := make(map[string]bool), make(map[string]bool)
	wanted := func(channel string) bool {
		if told[channel] || m.Channels != nil && !slices.Contains(m.Channels, channel) {
			return false
		}
		if len(told) == gapChats {
			left[channel] = true
		}
		return !left[channel]
	}
	err = n.chatsSince(ctx, m.Connector, since, wanted, func(r claybot.Route, agent storage.IndexEntry) (bool, error) {
		if m.Flat {
			r.ThreadID = ""
		}
		if err := n.sender.SendOnce(ctx, claybot.Outgoing{Kind: claybot.OutgoingNotice, Agent: agent.ID, Route: r}, fmt.Sprintf("gap/%s/%s/%d", m.Connector, r.ChannelID, m.From.Unix()), n.people.VoiceAt(ctx, agent.Descriptor, r).Gap(m)); err != nil {
			return false, fmt.Errorf("notify %s of a gap: %w", r.ChannelID, err)
		}
		told[r.ChannelID] = true
		return len(told) != len(m.Channels), nil
	})
	if err == nil && m.Channels == nil {
		err = n.gaps.missed(ctx, m)
	}
	n.log.Warn("messages may be missing", "connector", m.Connector, "from", m.From.UTC(), "to", m.To.UTC(), "chats", len(told), "untold", len(left))
	return len(left), err
}

// tell is AgentSystem.Tell.
func (n *notices) tell(ctx context.Context, id claybot.AgentID, say func(texts.Voice) string) error {
	to, err := n.index.IndexedDescriptor(ctx, id) // the files of the agent may be unusable
	if err != nil {
		return fmt.Errorf("notify %s: %w", id, err)
	}
	out := n.sender.Compose(claybot.Outgoing{Kind: claybot.OutgoingNotice, Agent: id, Route: to.Route()}, say(n.people.VoiceAt(ctx, to, to.Route())))
	day := time.Now().Unix() / 86400
	for i := range out {
		out[i].ID = fmt.Sprintf("tell/%s/%d/%08x/%d", id, day, crc32.ChecksumIEEE([]byte(say(texts.Voice{}))), i)
	}
	if _, err := n.sender.Send(ctx, out...); err != nil {
		return fmt.Errorf("notify %s: %w", id, err)
	}
	return nil
}
