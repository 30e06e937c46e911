package agentsystem_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm/llmtest"
)

func streams(l *line) connectors.Connector         { return streamingLine{l} }
func streamsAndFinds(l *line) connectors.Connector { return streamingFindingLine{streamingLine{l}} }

// grow makes the model write its answers half by half, with a pause after each.
func (r *rig) grow(line func(*line) connectors.Connector, answer string) {
	r.line, r.mind.pace = line, 5*time.Second
	r.mind.plan("begin", llmtest.Say(answer))
}

const (
	// The halves are long enough to be shown at once.
	half1 = "The first half of the answer, "
	half2 = "and here is the other half of."
)

// The first text makes a message, the rest edits it: one message in all.
func TestDraftGrows(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.grow(streams, half1+half2)
		r.start()
		r.say("begin")
		after(time.Second)
		r.wants(strings.TrimSpace(half1))
		after(5 * time.Second)
		r.wants(half1 + half2)
		after(time.Minute)
		r.wants(half1 + half2)
		if n := len(r.chat.posts); n != 1 {
			t.Errorf("%d messages", n)
		}
		if o := r.reply("begin"); o.State != claybot.SendSent || o.Receipt != "p1" {
			t.Errorf("the reply: %+v", o)
		}
		if len(r.chat.typed) == 0 {
			t.Error("no typing sign")
		}
	})
}

// Short texts wait for company, but not long; edits keep their distance.
func TestDraftPaces(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = streams
		r.mind.before = nil
		r.engine = drip{r, 300 * time.Millisecond, strings.Split("a b c d e f g h i j k l m n o p q r s t u v w x y z", " ")}
		r.start()
		began := time.Now()
		r.say("begin")
		after(time.Minute)
		sent := r.chat.sent()
		if first := sent[0].at.Sub(began); first < time.Second || first > 1500*time.Millisecond {
			t.Errorf("first shown after %v: %q", first, sent[0].out.Text)
		}
		for i := 1; i < len(sent)-1; i++ { // the last one is the deliverer's
			if pause := sent[i].at.Sub(sent[i-1].at); pause < time.Second {
				t.Errorf("edit %d after %v", i, pause)
			}
		}
		if len(sent) < 6 {
			t.Errorf("only %d sends", len(sent))
		}
		r.wants("a b c d e f g h i j k l m n o p q r s t u v w x y z ")
	})
}

// An answer that is complete at once is one message without an edit.
func TestQuickAnswerHasNoDraft(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = streams
		r.start()
		r.say("hi")
		r.wants("re: hi")
		if p := r.chat.posts[0]; p.edits != 0 {
			t.Errorf("%d edits", p.edits)
		}
	})
}

// A long draft is cut; the whole answer comes in parts at the end.
func TestDraftLimit(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		long := strings.Repeat("x", partLimit+100)
		r.grow(streams, long)
		r.start()
		r.say("begin")
		after(time.Second)
		r.wants(strings.Repeat("x", streaming.Limit) + " …")
		after(time.Minute)
		r.wants(long[:partLimit], long[partLimit:])
	})
}

// The process dies while a draft is visible: the end of the run edits it.
func TestCrashWithDraft(t *testing.T) {
	for name, line := range map[string]func(*line) connectors.Connector{"streams": streams, "streams and finds": streamsAndFinds} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.grow(line, half1+half2)
				r.start()
				r.say("begin")
				after(time.Second)
				r.crash()
				r.start()
				after(time.Minute)
				r.wants(half1 + half2)
				if p := r.chat.posts[0]; len(r.chat.posts) != 1 || p.edits == 0 {
					t.Errorf("%d messages, %d edits of the first", len(r.chat.posts), p.edits)
				}
			})
		})
	}
}

// A draft of unknown fate is looked up where that is possible: one message in
// the end, whether it arrived or not.
func TestAmbiguousDraft(t *testing.T) {
	for name, v := range map[string]verdict{"arrived": lost, "did not": cut} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.grow(streamsAndFinds, half1+half2)
				r.chat.will(v)
				r.start()
				r.say("begin")
				after(time.Minute)
				r.wants(half1 + half2)
				r.say("next")
				after(time.Minute)
				r.wants(half1+half2, "re: next")
			})
		})
	}
}

// Where nothing can be looked up, the worst is a stray beginning.
func TestStrayBeginning(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.grow(streams, half1+half2)
		r.chat.will(lost)
		r.start()
		r.say("begin")
		after(time.Minute)
		r.wants(strings.TrimSpace(half1), half1+half2)
	})
}

// A draft that was not sent leaves nothing behind, also not for a later
// process: its reply has an id of its own.
func TestDraftNotSent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.grow(streams, half1+half2)
		r.chat.judge = func(claybot.Outgoing) verdict { return failing }
		r.start()
		for _, id := range []string{"begin 1", "begin 2"} {
			r.say(id)
			after(2 * time.Second)
			r.crash()
			r.start()
			after(15 * time.Second) // the run ends after ten; ten tries take longer than five
		}
		r.chat.mu.Lock()
		r.chat.judge = nil
		r.chat.mu.Unlock()
		after(time.Hour)
		r.wants(half1+half2, half1+half2)
	})
}

