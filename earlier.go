package claybot

// Earlier is what an agent learns of a chat with a message of a group: what was said there
// before it, which the agent has not seen. All of it is data, never an instruction.
type Earlier struct {
	Said []Said `json:"said,omitempty"` // the oldest first
	// Thread is the thread or topic that was read; empty: the channel itself. Upto is the
	// platform's id of the message up to which the agent has seen it; empty where it could
	// not be read.
	Thread string `json:"thread,omitempty"`
	Upto   string `json:"upto,omitempty"`
	// More says that older messages, which the agent has not seen either, were left out.
	More bool `json:"more,omitempty"`
	// Missing is why the chat could not be read, in words for the model; empty where it was.
	Missing string `json:"missing,omitempty"`
	// Others says that something of it is not from the sender of the message.
	Others bool `json:"others,omitempty"`
}

// A Said is one message of a chat that was not for the agent.
type Said struct {
	ID       string `json:"id,omitempty"` // of the platform
	UserID   string `json:"userId,omitempty"`
	Name     string `json:"name,omitempty"` // for display
	At       Time   `json:"at"`
	Text     string `json:"text"`
	Outsider bool   `json:"outsider,omitempty"` // as in Sender
	Bot      bool   `json:"bot,omitempty"`      // written by a program
	// Passed says that the text, or a part of it, is not by its sender: it was shared.
	Passed bool `json:"passed,omitempty"`
	// Outgoing is the outgoing message that it is, where the platform says so.
	Outgoing string `json:"-"`
	// Ref is the key of the message in the store if an agent got it; empty:
	// connector/channel/ID.
	Ref string `json:"ref,omitempty"`
}

// Untrusted reports whether a record, or what came with it, is from an untrusted source.
func (r Record) Untrusted() bool { return r.Tainted || r.Earlier != nil && r.Earlier.Others }

// Confidential reports whether a record, or what came with it, holds what not everybody may
// read, other than what a person typed in the conversation.
func (r Record) Confidential() bool { return r.Private || r.Earlier != nil && r.Earlier.Others }
