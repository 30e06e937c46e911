package discordtest

import (
	"cmp"
	"regexp"
	"strings"
	"time"
)

// A channel is a direct chat, a channel of a server or a thread.
type channel struct {
	id, guild, parent string
	name              string // empty for "channel"
	kind              int
	user              string // of a direct chat
	messages          []*Message
	gone              bool // deleted, or of a server that removed the bot
	closed            bool // the bot may not write there
	hidden            bool // the bot may not read its history
}

// A Message is one message of a channel.
type Message struct {
	ID, Channel string
	Author      string
	Content     string // as it was sent
	Nonce       string
	ReplyTo     string
	Components  []any
	Files       []File
	Edits       int
	Deleted     bool

	at, edited time.Time
	voice      bool
	fields     answer
	reactions  map[string][]string // users, by emoji
}

// A File is an attachment.
type File struct {
	ID   string
	Name string
	Type string
	Data []byte
	// Seconds and Waveform are of a voice message.
	Seconds  float64
	Waveform string
}

// A Post is what a person writes.
type Post struct {
	Channel, User string
	Text          string
	ReplyTo       string
	Files         []File
	Voice         bool
	// Fields are further fields of the message, as Discord has them.
	Fields map[string]any
}

// AddChannel adds a channel of a server.
func (s *Server) AddChannel(guild, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(&channel{id: id, guild: guild})
}

// AddThread adds a thread of a channel.
func (s *Server) AddThread(parent, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(&channel{id: id, guild: s.channels[parent].guild, parent: parent, kind: 11})
}

// AddDirect adds the direct chat of a person with the bot.
func (s *Server) AddDirect(id, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(&channel{id: id, kind: 1, user: user})
}

// add adds a channel unless there is one. The lock is held.
func (s *Server) add(c *channel) {
	if s.channels[c.id] != nil {
		return
	}
	s.channels[c.id] = c
	switch {
	case c.parent != "":
		s.emit(intentGuilds, "THREAD_CREATE", c.object())
	case c.guild != "":
		s.emit(intentGuilds, "CHANNEL_CREATE", c.object())
	}
}

func (c *channel) object() answer {
	a := answer{"id": c.id, "type": c.kind}
	if c.guild != "" {
		a["guild_id"], a["name"] = c.guild, cmp.Or(c.name, "channel")
	}
	if c.parent != "" {
		a["parent_id"] = c.parent
	}
	if n := len(c.messages); n > 0 { // also a deleted one
		a["last_message_id"] = c.messages[n-1].ID
	}
	return a
}

// Rename gives a channel or a thread of a server another name.
func (s *Server) Rename(id, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[id]; c != nil {
		event := "CHANNEL_UPDATE"
		if c.parent != "" {
			event = "THREAD_UPDATE"
		}
		c.name = name
		s.emit(intentGuilds, event, c.object())
	}
}

// guildOf is a server with its channels. The lock is held.
func (s *Server) guildOf(id string) answer {
	channels, threads := []answer{}, []answer{}
	for _, c := range s.channels {
		o := c.object()
		delete(o, "guild_id") // as in Guild Create
		switch {
		case c.guild != id || c.gone:
		case c.parent != "":
			threads = append(threads, o)
		default:
			channels = append(channels, o)
		}
	}
	return answer{"id": id, "name": "server", "channels": channels, "threads": threads}
}

// LeaveGuild removes the bot from a server, or adds it again.
func (s *Server) LeaveGuild(id string, leave bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.channels {
		if c.guild == id {
			c.gone = leave
		}
	}
	if leave {
		s.emit(intentGuilds, "GUILD_DELETE", answer{"id": id})
	} else {
		s.emit(intentGuilds, "GUILD_CREATE", s.guildOf(id))
	}
}

// DeleteChannel deletes a channel or a thread.
func (s *Server) DeleteChannel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[id]
	c.gone = true
	t := "CHANNEL_DELETE"
	if c.parent != "" {
		t = "THREAD_DELETE"
	}
	s.emit(intentGuilds, t, c.object())
}

// CloseChannel forbids the bot to write in a channel, as a person does who blocks it.
func (s *Server) CloseChannel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[id].closed = true
}

// HideHistory takes the permission Read Message History in a channel from the bot.
func (s *Server) HideHistory(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels[id].hidden = true
}

func (s *Server) bot() answer {
	return answer{"id": s.cfg.Bot, "username": "claybot", "discriminator": "0", "bot": true}
}

// Name names a person; others are called "Person" and the end of their id.
func (s *Server) Name(user, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[user] = name
}

// person is a user. The lock is held.
func (s *Server) person(id string) answer {
	if id == s.cfg.Bot {
		return s.bot()
	}
	end := id[max(0, len(id)-3):]
	return answer{"id": id, "username": "user" + end, "global_name": cmp.Or(s.names[id], "Person "+end), "discriminator": "0"}
}

// Write lets a person write, and returns the id of the message. The text mentions those whose
// <@id> it has.
func (s *Server) Write(p Post) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[p.Channel]
	if c == nil {
		return ""
	}
	m := &Message{Channel: p.Channel, Author: p.User, Content: p.Text, ReplyTo: p.ReplyTo, voice: p.Voice, fields: p.Fields}
	for _, f := range p.Files {
		f.ID = s.id()
		m.Files = append(m.Files, f)
	}
	s.store(c, m)
	return m.ID
}

// store adds a message and tells the bot of it. The lock is held.
func (s *Server) store(c *channel, m *Message) {
	m.ID, m.at, m.reactions = s.id(), time.Now(), make(map[string][]string)
	c.messages = append(c.messages, m)
	s.emit(c.intent(intentGuildMessages, intentDirectMessages), "MESSAGE_CREATE", s.eventOf(c, m))
}

