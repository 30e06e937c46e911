package explore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/devices/scripted"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs/explore"
	"github.com/claybot/claybot/runs/runstest"
)

// scene has all that a walk can meet: a form that is sent, an action that fails
// and one that crashes, an error of the server, screens without an address, a
// dead end.
func scene() *scripted.App {
	const at = "http://scene.test/"
	act := func(kind devices.Kind, label string) devices.Action { return devices.Action{Kind: kind, Label: label} }
	return &scripted.App{Start: "home", Screens: map[string]scripted.Screen{
		"home": {Title: "Home", URL: at, Steps: []scripted.Step{
			click("deep", "deep1"),
			{Action: act(devices.Click, "stumble"), Fails: "the floor is wet"},
			{Action: act(devices.Click, "fall"), Crashes: true},
			{Action: act(devices.Type, "Name")},
			{Action: devices.Action{Kind: devices.Select, Label: "Size", Options: []string{"M", "L"}}},
			{Action: devices.Action{Kind: devices.Click, Label: "Send", Once: true}, To: "thanks", Needs: []string{"Name", "Size"}},
			click("broken", "broken"),
		}},
		"thanks": {Title: "Thanks", URL: at + "thanks", Steps: []scripted.Step{
			{Action: devices.Action{Kind: devices.Click, Label: "Again", Once: true}, To: "home"}, click("on", "end"),
		}},
		"deep1":  {Title: "Deep", Steps: []scripted.Step{click("deeper", "deep2"), {Action: act(devices.Back, "back")}}},
		"deep2":  {Title: "Deeper"},
		"broken": {Title: "Broken", URL: at + "broken", Faults: []string{"the server answered with error 500"}},
		"end":    {Title: "End", URL: at + "end", Steps: []scripted.Step{click("nowhere", "")}},
	}}
}

func sceneEngine(app *scripted.App, model llm.Model) *explore.Engine {
	return engine(app, explore.Settings{URL: "http://scene.test/", Screens: true, NoProgress: 2}, model)
}

func sceneEffects(t *testing.T, what string, app *scripted.App) {
	t.Helper()
	for action, n := range app.Effects() {
		if n != 1 {
			t.Errorf("%s: %s was done %d times", what, action, n)
		}
	}
	if len(app.Effects()) != 2 || app.Devices() != 0 {
		t.Errorf("%s: effects %v, %d devices open", what, app.Effects(), app.Devices())
	}
}

// Whatever the record after which a walk is cut off, it finds the same, and what
// is to be done once is done once.
func TestCrashAtEveryStep(t *testing.T) {
	app, smooth := scene(), newJournal("")
	smooth.run(t, sceneEngine(app, nil))
	out := smooth.output(t)
	want, answer, total := mustJSON(t, out), smooth.answer(), len(smooth.records)
	sceneEffects(t, "smooth", app)
	if len(out.Screens) != 6 || len(out.Errors) != 3 || total < 80 {
		t.Fatalf("%d records, %s", total, want)
	}
	for _, edge := range []string{"ShouldContinue → RestartApp", "ShouldContinue → SwitchPolicy", "Act → RecoverFromError", "ChooseAction → ShouldContinue"} {
		if smooth.edges()[edge] == 0 {
			t.Errorf("the scene never takes %s", edge)
		}
	}

	check := func(what string, app *scripted.App, j *journal) {
		t.Helper()
		sceneEffects(t, what, app)
		if got := mustJSON(t, j.output(t)); got != want || j.answer() != answer {
			t.Fatalf("%s: got %s\nwant %s\npath %s", what, got, want, strings.Join(j.path(), " "))
		}
		answers := 0
		for _, r := range j.records {
			if r.Type == claybot.RecordAssistant {
				answers++
			}
		}
		if answers != 1 || len(j.records) != total {
			t.Errorf("%s: %d answers, %d records", what, answers, len(j.records))
		}
	}
	for k := 1; k <= total; k++ {
		app, j := scene(), newJournal("")
		if err := j.pass(t.Context(), sceneEngine(app, nil), j.turn(), k, true); !errors.Is(err, errCrash) {
			t.Fatalf("k=%d: %v", k, err)
		}
		j.run(t, sceneEngine(app, nil))
		check("after "+itoa(k), app, j)
	}
	for k := 1; k <= total; k++ {
		once := smooth.records[k-1].Type == claybot.RecordTool
		if k%5 != 1 && !once && smooth.records[k-1].Name != "Act" { // the others are as good as the record before them
			continue
		}
		app, j := scene(), newJournal("")
		if err := j.pass(t.Context(), sceneEngine(app, nil), j.turn(), k, false); !errors.Is(err, errCrash) {
			t.Fatalf("k=%d: %v", k, err)
		}
		j.run(t, sceneEngine(app, nil))
		if !once {
			check("before "+itoa(k), app, j)
			continue
		}
		// It was done, and there is no record of it: it is not done again, and that is told.
		for action, n := range app.Effects() {
			if n != 1 {
				t.Errorf("before %d: %s was done %d times", k, action, n)
			}
		}
		contains(t, mustJSON(t, j.output(t).Errors), "it was interrupted")
	}

	app, j := scene(), newJournal("")
	for passes := 0; ; passes++ {
		err := j.pass(t.Context(), sceneEngine(app, nil), j.turn(), 1, true)
		if err == nil {
			if passes != total {
				t.Errorf("%d passes", passes)
			}
			break
		}
		if !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
	}
	check("after every record", app, j)
}

