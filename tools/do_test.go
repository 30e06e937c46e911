package tools_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

func TestFaults(t *testing.T) {
	busy := &tools.Fault{Code: "rate", Text: "too many requests", Retriable: true, After: time.Second}
	tests := []struct {
		name string
		tool func(context.Context) error
		args string
		want tools.Fault
	}{
		{"its own", func(context.Context) error { return busy }, "", *busy},
		{"wrapped", func(context.Context) error { return fmt.Errorf("post: %w", busy) }, "", tools.Fault{Code: "rate", Text: "post: too many requests", Retriable: true, After: time.Second}},
		{"plain", func(context.Context) error { return errors.New("no") }, "", tools.Fault{Code: tools.FaultFailed, Text: "no"}},
		{"too slow", func(ctx context.Context) error { <-ctx.Done(); return busy }, "", tools.Fault{Code: tools.FaultTimeout, Text: "t took longer than 5s and was stopped"}},
		{"panic", func(context.Context) error { panic("x") }, "", tools.Fault{Code: tools.FaultInternal, Text: "t failed inside; the operator's log has the details"}},
		{"arguments", nil, `{"x":1}`, tools.Fault{Code: tools.FaultArguments, Text: `invalid arguments: unexpected additional properties ["x"]`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := set(t, tools.New(tools.Spec{Tool: llm.Tool{Name: "t"}, Timeout: 5 * time.Second}, func(ctx context.Context, _ tools.Env, _ struct{}) (tools.Result, error) {
					return tools.Result{What: "did it"}, tt.tool(ctx)
				}))
				o := s.Do(t.Context(), tools.Env{Run: "r"}, claybot.ToolCall{ID: "c", Name: "t", Args: tt.args})
				if o.Fault == nil || *o.Fault != tt.want {
					t.Fatalf("%+v, want %+v", o.Fault, tt.want)
				}
				if o.Record.OK || o.Record.Text != "error: "+tt.want.Text || o.Record.Undo != nil || o.Wait != nil {
					t.Errorf("%+v", o.Record)
				}
				if busy.Text != "too many requests" {
					t.Errorf("the tool's own fault was changed: %+v", busy)
				}
			})
		})
	}
}

func TestFaultOfAStoppedRun(t *testing.T) {
	s := set(t, order(served))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if o := s.Do(ctx, tools.Env{}, claybot.ToolCall{Name: "order", Args: `{"dish":"a"}`}); o.Fault == nil || o.Fault.Code != tools.FaultInterrupted {
		t.Errorf("%+v", o)
	}
}

func TestEffects(t *testing.T) {
	back := &claybot.ToolCall{Name: "unorder", Args: `{"id":1}`}
	var result tools.Result
	s := set(t, tools.New(tools.Spec{Tool: llm.Tool{Name: "order"}}, func(context.Context, tools.Env, struct{}) (tools.Result, error) { return result, nil }))
	tests := []struct {
		result tools.Result
		undo   bool
		want   *claybot.Undo
	}{
		{tools.Result{}, false, nil},
		{tools.Result{What: "ordered", Undo: back}, false, &claybot.Undo{Step: "c", Tool: "order", What: "ordered", Call: back}},
		{tools.Result{What: "told the cook"}, false, &claybot.Undo{Step: "c", Tool: "order", What: "told the cook"}},
		{tools.Result{What: "ordered", Undo: back}, true, nil},
	}
	for _, tt := range tests {
		result = tt.result
		got := s.Do(t.Context(), tools.Env{CallID: "c", Undo: tt.undo}, claybot.ToolCall{ID: "c", Name: "order"}).Record.Undo
		if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%+v: %+v", tt.result, got)
		}
	}
}

// Hidden tools, and those that an agent was not given, are for undo alone.
func TestHidden(t *testing.T) {
	named := func(name string, hidden bool) tools.Tool {
		return tools.New(tools.Spec{Tool: llm.Tool{Name: name}, Hidden: hidden, Effect: tools.Idempotent}, func(context.Context, tools.Env, struct{}) (tools.Result, error) {
			return tools.Result{Text: "ran"}, nil
		})
	}
	all := set(t, named("add", false), named("remove", false), named("restore", true))
	for name, s := range map[string]*tools.Set{"all": all, "only": all.Only([]string{"add", "restore"}), "twice": all.Only([]string{"add", "remove"}).Only([]string{"add"})} {
		for _, tool := range []string{"add", "remove", "restore", "none"} {
			call := claybot.ToolCall{ID: "c", Name: tool}
			shown := tool == "add" || tool == "remove" && name == "all"
			offered := false
			for _, o := range s.Tools() {
				offered = offered || o.Name == tool
			}
			spec, known := s.Spec(tool)
			if offered != shown || (s.Check(call) == nil) != shown || known != (tool != "none") || known && spec.Hidden == shown {
				t.Errorf("%s: %s is offered %v, spec %+v, %v", name, tool, offered, spec, s.Check(call))
			}
			o := s.Do(t.Context(), tools.Env{}, call)
			if o.Record.OK != shown || !shown && (o.Fault == nil || o.Fault.Code != tools.FaultUnknown || o.Record.Text != fmt.Sprintf("error: unknown tool %q", tool)) {
				t.Errorf("%s: a model's call of %s: %+v", name, tool, o)
			}
			if o := s.Do(t.Context(), tools.Env{Undo: true}, call); o.Record.OK != known {
				t.Errorf("%s: an undo's call of %s: %+v", name, tool, o)
			}
		}
	}
	if got := all.Only(nil); got != all {
		t.Error("no names are not all tools")
	}
}
