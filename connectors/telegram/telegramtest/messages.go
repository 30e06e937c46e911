package telegramtest

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// maxText is the longest text, in UTF-16 units after entities were parsed.
const maxText = 4096

// sendParams are the parameters of sendMessage, editMessageText and
// editMessageReplyMarkup.
type sendParams struct {
	ChatID    integer `json:"chat_id"`
	MessageID integer `json:"message_id"`
	ThreadID  integer `json:"message_thread_id"`
	Text      string  `json:"text"`
	ParseMode string  `json:"parse_mode"`
	Reply     *struct {
		MessageID integer `json:"message_id"`
		Anyway    bool    `json:"allow_sending_without_reply"`
	} `json:"reply_parameters"`
	Markup  json.RawMessage `json:"reply_markup"`
	Preview struct {
		Disabled bool `json:"is_disabled"`
	} `json:"link_preview_options"`
}

// preview reports whether Telegram shows a preview of a link of p.
func (p *sendParams) preview() bool { return !p.Preview.Disabled && strings.Contains(p.Text, "://") }

func (p *sendParams) markup() (markup, *apiError) { return readMarkup(p.Markup) }

// text is the visible text of p, checked as Telegram checks it.
func (p *sendParams) text() (string, []Entity, *apiError) {
	var text string
	var entities []Entity
	switch strings.ToLower(p.ParseMode) {
	case "":
		text = p.Text
	case "html":
		var err error
		if text, entities, err = ParseHTML(p.Text); err != nil {
			return "", nil, &apiError{Code: 400, Description: "Bad Request: can't parse entities: " + err.Error()}
		}
	default:
		return "", nil, &apiError{Code: 400, Description: "Bad Request: unsupported parse_mode"}
	}
	text, entities = trim(text, entities)
	switch {
	case text == "":
		return "", nil, &apiError{Code: 400, Description: "Bad Request: message text is empty"}
	case utf16Len(text) > maxText:
		return "", nil, &apiError{Code: 400, Description: "Bad Request: message is too long"}
	}
	return text, entities, nil
}

// content is what p shows: a text and what stands below it.
func (p *sendParams) content() (text string, entities []Entity, below markup, e *apiError) {
	if text, entities, e = p.text(); e == nil {
		below, e = p.markup()
	}
	return text, entities, below, e
}

func (s *Server) sendMessage(c *call) ([]byte, *apiError) {
	var p sendParams
	if err := json.Unmarshal(c.params, &p); err != nil {
		return nil, badParams(err)
	}
	text, entities, below, bad := p.content()
	s.mu.Lock()
	ch, e := s.open(int64(p.ChatID))
	if e == nil {
		e = bad
	}
	if e == nil {
		e = p.checkPlace(ch)
	}
	if e == nil {
		e = s.allow(ch)
	}
	if e != nil {
		s.mu.Unlock()
		return nil, e
	}
	id := s.nextMessage(ch)
	m := &stored{from: s.bot, Message: Message{
		ID: id, ChatID: ch.id, ThreadID: int64(p.ThreadID), Text: text, Source: p.Text, Entities: entities, At: time.Now(),
		Keyboard: below.keyboard, ForceReply: below.forceReply, Placeholder: below.placeholder,
		Preview: p.preview(),
	}}
	if p.Reply != nil && ch.messages[int64(p.Reply.MessageID)] != nil {
		m.ReplyTo = int64(p.Reply.MessageID)
	}
	ch.messages[id] = m
	ch.sent = append(ch.sent, m)
	delete(ch.drafts, m.ThreadID)
	return s.show(ch, m)
}

// checkPlace refuses a topic that is unknown, closed or deleted, and an unknown message to reply
// to.
func (p *sendParams) checkPlace(ch *chat) *apiError {
	why, known := ch.topics[cmp.Or(int64(p.ThreadID), 1)]
	if !known && p.ThreadID != 0 {
		why = noTopic
	}
	if why != "" {
		return &apiError{Code: 400, Description: "Bad Request: " + why}
	}
	if p.Reply != nil && !p.Reply.Anyway && ch.messages[int64(p.Reply.MessageID)] == nil {
		return &apiError{Code: 400, Description: "Bad Request: message to be replied not found"}
	}
	return nil
}

// own is a message of the bot in Telegram's form.
func (s *Server) own(ch *chat, m *stored) map[string]any {
	shown := map[string]any{
		"message_id": m.ID, "from": s.user(m.from), "chat": s.describe(ch), "date": m.At.Unix(), "text": m.Text,
	}
	if m.ThreadID != 0 {
		shown["message_thread_id"], shown["is_topic_message"] = m.ThreadID, true
	}
	if len(m.Entities) > 0 {
		shown["entities"] = m.Entities
	}
	if len(m.Keyboard) > 0 {
		shown["reply_markup"] = map[string]any{"inline_keyboard": m.Keyboard}
	}
	if m.Edits > 0 {
		shown["edit_date"] = m.EditedAt.Unix()
	}
	return shown
}

// edited notes an edit that leaves below what stands below the message.
func (m *stored) edited(below markup) {
	m.Keyboard, m.EditedAt = below.keyboard, time.Now()
	m.Edits++
}

// show ends a change of m: it unlocks the server and makes the answer.
func (s *Server) show(ch *chat, m *stored) ([]byte, *apiError) {
	answer, shown := s.own(ch, m), m.Message
	s.touch()
	s.mu.Unlock()
	if s.cfg.OnMessage != nil {
		s.cfg.OnMessage(shown)
	}
	return mustJSON(answer), nil
}

func (s *Server) editMessage(c *call) ([]byte, *apiError) {
	var p sendParams
	if err := json.Unmarshal(c.params, &p); err != nil {
		return nil, badParams(err)
	}
	text, entities, below, bad := p.content()
	s.mu.Lock()
	ch, e := s.open(int64(p.ChatID))
	if e == nil {
		e = bad
	}
	var m *stored
	if e == nil {
		m, e = s.editable(ch, int64(p.MessageID))
	}
	switch {
	case e != nil:
	case below.forceReply:
		e = badRequest("inline keyboard expected")
	case m.Text == text && reflect.DeepEqual(m.Entities, entities) && sameKeyboard(m.Keyboard, below.keyboard):
		e = notModified()
	default:
		e = s.allow(ch)
	}
	if e != nil {
		s.mu.Unlock()
		return nil, e
	}
	m.Text, m.Source, m.Entities, m.Preview = text, p.Text, entities, p.preview()
	m.edited(below)
	return s.show(ch, m)
}

// DeleteSent lets a person delete a message of the bot.
func (s *Server) DeleteSent(chatID, message int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || c.messages[message] == nil {
		return false
	}
	s.hide(c, c.messages[message])
	return true
}

func (s *Server) deleteMessage(c *call) ([]byte, *apiError) {
	var p sendParams
	if err := json.Unmarshal(c.params, &p); err != nil {
		return nil, badParams(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ch, e := s.open(int64(p.ChatID))
	if e != nil {
		return nil, e
	}
	m := ch.messages[int64(p.MessageID)]
	if m == nil || m.deleted {
		return nil, &apiError{Code: 400, Description: "Bad Request: message to delete not found"}
	}
	s.hide(ch, m)
	return []byte("true"), nil
}

// hide deletes a message.
func (s *Server) hide(c *chat, m *stored) {
	if !m.deleted && m.from == s.bot {
		c.hidden++
	}
	m.deleted = true
	s.touch()
}

// utf16Len is the length of s in UTF-16 units.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}
