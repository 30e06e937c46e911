package explore_test

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/scripted"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/explore"
)

// The whole of the shop is found, without a model.
func TestExploreDemo(t *testing.T) {
	app, j := scripted.Demo(), newJournal("Please look around.")
	j.run(t, engine(app, shop(), nil))
	out := j.output(t)
	if out.Reason != explore.ReasonExhausted || len(out.Screens) != len(app.Screens) || out.URL != scripted.DemoURL {
		t.Fatalf("reason %s, screens %q", out.Reason, titles(out))
	}
	if !slices.Equal(out.DeadEnds, []string{"imprint"}) {
		t.Errorf("dead ends %q", out.DeadEnds)
	}
	if len(out.Errors) != 1 || out.Errors[0] != (explore.Fault{Screen: "news", Action: "News", Text: "the server answered with error 500"}) {
		t.Errorf("errors %+v", out.Errors)
	}
	if n := app.Effects()["order/Send the order"]; n != 1 {
		t.Errorf("the order was sent %d times", n)
	}
	depth := make(map[string]int)
	for _, s := range out.Screens {
		depth[s.ID] = s.Depth
		if j.names[s.File] != "screen-"+s.ID+".png" || !strings.HasPrefix(string(j.files[s.File]), "\x89PNG") {
			t.Errorf("%s has file %q", s.ID, s.File)
		}
		if s.Untried != 0 {
			t.Errorf("%s has %d untried", s.ID, s.Untried)
		}
	}
	if depth["home"] != 0 || depth["order"] != 1 || depth["thanks"] != 2 || depth["tour-3"] != 3 {
		t.Errorf("depths %v", depth)
	}
	if j.answer() != out.Report || strings.Contains(out.Report, "no_progress") {
		t.Errorf("answer %q", j.answer())
	}
	contains(t, out.Report, "10 screens", "1 dead end", "1 error", "everything that was found has been tried", "Imprint", "error 500")
	if j.names[out.Map] != "map.svg" {
		t.Errorf("map %q", out.Map)
	}
	wellFormed(t, j.files[out.Map])
	if app.Devices() != 0 {
		t.Errorf("%d devices are left open", app.Devices())
	}
	for _, ev := range j.events {
		if strings.Contains(string(ev.Data), "PNG") || len(ev.Data) > 300 {
			t.Errorf("event %s: %.300s", ev.Type, ev.Data)
		}
	}
}

func wellFormed(t *testing.T, doc []byte) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(doc)))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %.500s", err, doc)
		}
	}
}

// Transitions lead between screens that exist, and each is told once.
func TestTransitions(t *testing.T) {
	j := newJournal("")
	j.run(t, engine(scripted.Demo(), shop(), nil))
	out := j.output(t)
	seen := make(map[explore.Transition]bool)
	known := make(map[string]bool)
	for _, s := range out.Screens {
		known[s.ID] = true
	}
	for _, v := range out.Transitions {
		if seen[v] || !known[v.From] || !known[v.To] {
			t.Errorf("transition %+v", v)
		}
		seen[v] = true
	}
	if !seen[explore.Transition{From: "order", Action: "Send the order", Label: "Send the order", Kind: devices.Click, To: "thanks"}] {
		t.Errorf("transitions %+v", out.Transitions)
	}
}

// Each edge of the graph is one that can be taken, and the graph is whole.
func TestGraph(t *testing.T) {
	shape := explore.New(explore.Config{}).Shape()
	g := &runs.Graph[struct{}, struct{}]{Name: shape.Name, Start: shape.Start, Edges: shape.Edges, Nodes: map[string]runs.Node[struct{}, struct{}]{}}
	for name := range shape.Edges {
		g.Nodes[name] = func(context.Context, *runs.State[struct{}, struct{}]) (string, error) { return runs.End, nil }
	}
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	if shape.Name != claybot.EngineExplore || len(shape.Edges) != 16 {
		t.Errorf("shape %+v", shape)
	}
	for from, want := range map[string][]string{
		"ShouldContinue": {"Perceive", "SwitchPolicy", "RestartApp", "Stop"}, "Act": {"Verify", "RecoverFromError"},
		"RecoverFromError": {"EnumerateActions"}, "SwitchPolicy": {"Perceive"}, "Stop": {runs.End},
	} {
		if !slices.Equal(shape.Edges[from], want) {
			t.Errorf("%s leads to %q", from, shape.Edges[from])
		}
	}
}

