package agentsystem_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs"
)

// operate stops agents for a reason, or starts them again.
func (r *rig) operate(why string) {
	r.Helper()
	r.mu.Lock()
	r.stopped = why
	r.mu.Unlock()
	if err := r.system.Reschedule(r.Context()); err != nil {
		r.Fatal(err)
	}
}

// whyStopped is why an agent is stopped.
func (r *rig) whyStopped(a claybot.Agent) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := a.State.Background; r.stops != "" && b != nil && b.Model == r.stops {
		return "model/" + r.stops + ": stopped by boss"
	}
	return r.stopped
}

// NL-05: what comes for a stopped agent waits, also over a restart and a crash, and is answered once
// and in order when it is started.
func TestStoppedAgentHoldsItsInbox(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const why = "model/gpt-5: stopped by boss"
		r.profile.Policy = inbox.Policy{ProcessBuffer: inbox.OneByOne}
		r.start()
		r.operate(why)
		r.say("one", "two")
		r.wants()
		story, err := r.system.Overview.Stories.Why(r.Context(), "one")
		if err != nil || story[0].Verdict().Outcome != overview.OutcomeWaiting || !strings.Contains(story[0].Steps[2].Text, why) {
			t.Errorf("the story is %+v, %v", story, err)
		}
		r.restart()
		r.say("three")
		r.crash()
		r.start()
		time.Sleep(time.Hour)
		r.wants()
		r.operate("")
		r.wants("re: one", "re: two", "re: three")
		r.restart()
		r.wants("re: one", "re: two", "re: three")
	})
}

// A run that has begun goes on, also over a restart; what comes meanwhile waits after it.
func TestStoppedAgentEndsItsRun(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		free := make(chan struct{})
		r.mind.before = func(ctx context.Context, _ llm.Request) error {
			select {
			case <-free:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		r.start()
		r.say("one")
		synctest.Wait()
		r.operate("stopped")
		r.say("two")
		r.crash()
		r.start()
		close(free)
		r.wants("re: one")
		time.Sleep(time.Hour)
		r.wants("re: one")
		r.operate("")
		r.wants("re: one", "re: two")
	})
}

// A reset whose turn it is is carried out: it begins no run.
func TestStoppedAgentIsReset(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.say("one")
		r.wants("re: one")
		r.operate("stopped")
		r.post(ann, typed("reset", claybot.MessageReset, ""))
		synctest.Wait()
		if seen := r.chat.seen(); len(seen) != 2 {
			t.Errorf("people see %q", seen)
		}
	})
}

// An order that comes between the look at it and the release of the agent is not missed.
func TestStartedWhileItIsHeld(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.operate("stopped")
		r.say("one")
		synctest.Wait()
		r.mu.Lock()
		r.stopped = "" // and Reschedule comes later
		r.mu.Unlock()
		time.Sleep(5 * time.Minute)
		r.wants("re: one")
	})
}

// People read in the chat that they wait, and operators why.
func TestStatusOfAStoppedAgent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.operate("model/gpt-5: stopped by boss; start it: claybot nodes start model/gpt-5")
		for _, user := range []string{"ann", "boss"} {
			place := claybot.User("chat", "dm-"+user, user)
			r.post(place, msg("hello "+user, "hello"))
			for name, want := range map[string]string{"status": "An operator has stopped me, or what I work with.", "why": "It waits: an operator has stopped the agent, or what it works with"} {
				m := command(name+" "+user, name)
				r.post(place, m)
				synctest.Wait()
				seen := r.chat.seen("dm-" + user)
				got := seen[len(seen)-1]
				if !strings.Contains(got, want) || strings.Contains(got, "claybot nodes start") != (user == "boss") {
					t.Errorf("%s reads for /%s: %q", user, name, got)
				}
			}
		}
	})
}

// What waited for an agent that was started as the process died is taken at the next start.
func TestStartedAsTheProcessDied(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.operate("stopped")
		r.say("one")
		synctest.Wait()
		r.crash()
		r.stopped = "" // Reschedule did not come
		r.start()
		r.wants("re: one")
	})
}