func itoa(n int) string {
	return string(rune('0'+n/100)) + string(rune('0'+n/10%10)) + string(rune('0'+n%10))
}

// Between the start of an action that is done once and the action itself, it is
// not done at all.
func TestCrashBetweenStartAndAct(t *testing.T) {
	app, j := scene(), newJournal("")
	turn := j.turn()
	start := runstest.Of(turn).StartedFunc
	runstest.Of(turn).StartedFunc = func(ctx context.Context, call claybot.ToolCall, effect string) error {
		if err := start(ctx, call, effect); err != nil {
			return err
		}
		return errCrash
	}
	if err := j.pass(t.Context(), sceneEngine(app, nil), turn, 0, true); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	j.run(t, sceneEngine(app, nil))
	out := j.output(t)
	if n := app.Effects()["home/Send"]; n != 0 {
		t.Errorf("sent %d times", n)
	}
	found := false
	for _, f := range out.Errors {
		found = found || f.Action == "Send" && strings.Contains(f.Text, "interrupted")
	}
	if !found || out.Reason == explore.ReasonUnfinished {
		t.Errorf("reason %s, errors %+v", out.Reason, out.Errors)
	}
}

// With a model, a walk that is cut off asks it nothing that is answered already.
func TestCrashWithModel(t *testing.T) {
	says := []string{
		`{"choose":1}`, `{"choose":1}`, `nonsense`, `{"choose": 4, "value": "Ann"}`,
		`{"choose": 5, "value": "L"}`, `{"choose": 6}`, `{"choose":1,"goalReached":true}`,
	}
	model := func(asked int) *llmtest.Script {
		var replies []llmtest.Reply
		for _, s := range says[asked:] {
			replies = append(replies, llmtest.Say(s))
		}
		return llmtest.NewScript(replies...)
	}
	set := explore.Settings{URL: "http://scene.test/", Goal: "send the form", NoProgress: 9}
	app, smooth := scene(), newJournal("")
	smooth.run(t, engine(app, set, model(0)))
	want := mustJSON(t, smooth.output(t))
	if smooth.output(t).Reason != explore.ReasonGoal || app.Effects()["home/Send"] != 1 {
		t.Fatalf("%s, effects %v", want, app.Effects())
	}
	for k := 1; k <= len(smooth.records); k++ {
		app, j := scene(), newJournal("")
		if err := j.pass(t.Context(), engine(app, set, model(0)), j.turn(), k, true); !errors.Is(err, errCrash) {
			t.Fatalf("k=%d: %v", k, err)
		}
		asked := 0
		for _, r := range j.records {
			if r.Tokens != nil {
				asked++
			}
		}
		j.run(t, engine(app, set, model(asked)))
		if got := mustJSON(t, j.output(t)); got != want || app.Effects()["home/Send"] != 1 {
			t.Fatalf("k=%d: got %s\nwant %s", k, got, want)
		}
	}
}
