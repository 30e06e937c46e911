package tools

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/claybot/claybot/storage"
)

// How patiently a call waits for a store that does not answer.
const (
	storePatience = 30 * time.Second
	storeFirst    = 100 * time.Millisecond
	storeMost     = 2 * time.Second
)

// patiently makes a call, and again while it meets a store that does not answer: to
// the model that would look like a tool that does not work. Only tools that may be
// run again wait so.
func patiently(ctx context.Context, e entry, env Env, args json.RawMessage) (Result, error) {
	until := time.Now().Add(storePatience)
	for wait := storeFirst; ; wait = min(2*wait, storeMost) {
		r, err := e.tool.Call(ctx, env, args)
		if e.spec.Effect == Once || !errors.Is(err, storage.ErrBusy) || !time.Now().Before(until) {
			return r, err
		}
		again := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			again.Stop()
			return r, err
		case <-again.C:
		}
	}
}
