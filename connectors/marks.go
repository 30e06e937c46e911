package connectors

import (
	"context"
	"encoding/json"
	"fmt"
)

// Marks stores small values across restarts. A missing key is the empty string.
type Marks interface {
	Checkpoint(ctx context.Context, key string) (string, error)
	SetCheckpoint(ctx context.Context, key, value string) error
}

// ReadMark reads a value that WriteMark stored. It is the zero value where it is missing, or was written by another
// version or by hand, and with nil marks.
func ReadMark[V any](ctx context.Context, marks Marks, key string) (v V, err error) {
	if marks == nil {
		return v, nil
	}
	text, err := marks.Checkpoint(ctx, key)
	if err != nil {
		return v, fmt.Errorf("read %s: %w", key, err)
	}
	var stored V
	if json.Unmarshal([]byte(text), &stored) != nil {
		return v, nil
	}
	return stored, nil
}

// WriteMark stores a value as JSON; nil marks store nothing.
func WriteMark(ctx context.Context, marks Marks, key string, v any) error {
	if marks == nil {
		return nil
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = marks.SetCheckpoint(ctx, key, string(text))
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", key, err)
	}
	return nil
}
