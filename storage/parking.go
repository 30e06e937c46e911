package storage

import (
	"context"
	"errors"

	"github.com/claybot/claybot"
)

// The bounds of the parking table, in messages.
const (
	MaxParked      = 10_000 // in all
	MaxParkedAgent = 1_000  // of one agent
)

// ErrParkingFull: the parking table takes no more messages. It is a fault of
// ClassStore: the source keeps the message until the operator has made room.
var ErrParkingFull = errors.New("the parking table is full")

// A Parked is a message whose agent cannot be used.
type Parked struct {
	To      claybot.Descriptor
	Message claybot.AgentMessage
	Cause   string // why, for operators

	// Set by the store: the key of the agent's descriptor, the first message that was
	// parked while the agent could not be used, and when this one was parked.
	Key     string
	Episode claybot.MessageID
	At      claybot.Time
	// Damaged is why the stored message cannot be read. Message has only its ID then,
	// and To is zero when the descriptor does not belong to Key.
	Damaged error
}

// A ParkedAgent is an agent with parked messages, by the key of its descriptor.
type ParkedAgent struct {
	Key      string
	Messages int
}

// ParkRules say when a message is parked.
type ParkRules struct {
	All   int // the most messages in the table; 0: no limit
	Agent int // the most messages of one agent; 0: no limit
	// Behind parks the message only if others of the agent are parked. Its cause is
	// that of the oldest one.
	Behind bool
	// Posted parks the message although it was posted: what follows from it is not
	// done yet.
	Posted bool
}

// ParkedTotals count the parking table.
type ParkedTotals struct {
	Messages int          `json:"messages"`
	Agents   int          `json:"agents"`
	Oldest   claybot.Time `json:"oldest,omitempty"` // when the message was parked that waits longest
}

// Parking keeps messages whose agent cannot be used, in order, until it can. An
// agent is named by the key of its descriptor, as it may not exist yet.
type Parking interface {
	// Park keeps a message behind those of the same agent and returns once it is
	// durable. It returns false when the message was parked or posted before, by the
	// rules of Inbox.Post. ErrNotFound: no others of the agent are parked, and it was
	// to be parked behind them. ErrTooMany: the limit of the agent is reached. A Fault
	// of ClassStore that wraps ErrParkingFull: that of the table is.
	Park(ctx context.Context, p Parked, r ParkRules) (added bool, err error)
	// IsParked reports whether messages of the agent of d are parked.
	IsParked(ctx context.Context, d claybot.Descriptor) (bool, error)
	// ParkedAgents returns up to limit agents with parked messages, in the order of
	// their oldest ones. It reads no message.
	ParkedAgents(ctx context.Context, limit int) ([]ParkedAgent, error)
	// ParkedOf returns up to limit messages of the agent with a key, the oldest first.
	ParkedOf(ctx context.Context, key string, limit int) ([]Parked, error)
	// Unpark removes a message that was posted. One that is not parked is ignored.
	Unpark(ctx context.Context, id claybot.MessageID) error
	// EndParked ends a message that will not run, parked or not: it stores the message
	// as skipped with the reason, and removes it from the table. It returns false when
	// the message was posted before. A redelivery of it is a repeat, and Receipt tells
	// the reason, also where the agent does not exist.
	EndParked(ctx context.Context, p Parked, reason string) (ended bool, err error)
}
