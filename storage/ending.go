package storage

import "context"

// A Mark is a small fact that is kept under a key, see Marks. The zero Mark is none.
type Mark struct{ Key, Value string }

// An Ending is a History that does not commit together with runs and messages, and so
// must be told from a shorter copy of itself. Optional.
type Ending interface {
	// End returns the mark of where the durable history ends. It belongs into the
	// transaction that ends the work on the agent: a history that is shorter than its
	// mark when it is opened again is reported as damaged.
	End(ctx context.Context) Mark
}

// EndOf returns the mark of h; the zero Mark where it needs none.
func EndOf(ctx context.Context, h History) Mark {
	if e, ok := h.(Ending); ok {
		return e.End(ctx)
	}
	return Mark{}
}
