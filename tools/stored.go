package tools

import (
	"context"
	"encoding/json"
	"fmt"
)

// A Store is a place where texts of one run meet those of another, such as the volume of
// a workspace. It is tainted once a tainted run, or a call that lets texts of strangers
// in, may have written there; what is read from it then is untrusted, whoever reads it.
type Store struct {
	// Key names the store of a call; empty: it has none.
	Key func(env Env) string
	// Tainted reports whether a store is tainted. Taint returns when that is durable.
	Tainted func(ctx context.Context, key string) (bool, error)
	Taint   func(ctx context.Context, key string) error
	// Open reports whether a call that writes may let in texts of strangers, whatever its
	// run has read; nil: never.
	Open func(env Env) bool
}

// On returns tools that read and write in a store. A call that may taint it does so before
// it runs, so a crash leaves no text without its mark. Where the mark cannot be read or
// kept, nothing runs.
func (s Store) On(list []Tool) []Tool {
	all := make([]Tool, len(list))
	for i, t := range list {
		all[i] = stored{t, s}
	}
	return all
}

type stored struct {
	Tool
	store Store
}

func (t stored) Call(ctx context.Context, env Env, args json.RawMessage) (Result, error) {
	key := t.store.Key(env)
	if key == "" {
		return t.Tool.Call(ctx, env, args)
	}
	tainted, err := t.store.Tainted(ctx, key)
	writes := t.Spec().Effect != ReadOnly
	if err == nil && !tainted && writes && (env.Tainted || t.store.Open != nil && t.store.Open(env)) {
		err, tainted = t.store.Taint(ctx, key), true
	}
	if err != nil {
		return Result{}, fmt.Errorf("it cannot be told now whether what is stored there is to be trusted; try again later: %w", err)
	}
	r, err := t.Tool.Call(ctx, env, args)
	r.Untrusted = r.Untrusted || tainted
	return r, err
}
