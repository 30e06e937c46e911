package slacktest

import "maps"

// Edit lets the author of a message change its text. Slack tells of it by a message_changed
// (docs.slack.dev/reference/events/message/message_changed, read 2026-11-28). It reports
// whether the message is there.
func (s *Server) Edit(channel, ts, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channel(channel)
	m := c.find(ts)
	if m == nil {
		return false
	}
	before := s.render(m, false)
	m.Text = text
	now := s.stamp()
	after := maps.Clone(s.render(m, false))
	after["edited"] = answer{"user": m.User, "ts": now}
	s.event(s.cfg.Team, answer{
		"type": "message", "subtype": "message_changed", "hidden": true, "channel": c.id, "channel_type": s.kind(c.id),
		"ts": now, "event_ts": now, "message": after, "previous_message": before,
	})
	s.change()
	return true
}
