package agentsystem_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// An effective engine pays once, then answers; with the text "ask" it asks for
// something before it answers.
func effective(ctx context.Context, t *runs.Turn, yield func(claybot.Record, error) bool) {
	paid := false
	for _, r := range t.History {
		paid = paid || r.Run == t.Run.ID && r.Type == claybot.RecordTool
	}
	call := claybot.ToolCall{ID: "c1", Name: "pay"}
	if !paid {
		if !yield(claybot.Record{Type: claybot.RecordAssistant, Step: 1, ToolCalls: []claybot.ToolCall{call}, Tokens: &claybot.Usage{Input: 7, LLMCalls: 1}}, nil) {
			return
		}
		undo := &claybot.Undo{Step: "c1", Tool: "pay", What: "paid 5", Call: &claybot.ToolCall{Name: "pay_back"}}
		if !yield(claybot.Record{Type: claybot.RecordTool, Step: 1, ToolCallID: "c1", Name: "pay", OK: true, Undo: undo}, nil) {
			return
		}
	}
	if strings.Contains(t.Messages[0].Text, "ask") {
		_, wait, err := t.Ask(ctx, "round", []claybot.Question{{Key: "ok", Text: "Go on?", Type: claybot.QuestionBoolean, Required: true}})
		if err == nil && wait != nil {
			err = &runs.WaitError{Awaiting: *wait}
		}
		if err != nil {
			yield(claybot.Record{}, err)
			return
		}
	}
	yield(claybot.Record{Type: claybot.RecordAssistant, Step: 2, Text: "done"}, nil)
}

// A hesitant undo asks before it takes back.
func hesitant(ctx context.Context, t *runs.Turn, yield func(claybot.Record, error) bool) {
	_, wait, err := t.Ask(ctx, "round", []claybot.Question{payment("Back?").Question})
	if err == nil && wait != nil {
		err = &runs.WaitError{Awaiting: *wait}
	}
	if err == nil {
		err = t.Started(ctx, claybot.ToolCall{ID: "u1", Name: "pay_back"}, "idempotent")
	}
	if err != nil {
		yield(claybot.Record{}, err)
		return
	}
	yield(claybot.Record{Type: claybot.RecordAssistant, Step: 1, Text: "taken back"}, nil)
}

// An undo that was stopped before it began anything can be asked for again; one
// that has begun cannot, and never runs twice.
func TestUndoAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.engine = engineFunc(effective)
		r.engines = map[string]runs.Engine{claybot.EngineUndo: engineFunc(hesitant)}
		r.start()
		if got := r.decides(ann, "u0", "undo", ""); got != "There is nothing recent to undo." {
			t.Errorf("nothing was done: %q", got)
		}
		r.say("go")
		synctest.Wait()
		id := r.receipt("go").Run.ID
		if got := r.decides(ann, "u1", "undo", ""); !strings.HasPrefix(got, "Undoing: paid 5.") {
			t.Errorf("/undo: %q", got)
		}
		if got := r.decides(ann, "u2", "undo", string(id)); got != "That run is being undone already." {
			t.Errorf("while it is undone: %q", got)
		}
		r.post(ann, typed("s", claybot.MessageCancel, ""))
		after(time.Minute)
		if by, err := r.system.Control.UndoneBy(r.Context(), id); err != nil || by != "" {
			t.Errorf("undone by %q, %v", by, err)
		}
		r.decides(ann, "u1", "undo", "") // delivered again: it is over
		if qs := r.open(); len(qs) != 0 {
			t.Errorf("a command that came again began something: %+v", qs)
		}
		r.decides(ann, "u3", "undo", "")
		r.press(ann, r.open()[0].ID, "approve")
		after(time.Minute)
		if got := r.decides(ann, "u4", "undo", string(id)); got != "That run was undone already." {
			t.Errorf("a second time: %q", got)
		}
		if _, err := r.system.Control.UndoRun(r.Context(), id, "operator"); err == nil {
			t.Error("a second time, by an operator")
		}
		by, err := r.system.Control.UndoneBy(r.Context(), id)
		if run, again := r.system.Overview.RunByID(r.Context(), by); err != nil || again != nil || run.UndoOf != id || run.State != claybot.RunSucceeded {
			t.Errorf("undone by %+v, %v, %v", run, err, again)
		}
		r.checkEvents(ann)
	})
}

