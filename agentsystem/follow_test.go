package agentsystem_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/runs/runstest"
	"github.com/claybot/claybot/storage"
)

// A program talks over the API.
var program = claybot.User(claybot.ConnectorAPI, "thread", "robot")

func (r *rig) begin(d claybot.Descriptor, id, text string) agentsystem.Accepted {
	r.Helper()
	a, err := r.system.Control.StartRun(r.Context(), agentsystem.Address{Descriptor: &d}, msg(id, text))
	if err != nil {
		r.Fatal(err)
	}
	return a
}

// follow collects what a watcher of a run sees, until the run ends.
func (r *rig) follow(id claybot.RunID, after int64) (types []claybot.EventType, text string) {
	r.Helper()
	next := after + 1
	for u, err := range r.system.Overview.Watch(r.Context(), id, after) {
		switch {
		case err != nil:
			r.Fatal(err)
		case u.Event != nil:
			if u.Event.Seq != next {
				r.Errorf("seq %d, want %d", u.Event.Seq, next)
			}
			next++
			types = append(types, u.Event.Type)
		default:
			if u.Delta.Offset != len(text) {
				text = text[:min(u.Delta.Offset, len(text))]
			}
			text += u.Delta.Text
		}
	}
	return types, text
}

func TestStartRun(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("work", use("look"), llmtest.Say("all done"))
		r.bench.work = restALittle
		r.start()
		a := r.begin(program, "api/robot/1", "work")
		if a.State != claybot.RunPending || a.Run == "" || a.Agent != r.agent(program) {
			r.Fatalf("got %+v", a)
		}
		types, _ := r.follow(a.Run, 0)
		want := []claybot.EventType{
			claybot.EventRunStarted, claybot.EventNodeStarted, claybot.EventAssistantMessage, claybot.EventNodeFinished,
			claybot.EventNodeStarted, claybot.EventToolCalled, claybot.EventToolSucceeded, claybot.EventNodeFinished,
			claybot.EventNodeStarted, claybot.EventAssistantMessage, claybot.EventNodeFinished, claybot.EventRunFinished,
		}
		if !slices.Equal(types, want) {
			r.Errorf("watched %v\nwant %v", types, want)
		}
		run, err := r.system.Overview.RunByID(r.Context(), a.Run)
		if err != nil || run.ID != a.Run || run.State != claybot.RunSucceeded || run.Output != "all done" {
			r.Errorf("got %+v, %v", run, err)
		}
		r.wants() // nothing is sent to a program

		again := r.begin(program, "api/robot/1", "work")
		if again.Run != a.Run || again.Message != a.Message || again.State != claybot.RunSucceeded {
			r.Errorf("a repeat gets %+v, want the ids of %+v", again, a)
		}
		if late, _ := r.follow(a.Run, 11); !slices.Equal(late, want[11:]) {
			r.Errorf("after 11 watched %v", late)
		}
		if none, _ := r.follow(a.Run, 99); len(none) > 0 {
			r.Errorf("beyond the end watched %v", none)
		}
		r.checkEvents(program)
	})
}

// A message that joins a batch has the run of the batch, under its own id as
// well.
func TestReservedRunJoins(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.hold("long", time.Hour)
		r.start()
		r.begin(program, "0", "long")
		synctest.Wait()
		a, b := r.begin(program, "1", "one"), r.begin(program, "2", "two")
		if a.Run == b.Run {
			r.Fatal("two messages reserved one id")
		}
		if run, err := r.system.Overview.RunByID(r.Context(), b.Run); err != nil || run.State != claybot.RunPending || run.ID != b.Run {
			r.Errorf("while it waits: %+v, %v", run, err)
		}
		types, _ := r.follow(b.Run, 0)
		run, err := r.system.Overview.RunByID(r.Context(), b.Run)
		if err != nil || run.ID != a.Run || types[len(types)-1] != claybot.EventRunFinished {
			r.Errorf("got run %+v, %v, and %v; want that of the first message, %s", run, err, types, a.Run)
		}
		if ended, err := r.system.Control.CancelRun(r.Context(), b.Run, "operator"); err != nil || ended.State != claybot.RunSucceeded {
			r.Errorf("cancel after the end: %+v, %v", ended, err)
		}
	})
}

