package workspace

import "context"

// A Turn lets one goroutine at a time act. It must be made by NewTurn.
type Turn chan struct{}

// NewTurn makes a Turn that is free.
func NewTurn() Turn { return make(Turn, 1) }

// Take waits for the turn. The error is the cause of the end of ctx.
func (t Turn) Take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Try takes the turn if it is free.
func (t Turn) Try() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// Give ends a turn that was taken.
func (t Turn) Give() { <-t }
