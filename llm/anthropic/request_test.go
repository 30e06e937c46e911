package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// The cache is asked for at the ends of the tools, of the system prompt and of the last two
// turns of the user, never more than four times.
func TestBreakpoints(t *testing.T) {
	user := func(text string) llm.Message { return llm.Message{Role: llm.RoleUser, Content: text} }
	said := llm.Message{Role: llm.RoleAssistant, Content: "ok"}
	called := llm.Message{Role: llm.RoleAssistant, Calls: []claybot.ToolCall{{ID: "a", Name: "x"}, {ID: "b", Name: "y"}}}
	result := func(id string) llm.Message { return llm.Message{Role: llm.RoleTool, CallID: id, Content: "done"} }
	for _, tt := range []struct {
		name     string
		system   string
		tools    int
		messages []llm.Message
		without  uint32
		want     []string
	}{
		{"first message", "s", 2, []llm.Message{user("1")}, 0, []string{"tool 1", "system", "0.0"}},
		{"nothing but messages", "", 0, []llm.Message{user("1"), said, user("2"), said, user("3")}, 0, []string{"2.0", "4.0"}},
		{"several messages in a turn", "s", 1, []llm.Message{user("1"), said, user("2"), user("3")}, 0, []string{"tool 0", "system", "0.0", "2.1"}},
		{"results are the turn of the user", "s", 1, []llm.Message{user("1"), said, user("2"), called, result("a"), result("b")}, 0, []string{"tool 0", "system", "2.0", "4.1"}},
		{"a server without a cache", "s", 1, []llm.Message{user("1")}, fieldCache, nil},
	} {
		r := llm.Request{System: tt.system, Messages: tt.messages}
		for i := range tt.tools {
			r.Tools = append(r.Tools, llm.Tool{Name: fmt.Sprint("t", i)})
		}
		b, err := (&api{}).Encode(r, tt.without)
		if err != nil {
			t.Fatal(err)
		}
		var req wireRequest
		if err := json.Unmarshal(b, &req); err != nil {
			t.Fatal(err)
		}
		if got := breakpoints(req); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// breakpoints are the places where a request asks for the cache, in the order in which the
// API reads them; a block of a message is its turn and its place there.
func breakpoints(r wireRequest) (all []string) {
	add := func(c *wireCache, place string) {
		if c != nil {
			all = append(all, place)
		}
	}
	for i, tool := range r.Tools {
		add(tool.Cache, fmt.Sprint("tool ", i))
	}
	for _, b := range r.System {
		add(b.Cache, "system")
	}
	for i, m := range r.Messages {
		for j, b := range m.Content {
			add(b.Cache, fmt.Sprintf("%d.%d", i, j))
		}
	}
	return all
}
