package telegramtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A chat is a private chat or a group.
type chat struct {
	id         int64
	kicked     bool // the bot was removed
	admin      bool // the bot is an administrator
	migratedTo int64
	topics     map[int64]string // why each refuses messages, empty for open; 1 is the General topic
	title      string
	messages   map[int64]*stored
	sent       []*stored // by the bot, in order
	hidden     int       // of sent, those deleted
	last       int64     // message ids of a supergroup
	typing     int
	drafts     map[int64]Draft // by topics
	rate       rate
}

// stored is a message of anyone.
type stored struct {
	Message
	from   int64
	people map[int64][]string // reactions, by the person
}

// A Message is what a chat shows of the bot.
type Message struct {
	ID, ChatID int64
	ThreadID   int64
	ReplyTo    int64
	Text       string // as people see it
	Source     string // as the bot sent it
	Entities   []Entity
	Keyboard   [][]Button // by rows
	// ForceReply: the answer to it was opened, with the Placeholder as a hint.
	ForceReply  bool
	Placeholder string
	File        *File  // whose caption Text is; nil for a text
	Reaction    string // of the bot
	Preview     bool   // of a link
	Edits       int
	At          time.Time
	EditedAt    time.Time
	deleted     bool
	forgotten   bool
}

func supergroup(id int64) bool { return id < -1_000_000_000_000 }

func (s *Server) chat(id int64) *chat {
	c := s.chats[id]
	if c == nil {
		c = &chat{id: id, messages: make(map[int64]*stored), last: 1} // message 1 made the group, and is its General topic
		s.chats[id] = c
	}
	return c
}

func (s *Server) nextMessage(c *chat) int64 {
	if supergroup(c.id) {
		c.last++
		return c.last
	}
	s.messages++
	return s.messages
}

// describe is the chat in Telegram's form.
func (s *Server) describe(c *chat) map[string]any {
	switch {
	case c.id > 0:
		return map[string]any{"id": c.id, "type": "private", "first_name": s.person(c.id).name}
	case supergroup(c.id):
		d := map[string]any{"id": c.id, "type": "supergroup", "title": cmp.Or(c.title, fmt.Sprintf("Group %d", -c.id))}
		if len(c.topics) > 0 {
			d["is_forum"] = true
		}
		return d
	}
	return map[string]any{"id": c.id, "type": "group", "title": cmp.Or(c.title, fmt.Sprintf("Group %d", -c.id))}
}

// Title names a group; others are called "Group <number>".
func (s *Server) Title(chatID int64, title string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chat(chatID).title = title
}

// AddTopic opens a topic of a forum and returns its thread id.
func (s *Server) AddTopic(chatID int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(chatID)
	if c.topics == nil {
		c.topics = make(map[int64]string)
	}
	id := s.nextMessage(c)
	c.topics[id] = ""
	return id
}

// What Telegram says of topics (github.com/rteixeirax/qbittorrent_telegram_notification/issues/12,
// 2024-07-29; github.com/LiveHelperChat/telegram/issues/69, 2026-01-12;
// github.com/tdlib/telegram-bot-api/issues/854, 2026-05-15; all read 2026-11-28).
const (
	topicClosed  = "TOPIC_CLOSED"
	topicDeleted = "TOPIC_DELETED"
	noTopic      = "message thread not found"
)

// CloseTopic closes a topic of a forum, the General topic as 1.
func (s *Server) CloseTopic(chatID, thread int64) { s.endTopic(chatID, thread, topicClosed) }

// DeleteTopic deletes a topic of a forum. Telegram says TOPIC_DELETED of it, or, once it has
// forgotten the topic, that there is no such thread.
func (s *Server) DeleteTopic(chatID, thread int64, forgotten bool) {
	if forgotten {
		s.endTopic(chatID, thread, noTopic)
		return
	}
	s.endTopic(chatID, thread, topicDeleted)
}

func (s *Server) endTopic(chatID, thread int64, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chat(chatID).topics[thread] = why
}

// Migrate makes a group a supergroup with another id, and tells the bot so in
// both, as Telegram does.
func (s *Server) Migrate(from, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, fresh := s.chat(from), s.chat(to)
	old.migratedTo = to
	for _, m := range []struct {
		c     *chat
		field string
		value int64
	}{{old, "migrate_to_chat_id", to}, {fresh, "migrate_from_chat_id", from}} {
		id := s.nextMessage(m.c)
		s.deliver("message", mustJSON(s.incoming(m.c, id, Incoming{ChatID: m.c.id, UserID: 1087968824, Fields: map[string]any{
			m.field: m.value, "sender_chat": s.describe(m.c),
		}})))
	}
}

