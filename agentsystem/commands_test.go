package agentsystem_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
)

func reset(id, text string) claybot.AgentMessage { return typed(id, claybot.MessageReset, text) }
func stop(id string) claybot.AgentMessage        { return typed(id, claybot.MessageCancel, "") }

const (
	confirmed = "Done. I have forgotten our conversation; your next message starts a new one."
	nothing   = "Nothing is running."
)

// A reset keeps the agent and forgets the conversation; text after it is the
// first message of the new one (CM-03, CM-06, CM-07).
func TestReset(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.say("secret")
		synctest.Wait()
		id := r.agent(ann)
		r.post(ann, reset("r1", ""))
		r.wants("re: secret", confirmed)
		r.post(ann, reset("r2", "plan my week"))
		r.wants("re: secret", confirmed, confirmed, "re: plan my week")
		if r.agent(ann) != id {
			t.Error("another agent")
		}
		asked := r.mind.asked()
		for _, m := range asked[len(asked)-1].Messages {
			if strings.Contains(m.Content, "secret") {
				t.Errorf("the model still sees %q", m.Content)
			}
		}
		if got, want := r.history(ann), []string{"user_message plan my week", "assistant_message re: plan my week"}; !slices.Equal(got, want) {
			t.Errorf("history %q, want %q", got, want)
		}
	})
}

// A reset cancels the run in flight and drops what waits, debounced or not;
// what comes later runs in the new context. Nothing of the canceled run is said
// or remembered (CM-04, CM-05).
func TestResetDuringARun(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.hold("long", time.Hour)
		r.start()
		r.say("long")
		synctest.Wait()
		r.setPolicy(far)
		r.say("waits")
		synctest.Wait()
		r.post(ann, reset("r", ""))
		r.say("later")
		after(2 * time.Minute)
		r.wants(confirmed, "re: later")
		if got, want := r.history(ann), []string{"user_message later", "assistant_message re: later"}; !slices.Equal(got, want) {
			t.Errorf("history %q, want %q", got, want)
		}
		if rec := r.receipt("long"); rec.Run == nil || rec.Run.State != claybot.RunCanceled || len(rec.Replies) != 0 {
			t.Errorf("the long run: %+v", rec)
		}
		if rec := r.receipt("waits"); rec.Skipped != "reset" || rec.Run != nil {
			t.Errorf("the waiting message: %+v", rec)
		}
	})
}

// An answer that comes out at the moment of the reset is thrown away: the model
// here does not obey its context.
func TestResetThrowsLateAnswersAway(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.engine = stubborn{r, time.Second}
		r.start()
		r.say("a")
		after(500 * time.Millisecond)
		r.post(ann, reset("r", ""))
		after(time.Minute)
		r.wants(confirmed)
	})
}

// Two resets give two markers and two confirmations (CM-09), a crash or not.
func TestTwoResets(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		r.start()
		r.post(ann, reset("r1", ""))
		synctest.Wait()
		r.post(ann, reset("r2", ""))
		synctest.Wait()
		r.crash()
		r.start()
		after(time.Minute)
		r.wants(confirmed, confirmed)
	})
}

// A reset that dies on its way is finished later: one marker, one confirmation,
// and the text runs once.
func TestCrashDuringReset(t *testing.T) {
	steps := crashDuringReset(t, -1)
	for k := range steps {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			crashDuringReset(t, k)
		})
	}
}

// crashDuringReset lets Ann write, then reset, in a process that dies after k
// steps, and returns how many steps there were.
func crashDuringReset(t *testing.T, k int) (steps int) {
	bubble(t, func(r *rig) {
		r.line, r.blowAfter = platforms[0].line, k
		r.start()
		converse := func() {
			for _, m := range []claybot.AgentMessage{msg("a", "a"), reset("r", "b")} {
				r.insist(ann, m)
				after(20 * time.Second)
			}
		}
		converse()
		steps = len(r.fuse.steps)
		if k >= 0 {
			r.crash()
			r.start()
			converse()
		}
		r.wants("re: a", confirmed, "re: b")
		if got, want := r.history(ann), []string{"user_message b", "assistant_message re: b"}; !slices.Equal(got, want) {
			t.Errorf("history %q, want %q", got, want)
		}
		r.checkEvents(ann)
	})
	return steps
}

// /stop ends the run within a second, confirms, and leaves the waiting messages
// alone (CM-10).
func TestStop(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.hold("long", time.Hour)
		r.start()
		r.post(ann, stop("s0"))
		r.wants(nothing)
		r.say("long")
		synctest.Wait()
		r.say("next")
		r.post(ann, stop("s1"))
		after(time.Second)
		r.wants(nothing, "Stopped.", "re: next")
		if run := r.receipt("long").Run; run.State != claybot.RunCanceled {
			t.Errorf("the run is %s", run.State)
		}
		r.checkEvents(ann)
		r.post(ann, stop("s1")) // redelivered
		r.post(ann, stop("s2"))
		r.wants(nothing, "Stopped.", "re: next", nothing)
	})
}

// A stop that was confirmed holds over a crash: the run ends, silently.
func TestStopThenCrash(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		r.mind.hold("long", time.Hour)
		r.start()
		r.say("long")
		synctest.Wait()
		r.post(ann, stop("s"))
		r.crash()
		r.start()
		after(time.Minute)
		r.wants("Stopped.")
		if rec := r.receipt("long"); rec.Run.State != claybot.RunCanceled {
			t.Errorf("the run is %s", rec.Run.State)
		}
		r.checkEvents(ann)
	})
}