func TestCancelRun(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.setPolicy(inbox.Policy{ProcessBuffer: inbox.OneByOne})
		r.mind.hold("long", time.Hour)
		r.start()
		a := r.begin(program, "1", "long")
		synctest.Wait()
		b, c := r.begin(program, "2", "second"), r.begin(program, "3", "third")
		if run, err := r.system.Control.CancelRun(r.Context(), b.Run, "operator"); err != nil || run.State != claybot.RunPending {
			r.Errorf("cancel what waits: %+v, %v", run, err)
		}
		if types, _ := r.follow(b.Run, 0); !slices.Equal(types, []claybot.EventType{claybot.EventRunCanceled}) {
			r.Errorf("the canceled one tells %v", types)
		}
		for range 3 { // more than once is once
			if _, err := r.system.Control.CancelRun(r.Context(), a.Run, "operator"); err != nil {
				r.Error(err)
			}
		}
		types, _ := r.follow(a.Run, 0)
		if n := len(types); types[n-1] != claybot.EventRunCanceled || slices.Contains(types[:n-1], claybot.EventRunCanceled) {
			r.Errorf("the canceled run tells %v", types)
		}
		if types, _ := r.follow(c.Run, 0); types[len(types)-1] != claybot.EventRunFinished {
			r.Errorf("the one behind them tells %v", types)
		}
		if _, err := r.system.Control.CancelRun(r.Context(), "nothing", "operator"); !errors.Is(err, storage.ErrNotFound) {
			r.Errorf("an unknown run: %v", err)
		}
		r.checkEvents(program)
	})
}

// A reader that joins in the middle of an answer sees all of it.
func TestWatchGrowingText(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.pace = time.Second
		r.start()
		a := r.begin(program, "1", "a long story")
		after(1500 * time.Millisecond)
		types, text := r.follow(a.Run, 0)
		if text != "re: a long story" || types[len(types)-1] != claybot.EventRunFinished {
			r.Errorf("saw %q and %v", text, types)
		}
	})
}

// A reserved id survives a crash, before its run and in it.
func TestReservedRunCrash(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.hold("long", time.Minute)
		r.start()
		a := r.begin(program, "1", "long")
		r.crash()
		r.start()
		synctest.Wait()
		r.crash()
		r.start()
		after(5 * time.Minute)
		types, _ := r.follow(a.Run, 0)
		if types[0] != claybot.EventRunStarted || types[len(types)-1] != claybot.EventRunFinished {
			r.Errorf("got %v", types)
		}
		if again := r.begin(program, "1", "long"); again.Run != a.Run || again.State != claybot.RunSucceeded {
			r.Errorf("a repeat gets %+v, want run %s", again, a.Run)
		}
		r.checkEvents(program)
	})
}

func TestStartRunRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		ctx := r.Context()
		if _, err := r.system.Control.StartRun(ctx, agentsystem.Address{Agent: "unknown"}, msg("1", "x")); !errors.Is(err, storage.ErrNotFound) {
			r.Errorf("unknown agent: %v", err)
		}
		if _, err := r.system.Control.StartRun(ctx, agentsystem.Address{}, msg("1", "x")); err == nil {
			r.Error("no agent is addressed, and there is no error")
		}
		a := r.begin(program, "1", " ")
		if a.State != claybot.RunCanceled {
			r.Errorf("an empty message: %+v", a)
		}
		if types, _ := r.follow(a.Run, 0); !slices.Equal(types, []claybot.EventType{claybot.EventRunCanceled}) {
			r.Errorf("an empty message tells %v", types)
		}
		m := msg("2", "x")
		m.Files = []claybot.FileReference{{ID: "nothere"}}
		if _, err := r.system.Control.StartRun(ctx, agentsystem.Address{Agent: a.Agent}, m); !errors.Is(err, storage.ErrNotFound) {
			r.Errorf("a file that is not there: %v", err)
		}
	})
}

