package dashboard

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
)

var planShape = runs.Shape{Name: "plan", Start: "classify", Edges: map[string][]string{
	"classify": {"planner", "fallback"}, "planner": {"confirm", "fallback"}, "confirm": {"executor", "summarize", "fallback"},
	"executor": {"summarize", "fallback"}, "summarize": {runs.End}, "fallback": {runs.End},
}}

var exploreShape = runs.Shape{Name: "explore", Start: "EnsureDevice", Edges: map[string][]string{
	"EnsureDevice": {"ProvisionApp"}, "ProvisionApp": {"LaunchOrAttach"}, "LaunchOrAttach": {"WaitIdle", "RestartApp"}, "WaitIdle": {"Perceive"},
	"Perceive": {"EnumerateActions"}, "EnumerateActions": {"ChooseAction"}, "ChooseAction": {"Act"}, "Act": {"Verify", "RecoverFromError"},
	"Verify": {"Persist"}, "Persist": {"DetectProgress"}, "DetectProgress": {"ShouldContinue"},
	"ShouldContinue": {"Perceive", "SwitchPolicy", "RestartApp", "Stop"}, "SwitchPolicy": {"Perceive"}, "RestartApp": {"WaitIdle"},
	"RecoverFromError": {"EnumerateActions"}, "Stop": {runs.End},
}}

// sound reports what is wrong with a drawing: nodes on each other or outside,
// edges that are missing or lead nowhere, lanes on top of each other.
func sound(s runs.Shape, d drawing) error {
	var errs []error
	bad := func(form string, args ...any) { errs = append(errs, fmt.Errorf(form, args...)) }
	for i, n := range d.nodes {
		if n.left() < 0 || n.right() > d.width || n.y < nodeHeight/2 || n.y+nodeHeight/2 > d.height || math.IsNaN(n.x) {
			bad("%s is outside: %+v", n.name, *n)
		}
		for _, o := range d.nodes[:i] {
			if o.y == n.y && o.left() < n.right() && n.left() < o.right() {
				bad("%s and %s are on each other", n.name, o.name)
			}
		}
	}
	ways := 0
	for from, all := range s.Edges {
		seen := map[string]bool{from: true}
		for _, to := range all {
			if !seen[to] {
				seen[to] = true
				ways++
			}
		}
	}
	if len(d.arcs) != ways {
		bad("%d edges are drawn, want %d", len(d.arcs), ways)
	}
	for i, a := range d.arcs {
		if a.side == 0 && a.to.layer != a.from.layer+1 {
			bad("%s to %s is straight over %d layers", a.from.name, a.to.name, a.to.layer-a.from.layer)
		}
		if a.side == 0 {
			continue
		}
		if a.lane < 0 || a.lane > d.width {
			bad("the lane of %s to %s is outside", a.from.name, a.to.name)
		}
		for _, n := range d.nodes {
			if n.left() < a.lane && a.lane < n.right() {
				bad("the lane of %s to %s goes through %s", a.from.name, a.to.name, n.name)
			}
		}
		for _, o := range d.arcs[:i] {
			top, bottom := min(a.from.y, a.to.y), max(a.from.y, a.to.y)
			if o.side == a.side && o.lane == a.lane && o.to != a.to && min(o.from.y, o.to.y) <= bottom && top <= max(o.from.y, o.to.y) {
				bad("%s to %s and %s to %s share a lane", a.from.name, a.to.name, o.from.name, o.to.name)
			}
		}
	}
	return errors.Join(errs...)
}