// A tool that hangs is ended by /stop, too.
func TestStopDuringATool(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", use("pay", "work"), llmtest.Say("done"))
		r.bench.work = func(ctx context.Context) { <-ctx.Done() }
		r.start()
		r.say("begin")
		synctest.Wait()
		r.post(ann, stop("s"))
		after(time.Second)
		r.wants("Stopped.")
		r.say("b")
		r.wants("Stopped.", "re: b")
		r.checkEvents(ann)
	})
}

// Commands are answered by the system and reach no history and no model
// (CM-23).
func TestCommands(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.hold("long", time.Hour)
		r.mind.plan("bad", llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Text: "secret of the provider"}})
		r.start()
		ask := func(name string) string {
			t.Helper()
			n := len(r.chat.seen())
			r.post(ann, command(name+time.Now().String(), name))
			synctest.Wait()
			got := r.chat.seen()
			if len(got) != n+1 && name != "help" && name != "unknown" { // whose answer takes two
				t.Fatalf("/%s was answered with %q", name, got[n:])
			}
			time.Sleep(time.Second)
			return strings.Join(got[n:], "")
		}
		contains := func(name, got string, words ...string) {
			t.Helper()
			for _, w := range words {
				if !strings.Contains(got, w) {
					t.Errorf("/%s says %q, without %q", name, got, w)
				}
			}
		}
		contains("help", ask("help"), "/reset", "/new", "/stop", "/status", "/why")
		contains("start", ask("start"), "Hello")
		contains("why", ask("why"), "no message of yours")
		status := ask("status")
		contains("status", status, "waiting for you", "chat: live")
		if strings.Contains(status, string(r.agent(ann))) {
			t.Errorf("a person who is no operator reads an id: %q", status)
		}
		boss, byBoss := claybot.User("chat", "boss", "boss"), command("boss", "status")
		byBoss.From.UserID = "boss"
		r.post(boss, byBoss)
		synctest.Wait()
		contains("status", strings.Join(r.chat.seen("boss"), ""), string(r.agent(boss)))
		contains("unknown", ask("unknown"), "/help")
		if len(r.mind.asked()) != 0 || len(r.records(ann)) != 0 {
			t.Errorf("%d model calls, history %q", len(r.mind.asked()), r.history(ann))
		}

		r.say("fine")
		synctest.Wait()
		contains("why", ask("why"), "It was answered", string(r.receipt("fine").Run.ID))
		r.say("bad")
		synctest.Wait()
		why := ask("why")
		contains("why", why, "The model refused this request")
		r.say("long")
		synctest.Wait()
		contains("why", ask("why"), "I began with it today at 0:00 UTC", "The agent is at work on it.")
		contains("status", ask("status"), "at work", "/stop")
		r.say("after")
		contains("why", ask("why"), "waits for its turn")
		for _, text := range r.chat.seen() {
			if strings.Contains(text, "secret") {
				t.Errorf("people read the provider's error: %q", text)
			}
		}
	})
}

// A failed run says one sentence with its id.
func TestFailedRunSaysSo(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("bad", llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Text: "no"}})
		r.start()
		r.say("bad")
		r.wants("The model refused this request; the operator can see why.")
		r.checkEvents(ann)
	})
}

func (r *rig) ranID(id claybot.MessageID) claybot.RunID {
	r.Helper()
	synctest.Wait()
	return r.receipt(id).Run.ID
}

// Nothing to say, in the forms models find for it; longer texts are sent.
func TestNoReply(t *testing.T) {
	for text, silent := range map[string]bool{
		"NO_REPLY": true, " no_reply.\n": true, "`NO_REPLY`": true, "\"NO_REPLY\"": true,
		"NO_REPLY needed": false, "Say NO_REPLY": false,
	} {
		bubble(t, func(r *rig) {
			r.mind.plan("a", llmtest.Say(text))
			r.start()
			r.say("a")
			if silent {
				r.wants()
			} else {
				r.wants(text)
			}
			if run := r.receipt("a").Run; run.State != claybot.RunSucceeded {
				t.Errorf("%q: the run is %s", text, run.State)
			}
			r.post(ann, command("why", "why"))
			synctest.Wait()
			if got := r.chat.seen(); strings.Contains(got[len(got)-1], "decided not to reply") != silent {
				t.Errorf("%q: /why says %q", text, got[len(got)-1])
			}
		})
	}
}

// Messages that cannot run are refused in words, and recorded.
func TestRefusedMessages(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.post(ann, msg("empty", " \n\t"), msg("nul", "\x00"), msg("long", strings.Repeat("é", 100_001)))
		synctest.Wait()
		seen := r.chat.seen()
		if len(seen) != 3 || !strings.Contains(seen[0], "no text") || !strings.Contains(seen[2], "100,001 characters") {
			t.Errorf("people see %q", seen)
		}
		for id, want := range map[claybot.MessageID]string{"empty": "empty", "nul": "empty", "long": "too_long"} {
			if got := r.receipt(id).Skipped; got != want {
				t.Errorf("%s: skipped %q, want %q", id, got, want)
			}
		}
		if len(r.mind.asked()) != 0 {
			t.Error("the model was asked")
		}
		odd := "\xff\x00 שלום 👩‍👩‍👧 end"
		r.post(ann, msg("odd", odd))
		r.wants(append(seen, "re: \ufffd שלום 👩‍👩‍👧 end")...)
	})
}

// A long answer is sent in parts, in order.
func TestPartsInOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		text := strings.Repeat("a", partLimit) + strings.Repeat("b", partLimit) + "c"
		r.mind.plan("a", llmtest.Say(text))
		r.chat.will(failing, refused(false)) // the first part needs three tries, one of them marked as undelivered
		r.start()
		r.say("a")
		after(time.Minute)
		r.wants(strings.Repeat("b", partLimit), "c", "I couldn't deliver a reply here. /why shows what happened to your last message.")
	})
}