// What comes during a run of a stopped agent waits as well, also where it would join the run.
func TestStoppedRunTakesNothingIn(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.profile.Policy = inbox.Policy{WhenBusy: inbox.InjectAfterTools}
		r.mind.plan("one", use("work"), llmtest.Say("re: one"))
		r.bench.work = restALittle
		r.start()
		r.say("one")
		synctest.Wait()
		r.operate("stopped")
		r.say("two")
		time.Sleep(time.Hour)
		r.wants("re: one")
		r.operate("")
		r.wants("re: one", "re: two")
	})
}

// The agents of a workflow that remember have the model of each of their tasks: the one that is stopped begins
// none, and the others go on.
func TestStoppedModelOfTasks(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.society.Models = func(claybot.Agent) []string { return []string{"small", "large"} }
		shelve(r, shelf{
			"dear":  remembering("dear", &flows.Agent{Prompt: "{text}", Memory: flows.MemoryOn, Model: "large"}),
			"cheap": remembering("cheap", &flows.Agent{Prompt: "{text}", Memory: flows.MemoryOn, Model: "small"}),
		})
		r.start()
		r.mu.Lock()
		r.stops = "large"
		r.mu.Unlock()
		r.say("dear one", "cheap two")
		time.Sleep(2 * time.Minute)
		var asked []string
		for _, x := range r.mind.asked() {
			asked = append(asked, x.Messages[len(x.Messages)-1].Content)
		}
		if len(asked) != 1 || !strings.Contains(asked[0], "cheap two") {
			t.Errorf("while the model is stopped, models are asked %q", asked)
		}
		waits := 0
		for _, e := range r.threads("chat/ann") {
			waiting, err := r.db.Waiting(r.Context(), e.ID, 1)
			if err != nil || len(waiting) == 0 {
				continue
			}
			waits++
			story, err := r.system.Overview.Stories.Why(r.Context(), string(waiting[0].ID))
			if err != nil || !strings.Contains(story[0].Stopped, "model/large") {
				t.Errorf("the story of the task that waits is %+v, %v", story, err)
			}
		}
		if waits != 1 {
			t.Errorf("%d tasks wait, want one", waits)
		}
		r.mu.Lock()
		r.stops = ""
		r.mu.Unlock()
		r.operate("")
		time.Sleep(time.Minute)
		if n := len(r.mind.asked()); n != 2 {
			t.Errorf("once it is started, models were asked %d times", n)
		}
	})
}

// A run of a workflow that waits for its place has not begun: it waits on where its agent is stopped meanwhile.
func TestStoppedWhileItWaitsForAPlace(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		held := make(chan struct{})
		f := remembering("memo", &flows.Agent{Prompt: "{text}"})
		f.Concurrency.Max = 1
		r.flows = shelf{"memo": f}
		r.engines = map[string]runs.Engine{claybot.EngineFlow: engineFunc(func(ctx context.Context, _ *runs.Turn, yield func(claybot.Record, error) bool) {
			select {
			case <-held:
			case <-ctx.Done():
				yield(claybot.Record{}, context.Cause(ctx))
			}
		})}
		r.start()
		for _, text := range []string{"memo 1", "memo 2", "memo 3"} {
			r.say(text)
			time.Sleep(time.Second)
		}
		ended := func() (all []string) {
			for _, id := range []string{"memo 1", "memo 2", "memo 3"} {
				if run := r.receipt(claybot.MessageID(id)).Run; run != nil && run.State.Ended() {
					all = append(all, id)
				}
			}
			return all
		}
		r.operate("stopped")
		close(held)
		time.Sleep(time.Minute)
		if got := ended(); len(got) != 1 {
			t.Errorf("runs of a stopped agent: %q", got)
		}
		r.operate("")
		time.Sleep(time.Minute)
		if got := ended(); len(got) != 3 {
			t.Errorf("runs once it is started: %q", got)
		}
	})
}