// Silence makes a chat answer 429 for that long.
func (s *Server) Silence(chatID int64, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chat(chatID).rate.silent = time.Now().Add(d)
}

// Violations counts sends to a chat during a silence that the bot had been
// told.
func (s *Server) Violations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// Sent returns what a chat shows of the bot, oldest first.
func (s *Server) Sent(chatID int64) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown(chatID)
}

func (s *Server) shown(chatID int64) []Message {
	c := s.chats[chatID]
	if c == nil {
		return nil
	}
	out := make([]Message, 0, len(c.sent))
	for _, m := range c.sent {
		if !m.deleted {
			out = append(out, m.Message)
		}
	}
	return out
}

// Typing counts the signs that the bot was typing in a chat.
func (s *Server) Typing(chatID int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[chatID]; c != nil {
		return c.typing
	}
	return 0
}

// WaitSent waits until a chat shows at least n messages of the bot, and
// returns them.
func (s *Server) WaitSent(ctx context.Context, chatID int64, n int) ([]Message, error) {
	count := 0
	err := s.Wait(ctx, func() bool {
		if c := s.chats[chatID]; c != nil {
			count = len(c.sent) - c.hidden
		}
		return count >= n
	})
	if err != nil {
		err = fmt.Errorf("chat %d shows %d of %d messages: %w", chatID, count, n, err)
	}
	return s.Sent(chatID), err
}

// WaitText waits until a chat shows a message whose text is exactly text.
func (s *Server) WaitText(ctx context.Context, chatID int64, text string) error {
	return s.Wait(ctx, func() bool {
		c := s.chats[chatID]
		return c != nil && slices.ContainsFunc(c.sent, func(m *stored) bool { return m.Text == text && !m.deleted })
	})
}

// WaitCalls waits until a method was called n times.
func (s *Server) WaitCalls(ctx context.Context, method string, n int) error {
	return s.Wait(ctx, func() bool { return s.calls[lower(method)] >= n })
}

// Wait waits until done, which is asked under the server's lock whenever
// something happened, and must not call the server.
func (s *Server) Wait(ctx context.Context, done func() bool) error {
	for {
		s.mu.Lock()
		ok := done()
		if !ok && s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// touch wakes all waiters.
func (s *Server) touch() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// open returns the chat of a send, or why the send fails.
func (s *Server) open(id int64) (*chat, *apiError) {
	c := s.chats[id]
	p := s.people[id]
	switch {
	case id > 0 && p != nil && p.deleted:
		return nil, &apiError{Code: 403, Description: "Forbidden: user is deactivated"}
	case id > 0 && p != nil && p.blocked:
		return nil, &apiError{Code: 403, Description: "Forbidden: bot was blocked by the user"}
	case id > 0 && p != nil && !p.wrote:
		return nil, &apiError{Code: 403, Description: "Forbidden: bot can't initiate conversation with a user"}
	case c == nil:
		return nil, &apiError{Code: 400, Description: "Bad Request: chat not found"}
	case c.migratedTo != 0:
		return nil, &apiError{Code: 400, Description: "Bad Request: group chat was upgraded to a supergroup chat", MigrateTo: c.migratedTo}
	case c.kicked && supergroup(id):
		return nil, &apiError{Code: 403, Description: "Forbidden: bot was kicked from the supergroup chat"}
	case c.kicked:
		return nil, &apiError{Code: 403, Description: "Forbidden: bot was kicked from the group chat"}
	}
	return c, nil
}

func (s *Server) chatAction(c *call) ([]byte, *apiError) {
	var p struct {
		ChatID integer `json:"chat_id"`
		Action string  `json:"action"`
	}
	if err := json.Unmarshal(c.params, &p); err != nil {
		return nil, badParams(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ch, e := s.open(int64(p.ChatID))
	switch {
	case e != nil:
		return nil, e
	case p.Action != "typing":
		return nil, &apiError{Code: 400, Description: "Bad Request: wrong parameter action in request"}
	}
	ch.typing++
	s.touch()
	return []byte("true"), nil
}