// chain is an application of n screens in a row.
func chain(n int) *scripted.App {
	app := &scripted.App{Screens: map[string]scripted.Screen{}}
	id := func(i int) string { return "s" + itoa(i) }
	app.Start = id(0)
	for i := range n {
		s := scripted.Screen{Title: "Part"}
		if i+1 < n {
			s.Steps = []scripted.Step{click("next", id(i+1))}
		}
		app.Screens[id(i)] = s
	}
	return app
}

// idle is an application where nothing leads anywhere.
func idle(n int) *scripted.App {
	var steps []scripted.Step
	for i := range n {
		steps = append(steps, click(string(rune('a'+i)), ""))
	}
	return &scripted.App{Start: "only", Screens: map[string]scripted.Screen{"only": {Title: "Only", Steps: steps}}}
}

func TestReasons(t *testing.T) {
	crash := &scripted.App{Start: "a", Screens: map[string]scripted.Screen{"a": {Title: "A"}}}
	for _, label := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		s := crash.Screens["a"]
		s.Steps = append(s.Steps, scripted.Step{Action: devices.Action{Kind: devices.Click, Label: label}, Crashes: true})
		crash.Screens["a"] = s
	}
	paid := llmtest.Reply{Response: llm.Response{Text: `{"choose":1}`, Stop: llm.StopEnd, Model: "m", Usage: claybot.Usage{CostMicroUSD: 60}}}
	tests := []struct {
		name    string
		app     *scripted.App
		set     explore.Settings
		replies []llmtest.Reply
		want    string
		report  string
	}{
		{"everything tried", scripted.Demo(), shop(), nil, explore.ReasonExhausted, "has been tried"},
		{"limit of actions", chain(20), explore.Settings{MaxIterations: 5}, nil, explore.ReasonIterations, "the limit of actions"},
		{"nothing new", idle(20), explore.Settings{NoProgress: 3}, nil, explore.ReasonNoProgress, "nothing new was found"},
		{"crashes", crash, explore.Settings{NoProgress: 50}, nil, explore.ReasonDevice, "crashed again and again"},
		{"budget", idle(9), explore.Settings{BudgetMicroUSD: 100}, []llmtest.Reply{paid, paid}, explore.ReasonBudget, "budget"},
		{"goal", scripted.Demo(), explore.Settings{Goal: "find the pots"}, []llmtest.Reply{llmtest.Say(`{"choose": 1}`), llmtest.Say(`{"goalReached": true}`)}, explore.ReasonGoal, "the goal is reached: “find the pots”, at “Catalogue”"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var model llm.Model
			if tt.replies != nil {
				model = llmtest.NewScript(tt.replies...)
			}
			if tt.set.URL == "" {
				tt.set.URL = scripted.DemoURL
			}
			j := newJournal("")
			j.run(t, engine(tt.app, tt.set, model))
			out := j.output(t)
			if out.Reason != tt.want {
				t.Errorf("reason %s, want %s; path %q", out.Reason, tt.want, j.path())
			}
			contains(t, out.Report, tt.report)
			if j.answer() != out.Report {
				t.Error("another answer than the report")
			}
		})
	}
}

// A canceled walk says in its output that it is not finished.
func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stopped := errors.New("stopped by its person")
	app, j, n := scripted.Demo(), newJournal(""), 0
	var err error
	for r, e := range engine(app, shop(), nil).Run(ctx, j.turn()) {
		if err = e; e != nil {
			break
		}
		j.records = append(j.records, r)
		if n++; n == 20 {
			cancel(stopped)
		}
	}
	out := j.output(t)
	if !errors.Is(err, stopped) || out.Reason != explore.ReasonUnfinished || len(out.Screens) == 0 || app.Devices() != 0 {
		t.Errorf("%v, reason %q", err, out.Reason)
	}
}