func TestLayout(t *testing.T) {
	for _, s := range []runs.Shape{
		planShape, exploreShape,
		{Name: "one", Start: "a", Edges: map[string][]string{"a": {runs.End}}},
		{Name: "self", Start: "a", Edges: map[string][]string{"a": {"a", runs.End, runs.End}}},
		{Name: "ring", Start: "a", Edges: map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a"}}},
		{Name: "islands", Start: "a", Edges: map[string][]string{"a": {runs.End}, "x": {"y"}, "y": {"x"}}},
		{Name: "nowhere", Start: "", Edges: map[string][]string{"": {"b"}}},
		{Name: "nothing"},
	} {
		t.Run(s.Name, func(t *testing.T) {
			d := layout(s)
			if err := sound(s, d); err != nil {
				t.Error(err)
			}
			if again := layout(s); fmt.Sprint(pen{}.draw(d)) != fmt.Sprint(pen{}.draw(again)) {
				t.Error("the same shape looks different the second time")
			}
		})
	}
	// Usual ways lead down in a line, and what goes wrong stands aside.
	places := make(map[string]node)
	for _, n := range layout(planShape).nodes {
		places[n.name] = *n
	}
	if places["classify"].layer != 0 || places["executor"].layer != 3 || places["summarize"].layer != 4 || places[runs.End].layer != 5 ||
		places["fallback"].x < places["summarize"].x {
		t.Errorf("the plan is drawn as %+v", places)
	}
}

// Whatever the shape, its drawing is sound and its picture well-formed.
func TestLayoutOfAnyShape(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		n := 1 + rnd.IntN(14)
		s := runs.Shape{Name: "any", Start: "n0", Edges: make(map[string][]string)}
		for i := range n {
			from := fmt.Sprintf("n%d", i)
			s.Edges[from] = []string{fmt.Sprintf("n%d", rnd.IntN(n))}
			for range rnd.IntN(4) {
				s.Edges[from] = append(s.Edges[from], fmt.Sprintf("n%d", rnd.IntN(n)))
			}
			if rnd.IntN(4) == 0 {
				s.Edges[from] = append(s.Edges[from], runs.End)
			}
		}
		d := layout(s)
		if err := sound(s, d); err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, s.Edges)
		}
		if err := wellFormed(pen{}.draw(d)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func wellFormed(svg string) error {
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// The way that a run took is marked, and where it is.
func TestGraphOfRun(t *testing.T) {
	edge := func(from, to string) claybot.Event {
		e, _ := runs.EventOf(claybot.Record{Run: "r", Type: claybot.RecordNode, Name: from, Next: to})
		return e
	}
	events := []claybot.Event{
		runs.NodeBegan("r", "classify", 1), runs.NodeEnded("r", "classify", 1, "", 5), edge("classify", "planner"),
		runs.NodeBegan("r", "planner", 1), runs.NodeEnded("r", "planner", 1, "", 5), edge("planner", "confirm"),
		runs.NodeBegan("r", "confirm", 1), runs.NodeEnded("r", "confirm", 1, "waits", 5), runs.NodeBegan("r", "confirm", 2),
	}
	for _, tt := range []struct {
		name   string
		events []claybot.Event
		where  string
		has    []string
		hasNot []string
	}{
		{"new", nil, "It has not begun.", []string{`aria-label="The graph. It has not begun."`}, []string{" now", " seen", " taken", "times"}},
		{"waits", events[:8], "It waits at confirm.", []string{`class="node seen waiting now" id="node-confirm"`, `class="node seen done" id="node-classify"`, `class="edge taken"`}, []string{`>2</text>`}},
		{"goes on", events, "It is at confirm.", []string{`class="node seen running now" id="node-confirm"`, `>2</text>`, "<title>confirm: running, visited 2 times</title>"}, nil},
		{
			"failed", append(events[:9:9], runs.Failed("r", claybot.RunError{}, 1)), "It ended at confirm.",
			[]string{`class="node seen failed" id="node-confirm"`},
			[]string{" now"},
		},
		{
			"done", append(events[:9:9], runs.NodeEnded("r", "confirm", 2, "", 5), edge("confirm", "summarize"), runs.NodeBegan("r", "summarize", 1), edge("summarize", runs.End)),
			"It has come to its end, from summarize.",
			[]string{`class="node end seen done" id="node-END"`},
			[]string{" now"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := viewGraph(planShape, runs.GraphOf(tt.events))
			if v.Where != tt.where {
				t.Errorf("it says %q, want %q", v.Where, tt.where)
			}
			for _, want := range tt.has {
				if !strings.Contains(string(v.SVG), want) {
					t.Errorf("no %s in %s", want, v.SVG)
				}
			}
			for _, not := range tt.hasNot {
				if strings.Contains(string(v.SVG), not) {
					t.Errorf("%s in %s", not, v.SVG)
				}
			}
			if err := wellFormed(string(v.SVG)); err != nil {
				t.Error(err)
			}
		})
	}
	if viewGraph(runs.Shape{}, runs.GraphView{}) != nil {
		t.Error("a graph without nodes is drawn")
	}
}

// Nodes stand where they were put by hand, with what belongs to them; the drawing has room for all, and the
// others stand as before.
func TestLayoutByHand(t *testing.T) {
	before := make(map[string]node)
	plain := layout(planShape)
	for _, n := range plain.nodes {
		before[n.name] = *n
	}
	for _, at := range []flows.Layout{
		{"confirm": {X: -400, Y: -300}},
		{"confirm": {X: 900, Y: 62}, runs.End: {X: 0, Y: 0}},
		{"planner": {X: 0, Y: 0}},
		{"classify": {}, "planner": {}, "fallback": {}},
		{"unknown": {X: 3, Y: 3}},
		{"executor": {X: flows.MaxPosition, Y: -flows.MaxPosition}},
	} {
		d := layoutAt(planShape, handPlaced{at: at, with: map[string]string{"summarize": "confirm"}})
		for _, n := range d.nodes {
			x, y := n.x-d.zeroX, n.y-d.zeroY
			want, ok := at[n.name]
			was := before[n.name]
			by, moved := at["confirm"]
			switch {
			case ok && (math.Abs(x-float64(want.X)) > .01 || math.Abs(y-float64(want.Y)) > .01):
				t.Errorf("%v: %s is at %f %f", at, n.name, x, y)
			case n.name == "summarize" && moved:
				from := before["confirm"]
				if math.Abs(x-float64(by.X)-was.x+from.x) > .01 {
					t.Errorf("%v: %s does not go along", at, n.name)
				}
			case !ok && (math.Abs(x-was.x+plain.zeroX) > .01 || math.Abs(y-was.y+plain.zeroY) > .01):
				t.Errorf("%v: %s has moved", at, n.name)
			}
			if n.left() < 0 || n.right() > d.width || n.y < nodeHeight/2 || n.y+nodeHeight/2 > d.height {
				t.Errorf("%v: %s is outside", at, n.name)
			}
		}
		if len(d.arcs) != len(plain.arcs) {
			t.Errorf("%v: %d edges, want %d", at, len(d.arcs), len(plain.arcs))
		}
		if svg := (pen{moves: true}).draw(d); wellFormed(svg) != nil || strings.Contains(svg, "NaN") {
			t.Errorf("%v: %s", at, svg)
		}
	}
}
