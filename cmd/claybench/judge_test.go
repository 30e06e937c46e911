package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const (
	parentID = claybot.AgentID("parent")
	childID  = claybot.AgentID("child")
	parentOf = claybot.RunID("run-of-parent")
	childOf  = claybot.RunID("run-of-child")
)

// told is an archive in which messages stand in histories.
func told(messages map[claybot.MessageID]map[claybot.AgentID]int) *archive {
	return &archive{told: messages, results: make(map[callKey][]string)}
}

// The judge of subagents sees notices that are lost, doubled, or not wanted.
func TestTidings(t *testing.T) {
	once := map[claybot.AgentID]int{parentID: 1}
	type heard = map[claybot.MessageID]map[claybot.AgentID]int
	for _, tt := range []struct {
		name                            string
		state                           claybot.RunState
		order                           order
		heard                           heard
		notices, reports, lost, doubled int
	}{
		{"failed, heard", claybot.RunFailed, order{}, heard{"failure/run-of-child": once}, 1, 0, 0, 0},
		{"failed, not heard", claybot.RunFailed, order{}, nil, 0, 0, 1, 0},
		{"failed, heard by another", claybot.RunFailed, order{}, heard{"failure/run-of-child": {childID: 1}}, 0, 0, 1, 0},
		{"failed, heard twice", claybot.RunFailed, order{}, heard{"failure/run-of-child": {parentID: 2}}, 0, 0, 0, 1},
		{"failed, heard by another too", claybot.RunFailed, order{}, heard{"failure/run-of-child": {parentID: 1, childID: 1}}, 0, 0, 0, 1},
		{"failed, awaited", claybot.RunFailed, order{awaited: true}, nil, 0, 0, 0, 0},
		{"failed, awaited, heard all the same", claybot.RunFailed, order{awaited: true}, heard{"failure/run-of-child": once}, 0, 0, 0, 1},
		{"succeeded", claybot.RunSucceeded, order{}, nil, 0, 0, 0, 0},
		{"succeeded, reported", claybot.RunSucceeded, order{report: true}, heard{"result/run-of-child": once}, 0, 1, 0, 0},
		{"succeeded, report lost", claybot.RunSucceeded, order{report: true}, nil, 0, 0, 1, 0},
		{"succeeded, reported without being asked", claybot.RunSucceeded, order{}, heard{"result/run-of-child": once}, 0, 0, 0, 1},
		{"succeeded, called a failure", claybot.RunSucceeded, order{}, heard{"failure/run-of-child": once}, 0, 0, 0, 1},
		{"stopped", claybot.RunCanceled, order{awaited: true}, nil, 0, 0, 0, 0},
		{"stopped, called a failure", claybot.RunCanceled, order{}, heard{"failure/run-of-child": once}, 0, 0, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c census
			c.tidings(told(tt.heard), parentID, tt.order, offspring{run: &claybot.Run{ID: childOf, State: tt.state}})
			if c.notices != tt.notices || c.reports != tt.reports || c.lost != tt.lost || c.doubled != tt.doubled {
				t.Errorf("got %v", &c)
			}
		})
	}
}

// The judge of subagents sees ends that must not be.
func TestEnds(t *testing.T) {
	failed := func(code string) claybot.Run {
		return claybot.Run{State: claybot.RunFailed, Error: &claybot.RunError{Code: code}}
	}
	for _, tt := range []struct {
		name   string
		parent claybot.RunState
		order  order
		fails  bool
		run    claybot.Run
		wrong  int
	}{
		{"success", claybot.RunSucceeded, order{}, false, claybot.Run{State: claybot.RunSucceeded}, 0},
		{"success of what was refused", claybot.RunSucceeded, order{}, true, claybot.Run{State: claybot.RunSucceeded}, 1},
		{"refused", claybot.RunSucceeded, order{}, true, failed("model_refused"), 0},
		{"refused without a reason", claybot.RunSucceeded, order{}, false, failed("model_refused"), 1},
		{"killed again and again", claybot.RunSucceeded, order{}, false, failed("interrupted"), 0},
		{"another failure", claybot.RunSucceeded, order{}, true, failed("internal"), 1},
		{"stopped with its parent", claybot.RunFailed, order{awaited: true}, false, claybot.Run{State: claybot.RunCanceled}, 0},
		{"stopped, no parent waited", claybot.RunFailed, order{}, false, claybot.Run{State: claybot.RunCanceled}, 1},
		{"stopped while its parent waited", claybot.RunSucceeded, order{awaited: true}, false, claybot.Run{State: claybot.RunCanceled}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c census
			asked := storage.Receipt{Run: &claybot.Run{State: tt.parent}}
			c.end(asked, tt.order, offspring{job: job{fails: tt.fails}, run: &tt.run})
			if c.wrong != tt.wrong {
				t.Errorf("got %v, %q", &c, c.stories)
			}
		})
	}
}

