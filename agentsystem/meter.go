package agentsystem

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/storage"
)

// A Meter is told what happens, as it happens. Its methods are called
// concurrently, on the way of messages and runs: they must be quick, must not
// block, must not panic and must not call the System.
type Meter interface {
	delivery.Meter
	// Received tells what became of a message that a connector posted, one of
	// the Received constants, and how long that took. The agents of tasks and of
	// the heartbeat have their type in the place of a connector.
	Received(connector, outcome string, took time.Duration)
	// Event tells an event of a run of an agent, after it is durable, with its
	// seq. Those of one run come in order, each once; those that a restarted
	// process does not know of any more do not come.
	Event(agent claybot.AgentID, e claybot.Event)
}

// What becomes of a message that a connector posted.
const (
	ReceivedAccepted  = "accepted"  // it is durable; commands count
	ReceivedDuplicate = "duplicate" // it was known
	ReceivedStranger  = "stranger"  // nobody let its sender in
	ReceivedRefused   = "refused"   // it will not run: too long, empty, the inbox is full, the agent is damaged
	ReceivedError     = "error"     // nothing was stored; its source keeps it
)

// noMeter measures nothing.
type noMeter struct{}

func (noMeter) Received(string, string, time.Duration)       {}
func (noMeter) Sent(claybot.Outgoing, string, time.Duration) {}
func (noMeter) Event(claybot.AgentID, claybot.Event)         {}
func (noMeter) Panicked(string)                              {}

// receivedAs is the outcome of a message that was handed to the store.
func receivedAs(done storage.Posted, err error) string {
	switch {
	case err != nil:
		return ReceivedError
	case done.Skipped != "" && done.Skipped != "command" && done.Skipped != parkedReason:
		return ReceivedRefused
	case !done.Added:
		return ReceivedDuplicate
	}
	return ReceivedAccepted
}
