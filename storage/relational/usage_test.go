package relational

import (
	"math"
	"reflect"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func TestBuckets(t *testing.T) {
	last := -1
	for v := int64(0); v < 5_000_000; v += max(1, v/97) {
		b := bucketOf(v)
		if b < last {
			t.Fatalf("%d is in bucket %d, below %d", v, b, last)
		}
		last = b
		if off := math.Abs(float64(bucketValue(b) - v)); off > 0.1*float64(v) {
			t.Fatalf("%d is told as %d", v, bucketValue(b))
		}
		if bucketOf(bucketValue(b)) != b {
			t.Fatalf("bucket %d has the value %d of bucket %d", b, bucketValue(b), bucketOf(bucketValue(b)))
		}
	}
	if bucketOf(-5) != 0 || bucketValue(0) != 0 {
		t.Error("nothing took less than no time")
	}
	if v := bucketValue(bucketOf(math.MaxInt64)); v < math.MaxInt64/10*9 {
		t.Errorf("the longest of all is %d", v)
	}
}

func TestSpread(t *testing.T) {
	s := spread{buckets: []int{1, 2, 3}, counts: []int64{50, 49, 1}, n: 100}
	for p, want := range map[int64]int64{1: 1, 50: 1, 51: 2, 99: 2, 100: 3} {
		if got := s.at(p); got != want {
			t.Errorf("%d %%: got %d, want %d", p, got, want)
		}
	}
}

func TestByModel(t *testing.T) {
	call := func(model string, input int64) storage.ModelCall {
		return storage.ModelCall{Model: model, Usage: claybot.Usage{Input: input, LLMCalls: 1}}
	}
	type parts = map[string]claybot.Usage
	for _, tt := range []struct {
		name  string
		usage claybot.Usage
		calls []storage.ModelCall
		want  parts
	}{
		{"nothing", claybot.Usage{}, nil, parts{"": {}}},
		{"no calls", claybot.Usage{Input: 5}, nil, parts{"": {Input: 5}}},
		{
			"explained",
			claybot.Usage{Input: 5, LLMCalls: 2},
			[]storage.ModelCall{call("a", 2), call("b", 3)},
			parts{"a": {Input: 2, LLMCalls: 1}, "b": {Input: 3, LLMCalls: 1}},
		},
		{
			"twice the same",
			claybot.Usage{Input: 5, LLMCalls: 2, ToolCalls: 4},
			[]storage.ModelCall{call("a", 2), call("a", 3)},
			parts{"a": {Input: 5, LLMCalls: 2, ToolCalls: 4}},
		},
		{
			"a rest",
			claybot.Usage{Input: 9, LLMCalls: 1, Estimated: true},
			[]storage.ModelCall{call("a", 2)},
			parts{"a": {Input: 2, LLMCalls: 1}, "": {Input: 7, Estimated: true}},
		},
		{"calls above the sum", claybot.Usage{Input: 1}, []storage.ModelCall{call("a", 2)}, parts{"a": {Input: 2, LLMCalls: 1}}},
	} {
		got := parts{}
		for _, p := range byModel(tt.usage, tt.calls) {
			got[p.Model] = p.Usage
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestTransitions is the diagram as a table.
func TestTransitions(t *testing.T) {
	all := []claybot.RunState{
		claybot.RunPending, claybot.RunRunning, claybot.RunAwaiting, claybot.RunSucceeded, claybot.RunFailed, claybot.RunCanceled, "", "NONE",
	}
	allowed := map[[2]claybot.RunState]bool{
		{claybot.RunPending, claybot.RunRunning}:   true,
		{claybot.RunPending, claybot.RunCanceled}:  true,
		{claybot.RunRunning, claybot.RunAwaiting}:  true,
		{claybot.RunRunning, claybot.RunSucceeded}: true,
		{claybot.RunRunning, claybot.RunFailed}:    true,
		{claybot.RunRunning, claybot.RunCanceled}:  true,
		{claybot.RunAwaiting, claybot.RunRunning}:  true,
		{claybot.RunAwaiting, claybot.RunFailed}:   true,
		{claybot.RunAwaiting, claybot.RunCanceled}: true,
	}
	for _, from := range all {
		for _, to := range all {
			if err := checkMove(from, to); (err == nil) != allowed[[2]claybot.RunState{from, to}] {
				t.Errorf("%q to %q: %v", from, to, err)
			}
		}
	}
}