func TestSettingsOfOneAgent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.setPolicy(inbox.Policy{Debounce: time.Hour, DebounceMax: 2 * time.Hour})
		r.start()
		r.say("a")
		r.wants()
		id, now := r.agent(ann), int64(0)
		if err := r.system.Profiles.Configure(r.Context(), id, claybot.Settings{DebounceMS: &now, Model: "large", MaxSteps: 3, Tools: []string{"pay"}}, "ann"); err != nil {
			r.Fatal(err)
		}
		r.wants("re: a") // what waits is due at once
		for _, restart := range []bool{false, true} {
			if restart {
				r.restart()
			}
			v, err := r.system.Profiles.Settings(r.Context(), id)
			if err != nil || v.Now.Model != "large" || v.Now.MaxSteps != 3 || *v.Now.DebounceMS != 0 || !slices.Equal(v.Now.Tools, []string{"pay"}) || v.Own.Model != "large" {
				r.Errorf("after restart %v: %+v, %v", restart, v, err)
			}
		}
		var bad *questions.AnswerError
		tooLong := int64(time.Hour.Milliseconds() + 1)
		err := r.system.Profiles.Configure(r.Context(), id, claybot.Settings{
			Model: "gpt", MaxSteps: -1, DebounceMS: &tooLong, WhenBusy: "sometimes", ProcessBuffer: "no", Tools: []string{"shell"},
			Prompt: strings.Repeat("x", 100_001),
		}, "ann")
		if !errors.As(err, &bad) || len(bad.Faults) != 7 {
			r.Errorf("bad settings: %v", err)
		}
		if v, err := r.system.Profiles.Settings(r.Context(), id); err != nil || v.Own.Model != "large" {
			r.Errorf("bad settings changed something: %+v, %v", v, err)
		}
		if err := r.system.Profiles.Configure(r.Context(), id, claybot.Settings{}, "ann"); err != nil {
			r.Error(err)
		}
		r.say("b")
		r.wants("re: a") // held back again
		if err := r.system.Profiles.Configure(r.Context(), "unknown", claybot.Settings{}, "ann"); !errors.Is(err, storage.ErrNotFound) {
			r.Errorf("unknown agent: %v", err)
		}
	})
}

// A change of settings in the middle of a run is told by the run.
func TestPolicySwitched(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", use("work"), use("look"), llmtest.Say("end"))
		r.bench.work = restALittle
		r.start()
		a := r.begin(program, "1", "begin")
		after(500 * time.Millisecond)
		err := r.system.Profiles.Configure(r.Context(), a.Agent, claybot.Settings{WhenBusy: string(inbox.InjectAfterTools)}, "ann")
		if err != nil {
			r.Fatal(err)
		}
		types, _ := r.follow(a.Run, 0)
		if !slices.Contains(types, claybot.EventPolicySwitched) {
			r.Errorf("got %v", types)
		}
		r.checkEvents(program)
	})
}

func TestRetryAndDropDeliveries(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.chat.will(refused(true))
		r.say("a")
		after(time.Second)
		failed := r.reply("a")
		if failed.State != claybot.SendFailed {
			r.Fatalf("the reply is %s", failed.State)
		}
		if _, err := r.system.Control.RetryOutgoing(r.Context(), failed.ID); err != nil {
			r.Fatal(err)
		}
		r.wants("re: a")
		if _, err := r.system.Control.RetryOutgoing(r.Context(), failed.ID); !errors.Is(err, storage.ErrState) {
			r.Errorf("what was sent is tried again: %v", err)
		}

		r.chat.mu.Lock()
		r.chat.judge = func(o claybot.Outgoing) (v verdict) {
			if o.Text == "re: b" {
				v = failing
			}
			return v
		}
		r.chat.mu.Unlock()
		r.say("b")
		after(40 * time.Second)
		r.say("c")
		synctest.Wait()
		waiting := r.reply("b")
		if waiting.State != claybot.SendWaiting {
			r.Fatalf("the reply is %s", waiting.State)
		}
		if _, err := r.system.Control.DropOutgoing(r.Context(), waiting.ID); err != nil {
			r.Fatal(err)
		}
		r.wants("re: a", "re: c") // the one behind it goes on at once
		if o := r.reply("b"); o.State != claybot.SendFailed || !strings.Contains(o.Cause, "operator") {
			r.Errorf("the dropped one is %s: %s", o.State, o.Cause)
		}
		for _, id := range []string{"nothing", ""} {
			if _, err := r.system.Control.DropOutgoing(r.Context(), id); !errors.Is(err, storage.ErrNotFound) {
				r.Errorf("%q: %v", id, err)
			}
		}
	})
}

// One that waits an hour is sent at once when an operator asks.
func TestRetryAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.chat.mu.Lock()
		r.chat.judge = func(claybot.Outgoing) verdict { return failing }
		r.chat.mu.Unlock()
		r.say("a")
		after(40 * time.Second)
		o := r.reply("a")
		if o.State != claybot.SendWaiting {
			r.Fatalf("it is %s", o.State)
		}
		r.chat.mu.Lock()
		r.chat.judge = nil
		r.chat.mu.Unlock()
		if _, err := r.system.Control.RetryOutgoing(r.Context(), o.ID); err != nil {
			r.Fatal(err)
		}
		r.wants("re: a")
	})
}

