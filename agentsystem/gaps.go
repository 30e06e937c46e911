package agentsystem

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

var _ connectors.GapNotifier = (*System)(nil)

const (
	// gapChats bounds how many chats are told about one gap.
	gapChats = 500
	// gapRecent is how long before a gap a person must have written for their
	// chat to be told about it when the source cannot say which are concerned.
	gapRecent = 30 * 24 * time.Hour
)

// Missed implements connectors.GapNotifier: each chat concerned gets one notice
// that messages may be missing, at the place of the person who wrote there
// last.
func (s *System) Missed(ctx context.Context, m connectors.Missed) error {
	var zone *time.Location
	if s.Zone != nil {
		zone = s.Zone()
	}
	if zone == nil {
		zone = time.UTC
	}
	text := textGap(m.From, m.To, zone)
	told := make(map[string]bool)
	for e, err := range s.Index.Foreground(ctx, nil) {
		if err != nil {
			return fmt.Errorf("find the chats of a gap: %w", err)
		}
		d := e.Descriptor
		if len(told) == gapChats || m.Channels == nil && m.From.Sub(e.LastUserAt.Time()) > gapRecent {
			break // the newest come first
		}
		concerned := d.Connector == m.Connector && (m.Channels == nil || slices.Contains(m.Channels, d.ChannelID))
		if !concerned || told[d.ChannelID] {
			continue
		}
		place, err := s.lastPlace(ctx, e.ID)
		if err != nil {
			return err
		}
		if m.Flat {
			place.ThreadID = ""
		}
		o := claybot.Outgoing{Kind: claybot.OutgoingNotice, Agent: e.ID, Route: claybot.Message{Context: place}.ReplyRoute(d)}
		if !s.mayReceive(o) {
			continue
		}
		out := s.compose(o, text)
		for i := range out {
			out[i].ID = fmt.Sprintf("gap/%s/%s/%d/%d", m.Connector, d.ChannelID, m.From.Unix(), i+1)
		}
		stored, err := s.Outbox.Enqueue(ctx, out...)
		if err != nil {
			return fmt.Errorf("tell %s about a gap: %w", d.ChannelID, err)
		}
		s.post.hand(stored)
		told[d.ChannelID] = true
	}
	s.Log.Warn("messages may be missing", "connector", m.Connector, "from", m.From.UTC(), "to", m.To.UTC(), "chats", len(told))
	return nil
}
