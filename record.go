package claybot

import "encoding/json"

// RecordType says what a line of history tells.
type RecordType string

// The types of records.
const (
	RecordStart     RecordType = "start"
	RecordReset     RecordType = "reset"
	RecordUser      RecordType = "user_message"
	RecordSystem    RecordType = "system_message"
	RecordAssistant RecordType = "assistant_message"
	RecordTool      RecordType = "tool_result"
	RecordSummary   RecordType = "summary"
	RecordNote      RecordType = "note"
	RecordQuestion  RecordType = "question" // the run asks a question
	RecordAnswer    RecordType = "answer"   // what was said to a question, or its default
	RecordNode      RecordType = "node"     // a node of a graph has ended
	RecordIndex     RecordType = "index"    // which notes and skills the agent has
)

// A Record is one line of history.jsonl. Which fields are set depends on Type.
type Record struct {
	Type RecordType `json:"type"`
	V    int        `json:"v,omitempty"` // start: version of the format
	At   Time       `json:"at"`
	Zone string     `json:"zone,omitempty"` // user: the zone of its person, as Europe/Berlin, where it is known
	Run  RunID      `json:"run,omitempty"`

	MessageID MessageID `json:"messageId,omitempty"` // user, system, reset
	Text      string    `json:"text,omitempty"`
	From      *Sender   `json:"from,omitempty"`
	Quote     string    `json:"quote,omitempty"`
	Channel   string    `json:"channel,omitempty"` // the name of the group of a message; unverified
	Earlier   *Earlier  `json:"earlier,omitempty"` // user: what was said before it
	Origin    string    `json:"origin,omitempty"`  // system: who sent it, an agent's id, cron, heartbeat or claybot
	// Kind, Silent and SenderName are those of a system message.
	Kind       SystemKind `json:"kind,omitempty"`
	Silent     bool       `json:"silent,omitempty"`
	SenderName string     `json:"senderName,omitempty"`

	ToolCalls []ToolCall `json:"toolCalls,omitempty"` // assistant
	// Tokens are what the model calls took that the record is made of. A note that
	// has them stands for calls that came to nothing.
	Tokens *Usage `json:"tokens,omitempty"`
	Model  string `json:"model,omitempty"`
	Stop   string `json:"stop,omitempty"` // finish reason
	// State is what the model wants back with an answer, nil for most.
	State *ModelState `json:"state,omitempty"`
	Step  int         `json:"step,omitempty"`

	ToolCallID string `json:"toolCallId,omitempty"` // tool result
	Name       string `json:"name,omitempty"`
	OK         bool   `json:"ok,omitempty"`
	MS         int64  `json:"ms,omitempty"` // milliseconds that the call of the tool or the model took
	// WaitedMS is how long the call of a tool waited before, since its first start: for
	// subagents, a person or the next process. It is no work of the tool.
	WaitedMS    int64  `json:"waitedMs,omitempty"`
	Interrupted bool   `json:"interrupted,omitempty"`
	Saved       string `json:"saved,omitempty"` // the file that has the whole result, where Text is a part of it
	// Keep is how many records directly before a summary stay as they are; what
	// lies before them, the summary stands for.
	Keep     int             `json:"keep,omitempty"`
	Question *Question       `json:"question,omitempty"`
	Answer   *Answer         `json:"answer,omitempty"`
	Files    []FileReference `json:"files,omitempty"` // user

	// Only are the tools that the run has from this result on, with those of other
	// results that have such a list.
	Only []string `json:"only,omitempty"`
	// Groups are those of tools that are declared to the model from this result, or this
	// summary, on.
	Groups []string `json:"groups,omitempty"`
	// Index is what the model knows of its notes and skills from here on. In a summary, and
	// where the record has no Text, it stands in the system prompt; otherwise Text tells
	// the model what has changed.
	Index *Index `json:"index,omitempty"`
	// Undo is the effect of a tool that people may want to take back.
	Undo *Undo `json:"undo,omitempty"`
	// Tainted: the text comes from, or was written under the influence of, an
	// untrusted source: a page, a file, a stranger. What the agent
	// does afterwards is judged more strictly, until a reset.
	Tainted bool `json:"tainted,omitempty"`
	// Private: the text holds what not everybody may read, other than what a person typed
	// in this conversation: notes, files, other conversations.
	Private bool `json:"private,omitempty"`

	// Next is where a graph goes from the node Name: to another one, to
	// itself while it waits, or to its end. Change is what the node changed.
	Next   string       `json:"next,omitempty"`
	Change *StateChange `json:"change,omitempty"`

	// Aside marks the records of a run without memory: later runs do not see
	// them.
	Aside bool `json:"aside,omitempty"`

	By    string `json:"by,omitempty"`    // reset: user, operator, api, restore
	Level string `json:"level,omitempty"` // note: info, warn, error
}

// A ModelState is what a model wants back with its answer in later calls: reasoning, and signatures of
// it. Nothing but the client that got it reads it. It goes to the model that made it and to no other,
// and is not shown.
type ModelState struct {
	Of   string          `json:"of"` // the host and the name of the model
	Data json.RawMessage `json:"data"`
}

// Size is how many bytes of a request it takes; s may be nil.
func (s *ModelState) Size() int {
	if s == nil {
		return 0
	}
	return len(s.Data)
}

// An Index lists the notes and skills of an agent.
type Index struct {
	Text string `json:"text,omitempty"`
	// Files are the texts of SOUL.md and USER.md, which stand before the list.
	Files string `json:"files,omitempty"`
	// Person: Files has what is for the agent's person alone, so a run that others read must not
	// see it.
	Person bool `json:"person,omitempty"`
	// Unread: there are files that cannot be read now, so the Files that a conversation was told last
	// hold. It is never stored.
	Unread bool `json:"-"`
	// Owner: the notes of the agent's person may be in it, so a run that others read must
	// not see it.
	Owner bool `json:"owner,omitempty"`
	// Private: it has words of notes that not everybody may read.
	Private bool `json:"private,omitempty"`
}

// A StateChange is what one node changed of the state of its graph: the members
// that it set, or removed, which are null.
type StateChange struct {
	Scratch map[string]json.RawMessage `json:"scratch,omitempty"`
	Output  map[string]json.RawMessage `json:"output,omitempty"`
}

// A ToolCall is the model's wish to use a tool. Args is the JSON text as the
// model wrote it, valid or not.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// Input returns the arguments as JSON, an empty object when there are none.
func (c ToolCall) Input() json.RawMessage {
	if c.Args == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(c.Args)
}

// Marker reports whether r begins a new context: nothing before it is
// remembered.
func (r Record) Marker() bool { return r.Type == RecordStart || r.Type == RecordReset }

// Restored returns the records after the most recent start or reset: what an
// agent remembers. Without a marker that is everything.
func Restored(history []Record) []Record {
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Marker() {
			return history[i+1:]
		}
	}
	return history
}
