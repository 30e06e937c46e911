package storage

import "context"

// A Checkpoint is a small fact that is kept under a key, see Checkpoints. The zero
// Checkpoint is none.
type Checkpoint struct{ Key, Value string }

// An Ending is a History that does not commit together with runs and messages, and so
// must be told from a shorter copy of itself. Optional.
type Ending interface {
	// End returns the checkpoint of where the durable history ends. It belongs into the
	// transaction that ends the work on the agent: a history that is shorter than its
	// mark when it is opened again is reported as damaged.
	End(ctx context.Context) Checkpoint
}

// EndOf returns the checkpoint of the end of h; the zero Checkpoint where it needs none.
func EndOf(ctx context.Context, h History) Checkpoint {
	if e, ok := h.(Ending); ok {
		return e.End(ctx)
	}
	return Checkpoint{}
}
