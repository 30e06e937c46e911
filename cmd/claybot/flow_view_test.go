package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
)

// A node is shown as its file has it, whatever the style, with the line where it begins.
func TestFlowDetail(t *testing.T) {
	const text = `owner: telegram/1001
triggers:
  chat: {on: telegram, match: "^order"}
start: one
nodes:
  one: {kind: template, value: a, next: two} # why
  # of the next

  two:
    kind: agent
    note: for people
    prompt: |
      First.

        # no comment
      Last.
    error: three


  three: {kind: reply,
    text: x, next: END}
profile: default
`
	f, faults := configs.ReadFlow("order.yaml", []byte(text))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	got := detailOf(&f)
	if got.Name != "order" || got.Start != "one" || got.Nodes != 3 || got.Version != f.Hash || got.Triggers[0].What != "telegram like /^order/" {
		t.Errorf("the flow is %+v", got)
	}
	for i, want := range []struct {
		name, kind, note, next string
		line                   int
		text                   string
	}{
		{"one", "template", "", "two", 6, "one: {kind: template, value: a, next: two} # why"},
		{"two", "agent", "for people", "three", 9, "two:\n  kind: agent\n  note: for people\n  prompt: |\n    First.\n\n      # no comment\n    Last.\n  error: three"},
		{"three", "reply", "", "END", 20, "three: {kind: reply,\n  text: x, next: END}"},
	} {
		n := got.Steps[i]
		if n.Name != want.name || n.Kind != want.kind || n.Note != want.note || !slices.Equal(n.Next, strings.Fields(want.next)) || n.Line != want.line || n.Text != want.text {
			t.Errorf("node %d is %+v\nwant %+v", i, n, want)
		}
	}
	if got := blockAt([]string{"a:"}, 7); got != "" {
		t.Errorf("a line that is not there has %q", got)
	}
}
