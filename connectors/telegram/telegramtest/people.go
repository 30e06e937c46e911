package telegramtest

import (
	"cmp"
	"maps"
	"regexp"
	"strings"
	"time"
)

// A person may write to the bot.
type person struct {
	name     string
	username string
	blocked  bool   // blocked the bot
	deleted  bool   // the account is gone
	wrote    bool   // has a private chat with the bot
	language string // of their app; empty: en
}

// AddPerson names a person; others are called "User <id>".
func (s *Server) AddPerson(id int64, name, username string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.person(id)
	p.name, p.username = name, username
}

// SetLanguage sets the language of a person's app, as an IETF tag such as de-AT
// (core.telegram.org/bots/api#user, language_code, 2026-11-28).
func (s *Server) SetLanguage(id int64, language string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.person(id).language = language
}

func (s *Server) person(id int64) *person {
	p := s.people[id]
	if p == nil {
		p = &person{name: "User " + string(mustJSON(id))}
		s.people[id] = p
	}
	return p
}

// Block makes a person block the bot, or unblock it, and tells the bot of it.
func (s *Server) Block(user int64, blocked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.person(user).blocked
	s.person(user).blocked = blocked
	if was != blocked {
		s.member(&chat{id: user}, user, standing(was), standing(blocked))
	}
}

// DeleteAccount makes a person's account disappear.
func (s *Server) DeleteAccount(user int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.person(user).deleted = true
}

// An Incoming is something a person does in a chat. A positive ChatID is the
// private chat with that person, a negative one a group, below
// -1,000,000,000,000 a supergroup; groups come into being by being used.
type Incoming struct {
	ChatID, UserID int64
	Text           string
	ThreadID       int64 // forum topic
	ReplyTo        int64 // id of a message of the chat
	Quote          string
	Caption        string
	MediaGroup     string
	// Fields are further fields of the message, in Telegram's form, for
	// example {"document": {...}}.
	Fields map[string]any
}

// Say lets a person write a text. It returns the update's id.
func (s *Server) Say(chat, user int64, text string) int64 {
	update, _ := s.Write(Incoming{ChatID: chat, UserID: user, Text: text})
	return update
}

// Mention lets a person write a text that begins with the bot's name.
func (s *Server) Mention(chat, user int64, text string) int64 {
	return s.Say(chat, user, "@"+s.cfg.Username+" "+text)
}

// Write lets a person do something, and returns the ids of the update and of
// the message. The update is 0 when the bot does not want messages, or
// privacy mode hides this one.
func (s *Server) Write(in Incoming) (update, message int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.UserID == 0 {
		in.UserID = in.ChatID
	}
	c := s.chat(in.ChatID)
	p := s.person(in.UserID)
	if in.ChatID > 0 {
		if p.blocked {
			s.member(c, in.UserID, standing(true), standing(false))
		}
		p.wrote, p.blocked = true, false
	}
	id := s.nextMessage(c)
	m := s.incoming(c, id, in)
	text := in.Text
	if text == "" {
		text = in.Caption
	}
	c.messages[id] = &stored{Message: Message{ID: id, ChatID: in.ChatID, ThreadID: in.ThreadID, Text: text, At: time.Now()}, from: in.UserID}
	return s.deliverIn(c, "message", mustJSON(m)), id
}

// EditText lets a person change a message of theirs.
func (s *Server) EditText(chat, message int64, text string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(chat)
	old := c.messages[message]
	if old == nil || old.from == s.bot {
		return 0
	}
	old.Text = text
	m := s.incoming(c, message, Incoming{ChatID: chat, UserID: old.from, Text: text, ThreadID: old.ThreadID})
	m["edit_date"] = time.Now().Unix()
	return s.deliverIn(c, "edited_message", mustJSON(m))
}

// incoming is a message of a person in Telegram's form.
func (s *Server) incoming(c *chat, id int64, in Incoming) map[string]any {
	m := map[string]any{
		"message_id": id,
		"from":       s.user(in.UserID),
		"chat":       s.describe(c),
		"date":       time.Now().Unix(),
	}
	if in.Text != "" {
		m["text"] = in.Text
		if e := s.entities(in.Text); len(e) > 0 {
			m["entities"] = e
		}
	}
	if in.Caption != "" {
		m["caption"] = in.Caption
		if e := s.entities(in.Caption); len(e) > 0 {
			m["caption_entities"] = e
		}
	}
	if in.ThreadID != 0 {
		m["message_thread_id"], m["is_topic_message"] = in.ThreadID, true
	}
	if in.MediaGroup != "" {
		m["media_group_id"] = in.MediaGroup
	}
	if in.Quote != "" {
		m["quote"] = map[string]any{"text": in.Quote, "position": 0}
	}
	if r := c.messages[in.ReplyTo]; r != nil {
		m["reply_to_message"] = map[string]any{
			"message_id": r.ID, "from": s.user(r.from), "chat": s.describe(c), "date": r.At.Unix(), "text": r.Text,
		}
	}
	maps.Copy(m, in.Fields)
	return m
}

// user is a person, or the bot itself, in Telegram's form.
func (s *Server) user(id int64) map[string]any {
	if id == s.bot {
		return map[string]any{"id": s.bot, "is_bot": true, "first_name": s.cfg.Username, "username": s.cfg.Username}
	}
	p := s.person(id)
	u := map[string]any{"id": id, "is_bot": false, "first_name": p.name, "language_code": cmp.Or(p.language, "en")}
	if p.username != "" {
		u["username"] = p.username
	}
	return u
}

var (
	commandPattern = regexp.MustCompile(`^/[A-Za-z0-9_]+(@[A-Za-z0-9_]+)?`)
	mentionPattern = regexp.MustCompile(`@[A-Za-z0-9_]{3,32}`)
)

// entities finds the commands and mentions that Telegram would mark.
func (s *Server) entities(text string) []Entity {
	if !strings.ContainsAny(text, "/@") {
		return nil
	}
	var out []Entity
	units := func(i int) int { return utf16Len(text[:i]) }
	add := func(kind string, at []int) {
		out = append(out, Entity{Type: kind, Offset: units(at[0]), Length: units(at[1]) - units(at[0])})
	}
	command := commandPattern.FindStringIndex(text)
	if command != nil {
		add("bot_command", command)
	}
	for _, at := range mentionPattern.FindAllStringIndex(text, -1) {
		if command == nil || at[0] >= command[1] {
			add("mention", at)
		}
	}
	return out
}
