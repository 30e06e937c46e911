package agentsystem_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/scripted"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/explore"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// A planner is a model that answers by what it is asked for.
type planner map[string]string

func (p planner) Chat(_ context.Context, r llm.Request) (llm.Response, error) {
	text := p[r.Messages[0].ID]
	if text == "" {
		return llm.Response{}, &llm.Error{Class: llm.Permanent, Text: "nothing to say to " + r.Messages[0].ID}
	}
	return llm.Response{Text: text, Usage: claybot.Usage{LLMCalls: 1, Input: 10, Output: 1}}, nil
}

// The outside is what tools do. It outlives the processes.
type outside struct {
	mu   sync.Mutex
	acts map[string]int // by tool, of those that may act once
	keys map[string]int // by tool, run and call, of the others: each has its effect once
}

func (o *outside) effects() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := maps.Clone(o.acts)
	for key := range o.keys {
		name, _, _ := strings.Cut(key, " ")
		all[name]++
	}
	return all
}

// tools are hands with effects: pay acts once, put has a key for each of its
// effects, and both can be taken back.
func (o *outside) tools(r *rig) *tools.Set {
	make := func(name string, e tools.Effect, undo string) tools.Tool {
		spec := tools.Spec{Tool: llm.Tool{Name: name, Description: name}, Effect: e, Undoes: undo != "", Hidden: strings.HasPrefix(name, "un")}
		return tools.New(spec, func(_ context.Context, env tools.Env, _ struct{}) (tools.Result, error) {
			err := r.fuse.step("tool "+name, func() error {
				o.mu.Lock()
				defer o.mu.Unlock()
				if e == tools.Once {
					o.acts[name]++
				} else {
					o.keys[name+" "+string(env.Run)+" "+env.CallID]++
				}
				return nil
			})
			result := tools.Result{Text: name + " done"}
			if undo != "" {
				result.What = "what " + name + " did"
				result.Undo = &claybot.ToolCall{Name: undo, Args: "{}"}
			}
			return result, err
		})
	}
	set, err := tools.NewSet(
		make("pay", tools.Once, "unpay"), make("put", tools.Idempotent, "unput"), make("look", tools.ReadOnly, ""),
		make("unpay", tools.Idempotent, ""), make("unput", tools.Idempotent, ""),
	)
	if err != nil {
		r.Fatal(err)
	}
	return set
}

// planning gives the rig the engines that plan and undo. Two people approve.
func (r *rig) planning(o *outside) {
	set := o.tools(r)
	model := planner{
		llm.ClassifyRequest: `{"intent": "travel", "inputValues": {}}`,
		llm.PlanRequest: `{"diff": "A trip is booked.", "steps": [{"id": "a", "tool": "look", "args": {}}, {"id": "b", "tool": "put", "args": {}},
			{"id": "c", "tool": "pay", "args": {}, "dependsOn": ["a", "b"]}]}`,
		llm.PlanSummaryRequest: "Your trip is booked.",
	}
	config := plan.Config{
		Model: func(claybot.Agent) llm.Model { return model }, Tools: func(claybot.Agent) *tools.Set { return set },
		Policy: func(claybot.Agent) plan.Policy {
			return plan.Policy{Approvals: 2, Approvers: []string{"chat/ann", "chat/bob"}}
		},
		Intents: func(claybot.Agent) []plan.Intent {
			return []plan.Intent{{Name: "travel", Description: "book a trip", Inputs: []claybot.Question{
				{Key: "day", Text: "When?", Type: claybot.QuestionDate, Required: true},
			}}}
		},
	}
	r.engines = map[string]runs.Engine{claybot.EnginePlan: plan.New(config), claybot.EngineUndo: plan.NewUndo(config)}
	r.profile.Engine = claybot.EnginePlan
}

// posts gives the system a message until it is confirmed. It reports whether
// the process lives.
func (r *rig) posts(d claybot.Descriptor, m claybot.AgentMessage) bool {
	r.Helper()
	for range 100 {
		if r.fuse.dead() || r.system.Post(r.Context(), d, m) == nil {
			return !r.fuse.dead()
		}
		time.Sleep(time.Second)
	}
	r.Fatalf("message %s is not taken", m.ID)
	return false
}

// ends waits until Ann's run of an engine has ended, with something to do while
// it asks. It reports whether the process lives.
func (r *rig) ends(engine string, asked func(storage.OpenQuestion)) bool {
	r.Helper()
	for range 1000 {
		all, err := r.system.Overview.RunPage(r.Context(), storage.RunQuery{Agent: r.agent(ann)})
		if err != nil {
			r.Fatal(err)
		}
		ended := slices.ContainsFunc(all, func(run claybot.Run) bool { return run.Engine == engine && run.State.Ended() })
		if ended || r.fuse.dead() {
			return !r.fuse.dead()
		}
		open, err := r.system.Questions.Answers.OpenQuestions(r.Context(), "")
		if err != nil {
			r.Fatal(err)
		}
		for _, q := range open {
			asked(q)
		}
		time.Sleep(time.Second)
	}
	r.Fatalf("the run does not end; people see %q", r.chat.seen())
	return false
}

