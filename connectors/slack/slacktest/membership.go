package slacktest

// Leave takes the bot out of a channel, or back in, and tells the app so. Shapes:
// https://docs.slack.dev/reference/events/channel_left and …/member_joined_channel, as of
// 2026-11-28.
func (s *Server) Leave(channel string, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.left[channel]
	s.left[channel] = left
	switch kind := s.kind(channel); {
	case was == left || kind != Public && kind != Private:
	case left:
		s.happened(kind+"_left", answer{"channel": channel, "actor_id": "UADMIN"})
	default:
		s.joined(channel, s.cfg.BotUser)
	}
}

// Join lets another user join a channel.
func (s *Server) Join(channel, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined(channel, user)
}

// joined tells of a member. Which scope it takes depends on the kind of the channel. The lock
// is held.
func (s *Server) joined(channel, user string) {
	kind := s.kind(channel)
	letter := "C"
	if kind == Private {
		letter = "G"
	}
	if s.granted(family[kind] + ":read") {
		s.happened("member_joined_channel", answer{"user": user, "channel": channel, "channel_type": letter, "team": s.cfg.Team})
	}
}

// Archive archives a channel: nothing can be posted there. Shape:
// https://docs.slack.dev/reference/events/channel_archive, as of 2026-11-28.
func (s *Server) Archive(channel string) { s.shelve(channel, true, "_archive") }

// Unarchive ends that.
func (s *Server) Unarchive(channel string) { s.shelve(channel, false, "_unarchive") }

func (s *Server) shelve(channel string, archived bool, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.archived[channel] = archived
	s.aside(channel, what)
}

// Remove deletes a channel.
func (s *Server) Remove(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aside(channel, "_deleted")
	delete(s.channels, channel)
}

// aside tells what a user did to a channel. The lock is held.
func (s *Server) aside(channel, what string) {
	if kind := s.kind(channel); kind == Public || kind == Private {
		s.happened(kind+what, answer{"channel": channel, "user": "UADMIN"})
	}
}

// Convert makes a public channel private, or a private one public. It keeps its id, and a message says
// so. Shapes: https://docs.slack.dev/reference/events/message/channel_convert_to_private and
// …/channel_convert_to_public, as of 2026-11-30.
func (s *Server) Convert(channel, kind string) {
	s.Open(channel, kind)
	how := map[string]string{Public: "public", Private: "private"}[kind]
	s.Write(Post{Channel: channel, User: "UADMIN", Subtype: "channel_convert_to_" + how, Text: "made this channel *" + how + "*."})
}

// Share shares a channel with another workspace. It keeps its id, as most do; else see Rename. Apps
// hear of that by channel_shared, which the manifest does not name.
func (s *Server) Share(channel string, shared bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared[channel] = shared
}

// Rename gives a channel a new id, as when it becomes shared with another workspace. Shape:
// https://docs.slack.dev/reference/events/channel_id_changed, as of 2026-11-28.
func (s *Server) Rename(from, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := s.kind(from)
	c := s.channel(from)
	delete(s.channels, from)
	c.id = to
	s.channels[to], s.kinds[to] = c, kind
	s.happened("channel_id_changed", answer{"old_channel_id": from, "new_channel_id": to})
}

// happened sends an event of a type. The lock is held.
func (s *Server) happened(name string, e answer) {
	e["type"], e["event_ts"] = name, s.stamp()
	s.event(s.cfg.Team, e)
}
