package agentsystem

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// An Address says whom a message is for: an agent, or a descriptor whose agent
// is found or made. One of the two is set.
type Address struct {
	Agent      claybot.AgentID
	Descriptor *claybot.Descriptor
}

// Accepted is what became of a message that starts a run.
type Accepted struct {
	Run     claybot.RunID     `json:"runId"` // the one that was reserved, or that the message joined
	Agent   claybot.AgentID   `json:"agentId"`
	Message claybot.MessageID `json:"messageId"`
	State   claybot.RunState  `json:"state"`
	// Answers are the questions of Run that the message answered, where it
	// started no run.
	Answers []string `json:"-"`
}

// A Story is what became of one message, for whoever asks why.
type Story struct {
	storage.Receipt
	// Events are those of the run that took the message.
	Events []claybot.Event
	// Steps is the same as a list to read, oldest first.
	Steps []Step
	// Silence is why there is no reply, in words; empty when there is one, or
	// when it is still to come.
	Silence string
	// Fault is why the agent of an open message cannot be used at present; empty when
	// it can, as far as this member knows.
	Fault string
	zone  *time.Location // of the people who read it; nil: UTC
}

// Verdict is what became of the message.
func (t Story) Verdict() Verdict { return VerdictOf(t.Receipt, t.Fault != "", t.zone) }

// A Step is one thing that happened to a message.
type Step struct {
	At   claybot.Time  `json:"at"`
	What string        `json:"what"` // received, stored, waiting, run, model, tool, question, answer, reply, sent, failed, skipped …
	Text string        `json:"text"` // in words
	Run  claybot.RunID `json:"run,omitempty"`
	MS   int64         `json:"ms,omitempty"`
}
