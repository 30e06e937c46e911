package agentsystem_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/storage"
)

// emoji is what a person adds to a message.
func emoji(by claybot.Descriptor, message, name string) connectors.Reaction {
	return connectors.Reaction{
		Connector: by.Connector, ChannelID: by.ChannelID, UserID: by.UserID, Message: message, Emoji: []string{name}, At: claybot.Now(),
	}
}

// react reports reactions until they are taken, each twice: the platform does not know
// that the first report arrived.
func (r *rig) react(all ...connectors.Reaction) {
	r.Helper()
	for _, x := range all {
		for range 2 {
			if _, err := r.system.Reacted(r.Context(), x); err != nil {
				r.Errorf("react with %q: %v", x.Emoji, err)
			}
		}
	}
	synctest.Wait()
}

// rates reports a reaction, which is stored as feedback or not.
func (r *rig) rates(x connectors.Reaction, want bool) {
	r.Helper()
	if rated, err := r.system.Reacted(r.Context(), x); err != nil || rated != want {
		r.Errorf("%q on %s: rated %v, %v; want %v", x.Emoji, x.Message, rated, err, want)
	}
}

// votes is the feedback of the run that took a message, in words.
func (r *rig) votes(id claybot.MessageID) string {
	r.Helper()
	run := r.receipt(id).Run
	if run == nil {
		return "no run"
	}
	var all []string
	for _, f := range claybot.Given(run.Feedback) {
		all = append(all, fmt.Sprint(f.By, " ", f.Emoji, " ", f.Vote, " on ", f.Message))
	}
	return strings.Join(all, ", ")
}

// reacting has the meanings of reactions in these tests.
var reacting = profiles.Reactions{Feedback: true, Stop: []string{":octagonal_sign:", "🛑"}, Approve: []string{"✅"}}

func (r *rig) feedback(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.profile.Reactions.Feedback = on
}

// A thumb on an answer is kept with its run, once, until it is removed. Whatever else people
// put on messages changes nothing.
func TestFeedback(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.profile.Reactions = reacting
		r.start()
		r.say("hi")
		r.wants("re: hi") // p1
		r.post(ann, command("c1", "help"))
		synctest.Wait() // p2
		up := emoji(ann, "p1", "👍")
		r.react(up, emoji(ann, "p1", "🎉"), emoji(ann, "p2", "👍"), emoji(ann, "p9", "👍"), emoji(ann, "p1", "🛑"), emoji(ann, "p1", "✅"))
		if got, want := r.votes("hi"), "chat/ann 👍 up on p1"; got != want {
			t.Errorf("the feedback is %q, want %q", got, want)
		}
		time.Sleep(time.Second)
		gone := emoji(ann, "p1", "👍")
		gone.Removed = true
		r.react(emoji(ann, "p1", "👎"), gone, up)
		r.crash()
		r.start()
		if got, want := r.votes("hi"), "chat/ann 👎 down on p1"; got != want {
			t.Errorf("the feedback is %q, want %q", got, want)
		}
		elsewhere := claybot.User("chat", "dm-eve", "eve")
		r.react(emoji(elsewhere, "p1", "👍")) // no message of that chat
		if got := len(r.receipt("hi").Run.Feedback); got != 2 {
			t.Errorf("%d feedbacks are kept, want 2", got)
		}
	})
}

// Strangers say nothing by reactions, and nothing is said where feedback is off.
func TestFeedbackRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.access = people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:ann", "chat:room"}}
		r.profile.Reactions = reacting
		r.start()
		r.say("hi")
		r.wants("re: hi")
		hello := in("", "hello", "hello")
		r.post(room, hello)
		r.wants("re: hi", "re: hello")
		stranger, guest := emoji(ann, "p1", "👍"), emoji(room, "p2", "👍")
		stranger.UserID = "eve"
		guest.Group, guest.UserID, guest.Outsider = true, "guest", true
		r.react(stranger, guest)
		r.feedback(false)
		r.react(emoji(ann, "p1", "👍"))
		if got := r.votes("hi") + r.votes("hello"); got != "" {
			t.Errorf("the feedback is %q", got)
		}
		r.feedback(true)
		member := emoji(room, "p2", "👍")
		member.Group, member.UserID = true, "carl"
		r.react(member)
		if got, want := r.votes("hello"), "chat/carl 👍 up on p2"; got != want {
			t.Errorf("the feedback is %q, want %q", got, want)
		}
		if _, err := r.system.Reacted(r.Context(), connectors.Reaction{Connector: "chat"}); err == nil {
			t.Error("half a reaction was accepted")
		}
		r.rates(member, true)
		unknown, removed := member, member
		unknown.Message, removed.Removed = "p99", true
		removed.At++
		r.rates(unknown, false)
		r.rates(removed, false)
		r.profile.Reactions.Feedback = false
		member.At += 2
		r.rates(member, false)
	})
}