// The policy changes when nothing new is found, and that is told.
func TestSwitchPolicy(t *testing.T) {
	j := newJournal("")
	set := shop()
	set.NoProgress = 3
	j.run(t, engine(idle(20), set, nil))
	out := j.output(t)
	var told []string
	for _, ev := range j.events {
		if ev.Type == claybot.EventPolicySwitched {
			told = append(told, string(ev.Data))
		}
	}
	want := []string{
		`{"from":"breadth","to":"depth","reason":"nothing new for 3 actions"}`,
		`{"from":"depth","to":"nearest","reason":"nothing new for 3 actions"}`,
	}
	if !slices.Equal(told, want) || out.Policy != "nearest" || out.Iterations != 9 {
		t.Errorf("told %q, policy %s, %d iterations", told, out.Policy, out.Iterations)
	}
}

// The policies prefer different screens.
func TestPolicies(t *testing.T) {
	tree := func() *scripted.App {
		return &scripted.App{Start: "r", Screens: map[string]scripted.Screen{
			"r": {Steps: []scripted.Step{click("a", "a"), click("b", "b")}},
			"a": {Steps: []scripted.Step{click("aa", "aa")}}, "b": {Steps: []scripted.Step{click("bb", "bb")}},
			"aa": {}, "bb": {},
		}}
	}
	j := newJournal("")
	set := shop()
	j.run(t, engine(tree(), set, nil))
	var order []string
	for _, s := range j.output(t).Screens {
		order = append(order, s.ID)
	}
	if want := []string{"r", "a", "b", "bb", "aa"}; !slices.Equal(order, want) {
		t.Errorf("breadth found %q", order)
	}
	if n := j.edges()["ShouldContinue → RestartApp"]; n == 0 {
		t.Error("it never began anew, although nothing leads back")
	}
}

// Errors in Act lead through RecoverFromError, crashes to a new beginning, and the
// rest is found all the same.
func TestRecovery(t *testing.T) {
	app := &scripted.App{Start: "a", LaunchCrashes: 1, Screens: map[string]scripted.Screen{
		"a": {Title: "A", Steps: []scripted.Step{
			{Action: devices.Action{Kind: devices.Click, Label: "stumble"}, Fails: "the floor is wet"},
			{Action: devices.Action{Kind: devices.Click, Label: "fall"}, Crashes: true},
			click("on", "b"),
		}},
		"b": {Title: "B", Steps: []scripted.Step{{Action: devices.Action{Kind: devices.Click, Label: "fall too"}, Crashes: true}, click("on", "c")}},
		"c": {Title: "C"},
	}}
	j := newJournal("")
	set := shop()
	j.run(t, engine(app, set, nil))
	out := j.output(t)
	if out.Reason != explore.ReasonExhausted || !slices.Equal(titles(out), []string{"A", "B", "C"}) {
		t.Errorf("reason %s, %q", out.Reason, titles(out))
	}
	want := []explore.Fault{
		{Text: "the application ended while it began"},
		{Screen: "a", Action: "stumble", Text: "the floor is wet"},
		{Screen: "a", Action: "fall", Text: "the application ended at fall"},
		{Screen: "b", Action: "fall too", Text: "the application ended at fall too"},
	}
	if !slices.Equal(out.Errors, want) {
		t.Errorf("errors %+v", out.Errors)
	}
	edges := j.edges()
	for edge, n := range map[string]int{
		"LaunchOrAttach → RestartApp": 1, "Act → RecoverFromError": 3, "RecoverFromError → EnumerateActions": 3,
		"ShouldContinue → RestartApp": 2, "RestartApp → WaitIdle": 3,
	} {
		if edges[edge] != n {
			t.Errorf("%s: %d times, want %d", edge, edges[edge], n)
		}
	}
}

