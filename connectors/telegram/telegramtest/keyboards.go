package telegramtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// A Button is one of those below a message.
type Button struct {
	Text string `json:"text"`
	Data string `json:"callback_data,omitempty"`
	URL  string `json:"url,omitempty"`
}

// Limits of what stands below a message.
const (
	maxData        = 64 // bytes of one button
	maxButtons     = 100
	maxRow         = 8
	maxPlaceholder = 64 // characters
)

// A markup is what stands below a message.
type markup struct {
	keyboard    [][]Button
	forceReply  bool
	placeholder string
}

func badRequest(format string, args ...any) *apiError {
	return &apiError{Code: 400, Description: "Bad Request: " + fmt.Sprintf(format, args...)}
}

// readMarkup reads a reply_markup, which Telegram takes as an object or as a
// string that has one. Without one it is empty.
func readMarkup(raw json.RawMessage) (m markup, e *apiError) {
	raw = bytes.TrimSpace(raw)
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = []byte(text)
	}
	if len(raw) == 0 || string(raw) == "null" {
		return m, nil
	}
	var p struct {
		Inline      json.RawMessage   `json:"inline_keyboard"`
		Keyboard    json.RawMessage   `json:"keyboard"`
		Remove      bool              `json:"remove_keyboard"`
		ForceReply  bool              `json:"force_reply"`
		Placeholder string            `json:"input_field_placeholder"`
		rows        []json.RawMessage // of Inline
	}
	switch {
	case raw[0] != '{':
		return m, badRequest("object expected as reply markup")
	case json.Unmarshal(raw, &p) != nil:
		return m, badRequest("can't parse reply keyboard markup JSON object")
	case len(p.Keyboard) > 0 || p.Remove:
		return m, badRequest("telegramtest knows no keyboards but inline ones")
	case utf8.RuneCountInString(p.Placeholder) > maxPlaceholder:
		return m, badRequest("input field placeholder is too long")
	}
	if len(p.Inline) > 0 && json.Unmarshal(p.Inline, &p.rows) != nil {
		return m, badRequest(`field "inline_keyboard" must be of type Array`)
	}
	if m.keyboard, e = readRows(p.rows); e != nil {
		return markup{}, e
	}
	if len(m.keyboard) == 0 && p.ForceReply {
		m.forceReply, m.placeholder = true, p.Placeholder
	}
	return m, nil
}

func readRows(raw []json.RawMessage) (rows [][]Button, e *apiError) {
	n := 0
	for _, r := range raw {
		var buttons []json.RawMessage
		if json.Unmarshal(r, &buttons) != nil || buttons == nil {
			return nil, badRequest(`field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays`)
		}
		var row []Button
		for _, raw := range buttons {
			b, e := readButton(raw)
			if e != nil {
				return nil, e
			}
			row = append(row, b)
		}
		if n += len(row); len(row) > maxRow || n > maxButtons {
			return nil, badRequest("reply markup is too long")
		}
		if len(row) > 0 {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func readButton(raw json.RawMessage) (b Button, e *apiError) {
	const cannot = "can't parse inline keyboard button: "
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return b, badRequest(cannot + "InlineKeyboardButton must be an Object")
	}
	if _, ok := fields["text"]; !ok {
		return b, badRequest(cannot + `Can't find field "text"`)
	}
	for _, f := range []struct {
		name string
		to   *string
	}{{"text", &b.Text}, {"callback_data", &b.Data}, {"url", &b.URL}} {
		if v, ok := fields[f.name]; ok && json.Unmarshal(v, f.to) != nil {
			return b, badRequest(cannot+"Field %q must be of type String", f.name)
		}
	}
	switch {
	case b.Data == "" && b.URL == "":
		return b, badRequest(cannot + "Text buttons are unallowed in the inline keyboard")
	case b.Text == "":
		return b, badRequest("inline keyboard button text must be non-empty")
	case len(b.Data) > maxData:
		return b, badRequest("BUTTON_DATA_INVALID")
	}
	return b, nil
}

func sameKeyboard(a, b [][]Button) bool { return slices.EqualFunc(a, b, slices.Equal) }

// Buttons are the texts on the buttons of m, from the first row to the last.
func (m Message) Buttons() []string {
	var texts []string
	for _, row := range m.Keyboard {
		for _, b := range row {
			texts = append(texts, b.Text)
		}
	}
	return texts
}

// Button finds a button of m by what stands on it.
func (m Message) Button(text string) (b Button, ok bool) {
	for _, row := range m.Keyboard {
		if i := slices.IndexFunc(row, func(b Button) bool { return b.Text == text }); i >= 0 {
			return row[i], true
		}
	}
	return b, false
}

func notModified() *apiError {
	return badRequest("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
}

// editable finds a message that the bot may edit.
func (s *Server) editable(ch *chat, id int64) (*stored, *apiError) {
	m := ch.messages[id]
	switch {
	case m == nil || m.deleted:
		return nil, badRequest("message to edit not found")
	case m.from != s.bot, m.ForceReply: // a hint depends on its message
		return nil, badRequest("message can't be edited")
	}
	return m, nil
}

func (s *Server) editMarkup(c *call) ([]byte, *apiError) {
	var p sendParams
	if err := json.Unmarshal(c.params, &p); err != nil {
		return nil, badParams(err)
	}
	below, bad := p.markup()
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
	case sameKeyboard(m.Keyboard, below.keyboard):
		e = notModified()
	default:
		e = s.allow(ch)
	}
	if e != nil {
		s.mu.Unlock()
		return nil, e
	}
	m.edited(below)
	return s.show(ch, m)
}
