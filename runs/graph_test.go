package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/runstest"
)

// The state of the graphs in these tests.
type (
	memory struct {
		Count int      `json:"count,omitempty"`
		Path  []string `json:"path,omitempty"`
		Note  *string  `json:"note,omitempty"`
	}
	shown struct {
		Text string `json:"text,omitempty"`
	}
	state = runs.State[memory, shown]
	graph = runs.Graph[memory, shown]
	node  = runs.Node[memory, shown]
)

// to is a node that counts, and goes on to next.
func to(next string) node {
	return func(_ context.Context, s *state) (string, error) {
		s.Scratch.Count++
		s.Scratch.Path = append(s.Scratch.Path, s.Node)
		s.Output.Text += s.Node + " "
		s.Because("so it is")
		return next, nil
	}
}

// line is a graph a → b → c.
func line() *graph {
	return &graph{
		Name: "line", Start: "a",
		Nodes: map[string]node{"a": to("b"), "b": to("c"), "c": to(runs.End)},
		Edges: map[string][]string{"a": {"b"}, "b": {"c"}, "c": {runs.End}},
	}
}

// A desk takes what a graph yields.
type desk struct {
	records []claybot.Record
	events  []claybot.Event
	held    bool // the newest event may come later
	cut     int  // takes so many records and events, then no more; 0: all
}

var errCut = errors.New("the power is gone")

func (d *desk) full() bool { return d.cut > 0 && len(d.records)+len(d.events) >= d.cut }

func (d *desk) run(ctx context.Context, g runs.Engine) (err error) {
	fake := &runstest.Fake{}
	t := fake.Turn(runs.Turn{Run: claybot.Run{ID: "r1"}, History: slices.Clone(d.records)})
	fake.EmitFunc = func(_ context.Context, now bool, ev ...claybot.Event) error {
		d.held = !now
		for _, e := range ev {
			if d.full() {
				return errCut
			}
			d.events = append(d.events, e)
		}
		return nil
	}
	for r, err := range g.Run(ctx, t) {
		if err != nil {
			return err
		}
		if d.full() {
			return errCut
		}
		d.records = append(d.records, r)
	}
	return nil
}

func (d *desk) output() string { return string(runs.OutputOf(d.records, "r1")["text"]) }

func (d *desk) path() string {
	var all []string
	for _, r := range d.records {
		all = append(all, r.Name+">"+r.Next)
	}
	return strings.Join(all, " ")
}

func TestGraph(t *testing.T) {
	g := line()
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	var d desk
	if err := d.run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if d.path() != "a>b b>c c>END" || d.output() != `"a b c "` {
		t.Errorf("went %s, put out %s", d.path(), d.output())
	}
	if ev, ok := runs.EventOf(d.records[0]); !ok || ev.Type != claybot.EventEdgeTaken || !strings.Contains(string(ev.Data), `"reason":"so it is"`) {
		t.Errorf("event of the first record: %v %s", ok, ev.Data)
	}
	if err := d.run(t.Context(), g); err != nil || len(d.records) != 3 {
		t.Errorf("a graph at its end goes on: %v, %s", err, d.path())
	}
}

// Wherever a pass is cut, the next ones come to the same and repeat no node
// that had ended.
func TestGraphCutEverywhere(t *testing.T) {
	for k := 1; k < 20; k++ {
		d := desk{cut: k}
		err := d.run(t.Context(), line())
		if err == nil {
			if k < 9 {
				t.Errorf("cut after %d: not cut", k)
			}
			continue
		}
		d.cut = 0
		if err := d.run(t.Context(), line()); err != nil {
			t.Fatalf("cut after %d: %v", k, err)
		}
		if d.path() != "a>b b>c c>END" || d.output() != `"a b c "` {
			t.Errorf("cut after %d: went %s, put out %s", k, d.path(), d.output())
		}
	}
}

// What a node changed is recorded, and only that; what it removed is gone.
func TestGraphChanges(t *testing.T) {
	note := "x"
	g := line()
	g.Nodes["a"] = func(_ context.Context, s *state) (string, error) {
		s.Scratch.Note, s.Output.Text = &note, "y"
		return "b", nil
	}
	g.Nodes["b"] = func(_ context.Context, s *state) (string, error) {
		if s.Scratch.Note == nil || *s.Scratch.Note != "x" {
			t.Errorf("note is %v", s.Scratch.Note)
		}
		s.Scratch.Note = nil
		return "c", nil
	}
	g.Nodes["c"] = func(_ context.Context, s *state) (string, error) {
		if s.Scratch.Note != nil || s.Output.Text != "y" {
			t.Errorf("state is %v %v", s.Scratch, s.Output)
		}
		return runs.End, nil
	}
	var d desk
	if err := d.run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if c := d.records[1].Change; c == nil || string(c.Scratch["note"]) != "null" || len(c.Output) != 0 {
		t.Errorf("change of b: %+v", c)
	}
	if c := d.records[2].Change; c != nil {
		t.Errorf("change of c: %+v", c)
	}
}

func TestGraphFaults(t *testing.T) {
	loop := func(_ context.Context, s *state) (string, error) { return "a", nil }
	for name, x := range map[string]struct {
		change func(*graph)
		code   string
	}{
		"undeclared edge": {func(g *graph) { g.Nodes["a"] = to("c") }, runs.CodeGraph},
		"no such node":    {func(g *graph) { g.Nodes["a"] = to("nowhere") }, runs.CodeGraph},
		"nowhere":         {func(g *graph) { g.Nodes["a"] = to("") }, runs.CodeGraph},
		"endless": {func(g *graph) {
			g.Nodes["b"], g.Edges["b"] = loop, []string{"a"}
		}, runs.CodeTooMany},
		"own error": {func(g *graph) {
			g.Nodes["b"] = func(context.Context, *state) (string, error) {
				return "", &runs.Error{Code: runs.CodePlan, Text: "no good"}
			}
		}, runs.CodePlan},
	} {
		g := line()
		x.change(g)
		var d desk
		err := d.run(t.Context(), g)
		if got := runs.Explain(err).Code; err == nil || got != x.code {
			t.Errorf("%s: %v, want %s", name, err, x.code)
		}
	}
}