func (c *channel) intent(guild, direct int) int {
	if c.guild != "" {
		return guild
	}
	return direct
}

// eventOf is a message in an event. The lock is held.
func (s *Server) eventOf(c *channel, m *Message) answer {
	a := s.object(c, m)
	if m.Nonce != "" {
		a["nonce"] = m.Nonce
	}
	if c.guild != "" {
		a["guild_id"], a["member"] = c.guild, answer{"nick": nil, "roles": []string{}}
	}
	for k, v := range m.fields {
		a[k] = v
	}
	return a
}

// object is a message as the REST API shows it. The lock is held.
func (s *Server) object(c *channel, m *Message) answer {
	a := answer{
		"id": m.ID, "channel_id": c.id, "type": 0, "author": s.person(m.Author), "content": m.Content, "timestamp": m.at.UTC().Format("2006-01-02T15:04:05.000000+00:00"),
		"edited_timestamp": nil, "tts": false, "mention_everyone": false, "mentions": s.mentions(m.Content), "mention_roles": []string{},
		"attachments": []answer{}, "embeds": []answer{}, "pinned": false, "flags": 0, "components": m.Components,
	}
	if m.Components == nil {
		a["components"] = []answer{}
	}
	if !m.edited.IsZero() {
		a["edited_timestamp"] = m.edited.UTC().Format("2006-01-02T15:04:05.000000+00:00")
	}
	if m.voice {
		a["flags"] = 1 << 13
	}
	if m.ReplyTo != "" {
		a["type"], a["message_reference"] = 19, answer{"message_id": m.ReplyTo, "channel_id": c.id}
		a["referenced_message"] = nil
		if of := c.find(m.ReplyTo); of != nil {
			a["referenced_message"] = s.object(c, of)
		}
	}
	files := []answer{}
	for _, f := range m.Files {
		o := answer{"id": f.ID, "filename": f.Name, "size": len(f.Data), "content_type": f.Type, "url": s.fileURL(c, m, f)}
		if f.Waveform != "" {
			o["duration_secs"], o["waveform"] = f.Seconds, f.Waveform
		}
		files = append(files, o)
	}
	a["attachments"] = files
	return a
}

// code is what has no mentions, as far as tests write it.
var code = regexp.MustCompile("(?s)```.*?```|`[^`]+`")

// mentions are the users whom a text names, outside code. The lock is held.
func (s *Server) mentions(text string) []answer {
	all := []answer{}
	for rest := code.ReplaceAllString(text, ""); ; {
		_, after, ok := strings.Cut(rest, "<@")
		id, next, found := strings.Cut(after, ">")
		if !ok || !found {
			return all
		}
		if strings.Trim(id, "0123456789") == "" {
			all = append(all, s.person(id))
		}
		rest = next
	}
}

// find returns a message that is not deleted.
func (c *channel) find(id string) *Message {
	for _, m := range c.messages {
		if m.ID == id && !m.Deleted {
			return m
		}
	}
	return nil
}

// Edit lets a person change a message.
func (s *Server) Edit(channel, id, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	m := c.find(id)
	if m == nil {
		return false
	}
	m.Content, m.edited = text, time.Now()
	s.emit(c.intent(intentGuildMessages, intentDirectMessages), "MESSAGE_UPDATE", s.eventOf(c, m))
	return true
}

// Delete deletes messages: one, or several at once.
func (s *Server) Delete(channel string, ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	for _, id := range ids {
		if m := c.find(id); m != nil {
			m.Deleted = true
		}
	}
	e := answer{"channel_id": channel}
	if c.guild != "" {
		e["guild_id"] = c.guild
	}
	t := "MESSAGE_DELETE"
	if e["id"] = ids[0]; len(ids) > 1 {
		delete(e, "id")
		t, e["ids"] = "MESSAGE_DELETE_BULK", ids
	}
	s.emit(c.intent(intentGuildMessages, intentDirectMessages), t, e)
}

// React lets a person add an emoji, or remove it.
func (s *Server) React(channel, id, user, emoji string, removed bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channel]
	m := c.find(id)
	if m == nil {
		return false
	}
	e := answer{"user_id": user, "channel_id": channel, "message_id": id, "emoji": answer{"id": nil, "name": emoji}, "burst": false, "type": 0}
	if c.guild != "" {
		e["guild_id"] = c.guild
	}
	t := "MESSAGE_REACTION_REMOVE"
	if !removed {
		t, e["message_author_id"] = "MESSAGE_REACTION_ADD", m.Author
		if c.guild != "" {
			e["member"] = answer{"user": s.person(user)}
		}
	}
	s.emit(c.intent(intentGuildReactions, intentDirectReactions), t, e)
	return true
}

// Sent returns the messages of the bot that a channel shows, oldest first.
func (s *Server) Sent(channel string) (all []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channels[channel]; c != nil {
		for _, m := range c.messages {
			if m.Author == s.cfg.Bot && !m.Deleted {
				all = append(all, *m)
			}
		}
	}
	return all
}

// Reactions returns the emoji of the bot on a message.
func (s *Server) Reactions(channel, id string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.channels[channel].find(id); m != nil {
		for emoji, users := range m.reactions {
			if len(users) > 0 {
				all = append(all, emoji)
			}
		}
	}
	return all
}

// LoseFile removes the files of a message from the servers of files.
func (s *Server) LoseFile(channel, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.channels[channel].find(id); m != nil {
		m.Files = nil
	}
}
