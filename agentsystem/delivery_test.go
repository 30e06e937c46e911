package agentsystem_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

const undelivered = "I couldn't deliver a reply here. /why shows what happened to your last message."

// reply is the outgoing answer to a message.
func (r *rig) reply(id claybot.MessageID) claybot.Outgoing {
	r.Helper()
	replies := r.receipt(id).Replies
	i := slices.IndexFunc(replies, func(o claybot.Outgoing) bool { return o.Kind == claybot.OutgoingAnswer })
	if i < 0 {
		r.Fatalf("%s has no answer: %+v", id, replies)
	}
	return replies[i]
}

// Messages of one destination arrive in order, whatever happens to single
// sends.
func TestOrderUnderFaults(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		r.setPolicy(oneByOne)
		n := 0
		r.chat.judge = func(claybot.Outgoing) verdict {
			n++
			return []verdict{failing, {}, slow(3*time.Second, false), cut, {}, lost, slow(time.Second, true), {}}[n%8]
		}
		r.start()
		var want []string
		for i := range 15 {
			text := fmt.Sprint("m", i)
			r.say(text)
			want = append(want, "re: "+text)
		}
		after(time.Hour)
		r.wants(want...)
	})
}

// A 429 is obeyed exactly, costs no attempt, and silences its chat alone.
func TestRetryAfterOfAChat(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var many []verdict
		for range 20 { // more often than a message is tried
			many = append(many, slow(7*time.Second, false))
		}
		r.start()
		r.chat.will(many...)
		began := time.Now()
		r.say("a")
		after(time.Second)
		r.chat.mu.Lock()
		r.chat.judge = func(o claybot.Outgoing) verdict {
			if o.Route.ChannelID == "dm-ann" && len(many) > 1 {
				many = many[1:]
				return many[0]
			}
			return verdict{}
		}
		r.chat.mu.Unlock()
		r.post(claybot.User("chat", "dm-bob", "bob"), msg("b", "b"))
		r.wants("re: b")
		after(10 * time.Minute)
		r.wants("re: b", "re: a")
		for i, s := range r.chat.sent() {
			if at := s.at.Sub(began); s.out.Route.ChannelID == "dm-ann" && at%(7*time.Second) != 0 {
				t.Errorf("send %d at %v", i, at)
			}
		}
		if o := r.reply("a"); o.State != claybot.SendSent || o.Attempts != 1 {
			t.Errorf("the reply: %s after %d attempts", o.State, o.Attempts)
		}
	})
}

// A 429 for the whole connector silences all its chats, and no other connector.
func TestRetryAfterOfAConnector(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		other := &chat{}
		r.also = []connectors.Connector{&line{name: "other", chat: other, fuse: newFuse(-1)}}
		r.start()
		r.chat.will(slow(30*time.Second, true))
		began := time.Now()
		r.say("a")
		synctest.Wait()
		for i := range 5 {
			user := fmt.Sprint("u", i)
			r.post(claybot.User("chat", user, user), msg(user, user))
			r.post(claybot.User("other", user, user), msg("o"+user, user))
		}
		synctest.Wait()
		if len(other.seen()) != 5 {
			t.Errorf("the other connector sent %q", other.seen())
		}
		after(29 * time.Second)
		if n := len(r.chat.sent()); n != 1 {
			t.Errorf("%d sends during the silence", n-1)
		}
		after(time.Second)
		if len(r.chat.seen()) != 6 {
			t.Errorf("after the silence: %q", r.chat.seen())
		}
		for _, s := range r.chat.sent()[1:] {
			if s.at.Sub(began) != 30*time.Second {
				t.Errorf("sent at %v", s.at.Sub(began))
			}
		}
	})
}