// A request for what is not allowed is refused in a sentence, and nothing is
// opened.
func TestRefused(t *testing.T) {
	open := func(context.Context, devices.Spec) (devices.Device, error) {
		t.Error("a device is opened")
		return nil, devices.Failed("no")
	}
	tests := []struct{ name, text, url, hosts, want string }{
		{"another host", "explore http://evil.test/x please", scripted.DemoURL, "", "I may not explore evil.test. I may reach shop.test."},
		{"another port", "http://shop.test:8080/", scripted.DemoURL, "", "I may not explore shop.test:8080."},
		{"nothing", "", "", "", "I don't know what to explore."},
		{"nothing allowed", "look at http://a.test/", "", "", "the operator sets explore.hosts"},
		{"a password", "http://ann:secret@shop.test/", scripted.DemoURL, "", "a name and a password"},
		{"no web", "", "file:///etc/passwd", "shop.test", "I don't open addresses that begin with file:."},
		{"a file", "explore file:///etc/passwd", scripted.DemoURL, "", "I don't open addresses that begin with file:. Send me an address that begins with http:// or https://."},
		{"a script", "JAVASCRIPT:alert(1)", scripted.DemoURL, "", "addresses that begin with javascript:."},
		{"another protocol", "look at FTP://shop.test/ please", scripted.DemoURL, "", "addresses that begin with ftp:."},
		{"the browser", "chrome://settings", scripted.DemoURL, "", "addresses that begin with chrome:."},
		{"an address within", "view-source:http://shop.test/", scripted.DemoURL, "", "addresses that begin with view-source:."},
		{"half an address", "http:shop.test", scripted.DemoURL, "", "It must begin with http:// or https://."},
		{"no host", "http:///x", scripted.DemoURL, "", "It must begin with http:// or https://."},
		{"no scheme", "1x://shop.test/", scripted.DemoURL, "", "It must begin with http:// or https://."},
		{"a host that only looks like it", "http://shop.test.evil.test/", scripted.DemoURL, "", "I may not explore shop.test.evil.test."},
	}
	for _, tt := range tests {
		j := newJournal(tt.text)
		e := explore.New(explore.Config{Open: open, Settings: func(*runs.Turn) explore.Settings {
			return explore.Settings{URL: tt.url, Hosts: strings.Fields(tt.hosts)}
		}})
		j.run(t, e)
		out := j.output(t)
		if out.Reason != explore.ReasonRefused || !strings.Contains(j.answer(), tt.want) || strings.Contains(mustJSON(t, j.records), "secret") {
			t.Errorf("%s: %s, %q", tt.name, out.Reason, j.answer())
		}
		if want := []string{"EnsureDevice", "Stop"}; !slices.Equal(j.path(), want) {
			t.Errorf("%s: path %q", tt.name, j.path())
		}
	}
}

// An agent without the permission opens nothing, whatever its settings name.
func TestForbidden(t *testing.T) {
	open := func(context.Context, devices.Spec) (devices.Device, error) {
		t.Error("a device is opened")
		return nil, devices.Failed("no")
	}
	j := newJournal("explore")
	j.run(t, explore.New(explore.Config{Open: open, Settings: func(*runs.Turn) explore.Settings {
		return explore.Settings{URL: scripted.DemoURL, Forbidden: "Not permitted."}
	}}))
	if out := j.output(t); out.Reason != explore.ReasonRefused || j.answer() != "Not permitted." {
		t.Errorf("%s, %q", out.Reason, j.answer())
	}
}

// The message names an address within the hosts, and a goal.
func TestMessage(t *testing.T) {
	app := scripted.Demo()
	var spec devices.Spec
	model := llmtest.NewScript(llmtest.Say(`{"goalReached":true}`))
	e := explore.New(explore.Config{
		Open: func(ctx context.Context, s devices.Spec) (devices.Device, error) {
			spec = s
			return app.Open(ctx, s)
		},
		Model: func(claybot.Agent) llm.Model { return model },
		Settings: func(*runs.Turn) explore.Settings {
			return explore.Settings{Hosts: []string{"shop.test"}, Goal: "the usual"}
		},
	})
	j := newJournal("Find the imprint on (http://shop.test/pot?session=secret), would you?")
	j.run(t, e)
	out := j.output(t)
	if spec.URL != "http://shop.test/pot?session=secret" || out.URL != "http://shop.test/pot" || out.Goal != "Find the imprint on ( ), would you?" {
		t.Errorf("opened %q, output %q, goal %q", spec.URL, out.URL, out.Goal)
	}
}