// A stop ends the run whose answer grows in the message, or that the message began. No
// emoji of another person, no late one and no removed one ends a run.
func TestStopByReaction(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"answer", "own message", "control of the platform"} {
		t.Run(of, func(t *testing.T) {
			bubble(t, func(r *rig) {
				if r.profile.Reactions = reacting; of == "control of the platform" {
					r.profile.Reactions = profiles.Reactions{} // it needs no setting
				}
				r.grow(streams, half1+half2)
				r.start()
				r.say("begin")
				after(time.Second)
				stop := emoji(ann, "p1", "octagonal_sign")
				switch of {
				case "own message":
					stop.Message, stop.Of = "m1", "begin"
				case "control of the platform":
					stop.Emoji, stop.Stop = nil, true
				}
				wrong := []connectors.Reaction{stop, stop, stop}
				wrong[0].UserID, wrong[1].Removed, wrong[2].Message, wrong[2].Of = "bob", true, "p7", "unknown"
				r.react(wrong...)
				if got := r.state("begin"); got != claybot.RunRunning {
					t.Fatalf("the run is %s", got)
				}
				r.react(stop)
				after(time.Minute)
				if got := r.state("begin"); got != claybot.RunCanceled {
					t.Errorf("the run is %s, want it canceled", got)
				}
				seen := r.chat.seen()
				if n := len(slices.DeleteFunc(slices.Clone(seen), func(s string) bool { return s != "Stopped." })); n != 1 {
					t.Errorf("people see %q", seen)
				}
				r.mind.pace = 5 * time.Second
				r.say("next")
				after(time.Second)
				r.react(stop) // redelivered late: it is about the run before
				after(time.Minute)
				if got := r.state("next"); got != claybot.RunSucceeded {
					t.Errorf("the next run is %s", got)
				}
			})
		})
	}
}

// A stop on one's own message that waits drops it, once, and says so; one of another person, a
// removed one and one on a message that is gone do nothing. A message whose run has begun meanwhile
// is stopped.
func TestStopOfWaitingByReaction(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.profile.Reactions = reacting
		r.profile.Policy = inbox.Policy{WhenBusy: inbox.WhenBusy(inbox.Wait), ProcessBuffer: inbox.OneByOne}
		r.mind.pace = 5 * time.Minute
		r.start()
		r.say("begin")
		after(time.Second)
		r.say("next", "last")
		stop := emoji(ann, "m2", "octagonal_sign")
		stop.Of = "next"
		wrong := []connectors.Reaction{stop, stop}
		wrong[0].UserID, wrong[1].Removed = "bob", true
		r.react(wrong...)
		if got := r.receipt("next").Skipped; got != "" {
			t.Fatalf("the message was skipped because %q", got)
		}
		r.react(stop)
		r.crash()
		r.start()
		r.react(stop)
		if got := r.receipt("next").Skipped; got != storage.SkippedStopped {
			t.Errorf("the message was skipped because %q", got)
		}
		if got := r.state("begin"); got != claybot.RunRunning {
			t.Errorf("the run of the other message is %s", got)
		}
		for range 60 {
			if after(time.Minute); r.state("last") == claybot.RunRunning {
				break
			}
		}
		gone := stop
		gone.At++
		late := emoji(ann, "m3", "octagonal_sign")
		late.Of = "last"
		r.react(gone, late)
		after(10 * time.Minute)
		if got := r.state("last"); got != claybot.RunCanceled {
			t.Errorf("the run of the last message is %s", got)
		}
		r.wants("Stopped.", "re: begin", "Stopped.")
	})
}

// Any member of a group may stop the run of the agent that they share, as with /stop; a person
// without access may not, and a run of a member's own agent stays that member's.
func TestStopSharedByReaction(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.access = people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:room"}}
				r.profile.Shared, r.profile.Reactions = shared, reacting
				r.grow(streams, half1+half2)
				r.start()
				r.inRoom(by("ann", "begin", "begin"))
				after(time.Second)
				stop := emoji(claybot.User("chat", "room", "bob"), "p1", "octagonal_sign")
				stop.Group = true
				guest, elsewhere := stop, stop
				guest.UserID, guest.Outsider = "guest", true
				elsewhere.ChannelID = "other"
				r.react(guest, elsewhere)
				if got := r.state("begin"); got != claybot.RunRunning {
					t.Fatalf("the run is %s", got)
				}
				r.react(stop)
				after(time.Minute)
				want := claybot.RunSucceeded
				if shared {
					want = claybot.RunCanceled
				}
				if got := r.state("begin"); got != want {
					t.Errorf("the run is %s, want %s", got, want)
				}
			})
		})
	}
}

