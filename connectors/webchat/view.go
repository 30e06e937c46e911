package webchat

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A said is an outgoing message as readers get it. HTML is there when the chat
// has it turned on, and safe to put into a page as it is.
type said struct {
	N    int64                `json:"n"`
	ID   string               `json:"id"`
	Kind claybot.OutgoingKind `json:"kind"`
	Run  claybot.RunID        `json:"run,omitempty"`
	// Message is the message that this one answers, where it is a single one.
	Message claybot.MessageID `json:"message,omitempty"`
	Text    string            `json:"text"`
	HTML    string            `json:"html,omitempty"`
	At      claybot.Time      `json:"at"`
	// Shown names a text that is kept up to date. Replaces are the ids of
	// messages in whose place this one stands: the one that it is an edit of,
	// and in a transcript all older versions. Edited, in a transcript, is when
	// it was made, where At is when the first version was.
	Shown    string       `json:"shown,omitempty"`
	Replaces []string     `json:"replaces,omitempty"`
	Edited   claybot.Time `json:"edited,omitempty"`
	// File comes with the message, whose text may be empty then; it is at
	// files/{id}.
	File *fileView `json:"file,omitempty"`
	// Tools, in a transcript, are the calls of tools of the run, at its answer.
	Tools []connectors.ToolUse `json:"tools,omitempty"`
}

// An asked is a user's message as readers get it. Text is what was typed,
// plain text always.
type asked struct {
	ID   claybot.MessageID   `json:"id"`
	Type claybot.MessageType `json:"type"`
	Text string              `json:"text"`
	At   claybot.Time        `json:"at"`
	// Files came with it; they are at files/{id}.
	Files []fileView `json:"files,omitempty"`
}

// A line is one entry of a transcript; one of its fields is set.
type line struct {
	User    *asked `json:"user,omitempty"`
	Message *said  `json:"message,omitempty"`
}

func (c *Chat) saidView(o claybot.Outgoing) said {
	s := said{
		N: o.N, ID: o.ID, Kind: o.Kind, Run: o.Run, Message: o.Message, Text: o.Text, At: o.At,
		Shown: o.Shown,
	}
	for _, offer := range o.Offer {
		s.Text += "\n\n*" + offer.Label + ":* `" + offer.Command + "`"
	}
	if o.File != nil {
		s.File = &filesView([]claybot.FileReference{*o.File})[0]
		if !c.html { // a terminal shows words, and is where the files are
			s.Text = strings.TrimSpace(s.Text + "\n\n[" + connectors.FileLine(*o.File) + "; in the data directory it is " + o.File.Path + "]")
		}
	}
	if o.EditOf != "" {
		s.Replaces = []string{o.EditOf}
	}
	if c.html {
		s.HTML = connectors.Render(s.Text, page)
	}
	return s
}

// An album puts messages into a transcript, where a newer version stands in the
// place of the one it replaces.
type album struct {
	lines []line
	place map[string]int // id of a message, of any version → its line
}

func (a *album) add(s said) {
	if _, known := a.place[s.ID]; known { // a newer one stands there
		return
	}
	if a.place == nil {
		a.place = make(map[string]int)
	}
	at := len(a.lines)
	for _, id := range s.Replaces {
		if i, known := a.place[id]; known {
			at = i
		}
	}
	a.place[s.ID] = at
	for _, id := range s.Replaces { // it may be too old for this transcript
		a.place[id] = at
	}
	if at == len(a.lines) {
		a.lines = append(a.lines, line{Message: &s})
		return
	}
	older, newer := a.lines[at].Message, &s
	if newer.N < older.N {
		older.Replaces = append(older.Replaces, newer.ID)
		return
	}
	newer.Edited, newer.At = newer.At, older.At
	newer.Replaces = append(older.Replaces, older.ID)
	a.lines[at].Message = newer
}

// A happened is an event as readers get it.
type happened struct {
	claybot.Event
	HTML string `json:"html,omitempty"` // of the text of an AssistantMessage
}

// eventView also tells which step's text the event completes, 0 for none.
func (c *Chat) eventView(e claybot.Event) (v happened, step int) {
	v.Event = e
	if e.Type != claybot.EventAssistantMessage {
		return v, 0
	}
	var data struct {
		Step int    `json:"step"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return v, 0 // shown without its text
	}
	if c.html {
		v.HTML = connectors.Render(data.Text, page)
	}
	return v, data.Step
}

// userView shows a message as it was typed: a command has its slash again.
func userView(m claybot.AgentMessage) asked {
	text := m.Text
	switch m.Type {
	case claybot.MessageReset:
		text = strings.TrimSpace("/new " + m.Text)
	case claybot.MessageCancel:
		text = strings.TrimSpace("/stop " + m.Text)
	case claybot.MessageCompact:
		text = strings.TrimSpace("/compact " + m.Text)
	case claybot.MessageCommand:
		text = strings.TrimSpace("/" + m.Command + " " + m.Text)
	}
	return asked{ID: m.ID, Type: m.Type, Text: text, At: m.At, Files: filesView(m.Files)}
}

// frame writes one Server-Sent Event. id may be empty; v is a struct of plain
// fields, which always marshals.
func frame(event, id string, v any) []byte {
	var b bytes.Buffer
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	b.WriteString("event: " + event + "\ndata: ")
	data, err := json.Marshal(v)
	if err != nil { // an event with data that is no JSON
		data = []byte("null")
	}
	b.Write(data) // one line: JSON escapes line breaks
	b.WriteString("\n\n")
	return b.Bytes()
}
