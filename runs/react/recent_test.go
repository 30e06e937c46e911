package react

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// talk is a history of n messages of so many bytes.
func talk(n, size int) []claybot.Record {
	var all []claybot.Record
	for i := range n {
		all = append(all, claybot.Record{Type: claybot.RecordUser, MessageID: claybot.MessageID(fmt.Sprint(i)), Text: strings.Repeat("x", size)})
	}
	return all
}

func TestRecentKnowsTheSameHistory(t *testing.T) {
	history := slices.Grow(talk(leastKept, 1), 8)
	for _, tt := range []struct {
		name string
		next func() []claybot.Record
		kept bool
	}{
		{"the same", func() []claybot.Record { return history }, true},
		{"longer", func() []claybot.Record { return append(history, talk(2, 1)...) }, true},
		{"shorter", func() []claybot.Record { return history[:leastKept-1] }, false},
		{"a copy", func() []claybot.Record { return slices.Clone(history) }, false},
		{"none", func() []claybot.Record { return nil }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l Loop
			k := l.chatFor("a", history)
			k.chat.Messages(history, true, len(history))
			l.keepChat("a", k)
			next := tt.next()
			got := l.chatFor("a", next)
			if (got.chat == k.chat) != tt.kept || len(got.history) != len(next) {
				t.Errorf("kept %v with %d records, want %v with %d", got.chat == k.chat, len(got.history), tt.kept, len(next))
			}
			if again := l.chatFor("a", history); again.chat == k.chat {
				t.Error("a chat was taken twice")
			}
		})
	}
}

// The messages of a turn are the same whether the chat was kept or not.
func TestKeptChatsAreComplete(t *testing.T) {
	var l Loop
	history := slices.Grow(talk(leastKept, 1), 64)
	for turn := range 20 {
		w := &window{total: 100_000, scale: 1, tools: []llm.Tool{{Name: "look"}}, kept: l.chatFor("a", history)}
		own := append(slices.Clip(history), claybot.Record{Type: claybot.RecordAssistant, Run: "r", ToolCalls: []claybot.ToolCall{{ID: fmt.Sprint("c", turn), Name: "look"}}})
		for _, records := range [][]claybot.Record{history, own} {
			got, want := w.fitting(records, "r"), llm.Messages(records)
			same := func(a, b llm.Message) bool {
				return a.ID == b.ID && a.Role == b.Role && a.Content == b.Content && a.CallID == b.CallID && slices.Equal(a.Calls, b.Calls)
			}
			if !slices.EqualFunc(got, want, same) {
				t.Fatalf("turn %d: got %d messages %v, want %d %v", turn, len(got), got, len(want), want)
			}
		}
		l.keepChat("a", w.kept)
		history = append(history, claybot.Record{Type: claybot.RecordAssistant, Text: fmt.Sprint(turn)}, claybot.Record{Type: claybot.RecordUser, Text: "more"})
	}
}

// After a summary without an index, the model knows none, whatever change of an earlier one
// is among the records that it keeps.
func TestIndexesAfterASummary(t *testing.T) {
	list := &claybot.Index{Text: "- a\n- b"}
	base := claybot.Record{Type: claybot.RecordIndex, Index: list}
	change := claybot.Record{Type: claybot.RecordIndex, Index: list, Text: "New: - b"}
	summary := func(x *claybot.Index) claybot.Record {
		return claybot.Record{Type: claybot.RecordSummary, Keep: 1, Index: x}
	}
	for name, tt := range map[string]struct {
		history       []claybot.Record
		first, newest *claybot.Index
	}{
		"the base":                   {[]claybot.Record{base}, list, list},
		"a change":                   {[]claybot.Record{base, change}, list, list},
		"a summary with an index":    {[]claybot.Record{change, summary(list)}, list, list},
		"a summary without":          {[]claybot.Record{change, summary(nil)}, nil, nil},
		"a change after the summary": {[]claybot.Record{summary(nil), change}, nil, list},
	} {
		if first, newest := indexes(tt.history); first != tt.first || newest != tt.newest {
			t.Errorf("%s: %v, %v", name, first, newest)
		}
	}
}
