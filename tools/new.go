package tools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// New makes a tool of a function. The schema of its arguments is inferred from
// In, a struct: json tags name the fields, those without omitempty or omitzero
// are required, a jsonschema tag describes one. A schema already in s is kept.
//
// New panics when no schema can be made of In; that is a mistake in the program.
func New[In any](s Spec, fn func(ctx context.Context, env Env, in In) (Result, error)) Tool {
	if len(s.Parameters) == 0 {
		schema, err := jsonschema.For[In](nil)
		if err != nil {
			panic(fmt.Sprintf("tools: schema of %s: %v", s.Name, err))
		}
		raw, err := json.Marshal(schema)
		if err != nil {
			panic(fmt.Sprintf("tools: schema of %s: %v", s.Name, err))
		}
		s.Parameters = raw
	}
	return function[In]{spec: s, fn: fn}
}

type function[In any] struct {
	spec Spec
	fn   func(context.Context, Env, In) (Result, error)
}

func (f function[In]) Spec() Spec { return f.spec }

func (f function[In]) Call(ctx context.Context, env Env, args json.RawMessage) (Result, error) {
	var in In
	if err := json.Unmarshal(args, &in); err != nil {
		return Result{}, fmt.Errorf("arguments: %w", err)
	}
	return f.fn(ctx, env, in)
}
