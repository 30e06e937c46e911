package agentsystem_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// A dealer is the engine of a flow that asks how many, and says it.
type dealer struct{}

func (dealer) Run(ctx context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		if slices.ContainsFunc(t.History, func(r claybot.Record) bool { return r.Run == t.Run.ID && r.Type == claybot.RecordAssistant }) {
			return // it was said before a crash
		}
		answers, wait, err := t.Ask(ctx, "many", []claybot.Question{{Key: "many", Text: "How many?", Type: claybot.QuestionNumber, Required: true}})
		if err == nil && wait != nil {
			err = &runs.WaitError{Awaiting: *wait}
		}
		if err != nil {
			yield(claybot.Record{}, err)
			return
		}
		yield(claybot.Record{Type: claybot.RecordAssistant, At: claybot.Now(), Run: t.Run.ID, Step: 1, Text: "you get " + string(answers[0].Value)}, nil)
	}
}

// The process dies after every step in turn: what a flow asks in a chat is asked once, the typed answer counts
// once, and the agent of the chat takes none of it.
func TestCrashAroundATypedAnswer(t *testing.T) {
	steps := countedLife(t, -1, true)
	if steps < 12 {
		t.Fatalf("only %d steps: the test does not see them", steps)
	}
	every := 1
	if raced || testing.Short() {
		every = 2
	}
	for k := 0; k < steps; k += every {
		for _, again := range []bool{true, false} {
			t.Run(fmt.Sprint(k, again), func(t *testing.T) {
				t.Parallel()
				countedLife(t, k, again)
			})
		}
	}
}

// countedLife orders, and answers, in a process that dies after k steps and in the one after it, and returns how
// many steps there were. What was stored is delivered again, or not.
func countedLife(t *testing.T, k int, again bool) (steps int) {
	bubble(t, func(r *rig) {
		r.line, r.blowAfter = platforms[0].line, k
		r.flows, r.engines = orders{}, map[string]runs.Engine{claybot.EngineFlow: dealer{}}
		act := func(again bool) {
			for _, text := range []string{"order tea", "5"} {
				if _, err := r.db.Receipt(r.Context(), claybot.MessageID(text)); again || err != nil {
					r.source(text)
				}
			}
			after(20 * time.Second)
		}
		r.start()
		act(true)
		steps = len(r.fuse.steps)
		if r.fuse.dead() {
			t.Logf("the process died behind %q", r.fuse.steps[max(0, len(r.fuse.steps)-3):])
			r.crash()
			r.start()
			act(again)
		}
		after(time.Minute)
		want := []string{"**How many?**\n\n5 *(answered in the chat, by chat/ann)*", "Thank you, I have it.", "you get 5"}
		if got := r.chat.seen(); !slices.EqualFunc(got, want, sameButTime) {
			t.Errorf("people see %q, want %q", got, want)
		}
		if n := len(r.mind.asked()); n != 0 {
			t.Errorf("the agent of the chat was asked %d times", n)
		}
		if n := len(r.open()); n != 0 {
			t.Errorf("%d questions are open", n)
		}
	})
	return steps
}

// A person may reply to the notice that an answer did not fit before its receipt is stored.
func TestReplyAheadOfTheReceipt(t *testing.T) {
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		r.flows, r.engines = orders{}, map[string]runs.Engine{claybot.EngineFlow: dealer{}}
		r.start()
		r.source("order tea")
		r.chat.will(verdict{late: time.Second})
		r.insist(ann, msg("many", "many"))
		time.Sleep(300 * time.Millisecond)
		posts := r.chat.seen()
		m := msg("more", "more")
		m.Context.Answers = fmt.Sprint("p", len(posts)) // it is shown, and being sent
		r.insist(ann, m)
		after(20 * time.Second)
		m = msg("5", "5")
		m.Context.Answers = fmt.Sprint("p", len(posts)+1)
		r.insist(ann, m)
		after(time.Minute)
		unfit := "Please give a number"
		want := []string{"**How many?**", unfit, unfit, "Thank you, I have it.", "you get 5"}
		if got := r.chat.seen(); !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("people see %q, want %q", got, want)
		}
		if n := len(r.mind.asked()); n != 0 {
			t.Errorf("the agent of the chat was asked %d times", n)
		}
	})
}
