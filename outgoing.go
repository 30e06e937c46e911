package claybot

// A Route is a place to which claybot may send: a channel of a connector, with
// the thread and the message that a reply belongs to.
type Route struct {
	Connector string `json:"connector"`
	ChannelID string `json:"channelId"`
	UserID    string `json:"userId,omitempty"`
	ThreadID  string `json:"threadId,omitempty"`
	ReplyTo   string `json:"replyTo,omitempty"`
	Group     bool   `json:"group,omitempty"` // others read there too
	// Aside is what is sent beside the messages of the channel: it has an order of its own,
	// and holds up no message.
	Aside bool `json:"aside,omitempty"`
}

// Dest names the destination whose order is kept: one channel of a connector, or what is
// sent aside of its messages.
func (r Route) Dest() string {
	if r.Aside {
		return r.Connector + "\x00" + r.ChannelID + "\x00aside"
	}
	return r.Connector + "\x00" + r.ChannelID
}

// OutgoingKind says why an Outgoing exists.
type OutgoingKind string

// The kinds of outgoing messages.
const (
	OutgoingAnswer  OutgoingKind = "answer"  // the reply of a run
	OutgoingNotice  OutgoingKind = "notice"  // claybot itself says something, for example that a run failed
	OutgoingCommand OutgoingKind = "command" // the answer to a chat command
	OutgoingPairing OutgoingKind = "pairing" // the pairing code for an unknown user
	OutgoingFile    OutgoingKind = "file"    // a file or a message that an agent sends by a tool, or the words to a file
)

// SendState is how far an Outgoing has come.
type SendState string

// The states of an Outgoing. Attempted means that bytes may be on their way
// right now; found at start it becomes ambiguous.
const (
	SendWaiting   SendState = "waiting"   // not_sent: safe to try
	SendAttempted SendState = "attempted" // recorded before the bytes leave
	SendSent      SendState = "sent"
	SendAmbiguous SendState = "ambiguous" // bytes left, no answer came
	SendFailed    SendState = "failed"    // given up; Cause says why
)

// An Outgoing is one message to be sent, at most one platform message long.
// Longer texts are several parts, each an Outgoing of its own.
type Outgoing struct {
	ID    string       `json:"id"`
	Kind  OutgoingKind `json:"kind"`
	Run   RunID        `json:"run,omitempty"`
	Agent AgentID      `json:"agent,omitempty"`
	// Message is the message that this answers, if it answers one.
	Message MessageID `json:"message,omitempty"`
	Route   Route     `json:"route"`
	Text    string    `json:"text"` // Markdown
	Part    int       `json:"part"` // from 1
	Parts   int       `json:"parts"`
	// Edit is the receipt of an existing platform message that this text
	// replaces; repeating such a send is harmless.
	Edit string `json:"edit,omitempty"`
	// Shown names a text that is kept up to date in one message, for example
	// the todos of a run. EditOf is the id of the Outgoing whose message it
	// replaces, where there is one.
	Shown  string `json:"shown,omitempty"`
	EditOf string `json:"editOf,omitempty"`
	// EditOnly: where the message to replace cannot be edited, nothing is sent.
	EditOnly bool `json:"editOnly,omitempty"`
	// Resent marks a repeated send whose first fate is unknown; the connector
	// shows the mark to the reader.
	Resent bool `json:"resent,omitempty"`
	// Once says that a missing message is better than a second copy: the output of a task or
	// the heartbeat, which no person waits for, and the report of a run that did something
	// that a reader could take for done twice. See connectors.Resender.
	Once bool `json:"once,omitempty"`
	// Copies counts the messages of this Outgoing that people may see already
	// and that no receipt names: sends whose fate was never learned, and a
	// message that can no longer be edited. Edits leave none.
	Copies int `json:"copies,omitempty"`
	// Question is what the message asks; connectors that can show it as
	// buttons or a form. A message of several parts has it in the last one.
	Question *Question `json:"question,omitempty"`
	// Round are the questions that a run asks together in this conversation, where they are several and
	// none is an approval, in order; connectors that can show one form for all. The message of the last
	// one has them.
	Round []Question `json:"round,omitempty"`
	// Offer are buttons below the text.
	Offer []Offer `json:"offer,omitempty"`
	// Mark is an emoji to put on a message, in place of sending one; Text names it for
	// operators. Its route is Aside.
	Mark *Mark `json:"mark,omitempty"`
	// File is sent, with the text as its caption, which may be empty then. Its
	// Kind is how it is to be shown.
	File *FileReference `json:"file,omitempty"`
	At   Time           `json:"at"`

	// Progress: the text is unfinished, and its message gets more soon. It gives way to
	// all others, see connectors.Sender.
	Progress bool `json:"-"`

	N        int64     `json:"-"` // position in the outbox; set by the store
	State    SendState `json:"-"`
	Attempts int       `json:"-"` // tries so far; waiting for a 429 is none
	Tried    Time      `json:"-"` // when the last attempt began
	Due      Time      `json:"-"` // not before
	Receipt  string    `json:"-"` // the platform's id of the sent message
	Cause    string    `json:"-"` // of the last failure, without secrets
}

// An Offer is a button that stands for a command, such as "/undo <run>".
type Offer struct {
	Label   string `json:"label"`
	Command string `json:"command"` // with its slash
}

// A Mark is the one emoji that tells on a message how far its answer has come.
type Mark struct {
	Message string   `json:"message"`         // the platform id of the message
	Emoji   string   `json:"emoji,omitempty"` // empty: none any more
	Was     []string `json:"was,omitempty"`   // earlier marks, any of which may be there
}

// A Draft is the visible beginning of an answer that is still being written.
// Outgoing is the id that the answer's first part will have.
type Draft struct {
	Outgoing string `json:"outgoing"`
	Receipt  string `json:"receipt,omitempty"` // empty: tried, fate unknown
	Tried    Time   `json:"tried"`
}