func TestGraphCheck(t *testing.T) {
	for name, change := range map[string]func(*graph){
		"no start":     func(g *graph) { g.Start = "x" },
		"from nowhere": func(g *graph) { g.Edges["x"] = []string{"a"} },
		"to nowhere":   func(g *graph) { g.Edges["a"] = []string{"x"} },
		"unreached":    func(g *graph) { g.Nodes["x"], g.Edges["x"] = to("a"), []string{"a"} },
		"a dead end":   func(g *graph) { delete(g.Edges, "c") },
	} {
		g := line()
		change(g)
		if err := g.Check(); err == nil {
			t.Errorf("%s: the graph is good", name)
		}
	}
}

// A node that waits keeps what it changed, and is entered again.
func TestGraphWaits(t *testing.T) {
	answered := false
	g := line()
	g.Nodes["b"] = func(_ context.Context, s *state) (string, error) {
		s.Scratch.Count += 10
		if !answered {
			return "", &runs.WaitError{Awaiting: claybot.Awaiting{Answers: []claybot.MessageID{"answer/q"}}}
		}
		s.Output.Text += fmt.Sprint(s.Iteration, s.Scratch.Count)
		return "c", nil
	}
	var d desk
	err := d.run(t.Context(), g)
	if w, ok := errors.AsType[*runs.WaitError](err); !ok || len(w.Answers) != 1 {
		t.Fatalf("the pass ended with %v", err)
	}
	answered = true
	if err := d.run(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if d.path() != "a>b b>b b>c c>END" || d.output() != `"a 2 21c "` {
		t.Errorf("went %s, put out %s", d.path(), d.output())
	}
	if _, ok := runs.EventOf(d.records[1]); ok {
		t.Error("waiting takes an edge")
	}
}

// A node that may work later is tried three times, from the state before it;
// one that has recorded something is not.
func TestGraphTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries, began := 0, time.Now()
		g := line()
		var d desk
		g.Nodes["b"] = func(_ context.Context, s *state) (string, error) {
			if tries++; d.held {
				t.Errorf("try %d begins before it is told", tries)
			}
			s.Scratch.Count += 100
			if tries < 3 {
				return "", &runs.TransientError{Err: errors.New("busy")}
			}
			s.Output.Text += fmt.Sprint(s.Scratch.Count)
			return "c", nil
		}
		if err := d.run(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		if d.output() != `"a 101c "` || time.Since(began) != 6*time.Second {
			t.Errorf("put out %s after %v", d.output(), time.Since(began))
		}
		// It is seen to wait for its next try, and to work again.
		var states []string
		var v runs.GraphView
		for _, e := range d.events {
			if v.Add(e); runs.DataOf[runs.NodeStarted](e).Node == "b" {
				states = append(states, v.Nodes[1].State)
			}
		}
		if want := []string{"running", "retrying", "running", "retrying", "running", "done"}; !slices.Equal(states, want) || v.Nodes[1].Visits != 1 {
			t.Errorf("b was %q in %d visits, want %q", states, v.Nodes[1].Visits, want)
		}
	})
	tries := 0
	g := line()
	g.Nodes["b"] = func(_ context.Context, s *state) (string, error) {
		tries++
		if err := s.Record(claybot.Record{Type: claybot.RecordNote}); err != nil {
			return "", err
		}
		return "", &runs.TransientError{Err: errors.New("busy")}
	}
	var d desk
	if err := d.run(t.Context(), g); err == nil || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// A node has its time; the end of the run's own is the end of the run.
func TestGraphTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := line()
		g.NodeTime = time.Minute
		g.Nodes["a"] = func(ctx context.Context, _ *state) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		var d desk
		err := d.run(t.Context(), g)
		if got := runs.Explain(err); got.Code != runs.CodeDeadline || !strings.Contains(got.Text, "the node a took longer than 1m0s") {
			t.Errorf("ended with %v", err)
		}
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stopped) })
		d = desk{}
		if err := d.run(ctx, g); !errors.Is(err, stopped) || len(d.records) != 0 {
			t.Errorf("ended with %v, %s", err, d.path())
		}
	})
}

// A state that cannot be read ends the run in words, and nothing is repeated.
func TestGraphDamagedState(t *testing.T) {
	d := desk{records: []claybot.Record{{
		Type: claybot.RecordNode, Run: "r1", Name: "a", Next: "b",
		Change: &claybot.StateChange{Scratch: map[string]json.RawMessage{"count": json.RawMessage(`"many"`)}},
	}}}
	err := d.run(t.Context(), line())
	if got := runs.Explain(err); got.Code != runs.CodeGraph || !strings.Contains(got.Text, "before b cannot be read") {
		t.Errorf("ended with %v", err)
	}
	d = desk{records: []claybot.Record{{Type: claybot.RecordNode, Run: "r1", Name: "a", Next: "elsewhere"}}}
	if err := d.run(t.Context(), line()); runs.Explain(err).Code != runs.CodeGraph {
		t.Errorf("ended with %v", err)
	}
}