func TestWhy(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("work", use("look"), llmtest.Say("end"))
		r.mind.plan("quiet", llmtest.Say("NO_REPLY"))
		r.start()
		r.say("work")
		r.wants("end")
		r.say("quiet")
		r.wants("end")
		reply := r.reply("work")
		for _, ref := range []string{"work", string(r.receipt("work").Run.ID), reply.ID, "chat/dm-ann/" + reply.Receipt, " work "} {
			stories, err := r.system.Overview.Why(r.Context(), ref)
			if err != nil || !slices.ContainsFunc(stories, func(s overview.Story) bool { return s.Message.ID == "work" }) {
				r.Errorf("%q: %v, %v", ref, stories, err)
				continue
			}
		}
		stories, err := r.system.Overview.Why(r.Context(), "work")
		if err != nil {
			r.Fatal(err)
		}
		var what []string
		for _, s := range stories[0].Steps {
			if len(what) == 0 || what[len(what)-1] != s.What {
				what = append(what, s.What)
			}
		}
		if got := strings.Join(what, " "); got != "received stored run model tool model end reply sent" || stories[0].Silence != "" {
			r.Errorf("the story is %s, silence %q", got, stories[0].Silence)
		}
		stories, err = r.system.Overview.Why(r.Context(), "quiet")
		if err != nil || stories[0].Silence != "the agent decided not to reply" {
			r.Errorf("got %+v, %v", stories, err)
		}
		for _, ref := range []string{"nothing", "", strings.Repeat("x", 1000), "https://acme.slack.com/archives/C1/p1700000000000100"} {
			if _, err := r.system.Overview.Why(r.Context(), ref); !errors.Is(err, storage.ErrNotFound) {
				r.Errorf("%.20q: %v", ref, err)
			}
		}
	})
}

func TestWhySilent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.setPolicy(inbox.Policy{ProcessBuffer: inbox.OneByOne})
		r.mind.hold("long", time.Hour)
		r.start()
		r.say("long", "second", "third")
		synctest.Wait()
		stories, err := r.system.Overview.Why(r.Context(), "third")
		if err != nil || stories[0].Busy == "" || stories[0].Ahead != 1 || !slices.Equal(stories[0].Before, []claybot.MessageID{"second"}) {
			r.Fatalf("got %+v, %v", stories, err)
		}
		last := stories[0].Steps[len(stories[0].Steps)-1]
		if last.What != "waiting" || !strings.Contains(last.Text, "works on run") || !strings.Contains(last.Text, "1 earlier") {
			r.Errorf("got %+v", last)
		}
		if _, err := r.system.Control.Drop(r.Context(), r.agent(ann), "third"); err != nil {
			r.Fatal(err)
		}
		stories, err = r.system.Overview.Why(r.Context(), "third")
		if err != nil || stories[0].Silence != "dropped by an operator" {
			r.Errorf("got %+v, %v", stories, err)
		}
	})
}

// Each subagent that a run starts is told once.
func TestSubagentStarted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("delegate", llmtest.Use(with("spawn_and_wait", obj{"tasks": []obj{{"task": "job one", "name": "first"}, {"task": "job two", "name": "second"}}})), llmtest.Say("end"))
		r.mind.hold("job", time.Second) // or both may end before the run begins to wait
		r.start()
		a := r.begin(program, "1", "delegate")
		types, _ := r.follow(a.Run, 0)
		count := func(x claybot.EventType) (n int) {
			for _, e := range types {
				if e == x {
					n++
				}
			}
			return n
		}
		if count(claybot.EventSubagentStarted) != 2 || count(claybot.EventToolWaiting) != 1 || count(claybot.EventAwaitingInput) != 1 {
			r.Errorf("got %v", types)
		}
		for _, e := range r.events(a.Run) {
			if e.Type == claybot.EventAwaitingInput && !strings.Contains(string(e.Data), `"reason":"children"`) {
				r.Errorf("it waits for %s", e.Data)
			}
			if err := runstest.CheckEvent(e); err != nil {
				r.Error(err)
			}
		}
		r.checkEvents(program)
	})
}
