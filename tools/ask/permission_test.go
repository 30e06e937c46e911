package ask_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/ask"
)

type rights []string

func (r *rights) Grant(_ context.Context, agent claybot.AgentID, right string) error {
	*r = append(*r, string(agent)+" "+right)
	return nil
}

// TestRequestPermission: a person approves each request, whatever the rules say, and none is
// made after untrusted content.
func TestRequestPermission(t *testing.T) {
	given := new(rights)
	tool := ask.RequestPermission(given)
	set, err := tools.NewSet(tool)
	if err != nil {
		t.Fatal(err)
	}
	call := claybot.ToolCall{ID: "1", Name: tools.RequestPermission, Args: `{"permission":"@web","reason":"news"}`}
	rules := tools.Rules{Allow: []string{"*"}, Always: []string{"*", tools.RequestPermission + "(@web)"}, Confirm: []tools.Confirming{{Tools: "*", When: tools.ConfirmNever}}}
	for tainted, want := range map[bool]tools.Verdict{false: tools.Ask, true: tools.Refuse} {
		if d := rules.Decide(t.Context(), tools.Env{Tainted: tainted}, tool.Spec(), call, nil); d.Verdict != want {
			t.Errorf("tainted %v: %+v, want %v", tainted, d, want)
		}
	}
	if len(*given) > 0 {
		t.Errorf("granted without a call: %v", *given)
	}
	out := set.Do(t.Context(), tools.Env{Agent: claybot.Agent{ID: "a"}}, call)
	if out.Fault != nil || strings.Join(*given, ",") != "a @web" || !strings.Contains(out.Record.Text, "@web is permitted") {
		t.Errorf("%+v, granted %v", out, *given)
	}
}

func TestRequestable(t *testing.T) {
	limited := claybot.Permissions{Web: new(false), WriteDirs: []string{"out"}}
	for args, want := range map[string]string{
		`{"permission":"@web","reason":"news"}`:                              "",
		`{"permission":"@write:docs","reason":"notes"}`:                      "",
		`{"permission":"@write:out/new","reason":"notes"}`:                   "already",
		`{"permission":"@read:docs","reason":"notes"}`:                       "already",
		`{"permission":"@web","reason":" "}`:                                 "field reason",
		`{"permission":"@web","reason":"` + strings.Repeat("x", 1001) + `"}`: "field reason",
		`{"permission":"web","reason":"news"}`:                               "field permission: invalid permission",
		`{"permission":"@read:/etc","reason":"news"}`:                        "field permission: invalid directory",
	} {
		err := ask.Requestable(limited, json.RawMessage(args))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", args, err, want)
		}
	}
}