// books plays what people do about a trip, until the process dies: Ann wants it
// and says when, she and Bob approve, and then she has it taken back. What was
// done before is done again, as platforms and people do who heard nothing.
func (r *rig) books() {
	r.Helper()
	hello := msg("hello", "hello")
	hello.Engine = claybot.EngineReact
	if !r.posts(bob, hello) || !r.posts(ann, msg("book", "book a trip")) {
		return
	}
	answer := func(q storage.OpenQuestion) {
		if q.Key == "day" {
			r.posts(ann, msg("day", "2026-03-31"))
			return
		}
		for _, d := range []claybot.Descriptor{ann, bob} {
			_, _ = r.system.Answer(r.Context(), connectors.Press{ // a user who hears nothing presses again
				Connector: "chat", UserID: d.UserID, ChannelID: d.ChannelID, Answer: claybot.Answer{Question: q.ID, Text: "approve"},
			})
		}
	}
	undo := command("undo", "undo")
	if r.ends(claybot.EnginePlan, answer) {
		after(20 * time.Second)
		if r.posts(ann, undo) && r.ends(claybot.EngineUndo, answer) {
			after(20 * time.Second)
		}
	}
}

var longID = regexp.MustCompile(`\b[a-z0-9]{24,26}\b`)

// sees is what people see in a channel, without ids and times.
func (r *rig) sees(channel string) []string {
	r.chat.mu.Lock()
	defer r.chat.mu.Unlock()
	var texts []string
	for _, p := range r.chat.posts {
		if p.out.Route.ChannelID == channel && !p.gone {
			text, _, _ := strings.Cut(longID.ReplaceAllString(p.text, "ID"), "Expires")
			texts = append(texts, text)
		}
	}
	return texts
}

// asked is how often each question was put into a chat.
func (r *rig) asked() map[string]int {
	r.chat.mu.Lock()
	defer r.chat.mu.Unlock()
	all := make(map[string]int)
	for _, p := range r.chat.posts {
		if q := p.out.Question; q != nil {
			all[q.ID+" in "+p.out.Route.ChannelID]++
		}
	}
	return all
}

// A graph run as people and the world see it in the end.
type graphEnd struct {
	seen    [][]string
	effects map[string]int
	history []string
	asked   int
	// cut is the last step of the process that died, when that was between the
	// start of something that may happen once and its result: then it is told
	// that it was interrupted, and it does not happen again.
	cut string
}

func (r *rig) graphEnd(effects map[string]int) graphEnd {
	e := graphEnd{seen: [][]string{r.sees("dm-ann"), r.sees("dm-bob")}, effects: effects, asked: len(r.asked())}
	lines := r.history(ann)
	for i, rec := range r.records(ann) {
		if rec.Type != claybot.RecordNode || rec.Next != rec.Name { // a node may wait more than once
			e.history = append(e.history, longID.ReplaceAllString(lines[i], "ID"))
		}
	}
	return e
}

// The process dies after every step in turn around a plan and its undo: people
// read the same, each question is asked once, and each effect happens once.
func TestCrashAroundAPlan(t *testing.T) {
	play := func(t *testing.T, k int) (end graphEnd, steps int) {
		bubble(t, func(r *rig) {
			o := &outside{acts: make(map[string]int), keys: make(map[string]int)}
			r.planning(o)
			r.line, r.blowAfter = platforms[0].line, k
			r.start()
			r.books()
			last := r.fuse.last()
			if steps = len(r.fuse.steps); k >= 0 {
				if !r.fuse.dead() {
					t.Fatal("the process did not die")
				}
				t.Logf("the process died behind %q", r.fuse.steps[max(0, steps-3):])
				r.crash()
				r.start()
				r.books()
			}
			after(time.Minute)
			end = r.graphEnd(o.effects())
			if slices.ContainsFunc(r.records(ann), func(rec claybot.Record) bool { return rec.Type == claybot.RecordTool && rec.Interrupted }) {
				end.cut = last
			}
			for q, n := range r.asked() {
				if n != 1 {
					t.Errorf("%s was asked %d times", q, n)
				}
			}
			if n := len(r.open()); n != 0 {
				t.Errorf("%d questions are open", n)
			}
			r.checkEvents(ann)
		})
		return end, steps
	}
	want, steps := play(t, -1)
	if !maps.Equal(want.effects, map[string]int{"pay": 1, "put": 1, "look": 1, "unpay": 1, "unput": 1}) || want.asked != 4 || steps < 60 {
		t.Fatalf("without a crash: %+v, %d steps", want, steps)
	}
	crashes(t, steps, func(t *testing.T, k int) {
		got, _ := play(t, k)
		if got.cut == "" {
			got.compare(t, want)
			return
		}
		paid := map[string]int{"append events": 0, "tool pay": 1}
		if n, ok := paid[got.cut]; !ok || got.effects["pay"] != n || got.effects["put"] != 1 || got.asked != want.asked {
			t.Errorf("cut behind %q: %+v", got.cut, got)
		}
	})
}