// What becomes of a send whose answer never came.
func TestAmbiguousSends(t *testing.T) {
	finds := func(l *line) connectors.Connector { return findingLine{l} }
	tests := []struct {
		name     string
		line     func(*line) connectors.Connector
		verdicts []verdict
		find     func(looked int) error
		want     []string
		state    claybot.SendState
		lookups  []time.Duration // after the attempt
	}{
		{"found", finds, []verdict{lost}, nil, []string{"re: a"}, claybot.SendSent, []time.Duration{5 * time.Second}},
		{"not found twice", finds, []verdict{cut}, nil, []string{"re: a"}, claybot.SendSent, []time.Duration{5 * time.Second, 10 * time.Second}},
		{"lost, and the edit fails once", finds, []verdict{lost, failing}, nil, []string{"re: a"}, claybot.SendSent, []time.Duration{5 * time.Second}},
		{"look-up fails at first", finds, []verdict{lost}, func(n int) error {
			if n < 4 {
				return errNet
			}
			return nil
		}, []string{"re: a"}, claybot.SendSent, nil},
		{"look-up is not allowed", finds, []verdict{lost}, func(int) error {
			return &connectors.PermanentError{Err: errors.New("missing_scope")}
		}, []string{"re: a", "One of my last replies may be missing: the connection broke while I was sending it. /resend sends it again."}, claybot.SendFailed, nil},
		{
			"look-up never works", finds,
			[]verdict{lost},
			func(int) error { return errNet },
			[]string{"re: a", "One of my last replies may be missing: the connection broke while I was sending it. /resend sends it again."},
			claybot.SendFailed, nil,
		},
		{"look-up is limited", finds, []verdict{lost}, func(n int) error {
			if n == 1 {
				return slow(time.Minute, false).err
			}
			return nil
		}, []string{"re: a"}, claybot.SendSent, []time.Duration{5 * time.Second, 65 * time.Second}},
		{
			"no look-up, resent", func(l *line) connectors.Connector { return resendingLine{l, true} },
			[]verdict{lost},
			nil,
			[]string{"re: a", "re: a"},
			claybot.SendSent, nil,
		},
		{
			"no look-up, not resent", func(l *line) connectors.Connector { return resendingLine{l, false} },
			[]verdict{cut},
			nil,
			[]string{"One of my last replies may be missing: the connection broke while I was sending it. /resend sends it again."},
			claybot.SendFailed, nil,
		},
		{
			"no look-up, no policy", func(l *line) connectors.Connector { return l },
			[]verdict{cut},
			nil,
			[]string{"One of my last replies may be missing: the connection broke while I was sending it. /resend sends it again."},
			claybot.SendFailed, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.line = tt.line
				r.chat.will(tt.verdicts...)
				looked := 0
				r.chat.find = func(claybot.Outgoing) error {
					if looked++; tt.find != nil {
						return tt.find(looked)
					}
					return nil
				}
				r.start()
				began := time.Now()
				r.say("a")
				after(2 * time.Minute)
				if tt.name == "look-up never works" {
					after(time.Hour)
				}
				r.wants(tt.want...)
				// Given up with an unknown fate, it carries the mark should an
				// operator send it again.
				again := len(tt.want) == 2 && tt.want[1] == tt.want[0] || tt.state == claybot.SendFailed
				if o := r.reply("a"); o.State != tt.state || o.Resent != again {
					t.Errorf("the reply: %+v", o)
				}
				var lookups []time.Duration
				for _, at := range r.chat.lookups {
					lookups = append(lookups, at.Sub(began))
				}
				if tt.lookups != nil && !slices.Equal(lookups, tt.lookups) {
					t.Errorf("looked up after %v, want %v", lookups, tt.lookups)
				}
				r.say("b")
				after(time.Minute)
				r.wants(append(tt.want, "re: b")...)
			})
		})
	}
}

// A message that cannot be sent is parked after ten tries, with one notice, and
// the next one goes on; the pauses grow.
func TestParkedAfterTenTries(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.chat.judge = func(o claybot.Outgoing) verdict {
			if o.Text == "re: a" {
				return failing
			}
			return verdict{}
		}
		r.start()
		began := time.Now()
		r.say("a")
		synctest.Wait()
		r.say("b")
		after(time.Hour)
		r.wants("re: b", undelivered)
		o := r.reply("a")
		if o.State != claybot.SendFailed || o.Attempts != 10 || !strings.Contains(o.Cause, "no route") {
			t.Errorf("the reply: %+v", o)
		}
		sent := r.chat.sent()
		for i := 1; i < 10; i++ {
			pause, least := sent[i].at.Sub(sent[i-1].at), time.Second
			if pause < least || pause > 11*time.Minute {
				t.Errorf("pause %d is %v", i, pause)
			}
		}
		if last := sent[9].at.Sub(began); last < 30*time.Second { // more than nine pauses that do not grow
			t.Errorf("given up after %v", last)
		}
	})
}

