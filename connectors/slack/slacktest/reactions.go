package slacktest

// React lets a user add an emoji reaction to a message, or remove it, and reports whether the
// message is there. Shapes: docs.slack.dev/reference/events/reaction_added and
// …/reaction_removed, read 2026-11-28: a message of no user has no item_user.
func (s *Server) React(channel, ts, user, name string, removed bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reacted(channel, ts, user, name, removed)
}

// reacted tells of a reaction, also of one of the bot's own. The lock is held.
func (s *Server) reacted(channel, ts, user, name string, removed bool) bool {
	c := s.channel(channel)
	m := c.find(ts)
	if m == nil {
		return false
	}
	what := "reaction_added"
	if removed {
		what = "reaction_removed"
	}
	e := answer{"user": user, "reaction": name, "item": answer{"type": "message", "channel": c.id, "ts": ts}}
	if m.User != "" {
		e["item_user"] = m.User
	}
	s.happened(what, e)
	return true
}
