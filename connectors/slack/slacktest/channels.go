package slacktest

import "strings"

// The kinds of conversations.
const (
	Public  = "channel"
	Private = "group"
	Direct  = "im"   // with one person
	Group   = "mpim" // a direct conversation of several people
)

// family is the part of the names of scopes and events that a kind has in them.
var family = map[string]string{Public: "channels", Private: "groups", Direct: "im", Group: "mpim"}

// Open makes a conversation of a kind. All that are not opened have the kind that their id
// begins with: D Direct, G Private, else Public. The bot is a member until it leaves.
func (s *Server) Open(channel, kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channel(channel)
	s.kinds[channel] = kind
}

// kind is the kind of a conversation. The lock is held.
func (s *Server) kind(channel string) string {
	if kind, ok := s.kinds[channel]; ok {
		return kind
	}
	switch {
	case strings.HasPrefix(channel, "D"):
		return Direct
	case strings.HasPrefix(channel, "G"):
		return Private
	}
	return Public
}

// open finds the conversation that the bot writes to, or says why it cannot. The lock is
// held.
func (s *Server) writable(id string) (*channel, string) {
	c := s.channels[id]
	switch {
	case c == nil, s.left[id] && s.kind(id) != Public: // others do not exist for outsiders
		return nil, "channel_not_found"
	case s.left[id]:
		return nil, "not_in_channel"
	case s.archived[id]:
		return nil, "is_archived"
	}
	return c, ""
}

// channel finds or makes a conversation. The lock is held.
func (s *Server) channel(id string) *channel {
	c, ok := s.channels[id]
	if !ok {
		c = &channel{id: id, gone: make(map[string]bool)}
		s.channels[id] = c
	}
	return c
}
