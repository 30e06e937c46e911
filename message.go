package claybot

// MessageType says what a message asks of its agent.
type MessageType string

// The types of messages. Reset and cancel act when they are posted; a command
// is answered by the system and never reaches an engine.
const (
	MessageUser    MessageType = "user"
	MessageSystem  MessageType = "system"
	MessageReset   MessageType = "reset"
	MessageCancel  MessageType = "cancel"
	MessageCommand MessageType = "command"
)

// A Message is anything that reaches an agent. There is no other way in.
type Message struct {
	ID      MessageID      `json:"id"`
	Type    MessageType    `json:"type"`
	Text    string         `json:"text,omitempty"`    // as typed; for a reset, what follows the command
	Command string         `json:"command,omitempty"` // of a command message: help, status, why, start
	From    Sender         `json:"from,omitzero"`
	Context MessageContext `json:"context,omitzero"`
	At      Time           `json:"at"`
	// Keys are further identities of the same source event. When one of them
	// is known, the message is a repeat whatever its ID says.
	Keys []string `json:"keys,omitempty"`
}

// A Sender is the person a message came from. Name is for display only.
type Sender struct {
	UserID string `json:"userId,omitempty"`
	Name   string `json:"name,omitempty"`
}

// MessageContext is what belongs to one message and not to its agent.
type MessageContext struct {
	MessageID string `json:"messageId,omitempty"` // the platform's id of the message
	ThreadID  string `json:"threadId,omitempty"`  // the thread or topic it was written in
	ReplyTo   string `json:"replyTo,omitempty"`   // the platform message that a reply should point at
	GroupID   string `json:"groupId,omitempty"`   // the album it is a part of
	Quote     string `json:"quote,omitempty"`     // text of the message it answers, data for the model
	Group     bool   `json:"group,omitempty"`     // written where others read too
}

// FollowUp is the first message of the new context that a reset with text
// begins.
func (m Message) FollowUp() Message {
	m.ID, m.Type, m.Keys = m.ID+"/text", MessageUser, nil
	return m
}

// ReplyRoute is where answers to m go. It is frozen into the message when it
// is accepted and never looked up again.
func (m Message) ReplyRoute(d Descriptor) Route {
	r := d.Route()
	r.ThreadID = m.Context.ThreadID
	r.ReplyTo = m.Context.ReplyTo
	r.Group = m.Context.Group
	return r
}
