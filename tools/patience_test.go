package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// TestStoreDoesNotAnswer: a tool that may be run again waits for its store, a while;
// another one says what it met.
func TestStoreDoesNotAnswer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		effect tools.Effect
		away   time.Duration
		ok     bool
		calls  int // at least
	}{
		{"a moment", tools.Idempotent, 5 * time.Second, true, 3},
		{"for good", tools.Idempotent, time.Hour, false, 5},
		{"not to be run again", tools.Once, time.Millisecond, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, calls := time.Now(), 0
				spec := tools.Spec{Tool: llm.Tool{Name: "keep", Description: "Keeps it."}, Effect: tt.effect}
				s := set(t, tools.New(spec, func(context.Context, tools.Env, struct{}) (tools.Result, error) {
					if calls++; time.Since(began) < tt.away {
						return tools.Result{}, fmt.Errorf("keep: %w", storage.ErrBusy)
					}
					return tools.Result{Text: "kept"}, nil
				}))
				rec, _ := s.Call(t.Context(), tools.Env{Run: "r"}, claybot.ToolCall{ID: "1", Name: "keep", Args: "{}"})
				if rec.OK != tt.ok || calls < tt.calls || tt.effect == tools.Once && calls != 1 {
					t.Errorf("after %d calls: %v %s", calls, rec.OK, rec.Text)
				}
				if took := time.Since(began); took > time.Minute {
					t.Errorf("it took %v", took)
				}
				if !tt.ok && !strings.Contains(rec.Text, "busy") {
					t.Errorf("got %s", rec.Text)
				}
			})
		})
	}
}