// The judge of parents that wait sees answers that are missing, mixed up, or
// not passed on.
func TestSpawnJudge(t *testing.T) {
	o := orders("spawn=c1.1:ok,c1.2:bad")[0]
	children := []offspring{
		{o.jobs[0], storage.IndexEntry{ID: "one"}, &claybot.Run{ID: "r1", State: claybot.RunSucceeded}},
		{o.jobs[1], storage.IndexEntry{ID: "two"}, &claybot.Run{ID: "r2", State: claybot.RunFailed}},
	}
	good := claybot.Result{OK: true, Output: "did c1.1", AgentID: "one", RunID: "r1"}
	bad := claybot.Result{Error: "model_refused: no", AgentID: "two", RunID: "r2"}
	for _, tt := range []struct {
		name           string
		results        [][]claybot.Result
		hidden         bool
		answers, wrong int
	}{
		{"as it should be", [][]claybot.Result{{good, bad}}, false, 2, 0},
		{"no result", nil, false, 0, 1},
		{"two results", [][]claybot.Result{{good, bad}, {good, bad}}, false, 0, 1},
		{"one answer", [][]claybot.Result{{good}}, false, 0, 1},
		{"in another order", [][]claybot.Result{{bad, good}}, false, 0, 2},
		{"a failure told as success", [][]claybot.Result{{good, {OK: true, AgentID: "two", RunID: "r2"}}}, false, 1, 1},
		{"a failure without a reason", [][]claybot.Result{{good, {AgentID: "two", RunID: "r2"}}}, false, 1, 1},
		{"words of another", [][]claybot.Result{{{OK: true, Output: "did c1.3", AgentID: "one", RunID: "r1"}, bad}}, false, 1, 1},
		{"not in the answer", [][]claybot.Result{{good, bad}}, true, 0, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := told(nil)
			for _, r := range tt.results {
				b, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				k := callKey{parentOf, o.call().ID}
				a.results[k] = append(a.results[k], string(b))
			}
			var c census
			asked := storage.Receipt{Agent: parentID, Run: &claybot.Run{ID: parentOf, State: claybot.RunSucceeded}}
			c.spawn(a, asked, o, children, func(string) bool { return !tt.hidden })
			if c.answers != tt.answers || c.wrong != tt.wrong || c.spawns != 1 {
				t.Errorf("got %v, %q", &c, c.stories)
			}
		})
	}
}

