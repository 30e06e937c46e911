package telegramtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

const (
	// pressRetention is how long a button press waits to be fetched: much shorter than a
	// message.
	pressRetention = 150 * time.Second
	// defaultPressAge is how old a button press may be when it is answered.
	defaultPressAge = 15 * time.Second
	maxToast        = 200 // characters of the answer to a button press
)

// A Press is a person's press of a button, and what the person saw of the bot's
// answer to it.
type Press struct {
	ID                        string // of the callback query
	ChatID, UserID, MessageID int64
	Data                      string
	At                        time.Time
	Update                    int64 // 0 when the bot does not want button presses

	Answered bool
	Text     string
	Alert    bool // in a window, not for a moment
}

// Press lets a person press the button of a message on which text stands, and
// returns the id of the callback query. ok is false when the message has no
// such button.
func (s *Server) Press(chatID, userID, message int64, text string) (query string, ok bool) {
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
	return s.press(c, userID, message, b.Data), true
}

// PressData lets a person send data as that of a button of a message, as an app
// does that shows an old keyboard, or one that was tampered with.
func (s *Server) PressData(chatID, userID, message int64, data string) (query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.press(s.chat(chatID), userID, message, data)
}

// PressInline lets a person press a button of a message that was sent through the
// bot, in a chat that the bot does not know.
func (s *Server) PressInline(userID int64, data string) (query string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.presses.add(s, Press{UserID: userID, Data: data}, map[string]any{"inline_message_id": "AgAAAFAKE" + data})
}

// Forget makes a message inaccessible, as a very old one: presses on it bring
// neither its text nor its buttons.
func (s *Server) Forget(chatID, message int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.chat(chatID).messages[message]; m != nil {
		m.forgotten = true
	}
}

func (s *Server) press(c *chat, userID, message int64, data string) string {
	shown := map[string]any{"chat": s.describe(c), "message_id": message, "date": 0}
	if m := c.messages[message]; m != nil && !m.deleted && !m.forgotten {
		shown = s.own(c, m)
	}
	return s.presses.add(s, Press{ChatID: c.id, UserID: userID, MessageID: message, Data: data}, map[string]any{"message": shown})
}

// presses are the button presses of all people, by the id of the callback query.
type presses struct {
	byID map[string]*Press
	last int64
}

// add queues the update of a button press; where says at which message it was.
func (q *presses) add(s *Server, t Press, where map[string]any) string {
	if q.byID == nil {
		q.byID = make(map[string]*Press)
	}
	q.last++
	t.ID, t.At = strconv.FormatInt(4_000_000_000_000_000_000+q.last, 10), time.Now()
	where["id"], where["from"], where["data"] = t.ID, s.user(t.UserID), t.Data
	where["chat_instance"] = strconv.FormatInt(-7_000_000_000+t.ChatID, 10)
	t.Update = s.deliver("callback_query", mustJSON(where))
	q.byID[t.ID] = &t
	return t.ID
}

// PressByID returns a button press; ok is false when there was none of that id.
func (s *Server) PressByID(query string) (t Press, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.presses.byID[query]; p != nil {
		return *p, true
	}
	return t, false
}

// WaitAnswer waits until the bot has answered a button press.
func (s *Server) WaitAnswer(ctx context.Context, query string) (Press, error) {
	err := s.Wait(ctx, func() bool { return s.presses.byID[query] != nil && s.presses.byID[query].Answered })
	t, _ := s.PressByID(query)
	if err != nil {
		err = fmt.Errorf("press %s was not answered: %w", query, err)
	}
	return t, err
}

// answerPress is answerCallbackQuery.
func (s *Server) answerPress(c *call) ([]byte, *apiError) {
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
	t := s.presses.byID[id]
	switch {
	case t == nil || t.Answered || time.Since(t.At) > s.cfg.PressAge:
		return nil, badRequest("query is too old and response timeout expired or query ID is invalid")
	case utf16Len(p.Text) > maxToast:
		return nil, badRequest("MESSAGE_TOO_LONG")
	}
	t.Answered, t.Text, t.Alert = true, p.Text, p.Alert
	s.touch()
	return []byte("true"), nil
}
