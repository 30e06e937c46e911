package agentsystem

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

var _ connectors.GapHandler = (*AgentSystem)(nil)

const (
	// gapChats bounds how many chats one gap concerns, and gapThreads how many
	// threads of each.
	gapChats   = 500
	gapThreads = 20
	// gapRecent is how long before a gap a person must have written for their
	// chat to be told about it when the source cannot say which are concerned.
	gapRecent = 30 * 24 * time.Hour
)

// Recent implements connectors.GapHandler.
func (s *AgentSystem) Recent(ctx context.Context, connector string, since time.Time) (chats []connectors.Chat, more int, err error) {
	places := make(map[string]int) // in chats; -1: it is not listed
	wanted := func(channel string) bool {
		if _, known := places[channel]; !known && len(chats) == gapChats {
			places[channel], more = -1, more+1
		}
		return places[channel] >= 0
	}
	err = s.placesSince(ctx, connector, since, wanted, func(r claybot.Route, _ claybot.AgentID) (bool, error) {
		i, known := places[r.ChannelID]
		if !known {
			i, chats = len(chats), append(chats, connectors.Chat{ChannelID: r.ChannelID})
			places[r.ChannelID] = i
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

// placesSince calls fn for each place where a person who may still write wrote
// last, at since or later, in a channel that is wanted, the newest first, until
// fn returns false.
func (s *AgentSystem) placesSince(ctx context.Context, connector string, since time.Time, wanted func(channel string) bool, fn func(claybot.Route, claybot.AgentID) (bool, error)) error {
	for e, err := range s.Index.Foreground(ctx, nil) {
		if err != nil {
			return fmt.Errorf("find the chats of a gap: %w", err)
		}
		if e.LastUserAt.Time().Before(since) {
			return nil
		}
		if e.Descriptor.Connector != connector || !wanted(e.Descriptor.ChannelID) {
			continue
		}
		place, err := s.People.LastContext(ctx, e.ID)
		if err != nil {
			return err
		}
		r := claybot.AgentMessage{Context: place}.ReplyRoute(e.Descriptor)
		if !s.People.MayReceive(claybot.Outgoing{Route: r}) {
			continue
		}
		if more, err := fn(r, e.ID); err != nil || !more {
			return err
		}
	}
	return nil
}

// Missed implements connectors.GapHandler: each chat concerned gets one notice
// that messages may be missing, at the place of the person who wrote there
// last.
func (s *AgentSystem) Missed(ctx context.Context, m connectors.Missed) (untold int, err error) {
	var zone *time.Location
	if s.Zone != nil {
		zone = s.Zone()
	}
	if zone == nil {
		zone = time.UTC
	}
	text := texts.Gap(m, zone)
	since := time.Unix(0, 0)
	if m.Channels == nil {
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
	err = s.placesSince(ctx, m.Connector, since, wanted, func(r claybot.Route, agent claybot.AgentID) (bool, error) {
		if m.Flat {
			r.ThreadID = ""
		}
		if err := s.deliverer.SendOnce(ctx, claybot.Outgoing{Kind: claybot.OutgoingNotice, Agent: agent, Route: r}, fmt.Sprintf("gap/%s/%s/%d", m.Connector, r.ChannelID, m.From.Unix()), text); err != nil {
			return false, fmt.Errorf("tell %s about a gap: %w", r.ChannelID, err)
		}
		told[r.ChannelID] = true
		return len(told) != len(m.Channels), nil
	})
	s.Log.Warn("messages may be missing", "connector", m.Connector, "from", m.From.UTC(), "to", m.To.UTC(), "chats", len(told), "untold", len(left))
	return len(left), err
}

// Tell sends a notice to the place of an agent. The same text is told once a
// day.
func (s *AgentSystem) Tell(ctx context.Context, id claybot.AgentID, text string) error {
	to, err := s.Index.IndexedDescriptor(ctx, id) // the files of the agent may be unusable
	if err != nil {
		return fmt.Errorf("tell %s: %w", id, err)
	}
	out := s.deliverer.Compose(claybot.Outgoing{Kind: claybot.OutgoingNotice, Agent: id, Route: to.Route()}, text)
	day := time.Now().Unix() / 86400
	for i := range out {
		out[i].ID = fmt.Sprintf("tell/%s/%d/%08x/%d", id, day, crc32.ChecksumIEEE([]byte(text)), i)
	}
	if _, err := s.deliverer.Send(ctx, out...); err != nil {
		return fmt.Errorf("tell %s: %w", id, err)
	}
	return nil
}
