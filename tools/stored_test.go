package tools_test

import (
	"context"
	"errors"
	"testing"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// A store is tainted before a call that may taint it, and from then on what is read there
// is untrusted.
func TestStore(t *testing.T) {
	var broken error
	marks := make(map[string]bool)
	open := false
	store := tools.Store{
		Key: func(env tools.Env) string { return string(env.Agent.ID) },
		Tainted: func(_ context.Context, key string) (bool, error) {
			return marks[key], broken
		},
		Taint: func(_ context.Context, key string) error { marks[key] = true; return broken },
		Open:  func(tools.Env) bool { return open },
	}
	ran := 0
	tool := func(effect tools.Effect) tools.Tool {
		return tools.New(tools.Spec{Tool: llm.Tool{Name: "x"}, Effect: effect}, func(context.Context, tools.Env, struct{}) (tools.Result, error) {
			ran++
			return tools.Result{Text: "x"}, nil
		})
	}
	both := store.On([]tools.Tool{tool(tools.ReadOnly), tool(tools.Idempotent)})
	reads, writes := both[0], both[1]
	clean, tainted := tools.Env{}, tools.Env{Tainted: true}
	clean.Agent.ID, tainted.Agent.ID = "a", "a"
	for i, step := range []struct {
		tool            tools.Tool
		env             tools.Env
		open            bool
		untrusted, mark bool
	}{
		{reads, clean, false, false, false},
		{writes, clean, false, false, false},
		{reads, tainted, false, false, false}, // it leaves nothing there
		{reads, clean, true, false, false},
		{writes, tainted, false, true, true},
		{reads, clean, false, true, true},
		{writes, clean, false, true, true},
	} {
		open = step.open
		r, err := step.tool.Call(t.Context(), step.env, noArgs)
		if err != nil || r.Untrusted != step.untrusted || marks["a"] != step.mark {
			t.Errorf("step %d: %+v, %v, marked %v", i, r, err, marks["a"])
		}
	}
	marks["a"], open = false, true
	if r, err := writes.Call(t.Context(), clean, noArgs); err != nil || !r.Untrusted || !marks["a"] {
		t.Errorf("a call that lets strangers in: %+v, %v", r, err)
	}
	if r, err := reads.Call(t.Context(), tools.Env{Tainted: true}, noArgs); err != nil || r.Untrusted {
		t.Errorf("without a store: %+v, %v", r, err)
	}
	broken, ran = errors.New("no disk"), 0
	for _, tool := range both {
		if _, err := tool.Call(t.Context(), clean, noArgs); err == nil || ran != 0 {
			t.Errorf("without marks it ran %d times, %v", ran, err)
		}
	}
}

var noArgs = []byte("{}")
