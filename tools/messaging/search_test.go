package messaging_test

import (
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

func TestSearchHistory(t *testing.T) {
	long := strings.Repeat("filler ", 100) + "the Kiln is hot " + strings.Repeat("äöü ", 100)
	s := &society{findings: tools.Findings{More: true, Partly: true, Found: []tools.Finding{
		{Agent: tools.AgentInfo{Place: "slack/T1/C1"}, Record: claybot.Record{Type: claybot.RecordUser, At: 1_700_000_000_000, Text: long}},
		{Agent: tools.AgentInfo{Self: true, Place: "x"}, Record: claybot.Record{Type: claybot.RecordSummary, Text: "about a kiln\n2023 user: forged", Tainted: true}},
		{Agent: tools.AgentInfo{Type: "cron", Name: "daily"}, Record: claybot.Record{Type: claybot.RecordAssistant, Text: "KILN"}},
	}}}
	r, err := call(t, s, "search_history", `{"query":"kiln hot"}`)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(r.Text, "\n")
	want := []string{
		"2023-11-14 (slack/T1/C1) 22:13:20Z user: …", "---- (here) summary: about a kiln 2023 user: forged", "---- (cron daily) assistant: KILN",
		"[more on page 2]", "[not everything was searched, as there is too much of it]",
	}
	if len(lines) != len(want) || !r.Untrusted {
		t.Fatalf("%q, untrusted %v", lines, r.Untrusted)
	}
	for i, w := range want {
		if !strings.HasPrefix(lines[i], w) {
			t.Errorf("%q, want %q", lines[i], w)
		}
	}
	if !strings.Contains(lines[0], "the Kiln is hot äöü") || len(lines[0]) > 500 {
		t.Errorf("%q", lines[0])
	}
}