// What addresses of screens keep secret is not in the result, nor in any event,
// while the walk still goes to the whole address.
func TestSecretAddresses(t *testing.T) {
	app, j := scripted.Demo(), newJournal("")
	for id, s := range app.Screens {
		s.URL += "?token=canary-" + id + "#access_token=canary"
		app.Screens[id] = s
	}
	j.run(t, engine(app, shop(), nil))
	out := j.output(t)
	if len(out.Screens) != len(app.Screens) {
		t.Fatalf("screens %q", titles(out))
	}
	for _, s := range out.Screens {
		if s.URL == "" || s.URL != devices.Plain(s.URL) {
			t.Errorf("screen %s has the address %s", s.ID, s.URL)
		}
	}
	if all := mustJSON(t, out) + mustJSON(t, j.events) + j.answer() + string(j.files[out.Map]); strings.Contains(all, "canary") {
		t.Errorf("a secret is in the result: %.2000s", all)
	}
}

// A device that cannot be had ends the run with a sentence that says what to do.
func TestNoDevice(t *testing.T) {
	e := explore.New(explore.Config{
		Open: func(context.Context, devices.Spec) (devices.Device, error) {
			return nil, devices.Failed("no Chromium is installed here; install the package chromium")
		},
		Settings: func(*runs.Turn) explore.Settings { return shop() },
	})
	j := newJournal("")
	err := j.pass(t.Context(), e, j.turn(), 0, true)
	failure, ok := errors.AsType[*runs.Error](err)
	if !ok || failure.Code != runs.CodeDevice || failure.Say != "I can't explore this: no Chromium is installed here; install the package chromium." {
		t.Errorf("%v", err)
	}

	app := scripted.Demo()
	app.LaunchCrashes = 100
	err = j.pass(t.Context(), engine(app, shop(), nil), j.turn(), 0, true)
	if failure, ok := errors.AsType[*runs.Error](err); !ok || failure.Code != runs.CodeDevice || app.Devices() != 0 {
		t.Errorf("%v", err)
	}

	bad := explore.New(explore.Config{Open: app.Open, Settings: func(*runs.Turn) explore.Settings {
		return explore.Settings{URL: scripted.DemoURL, Hosts: []string{"http://x/"}}
	}})
	err = j.pass(t.Context(), bad, newJournal("").turn(), 0, true)
	if failure, ok := errors.AsType[*runs.Error](err); !ok || failure.Say == "" {
		t.Errorf("%v", err)
	}
}

// What is written down of each node is what it found, not everything again.
func TestRecordsAreSmall(t *testing.T) {
	j := newJournal("")
	set := shop()
	set.Screens = false
	j.run(t, engine(chain(50), set, nil))
	out := j.output(t)
	if len(out.Screens) != 50 || out.Reason != explore.ReasonExhausted {
		t.Errorf("reason %s, %d screens", out.Reason, len(out.Screens))
	}
	contains(t, out.Report, "50 screens", "… and 25 more")
	for i, r := range j.records {
		if n := size(t, r); n > 1000 && r.Name != "Stop" && r.Name != "Persist" {
			t.Fatalf("record %d, %s: %d bytes", i, r.Name, n)
		}
	}
}

func TestOutputIsTheSameAgain(t *testing.T) {
	one, two := newJournal(""), newJournal("")
	one.run(t, engine(scripted.Demo(), shop(), nil))
	two.run(t, engine(scripted.Demo(), shop(), nil))
	if a, b := one.output(t), two.output(t); !reflect.DeepEqual(a, b) {
		t.Errorf("%s\n%s", mustJSON(t, a), mustJSON(t, b))
	}
}