// A notice that cannot be delivered is followed by no other.
func TestNoNoticeAboutANotice(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.chat.judge = func(claybot.Outgoing) verdict { return refused(false) }
		r.start()
		r.say("a")
		after(time.Hour)
		if n := len(r.chat.sent()); n != 2 {
			t.Errorf("%d sends, want the reply and one notice", n)
		}
	})
}

// A chat that refuses everything gets no notice and blocks no other chat.
func TestDeadRoute(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.chat.will(refused(true))
		r.start()
		r.say("a")
		synctest.Wait()
		if n := len(r.chat.sent()); n != 1 {
			t.Errorf("%d sends", n)
		}
		if o := r.reply("a"); o.State != claybot.SendFailed {
			t.Errorf("the reply is %s", o.State)
		}
	})
}

// A chat that hangs blocks only itself.
func TestBlockedChatBlocksItself(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.chat.judge = func(o claybot.Outgoing) verdict {
			if o.Route.ChannelID == "dm-ann" {
				return failing
			}
			return verdict{}
		}
		r.start()
		for i := range 10 {
			r.say(fmt.Sprint("a", i))
			user := fmt.Sprint("u", i)
			r.post(claybot.User("chat", "dm-"+user, user), msg(user, user))
			synctest.Wait()
		}
		if got := r.chat.seen(); len(got) != 10 {
			t.Errorf("%d others were answered", len(got))
		}
	})
}

// A lane with more than it keeps in memory sends everything, in order, also
// after a restart.
func TestLongLane(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		blocked := true
		r.chat.judge = func(claybot.Outgoing) verdict {
			if blocked {
				return slow(time.Minute, false)
			}
			return verdict{}
		}
		r.start()
		var want []string
		for i := range 150 {
			r.post(ann, command(fmt.Sprint("c", i), "start"))
			want = append(want, "Hello! Send me a message and I'll answer. /help shows what I can do.")
			if i == 75 {
				r.restart()
			}
		}
		r.chat.mu.Lock()
		blocked = false
		r.chat.mu.Unlock()
		after(10 * time.Minute)
		r.wants(want...)
		ids := make(map[string]int)
		last := int64(0)
		for _, p := range r.chat.posts {
			ids[p.out.ID]++
			if p.out.N <= last {
				t.Errorf("message %d after %d", p.out.N, last)
			}
			last = p.out.N
		}
		if len(ids) != 150 {
			t.Errorf("%d different messages were sent", len(ids))
		}
	})
}

// Many agents of one group answer at the same time: all is sent, whichever of them
// hands over first.
func TestManyAgentsOneDestination(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		for round := range 3 {
			for i := range 20 {
				user := fmt.Sprint("u", i)
				r.post(claybot.User("chat", "group", user), msg(fmt.Sprint(round, user), user))
			}
		}
		after(time.Minute)
		counts, err := r.db.Stats(r.Context())
		if err != nil {
			t.Fatal(err)
		}
		if counts.Outbox[claybot.SendWaiting] != 0 || counts.Outbox[claybot.SendSent] != len(r.chat.seen()) {
			t.Errorf("the outbox: %v, and %d posts", counts.Outbox, len(r.chat.seen()))
		}
	})
}

// What was on its way when the process died is looked up at the next start,
// before anything newer is sent to that chat.
func TestRestartWithAttempted(t *testing.T) {
	for _, arrived := range []bool{true, false} {
		bubble(t, func(r *rig) {
			r.line = platforms[0].line
			r.chat.judge = func(claybot.Outgoing) verdict {
				r.fuse.blow() // in the middle of the send
				if arrived {
					return lost
				}
				return cut
			}
			r.start()
			r.say("a")
			synctest.Wait()
			r.crash()
			r.chat.mu.Lock()
			r.chat.judge = nil
			r.chat.mu.Unlock()
			r.start()
			r.say("b")
			after(time.Minute)
			r.wants("re: a", "re: b")
			status, err := r.system.Overview.Status(r.Context())
			if err != nil || status.Ambiguous != 1 {
				t.Errorf("status %+v, %v", status, err)
			}
		})
	}
}
