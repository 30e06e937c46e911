package webchat

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A said is the JSON form of an outgoing message. HTML is set if the chat
// enables it, and is safe to insert into a page.
type said struct {
	N    int64                `json:"n"`
	ID   string               `json:"id"`
	Kind claybot.OutgoingKind `json:"kind"`
	Run  claybot.RunID        `json:"run,omitempty"`
	// Message is the message that this one answers, if it answers a single one.
	Message claybot.MessageID `json:"message,omitempty"`
	Text    string            `json:"text"`
	HTML    string            `json:"html,omitempty"`
	At      claybot.Time      `json:"at"`
	// Shown is the id of an updated text. Replaces are the ids of the messages
	// that this one replaces: the edited one, and in a transcript all older
	// versions. In a transcript, At is the time of the first version and Edited
	// that of this one.
	Shown    string       `json:"shown,omitempty"`
	Replaces []string     `json:"replaces,omitempty"`
	Edited   claybot.Time `json:"edited,omitempty"`
	// File is the file of the message, served at files/{id}; the text may be
	// empty then.
	File *fileView `json:"file,omitempty"`
	// Tools, in a transcript, are the tool calls of the run, at its answer.
	Tools []connectors.ToolUse `json:"tools,omitempty"`
}

// An asked is the JSON form of a user's message. Text is the plain text that
// the user typed.
type asked struct {
	ID   claybot.MessageID   `json:"id"`
	Type claybot.MessageType `json:"type"`
	Text string              `json:"text"`
	At   claybot.Time        `json:"at"`
	// Files are the files of the message, served at files/{id}.
	Files []fileView `json:"files,omitempty"`
	// Edited and Deleted are when the user last edited and deleted the message, and Effect
	// what that changed. Text is the newest one. A deleted message has neither text nor files.
	Edited  claybot.Time `json:"edited,omitempty"`
	Deleted claybot.Time `json:"deleted,omitempty"`
	Effect  effect       `json:"effect,omitempty"`
}

// A line is one entry of a transcript; exactly one of its fields is set.
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

// An album builds a transcript in which the newest version of a message
// replaces the older ones.
type album struct {
	lines []line
	place map[string]int // id of a message, of any version → its line
}

func (a *album) add(s said) {
	if _, known := a.place[s.ID]; known { // a newer version is there
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
	for _, id := range s.Replaces { // it may be older than this transcript
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

// A happened is the JSON form of an event.
type happened struct {
	claybot.Event
	HTML string `json:"html,omitempty"` // of the text of an AssistantMessage
}

// eventView also returns the step whose text the event completes, 0 for none.
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

// userView returns a message as the user typed it, commands with their slash.
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
		if m.Command != connectors.Unknown { // which has its word in the text
			text = strings.TrimSpace("/" + m.Command + " " + m.Text)
		}
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