// compare requires the same end.
func (e graphEnd) compare(t *testing.T, want graphEnd) {
	t.Helper()
	for _, texts := range [][]string{e.seen[0], want.seen[0]} {
		slices.Sort(texts) // the answer to a command may come after its run
	}
	if a, b := fmt.Sprintf("%q", e.seen), fmt.Sprintf("%q", want.seen); a != b {
		t.Errorf("people see\n%s\nwant\n%s", a, b)
	}
	if !maps.Equal(e.effects, want.effects) || e.asked != want.asked {
		t.Errorf("effects %v, %d questions; want %v, %d", e.effects, e.asked, want.effects, want.asked)
	}
	if a, b := strings.Join(e.history, "\n"), strings.Join(want.history, "\n"); a != b {
		t.Errorf("history\n%s\nwant\n%s", a, b)
	}
}

// crashes tries a crash after each of so many steps, fewer with the race
// detector.
func crashes(t *testing.T, steps int, try func(t *testing.T, k int)) {
	t.Helper()
	every := 1
	if raced || testing.Short() {
		every = 6
	}
	for k := 0; k < steps; k += every {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			try(t, k)
		})
	}
}

// A fused device is one that dies with its process.
type fusedDevice struct {
	devices.Device
	r *rig
}

func (d fusedDevice) Act(ctx context.Context, a devices.Action, value string) error {
	return d.r.fuse.step("act "+a.Label, func() error { return d.Device.Act(ctx, a, value) })
}

// shop is an application with a form that is sent, a dead end and an error.
func shop() *scripted.App {
	const at = "http://shop.test/"
	click := func(label, to string) scripted.Step {
		return scripted.Step{Action: devices.Action{Kind: devices.Click, Label: label}, To: to}
	}
	return &scripted.App{Start: "home", Screens: map[string]scripted.Screen{
		"home": {Title: "Home", URL: at, Steps: []scripted.Step{
			{Action: devices.Action{Kind: devices.Type, Label: "Name"}},
			{Action: devices.Action{Kind: devices.Click, Label: "Send", Once: true}, To: "thanks", Needs: []string{"Name"}},
			click("broken", "broken"),
		}},
		"thanks": {Title: "Thanks", URL: at + "thanks"},
		"broken": {Title: "Broken", URL: at + "broken", Faults: []string{"the server answered with error 500"}},
	}}
}

// The same around a walk through an application: what it finds is the same, and
// the form is sent once.
func TestCrashAroundAWalk(t *testing.T) {
	play := func(t *testing.T, k int) (end graphEnd, result string, steps int) {
		bubble(t, func(r *rig) {
			app := shop()
			r.engines = map[string]runs.Engine{claybot.EngineExplore: explore.New(explore.Config{
				Open: func(ctx context.Context, s devices.Spec) (devices.Device, error) {
					d, err := app.Open(ctx, s)
					return fusedDevice{d, r}, err
				},
				Settings: func(*runs.Turn) explore.Settings {
					return explore.Settings{URL: "http://shop.test/", MaxIterations: 8, NoProgress: 3}
				},
			})}
			r.profile.Engine = claybot.EngineExplore
			r.line, r.blowAfter = platforms[0].line, k
			r.start()
			walks := func() bool {
				return r.posts(ann, msg("explore", "explore")) && r.ends(claybot.EngineExplore, func(storage.OpenQuestion) {})
			}
			walks()
			last := r.fuse.last()
			if steps = len(r.fuse.steps); r.fuse.dead() {
				t.Logf("the process died behind %q", r.fuse.steps[max(0, steps-3):])
				r.crash()
				r.start()
				walks()
			}
			after(20 * time.Second)
			end = r.graphEnd(app.Effects())
			run := r.receipt("explore").Run
			result = longID.ReplaceAllString(string(run.Result), "ID")
			if strings.Contains(result, "it was interrupted") {
				end.cut = last
			}
			if run.State != claybot.RunSucceeded || app.Devices() != 0 {
				t.Errorf("the run is %s, %d devices are open", run.State, app.Devices())
			}
			r.checkEvents(ann)
		})
		return end, result, steps
	}
	want, result, steps := play(t, -1)
	if !maps.Equal(want.effects, map[string]int{"home/Send": 1}) || steps < 60 || !json.Valid([]byte(result)) {
		t.Fatalf("without a crash: %+v, %s, %d steps", want, result, steps)
	}
	crashes(t, steps, func(t *testing.T, k int) {
		got, found, _ := play(t, k)
		if got.cut != "" {
			sent := map[string]int{"append events": 0, "act Send": 1}
			if n, ok := sent[got.cut]; !ok || got.effects["home/Send"] != n {
				t.Errorf("cut behind %q: %+v", got.cut, got)
			}
			return
		}
		got.compare(t, want)
		if found != result {
			t.Errorf("found\n%s\nwant\n%s", found, result)
		}
	})
}