// How a run ends tells what it did, also when it ends before its engine goes on.
func TestEffectsOfARunThatIsCut(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig){
		"stop": func(r *rig) { r.post(ann, typed("s", claybot.MessageCancel, "")) },
		"time": func(*rig) {},
	} {
		bubble(t, func(r *rig) {
			r.engine = engineFunc(effective)
			r.start()
			m := msg("ask", "ask")
			if name == "time" {
				m.Deadline = claybot.At(time.Now().Add(10 * time.Minute))
			}
			r.post(ann, m)
			after(time.Minute)
			end(r)
			after(20 * time.Minute)
			run := r.receipt("ask").Run
			if !run.State.Ended() || len(run.Undo) != 1 || run.Undo[0].What != "paid 5" || run.Usage.Input != 7 {
				t.Errorf("%s: the run is %+v", name, run)
			}
			if seen := r.chat.seen(); !strings.Contains(strings.Join(seen, "\n"), "no longer needs an answer") {
				t.Errorf("%s: people see %q", name, seen)
			}
		})
	}
}

// A run keeps the engine that it began with, whatever is configured meanwhile.
func TestEngineStays(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.engine = engineFunc(effective)
		other := func(_ context.Context, _ *runs.Turn, yield func(claybot.Record, error) bool) {
			yield(claybot.Record{Type: claybot.RecordAssistant, Step: 1, Text: "by the other one"}, nil)
		}
		r.engines = map[string]runs.Engine{"other": engineFunc(other)}
		r.start()
		r.say("ask")
		synctest.Wait()
		q := r.open()[0]
		if err := r.system.Profiles.Configure(r.Context(), r.agent(ann), claybot.Settings{Engine: "other"}, "ann"); err != nil {
			t.Fatal(err)
		}
		r.crash()
		r.start()
		r.press(ann, q.ID, "yes")
		after(time.Minute)
		r.say("next")
		after(time.Minute)
		seen := r.chat.seen()
		if n := len(seen); n < 2 || seen[n-2] != "done" || seen[n-1] != "by the other one" {
			t.Errorf("people see %q", seen)
		}
		if run := r.receipt("ask").Run; run.Engine != claybot.EngineReact {
			t.Errorf("the run is of %q", run.Engine)
		}
	})
}

// A yes counts for an approval that the person could read, and for nothing else.
func TestUnreadApproval(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.approving()
		q := r.asksFor(ann, "one", payment("Pay?"))["Pay?"]
		early := msg("early", "yes")
		early.At = claybot.At(time.Now().Add(-time.Minute))
		r.post(ann, early)
		synctest.Wait()
		if got := r.saidTo(q); got != "" {
			t.Errorf("a yes from before the question says %q to it", got)
		}
		old := decision(ann, "old", "approve", "")
		old.At = early.At
		r.post(ann, old)
		synctest.Wait()
		if got := r.saidTo(q); got != "" {
			t.Errorf("a command from before the question says %q to it", got)
		}
		r.say("yes")
		synctest.Wait()
		if got := r.saidTo(q); got != "true" {
			t.Errorf("%q was said", got)
		}
	})
	bubble(t, func(r *rig) { // a number is no word
		r.approving()
		q := r.asksFor(ann, "one", payment("Pay?"))["Pay?"]
		err := r.system.Questions.Answers.AnswerQuestion(r.Context(), q.ID, claybot.Answer{Text: "1", By: "operator", Via: claybot.ViaWeb})
		if err == nil || r.saidTo(q) != "" {
			t.Errorf("1 approves: %v", err)
		}
		// What is no yes and no no waits, and the approval stays open; a no may say why.
		r.say("what would that pay exactly?")
		synctest.Wait()
		if got := r.saidTo(q); got != "" {
			t.Errorf("%q was said", got)
		}
		r.say("no, not before Monday")
		synctest.Wait()
		if got := r.saidTo(q); got != "false  no, not before Monday" {
			t.Errorf("%q was said", got)
		}
	})
}
