package telegramtest

import (
	"encoding/json"
	"strings"
)

// Promote makes the bot an administrator of a group, which sees all messages there.
func (s *Server) Promote(chatID int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chat(chatID).admin = true
}

// A seen is what decides whether a bot in privacy mode sees a message.
type seen struct {
	Chat struct {
		Type string `json:"type"`
	} `json:"chat"`
	Text     string   `json:"text"`
	Caption  string   `json:"caption"`
	Entities []marked `json:"entities"`
	Captions []marked `json:"caption_entities"`
	ReplyTo  *struct {
		From struct {
			ID int64 `json:"id"`
		} `json:"from"`
	} `json:"reply_to_message"`
	ViaBot *struct {
		ID int64 `json:"id"`
	} `json:"via_bot"`
}

// A marked is an entity; User is whom a text_mention names.
type marked struct {
	Type string `json:"type"`
	User *struct {
		ID int64 `json:"id"`
	} `json:"user"`
}

// hiddenFrom reports whether privacy mode keeps a message of a chat from the bot: in groups it
// sees commands, messages that mention it, replies to it, messages by way of it, and service
// messages. See https://core.telegram.org/bots/features#privacy-mode, as of 2026-11-28;
// that only its own commands are seen if another bot wrote last is not emulated. The lock
// is held.
func (s *Server) hiddenFrom(c *chat, body []byte) bool {
	if c.id > 0 || c.admin || s.cfg.SeesAll {
		return false
	}
	var m seen
	if json.Unmarshal(body, &m) != nil {
		return false
	}
	text := m.Text + m.Caption
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields) // it was an object
	service := text == ""
	for _, kind := range []string{"photo", "document", "voice", "audio", "video", "video_note", "animation", "sticker", "location", "venue", "contact", "poll", "dice", "story"} {
		service = service && fields[kind] == nil
	}
	switch {
	case service, strings.HasPrefix(text, "/"), strings.Contains(strings.ToLower(text), "@"+strings.ToLower(s.cfg.Username)):
		return false
	case m.ReplyTo != nil && m.ReplyTo.From.ID == s.bot, m.ViaBot != nil && m.ViaBot.ID == s.bot:
		return false
	}
	for _, e := range append(m.Entities, m.Captions...) {
		if e.User != nil && e.User.ID == s.bot {
			return false
		}
	}
	return true
}
