package telegramtest

import "time"

// Kick removes the bot from a group, and tells it so.
func (s *Server) Kick(chatID int64) { s.moveBot(chatID, true) }

// Add adds the bot to a group again, and tells it so.
func (s *Server) Add(chatID int64) { s.moveBot(chatID, false) }

func (s *Server) moveBot(chatID int64, kicked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(chatID)
	was := c.kicked
	c.kicked = kicked
	if was != kicked {
		s.member(c, admin, standing(was), standing(kicked))
	}
}

// admin is who adds and removes the bot.
const admin = 99

func standing(gone bool) string {
	if gone {
		return "kicked"
	}
	return "member"
}

// member tells the bot that it is something else in a chat now, if it asked for that. Shape:
// https://core.telegram.org/bots/api#chatmemberupdated, as of 2026-11-28. The lock is held.
func (s *Server) member(c *chat, by int64, was, is string) {
	bot := map[string]any{"id": s.bot, "is_bot": true, "first_name": s.cfg.Username, "username": s.cfg.Username}
	name := "Admin"
	if p := s.people[by]; p != nil {
		name = p.name
	}
	of := func(status string) map[string]any {
		m := map[string]any{"user": bot, "status": status}
		if status == "kicked" {
			m["until_date"] = 0
		}
		return m
	}
	s.deliver("my_chat_member", mustJSON(map[string]any{
		"chat": s.describe(c), "from": map[string]any{"id": by, "is_bot": false, "first_name": name}, "date": time.Now().Unix(),
		"old_chat_member": of(was), "new_chat_member": of(is),
	}))
}