// An approval by reaction is that of its button: who may press may react, once.
func TestApprovalByReaction(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.profile.Reactions = reacting
		r.approving()
		qs := r.asksFor(ann, "pay", payment("Pay?", "chat/bob"))
		if len(qs) != 1 {
			t.Fatalf("asked are %v", qs)
		}
		asked := ""
		for _, p := range r.chat.posts {
			if p.out.Question != nil {
				asked = p.id
			}
		}
		r.react(emoji(ann, asked, "✅"), emoji(claybot.User("chat", room.ChannelID, "eve"), asked, "✅"), emoji(room, asked, "👍"))
		if got := r.state("pay"); got != claybot.RunAwaiting {
			t.Fatalf("the run is %s", got)
		}
		gone := emoji(room, asked, "✅")
		gone.Removed = true
		r.react(gone, emoji(room, asked, "✅"), gone)
		q, err := r.system.Questions.Answers.Question(r.Context(), qs["Pay?"].ID)
		if err != nil || q.Answer == nil || string(q.Answer.Value) != "true" || q.Answer.By != "chat/bob" || q.Answer.Via != claybot.ViaButton {
			t.Errorf("the question is %+v, %v", q.Answer, err)
		}
		if got := r.state("pay"); got != claybot.RunSucceeded {
			t.Errorf("the run is %s", got)
		}
	})
}

// The process dies at each step of a reaction: it comes again, and does what it means once.
func TestReactionCrash(t *testing.T) {
	t.Parallel()
	for k := range 12 {
		bubble(t, func(r *rig) {
			r.profile.Reactions, r.line = reacting, platforms[0].line // a platform that can be asked
			r.mind.pace = time.Minute
			r.start()
			r.say("one")
			after(time.Hour)
			r.say("two")
			after(time.Second)
			r.shut()
			r.blowAfter = k
			r.start()
			up, stop := emoji(ann, "p1", "👍"), emoji(ann, "m2", "🛑")
			stop.Of = "two"
			for _, x := range []connectors.Reaction{up, stop, up, stop} {
				for _, err := r.system.Reacted(r.Context(), x); err != nil || r.fuse.dead(); _, err = r.system.Reacted(r.Context(), x) {
					synctest.Wait()
					r.crash()
					r.start()
				}
			}
			after(time.Hour)
			if r.fuse.dead() {
				r.crash()
				r.start()
				after(time.Hour)
			}
			if got, want := r.votes("one"), "chat/ann 👍 up on p1"; got != want {
				t.Errorf("step %d: the feedback is %q, want %q", k, got, want)
			}
			if got := r.state("two"); got != claybot.RunCanceled {
				t.Errorf("step %d: the run is %s", k, got)
			}
			r.wants("re: one", "Stopped.")
		})
	}
}

// A person who approves before the platform has said which message it made is heard as well.
func TestReactionOvertakesReceipt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.profile.Reactions = reacting
		r.chat.judge = func(o claybot.Outgoing) verdict {
			if o.Question != nil {
				time.Sleep(3 * sendingWait / 4)
			}
			return verdict{}
		}
		r.approving()
		asked := fmt.Sprint("p", len(r.chat.sent())+1)
		qs := r.asksFor(bob, "pay", payment("Pay?", "chat/bob"))
		time.Sleep(time.Second)
		r.react(emoji(bob, asked, "✅"))
		after(time.Second)
		q, err := r.system.Questions.Answers.Question(r.Context(), qs["Pay?"].ID)
		if err != nil || q.Answer == nil || q.Answer.By != "chat/bob" {
			t.Errorf("the question is %+v, %v", q.Answer, err)
		}
	})
}

// sendingWait is how long reactions to unknown messages wait for one attempt to send.
const sendingWait = 2 * time.Second

// A send that hangs does not hold up what comes after reactions to other messages, however
// many they are: they wait once together, for the beginning of one attempt.
func TestReactionsWhileSendHangs(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.profile.Reactions = reacting
		r.start()
		r.say("hi")
		r.wants("re: hi")
		r.chat.judge = func(claybot.Outgoing) verdict { time.Sleep(time.Minute); return verdict{} }
		r.say("hang")
		after(time.Second)
		mine := emoji(ann, "m1", "🛑")
		mine.Of = "hi"
		for _, tt := range []struct {
			name string
			all  []connectors.Reaction
			most time.Duration
		}{
			{"on known messages", []connectors.Reaction{mine, emoji(ann, "p1", "👍")}, 0},
			{"on others", []connectors.Reaction{emoji(ann, "p9", "👍"), emoji(ann, "p8", "👎"), emoji(ann, "p9", "🛑"), emoji(ann, "p9", "✅")}, sendingWait},
			{"later ones", []connectors.Reaction{emoji(ann, "p7", "👍"), emoji(ann, "p9", "🛑"), emoji(ann, "p9", "✅")}, 0},
		} {
			began := time.Now()
			for _, x := range tt.all {
				r.react(x)
				if took := time.Since(began); took > tt.most {
					t.Fatalf("%s: they waited %s", tt.name, took)
				}
			}
		}
		if got, want := r.votes("hi"), "chat/ann 👍 up on p1"; got != want {
			t.Errorf("the feedback is %q, want %q", got, want)
		}
	})
}
