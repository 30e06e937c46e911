package main

import (
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// The trigger of a run that took an album has the files of all parts, and the caption of any.
func TestTriggerOfAlbum(t *testing.T) {
	file := func(name string) []claybot.FileReference { return []claybot.FileReference{{Name: name}} }
	of := &claybot.FlowStart{Name: "order"}
	turn := &runs.Turn{Messages: []claybot.AgentMessage{
		{ID: "other", Text: "none of a flow", Files: file("x")},
		{ID: "a1", Files: file("one"), Flow: of},
		{ID: "a2", Text: "these", Files: file("two"), Flow: of},
		{ID: "a3", Text: "late", Files: file("three"), Flow: of},
	}}
	got, names := trigger(turn), ""
	for _, f := range got.Files {
		names += f.Name + " "
	}
	if got.ID != "a1" || got.Text != "these" || names != "one two three " || len(turn.Messages[1].Files) != 1 {
		t.Errorf("trigger %s %q with %q; the first message has %v", got.ID, got.Text, names, turn.Messages[1].Files)
	}
}
