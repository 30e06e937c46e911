package llm

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/claybot/claybot"
)

func TestCut(t *testing.T) {
	mark := func(left int) string { return LeftOut(left, 100) }
	tests := []struct {
		name, in    string
		limit, edge int
		want        string
	}{
		{"empty", "", 0, 0, ""},
		{"at the limit", "abcd", 4, 1, "abcd"},
		{"over it", "abcde", 4, 1, "a\n[… 3 of 100 bytes left out]\ne"},
		{"nothing may stay", "abc", 0, 0, "\n[… 3 of 100 bytes left out]\n"},
		{"edges that would overlap", "abcd", 2, 9, "ab\n[… 0 of 100 bytes left out]\ncd"},
		{"borders of runes", "aéöb", 2, 2, "a\n[… 4 of 100 bytes left out]\nb"},
		{"only long runes", "🙂🙂", 3, 3, "\n[… 8 of 100 bytes left out]\n"},
		{"no UTF-8", strings.Repeat("\x80", 20), 10, 5, strings.Repeat("\x80", 5) + "\n[… 10 of 100 bytes left out]\n" + strings.Repeat("\x80", 5)},
	}
	for _, tt := range tests {
		if got := Cut(tt.in, tt.limit, tt.edge, mark); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("text", 2, 1)
	f.Add("🙂é\xff\x80", 3, 3)
	f.Fuzz(func(t *testing.T, s string, limit, edge int) {
		limit, edge = max(limit, 0), max(edge, 0)
		missing := 0
		got := Cut(s, limit, edge, func(left int) string { missing = left; return "|" })
		if len(s) <= limit {
			if got != s {
				t.Fatalf("%q became %q", s, got)
			}
			return
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Fatalf("%q became %q", s, got)
		}
		if missing < 0 || missing != len(s)-len(got)+3 || len(got) > 2*edge+3 {
			t.Fatalf("%q, limit %d, edge %d: %q lacks %d", s, limit, edge, got, missing)
		}
	})
}

// Bytes is what a chat really takes, more or less.
func TestBytes(t *testing.T) {
	for _, r := range []claybot.Record{
		user("telegram/bot/812", strings.Repeat("word ", 1000)),
		{Type: claybot.RecordSystem, Text: "tick", Origin: "cron", Kind: claybot.KindCron},
		{Type: claybot.RecordSummary, Text: strings.Repeat("word ", 1000)},
		{Type: claybot.RecordNote, Text: strings.Repeat("word ", 1000)},
		{Type: claybot.RecordAssistant, Text: "text"},
		{Type: claybot.RecordTool, Text: strings.Repeat("x", 5<<20)},
	} {
		history := []claybot.Record{user("0", "before"), r}
		if r.Type == claybot.RecordTool {
			history = []claybot.Record{assistant("", call("x")), r}
			history[1].ToolCallID = "x"
		}
		sum := 0
		for _, m := range history {
			sum += Bytes(&m)
		}
		chat := Messages(history)
		real := 0
		for _, m := range chat {
			real += len(m.Content) + callBytes(m.Calls)
		}
		if sum > real+300 || sum < real-300 {
			t.Errorf("%s: %d bytes, guessed %d", r.Type, real, sum)
		}
	}
}
