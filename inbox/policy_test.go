package inbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		policy inbox.Policy
		bad    string // the key that is named; empty: the policy is good
	}{
		{inbox.Policy{}, ""},
		{inbox.Policy{Debounce: time.Second, DebounceMax: time.Second, WhenBusy: inbox.InjectAfterTools, ProcessBuffer: inbox.OneByOne, MaxBatch: 1000}, ""},
		{inbox.Policy{Debounce: -1 * time.Millisecond}, "debounceMs"},
		{inbox.Policy{Debounce: time.Second, DebounceMax: time.Millisecond}, "debounceMaxMs"},
		{inbox.Policy{DebounceMax: -1}, "debounceMaxMs"},
		{inbox.Policy{WhenBusy: "later"}, "whenBusy"},
		{inbox.Policy{ProcessBuffer: "all"}, "processBuffer"},
		{inbox.Policy{MaxBatch: -1}, "maxBatch"},
		{inbox.Policy{MaxBatch: 1001}, "maxBatch"},
	} {
		err := tt.policy.Validate()
		if (err != nil) != (tt.bad != "") || err != nil && !strings.HasPrefix(err.Error(), tt.bad+":") {
			t.Errorf("%+v: %v, want it to name %q", tt.policy, err, tt.bad)
		}
	}
}

func TestPolicyDefaults(t *testing.T) {
	for _, tt := range []struct {
		policy inbox.Policy
		wait   storage.Wait
		limit  int
	}{
		{inbox.Policy{}, storage.Wait{}, inbox.DefaultMaxBatch},
		{inbox.Policy{Debounce: time.Second}, storage.Wait{Quiet: time.Second, Max: 10 * time.Second}, inbox.DefaultMaxBatch},
		{inbox.Policy{Debounce: time.Second, DebounceMax: 2 * time.Second, MaxBatch: 7}, storage.Wait{Quiet: time.Second, Max: 2 * time.Second}, 7},
	} {
		if got := tt.policy.Wait(); got != tt.wait {
			t.Errorf("%+v: wait %+v, want %+v", tt.policy, got, tt.wait)
		}
		if got := tt.policy.Limit(); got != tt.limit {
			t.Errorf("%+v: limit %d, want %d", tt.policy, got, tt.limit)
		}
	}
}

// waiting makes messages of words: "reset", or text, with #thread and %album.
func waiting(words string) (all []claybot.AgentMessage) {
	for i, w := range strings.Fields(words) {
		m := claybot.AgentMessage{ID: claybot.MessageID(fmt.Sprint(i)), Type: claybot.MessageUser, Text: w}
		if w == "reset" {
			m.Type = claybot.MessageReset
		}
		if _, thread, ok := strings.Cut(w, "#"); ok {
			m.Context.ThreadID = thread
		}
		if _, album, ok := strings.Cut(w, "%"); ok {
			m.Context.GroupID = album
		}
		if word, user, ok := strings.Cut(w, "@"); ok {
			m.From.UserID, m.Context.Group = user, true
			if word == "system" {
				m.Type = claybot.MessageSystem
			}
		}
		all = append(all, m)
	}
	return all
}

func TestBatch(t *testing.T) {
	all, one, two := inbox.Policy{}, inbox.Policy{ProcessBuffer: inbox.OneByOne}, inbox.Policy{MaxBatch: 2}
	for _, tt := range []struct {
		name    string
		policy  inbox.Policy
		waiting string
		want    int
	}{
		{"nothing", all, "", 0},
		{"all", all, "a b c", 3},
		{"one by one", one, "a b c", 1},
		{"at most", two, "a b c", 2},
		{"up to a reset", all, "a b reset c", 2},
		{"a reset alone", all, "reset a b", 1},
		{"a reset alone, one by one", one, "reset reset", 1},
		{"up to another thread", all, "a#1 b#1 c#2 d#1", 2},
		{"up to no thread", all, "a#1 b", 1},
		{"an album is one", one, "a%x b%x c", 2},
		{"an album and its neighbour", one, "a b%x c%x", 1},
		{"two albums", one, "a%x b%x c%y", 2},
		{"an album is not torn", two, "a b%x c%x d%x e", 4},
		{"up to another person of a group", all, "a@ann b@ann c@bob d@ann", 2},
		{"a report and a person of a group", all, "system@ a@ann system@ b@ann", 4},
		{"a report and two people of a group", all, "system@ a@ann system@ b@bob", 3},
		{"an album in two threads", one, "a%x#1 b%x", 1},
	} {
		got := tt.policy.Batch(waiting(tt.waiting))
		if len(got) != tt.want {
			t.Errorf("%s: took %d, want %d", tt.name, len(got), tt.want)
		}
	}
}

// Whatever the settings, batches take each message once, in order, never two
// threads together, never a reset with anything else.
func TestBatchesLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "reset", "c#1", "d#2", "e%x", "f%x", "g%y"}), 0, 30).Draw(t, "waiting")
		all := waiting(strings.Join(words, " "))
		p := inbox.Policy{
			ProcessBuffer: rapid.SampledFrom([]inbox.ProcessBuffer{"", inbox.AllTogether, inbox.OneByOne}).Draw(t, "processBuffer"),
			MaxBatch:      rapid.IntRange(0, 5).Draw(t, "maxBatch"),
		}
		var taken []claybot.AgentMessage
		for left := all; len(left) > 0; left = all[len(taken):] {
			batch := p.Batch(left)
			if len(batch) == 0 {
				t.Fatalf("nothing taken of %d", len(left))
			}
			for _, m := range batch[1:] {
				if !inbox.Together(batch[0], m) {
					t.Errorf("%q and %q in one batch", batch[0].Text, m.Text)
				}
			}
			if batch[0].Type == claybot.MessageReset && len(batch) > 1 {
				t.Errorf("a reset with %d others", len(batch)-1)
			}
			taken = append(taken, batch...)
		}
		if !slices.EqualFunc(taken, all, func(a, b claybot.AgentMessage) bool { return a.ID == b.ID }) {
			t.Errorf("took %d of %d", len(taken), len(all))
		}
	})
}