// What a reader sees of a job stands there once.
func TestOutcome(t *testing.T) {
	for _, tt := range []struct {
		name      string
		replies   []string
		mayDouble bool
		want      bool
	}{
		{"once", []string{"re m1-1, c1.1=ok, c1.2=failed"}, false, true},
		{"at the end", []string{"re m1-1, c1.1=ok"}, false, true},
		{"missing", []string{"re m1-1, c1.11=ok"}, false, false},
		{"twice", []string{"c1.1=ok", "c1.1=ok"}, true, false},
		{"a marked copy", []string{"c1.1=ok", "(sent again) c1.1=ok"}, true, true},
		{"a marked copy where it could have been looked up", []string{"c1.1=ok", "(sent again) c1.1=ok"}, false, false},
		{"only a marked copy", []string{"(sent again) c1.1=ok"}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &chat{replies: func() []string { return tt.replies }, mayDouble: tt.mayDouble}
			if got := c.outcome("c1.1=ok"); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// The judge of scheduled tasks sees instants that ran twice, never, or without
// an end.
func TestPunctuality(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	row := func(second int, state, reason string) storage.LedgerRow {
		at := begin.Add(time.Duration(second) * time.Second)
		r := storage.LedgerRow{State: state, Reason: reason}
		r.Task, r.Instant, r.Planned = "u", at.Format(time.RFC3339), claybot.At(at)
		if state != "skipped" {
			r.Run = claybot.RunID(r.Instant)
		}
		return r
	}
	ran := func(second int) storage.LedgerRow { return row(second, "SUCCEEDED", "") }
	manual := ran(1)
	manual.Instant = "manual/k"
	every := timed{every: 2 * time.Second}
	lone := timed{once: true}
	for _, tt := range []struct {
		name                                 string
		task                                 timed
		rows                                 []storage.LedgerRow
		copies                               int // of each row that ran, in histories; 0: one
		fired, skipped, doubled, unexplained int
	}{
		{"on its grid", every, []storage.LedgerRow{ran(6), row(4, "skipped", "overlap"), ran(0)}, 0, 2, 1, 0, 0},
		{"off its grid", every, []storage.LedgerRow{ran(3), ran(0)}, 0, 2, 0, 1, 0},
		{"an instant twice", every, []storage.LedgerRow{ran(2), ran(2)}, 0, 2, 0, 2, 0},
		{"a message twice", every, []storage.LedgerRow{ran(2)}, 2, 1, 0, 1, 0},
		{"a run without a message", every, []storage.LedgerRow{ran(2)}, -1, 1, 0, 0, 1},
		{"waits for ever", every, []storage.LedgerRow{row(2, "waiting", "")}, 0, 0, 0, 0, 1},
		{"runs for ever", every, []storage.LedgerRow{row(2, "RUNNING", "")}, 0, 0, 0, 0, 1},
		{"skipped without a reason", every, []storage.LedgerRow{row(2, "skipped", "")}, 0, 0, 0, 0, 1},
		{"failed without a reason", every, []storage.LedgerRow{row(2, "FAILED", "")}, 0, 1, 0, 0, 1},
		{"once", lone, []storage.LedgerRow{ran(0)}, 0, 1, 0, 0, 0},
		{"never", lone, nil, 0, 0, 0, 0, 1},
		{"two instants of one", lone, []storage.LedgerRow{ran(1), ran(0)}, 0, 2, 0, 1, 0},
		{"by hand, beside the grid", timed{every: 2 * time.Second, keys: []string{"k"}}, []storage.LedgerRow{ran(2), manual, ran(0)}, 0, 3, 0, 0, 0},
		{"by hand, confirmed and lost", timed{keys: []string{"k"}}, nil, 0, 0, 0, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := told(make(map[claybot.MessageID]map[claybot.AgentID]int))
			for _, r := range tt.rows {
				if r.Run != "" && tt.copies >= 0 {
					a.told[r.MessageID()] = map[claybot.AgentID]int{childID: max(1, tt.copies)}
				}
			}
			var p punctuality
			p.read(a, &tt.task, tt.rows)
			if p.fired != tt.fired || p.skipped != tt.skipped || p.doubled != tt.doubled || p.unexplained != tt.unexplained {
				t.Errorf("got %v, %q", &p, p.stories)
			}
		})
	}
}

// A reply that may be missing is one that kills hit as often as it may be sent.
func TestMayBeMissing(t *testing.T) {
	for _, tt := range []struct {
		o    claybot.Outgoing
		want bool
	}{
		{claybot.Outgoing{State: claybot.SendFailed}, false},
		{claybot.Outgoing{State: claybot.SendFailed, Once: true}, false},
		{claybot.Outgoing{State: claybot.SendFailed, Copies: 1}, false},
		{claybot.Outgoing{State: claybot.SendFailed, Copies: 1, Once: true}, true},
		{claybot.Outgoing{State: claybot.SendFailed, Copies: 2}, true},
		{claybot.Outgoing{State: claybot.SendSent, Copies: 1, Once: true}, false},
	} {
		if got := mayBeMissing([]claybot.Outgoing{tt.o}); got != tt.want {
			t.Errorf("%+v: %t", tt.o, got)
		}
	}
}
