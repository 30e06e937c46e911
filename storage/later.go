package storage

import (
	"context"

	"github.com/claybot/claybot"
)

// Ledger stores the outcome of each scheduled instant of each cron task.
// Inbox.Post enters instants that run, with their message.
type Ledger interface {
	// Skip enters an instant that does not run, with the reason. A known
	// instant changes nothing.
	Skip(ctx context.Context, f claybot.Firing, reason string) error
	// Firings returns the newest limit rows of a task, the latest entry first.
	Firings(ctx context.Context, task string, limit int) ([]LedgerRow, error)
	// LastFirings returns the newest row of every task, by task, without manual
	// runs.
	LastFirings(ctx context.Context) (map[string]LedgerRow, error)
}

// A LedgerRow is an instant of a task and its outcome. Ended rows never change.
type LedgerRow struct {
	claybot.Firing
	Entered claybot.Time      `json:"entered"`
	State   string            `json:"state"` // waiting, skipped, or the state of the run
	Reason  string            `json:"reason,omitempty"`
	Run     claybot.RunID     `json:"run,omitempty"`
	Started claybot.Time      `json:"started,omitempty"`
	Ended   claybot.Time      `json:"ended,omitempty"`
	Cost    int64             `json:"costMicroUSD,omitempty"`
	Error   *claybot.RunError `json:"error,omitempty"`
	// Undelivered is why the run's output did not arrive, if it did not.
	Undelivered string `json:"undelivered,omitempty"`
}

// Open reports whether the instant is not finished.
func (r LedgerRow) Open() bool {
	return r.State == "waiting" || r.State == string(claybot.RunRunning) || r.State == string(claybot.RunAwaiting)
}

// Reminders stores the reminders of agents.
type Reminders interface {
	// AddReminder stores r; ErrTooMany if its agent already has limit
	// reminders. A known id changes nothing.
	AddReminder(ctx context.Context, r Reminder, limit int) error
	// Reminders lists those of an agent, the next one first.
	Reminders(ctx context.Context, agent claybot.AgentID) ([]Reminder, error)
	// NextReminders lists at most limit reminders of all agents, the next one
	// first.
	NextReminders(ctx context.Context, limit int) ([]Reminder, error)
	// CancelReminder removes one; ErrNotFound.
	CancelReminder(ctx context.Context, agent claybot.AgentID, id string) error
	// Remind posts the reminders that are due at now. Each is posted and
	// removed in one transaction. posting creates the message and may use the
	// store; if it fails, the reminder stays. Remind returns how many it posted
	// and when the next one is due, zero for never.
	Remind(ctx context.Context, now claybot.Time, posting func(Reminder) (Posting, error)) (posted int, next claybot.Time, err error)
}

// A Reminder is a note that an agent receives at a given time.
type Reminder struct {
	ID    string          `json:"id"`
	Agent claybot.AgentID `json:"-"`
	Due   claybot.Time    `json:"at"`
	Note  string          `json:"note"`
	Made  claybot.Time    `json:"scheduled"`
	// Context is the context of the original message, where the agent answers.
	Context claybot.MessageContext `json:"-"`
	Route   *claybot.Route         `json:"-"`
}

// Documents stores texts of agents and owners, by scope and path.
type Documents interface {
	// Document reads one; ErrNotFound.
	Document(ctx context.Context, scope, path string) (string, error)
	// Documents lists those of a scope, by path.
	Documents(ctx context.Context, scope string) ([]Document, error)
	// SaveDocument adds or replaces a document; ErrTooMany if the scope would
	// exceed limit bytes.
	SaveDocument(ctx context.Context, scope, path, text string, limit int64) error
	// DropDocuments removes one document or, with an empty path, all of the
	// scope.
	DropDocuments(ctx context.Context, scope, path string) error
}

// A Document is one entry of a list of documents.
type Document struct {
	Path string
	Size int64 // bytes
	At   claybot.Time
}
