package telegramtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

const (
	// tapRetention is how long a tap waits to be fetched: much shorter than a
	// message.
	tapRetention = 150 * time.Second
	// defaultTapAge is how old a tap may be when it is answered.
	defaultTapAge = 15 * time.Second
	maxToast      = 200 // characters of the answer to a tap
)

// A Tap is a person's tap at a button, and what the person saw of the bot's
// answer to it.
type Tap struct {
	ID                        string // of the callback query
	ChatID, UserID, MessageID int64
	Data                      string
	At                        time.Time
	Update                    int64 // 0 when the bot does not want taps

	Answered bool
	Text     string
	Alert    bool // in a window, not for a moment
}

// Tap lets a person tap at the button of a message on which text stands, and
// returns the id of the callback query. ok is false when the message has no
// such button.
func (s *Server) Tap(chatID, userID, message int64, text string) (query string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || c.messages[message] == nil || c.messages[message].deleted {
		return "", false
	}
	b, ok := c.messages[message].Button(text)
	if !ok || b.Data == "" {
		return "", false
	}
	return s.tap(c, userID, message, b.Data), true
}

// TapData lets a person send data as that of a button of a message, as an app
// does that shows an old keyboard, or one that was tampered with.
func (s *Server) TapData(chatID, userID, message int64, data string) (query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tap(s.chat(chatID), userID, message, data)
}

// TapInline lets a person tap at a button of a message that was sent through the
// bot, in a chat that the bot does not know.
func (s *Server) TapInline(userID int64, data string) (query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taps.add(s, Tap{UserID: userID, Data: data}, map[string]any{"inline_message_id": "AgAAAFAKE" + data})
}

// Forget makes a message inaccessible, as a very old one: taps at it bring
// neither its text nor its buttons.
func (s *Server) Forget(chatID, message int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.chat(chatID).messages[message]; m != nil {
		m.forgotten = true
	}
}

func (s *Server) tap(c *chat, userID, message int64, data string) string {
	shown := map[string]any{"chat": s.describe(c), "message_id": message, "date": 0}
	if m := c.messages[message]; m != nil && !m.deleted && !m.forgotten {
		shown = s.own(c, m)
	}
	return s.taps.add(s, Tap{ChatID: c.id, UserID: userID, MessageID: message, Data: data}, map[string]any{"message": shown})
}

// taps are the taps of all people, by the id of the callback query.
type taps struct {
	byID map[string]*Tap
	last int64
}

// add queues the update of a tap; where says at which message it was.
func (q *taps) add(s *Server, t Tap, where map[string]any) string {
	if q.byID == nil {
		q.byID = make(map[string]*Tap)
	}
	q.last++
	t.ID, t.At = strconv.FormatInt(4_000_000_000_000_000_000+q.last, 10), time.Now()
	where["id"], where["from"], where["data"] = t.ID, s.user(t.UserID), t.Data
	where["chat_instance"] = strconv.FormatInt(-7_000_000_000+t.ChatID, 10)
	t.Update = s.deliver("callback_query", mustJSON(where))
	q.byID[t.ID] = &t
	return t.ID
}

// TapByID returns a tap; ok is false when there was none of that id.
func (s *Server) TapByID(query string) (t Tap, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.taps.byID[query]; p != nil {
		return *p, true
	}
	return t, false
}

// WaitAnswer waits until the bot has answered a tap.
func (s *Server) WaitAnswer(ctx context.Context, query string) (Tap, error) {
	err := s.Wait(ctx, func() bool { return s.taps.byID[query] != nil && s.taps.byID[query].Answered })
	t, _ := s.TapByID(query)
	if err != nil {
		err = fmt.Errorf("tap %s was not answered: %w", query, err)
	}
	return t, err
}

// answerTap is answerCallbackQuery.
func (s *Server) answerTap(c *call) ([]byte, *apiError) {
	var p struct {
		ID    json.RawMessage `json:"callback_query_id"`
		Text  string          `json:"text"`
		Alert bool            `json:"show_alert"`
	}
	if err := json.Unmarshal(c.params, &p); err != nil {
		return nil, badParams(err)
	}
	id := string(p.ID)
	if text := ""; json.Unmarshal(p.ID, &text) == nil {
		id = text
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.taps.byID[id]
	switch {
	case t == nil || t.Answered || time.Since(t.At) > s.cfg.TapAge:
		return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
	case utf16Len(p.Text) > maxToast:
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	t.Answered, t.Text, t.Alert = true, p.Text, p.Alert
	s.touch()
	return []byte("true"), nil
}
