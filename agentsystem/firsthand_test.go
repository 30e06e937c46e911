package agentsystem_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Text that its sender did not type answers nothing (F2): it waits for its turn.
func TestOnlyFirstHandTextAnswers(t *testing.T) {
	t.Parallel()
	for _, kind := range []claybot.QuestionType{claybot.QuestionConfirm, claybot.QuestionText} {
		for _, first := range []bool{false, true} {
			bubble(t, func(r *rig) {
				r.approving()
				asked := payment("Pay?")
				asked.Type = kind
				q := r.asksFor(bob, "ask", asked)["Pay?"]
				time.Sleep(time.Minute)
				m := msg("yes", "yes")
				m.FirstHand = first
				r.post(bob, m)
				synctest.Wait()
				said, skipped := r.saidTo(q), r.receipt("yes").Skipped
				if (said != "") != first || (skipped == "answer") != first {
					r.Errorf("%s, first hand %v: %q was said, skipped %q", kind, first, said, skipped)
				}
				if first {
					return
				}
				m = msg("typed", "yes")
				r.post(bob, m)
				synctest.Wait()
				if r.saidTo(q) == "" {
					r.Errorf("%s: the typed answer was not taken", kind)
				}
				if len(r.ranWith("yes")) == 0 {
					r.Errorf("%s: the agent never read the text", kind)
				}
			})
		}
	}
}

// A connector that does not say who typed a command has none: the door refuses it, and a
// source drops it.
func TestOnlyFirstHandTextCommands(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.say("hello")
		synctest.Wait()
		plan := msg("plan", "a trip")
		plan.Engine = claybot.EnginePlan
		for _, m := range []claybot.AgentMessage{
			reset("reset", ""), stop("stop"), typed("compact", claybot.MessageCompact, ""), plan,
			command("approve", "approve"), command("status", "status"),
		} {
			m.FirstHand = false
			if err := r.system.Post(r.Context(), ann, m); storage.ClassOf(err) != storage.ClassMessage {
				r.Errorf("%s: %v", m.ID, err)
			}
			if _, err := r.db.Receipt(r.Context(), m.ID); err == nil {
				r.Errorf("%s was stored", m.ID)
			}
		}
	})
}

// Commands that an older version stored act when their turn comes: the door is asked once.
func TestStoredCommandsAct(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.say("hello")
		synctest.Wait()
		old := reset("old", "and now?")
		old.FirstHand = false
		if _, err := r.db.Park(r.Context(), storage.Parked{To: ann, Message: old, Cause: "test"}, storage.ParkRules{All: 10, Agent: 10}); err != nil {
			r.Fatal(err)
		}
		r.restart()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if len(r.ranWith("old/text")) == 0 {
			r.Error("the parked command did not act")
		}
	})
}
