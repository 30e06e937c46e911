package telegramtest

import (
	"encoding/json"
	"time"
)

// React makes the emoji, or none, the reactions of a person to a message of a chat, and returns
// the id of the update: 0 if the bot does not want reactions, or is not an administrator of
// the group. Shape: https://core.telegram.org/bots/api#messagereactionupdated, as of
// 2026-11-28.
func (s *Server) React(chatID, user, message int64, emoji ...string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(chatID)
	m := c.messages[message]
	if m == nil || m.deleted || c.id < 0 && !c.admin || c.kicked {
		return 0
	}
	if m.people == nil {
		m.people = make(map[int64][]string)
	}
	list := func(emoji []string) []map[string]any {
		all := []map[string]any{}
		for _, e := range emoji {
			all = append(all, map[string]any{"type": "emoji", "emoji": e})
		}
		return all
	}
	was := m.people[user]
	m.people[user] = emoji
	return s.deliver("message_reaction", mustJSON(map[string]any{
		"chat": s.describe(c), "message_id": message, "user": map[string]any{"id": user, "is_bot": false, "first_name": s.person(user).name},
		"date": time.Now().Unix(), "old_reaction": list(was), "new_reaction": list(emoji),
	}))
}

// chatMember is getChatMember, of the bot itself alone
// (https://core.telegram.org/bots/api#getchatmember, as of 2026-11-28).
func (s *Server) chatMember(c *call) ([]byte, *apiError) {
	var p struct {
		ChatID integer `json:"chat_id"`
		UserID integer `json:"user_id"`
	}
	if err := json.Unmarshal(c.params, &p); err != nil {
		return nil, badParams(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.chats[int64(p.ChatID)]
	switch {
	case ch == nil || ch.migratedTo != 0:
		return nil, badRequest("chat not found")
	case ch.kicked:
		return nil, &apiError{Code: 403, Description: "Forbidden: bot was kicked from the supergroup chat"}
	case int64(p.UserID) != s.bot:
		return nil, badRequest("member not found")
	}
	status := "member"
	if ch.admin {
		status = "administrator"
	}
	return mustJSON(map[string]any{"status": status, "user": map[string]any{"id": s.bot, "is_bot": true, "first_name": s.cfg.Username}}), nil
}
