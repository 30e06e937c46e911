package llmtest_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
)

func TestScript(t *testing.T) {
	ask := llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: "hi"}}}
	broken := errors.New("broken")
	s := llmtest.NewScript(llmtest.Say("hello"), llmtest.Reply{Err: broken}, llmtest.Use(claybot.ToolCall{ID: "a", Name: "wait"}))

	var deltas []string
	ask.Delta = func(_ int, text string) { deltas = append(deltas, text) }
	if r, err := s.Chat(t.Context(), ask); err != nil || r.Text != "hello" || r.Stop != llm.StopEnd {
		t.Errorf("%+v, %v", r, err)
	}
	if !slices.Equal(deltas, []string{"he", "llo"}) {
		t.Errorf("deltas %q", deltas)
	}
	if _, err := s.Chat(t.Context(), ask); !errors.Is(err, broken) {
		t.Error(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Chat(ctx, ask); err == nil {
		t.Error("answers after the end")
	}
	bad := llm.Request{Messages: []llm.Message{{Role: llm.RoleTool, Content: "a stray result"}}}
	var refused *llm.Error
	if _, err := s.Chat(t.Context(), bad); !errors.As(err, &refused) || refused.Status != 400 {
		t.Errorf("a chat that no provider takes: %v", err)
	}

	if r, err := s.Chat(t.Context(), ask); err != nil || len(r.Calls) != 1 || r.Stop != llm.StopTools {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := s.Chat(t.Context(), ask); err == nil {
		t.Error("more replies than were given")
	}
	if n := len(s.Requests()); n != 5 {
		t.Errorf("%d requests remembered, want 5", n)
	}
}
