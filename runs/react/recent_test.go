package react

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
			var c recent
			k := c.take("a", history)
			k.chat.Messages(history, true, len(history))
			c.put("a", k)
			next := tt.next()
			got := c.take("a", next)
			if (got.chat == k.chat) != tt.kept || len(got.history) != len(next) {
				t.Errorf("kept %v with %d records, want %v with %d", got.chat == k.chat, len(got.history), tt.kept, len(next))
			}
			if again := c.take("a", history); again.chat == k.chat {
				t.Error("a chat was taken twice")
			}
		})
	}
}

func TestRecentIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c recent
		put := func(agent string, messages, size int) {
			k := c.take(claybot.AgentID(agent), talk(messages, size))
			k.chat.Messages(k.history, true, len(k.history))
			c.put(claybot.AgentID(agent), k)
		}
		agents := func() string { // the one used last first, and whether nothing is due
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			var all []string
			for e := c.order.Front(); e != nil; e = e.Next() {
				all = append(all, string(e.Value.(recentChat).agent))
			}
			if len(all) == 0 && (c.bytes != 0 || c.sweep != nil || len(c.byID) != 0) || c.bytes > recentLimit {
				t.Errorf("%d bytes of %q", c.bytes, all)
			}
			return strings.Join(all, " ")
		}
		put("short", leastKept-1, 1)
		if agents() != "" {
			t.Error("a short chat was kept")
		}
		for i := range 3 {
			put(fmt.Sprint(i), leastKept, recentLimit/leastKept/6)
			time.Sleep(recentIdle / 4)
		}
		if got := agents(); got != "2 1" {
			t.Errorf("%q are kept, which do not have the size of the limit together", got)
		}
		put("1", leastKept, 1) // instead of the large one
		time.Sleep(recentIdle - recentIdle/4)
		if got := agents(); got != "1" {
			t.Errorf("%q are kept after a while", got)
		}
		time.Sleep(recentIdle)
		if got := agents(); got != "" {
			t.Errorf("%q are kept without a turn for %v", got, recentIdle)
		}
	})
}

// The messages of a turn are the same whether the chat was kept or not.
func TestKeptChatsAreComplete(t *testing.T) {
	var c recent
	history := slices.Grow(talk(leastKept, 1), 64)
	for turn := range 20 {
		w := &window{total: 100_000, scale: 1, tools: []llm.Tool{{Name: "look"}}, kept: c.take("a", history)}
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
		c.put("a", w.kept)
		history = append(history, claybot.Record{Type: claybot.RecordAssistant, Text: fmt.Sprint(turn)}, claybot.Record{Type: claybot.RecordUser, Text: "more"})
	}
}