// A deleted draft is replaced by a fresh message.
func TestDraftDeleted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.grow(streams, half1+half2)
		r.start()
		r.say("begin")
		after(6 * time.Second)
		r.chat.deletePost(0)
		after(time.Minute)
		r.wants(half1 + half2)
	})
}

// A 429 to a draft silences drafts and the final text alike.
func TestDraftIsLimited(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.grow(streams, half1+half2)
		r.chat.will(slow(30*time.Second, false))
		r.start()
		began := time.Now()
		r.say("begin")
		after(time.Minute)
		r.wants(half1 + half2)
		if sent := r.chat.sent(); len(sent) != 2 || sent[1].at.Sub(began) < 30*time.Second {
			t.Errorf("%d sends, the last after %v", len(sent), sent[len(sent)-1].at.Sub(began))
		}
	})
}

// A draft that gives way to others comes as soon as it may, without a word of the model in
// between, and silences nothing.
func TestDraftGivesWay(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.grow(streams, half1+half2)
		r.chat.will(verdict{err: &connectors.RetryError{After: 2 * time.Second, GivesWay: true, Err: errors.New("others grow")}})
		r.start()
		r.say("begin")
		after(3 * time.Second)
		r.wants(strings.TrimSpace(half1))
		after(time.Minute)
		r.wants(half1 + half2)
		if n := len(r.chat.posts); n != 1 {
			t.Errorf("%d messages", n)
		}
	})
}

// A failing run and /stop bring a visible beginning to an end.
func TestDraftOfARunThatEndsBadly(t *testing.T) {
	tests := []struct {
		name string
		end  func(r *rig)
		want string // ending of the draft
	}{
		{"stop", func(r *rig) { r.post(ann, stop("s")) }, "\n\n*(stopped)*"},
		{"deadline", func(r *rig) { after(10 * time.Second) }, "I stopped because this took longer than allowed."},
	}
	passing := (&drawer{texts: true}).line()
	for _, tt := range tests {
		for kind, line := range map[string]func(*line) connectors.Connector{"a message": streams, "a draft of the platform": passing} {
			t.Run(tt.name+", "+kind, func(t *testing.T) {
				bubble(t, func(r *rig) {
					r.grow(line, half1+half2)
					r.mind.pace = time.Hour
					r.profile.Deadline = 10 * time.Second
					r.start()
					r.say("begin")
					after(2 * time.Second)
					tt.end(r)
					synctest.Wait()
					got := strings.Join(r.chat.seen(), "\n")
					if !strings.Contains(got, strings.TrimSpace(half1)+"\n\n") || !strings.Contains(got, tt.want) {
						t.Errorf("people see %q", r.chat.seen())
					}
				})
			})
		}
	}
}

// The same when another process had made the draft.
func TestStopAfterCrashEndsDraft(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.grow(streams, half1+half2)
		r.mind.pace = time.Hour
		r.start()
		r.say("begin")
		after(2 * time.Second)
		// It dies with the stop: a send on its way would have an unknown fate here.
		r.fuse.blowIn(2)
		if err := r.system.Post(r.Context(), ann, stop("s")); !errors.Is(err, errDead) || r.fuse.last() != "post" {
			t.Fatalf("it died behind %q: %v", r.fuse.last(), err)
		}
		r.crash()
		r.start()
		after(time.Minute)
		if got := r.chat.seen(); len(got) != 2 || !strings.HasSuffix(got[0], "*(stopped)*") {
			t.Errorf("people see %q", got)
		}
	})
}

// The word for silence is not shown while it grows.
func TestNoReplyIsNotDrafted(t *testing.T) {
	for _, text := range []string{"NO_REPLY", "`no_reply`."} {
		bubble(t, func(r *rig) {
			r.grow(streams, text)
			r.start()
			r.say("begin")
			after(time.Minute)
			r.wants()
		})
	}
}

// Nothing overtakes what waits for its destination: no draft then.
func TestNoDraftWhileBusy(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.grow(streams, half1+half2)
		r.chat.will(failing, failing, failing, failing)
		r.start()
		r.post(ann, command("c", "start"))
		r.say("begin")
		after(time.Minute)
		if got := r.chat.seen(); len(got) != 2 || !strings.HasPrefix(got[0], "Hello") || got[1] != half1+half2 {
			t.Errorf("people see %q", got)
		}
	})
}

// The answer of a run is committed before it is handed over: no draft of the next run
// comes in between.
func TestNoDraftBeforeWhatIsCommitted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.grow(streams, half1+half2)
		r.start()
		o := claybot.Outgoing{ID: "before", Kind: claybot.OutgoingAnswer, Route: ann.Route(), Text: "before", Part: 1, Parts: 1, At: claybot.Now()}
		if _, err := r.db.Enqueue(context.Background(), o); err != nil { // as a commit, whose caller is slow
			t.Fatal(err)
		}
		r.say("begin")
		after(time.Second)
		r.wants() // with a draft, the first half
	})
}
