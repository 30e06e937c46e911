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
	Message claybot.Message
	Cause   string // why, for operators

	// Set by the store: the first message that was parked while the agent could not
	// be used, and when this one was parked.
	Episode claybot.MessageID
	At      claybot.Time
	// Damaged is why the stored message cannot be read; Message has only its ID then.
	Damaged error
}

// ParkRules say when a message is parked.
type ParkRules struct {
	All   int // the most messages in the table; 0: no limit
	Agent int // the most messages of one agent; 0: no limit
	// Behind parks the message only if others of the agent are parked.
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
	// ParkedHeads returns the oldest message of each agent, the oldest first, up to
	// limit.
	ParkedHeads(ctx context.Context, limit int) ([]Parked, error)
	// ParkedOf returns up to limit messages of the agent of d, the oldest first.
	ParkedOf(ctx context.Context, d claybot.Descriptor, limit int) ([]Parked, error)
	// Unpark removes a message that was posted. One that is not parked is ignored.
	Unpark(ctx context.Context, id claybot.MessageID) error
	// ParkedTotals counts what is parked.
	ParkedTotals(ctx context.Context) (ParkedTotals, error)
}
