package agentsystem_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// outgoingOf asks for what was sent to a person, newest first.
func outgoingOf(d claybot.Descriptor) storage.OutgoingQuery {
	return storage.OutgoingQuery{Dest: d.Route().Dest()}
}

// linked makes ann one person on two connectors, with a conversation on each.
func (r *rig) linked() *chat {
	other := &chat{}
	r.also = []connectors.Connector{&line{name: "other", chat: other, fuse: newFuse(-1)}}
	r.instances = map[string]string{"chat": "telegram", "other": "telegram"}
	ids := []string{"chat/ann", "other/ann2"}
	r.society.Identities = func(owner string) []string {
		if slices.Contains(ids, owner) {
			return ids
		}
		return nil
	}
	return other
}

// A dead route is remembered: nothing more is sent there, across a restart, until the
// person writes there again.
func TestDeadRouteIsRemembered(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.chat.will(refused(true))
		r.start()
		r.say("a")
		synctest.Wait()
		r.restart()
		if err := r.system.Tell(r.Context(), r.agent(ann), func(texts.Voice) string { return "a notice" }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(r.chat.sent()); n != 1 {
			t.Errorf("%d calls of the platform", n)
		}
		page, err := r.db.OutgoingPage(r.Context(), outgoingOf(ann))
		if err != nil || len(page) != 2 || page[0].State != claybot.SendFailed || !strings.Contains(page[0].Cause, "the route is dead: 403") || page[0].Attempts != 0 {
			t.Errorf("%v: %+v", err, page)
		}
		r.say("b")
		r.wants("re: b")
		if why, _ := r.system.DeadRoute(ann.Route()); why != "" {
			t.Errorf("still dead: %s", why)
		}
		r.crash()
		r.start()
		r.say("c")
		r.wants("re: b", "re: c")
	})
}

// A person who writes while the platform refuses a message to them is not held for dead.
func TestDeadRouteRevivedInTheAttempt(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		first := true
		r.chat.judge = func(claybot.Outgoing) verdict {
			if !first {
				return verdict{}
			}
			first = false
			r.system.RouteChanged(r.Context(), connectors.RouteChange{Connector: "chat", ChannelID: "dm-ann", At: claybot.Now()}) //nolint:errcheck // nothing is stored here
			return refused(true)
		}
		r.start()
		r.say("a")
		synctest.Wait()
		if why, _ := r.system.DeadRoute(ann.Route()); why != "" {
			t.Errorf("dead: %s", why)
		}
	})
}

// An operator who retries a message revives its route.
func TestRetryRevives(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.chat.will(refused(true))
		r.start()
		r.say("a")
		synctest.Wait()
		if _, err := r.system.Control.RetryOutgoing(r.Context(), r.reply("a").ID); err != nil {
			t.Fatal(err)
		}
		r.wants("re: a")
	})
}

// The route of a message that an operator retries is revived before the message waits again:
// a process that dies between the two does not refuse it.
func TestRetryRevivesFirst(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var marks []storage.Checkpoint
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Outbox = retried{s.Outbox, func() { marks, _ = r.db.ListCheckpoints(r.Context(), storage.CheckpointDead) }}
			return s
		}
		r.chat.will(refused(true))
		r.start()
		r.say("a")
		synctest.Wait()
		if _, err := r.system.Control.RetryOutgoing(r.Context(), r.reply("a").ID); err != nil || len(marks) > 0 {
			t.Errorf("%v: retried while %v", err, marks)
		}
		r.wants("re: a")
	})
}

// A retried outbox looks around before a retry.
type retried struct {
	agentsystem.Outbox
	look func()
}

func (o retried) Retry(ctx context.Context, id string) (claybot.Outgoing, error) {
	o.look()
	return o.Outbox.Retry(ctx, id)
}

// A person who presses a button revives the route; an unknown one does not.
func TestPressRevives(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.approving()
		id := r.asksFor(ann, "q", payment("Pay?"))["Pay?"].ID
		r.chat.will(refused(true))
		if err := r.system.Tell(r.Context(), r.agent(ann), func(texts.Voice) string { return "a notice" }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		dead := func() bool { why, _ := r.system.DeadRoute(ann.Route()); return why != "" }
		r.mu.Lock()
		r.access = people.Access{Mode: people.AccessAllowlist}
		r.mu.Unlock()
		if got := r.press(ann, id, "approve"); got.OK || !dead() {
			t.Errorf("an unknown user revives the route: %+v", got)
		}
		r.mu.Lock()
		r.access.Mode = people.AccessOpen
		r.mu.Unlock()
		if got := r.press(ann, id, "approve"); !got.OK || dead() {
			t.Errorf("dead after a press: %+v", got)
		}
	})
}

// A dead route gets no emoji either, and none goes elsewhere as a message.
func TestDeadRouteGetsNoMarks(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		other := r.linked()
		w := &wall{errs: []error{refused(true).err}}
		r.line = w.line()
		r.profile.Acknowledge = acknowledge
		r.slowModel(20 * time.Second)
		r.start()
		r.post(claybot.User("other", "ann2", "ann2"), msg("before", "before"))
		after(time.Minute)
		before := len(other.seen())
		r.write("m1", "begin")
		after(time.Minute)
		w.mu.Lock()
		calls := len(w.calls)
		w.mu.Unlock()
		if calls != 1 {
			t.Errorf("%d marks on a dead route", calls)
		}
		for _, text := range other.seen()[before:] {
			if !strings.HasSuffix(text, "re: begin") {
				t.Errorf("a mark went elsewhere: %q", text)
			}
		}
	})
}

// A person who writes at one member revives the route that another one marked a moment
// before, or marks a moment later by an attempt that had begun.
func TestReviveOnAnotherNode(t *testing.T) {
	nodesInBubble(t, 2, nil, func(c *clusterRig) {
		time.Sleep(5 * time.Second)
		first := true
		c.chat.judge = func(claybot.Outgoing) verdict {
			if !first {
				return verdict{}
			}
			first = false
			return refused(true)
		}
		c.nodes[0].say("ann", "a")
		for range 50 {
			synctest.Wait()
			if all, _ := c.index.ListCheckpoints(c.Context(), storage.CheckpointDead); len(all) > 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		c.mind.before = func(context.Context, llm.Request) error { time.Sleep(4 * time.Second); return nil }
		at := c.nodes[1]
		if why, _ := at.system.DeadRoute(ann.Route()); why != "" {
			at = c.nodes[0]
		}
		at.say("ann", "b")
		c.wants(20*time.Second, "ann", "re: b")
		mark := `{"connector":"chat","channelId":"dm-ann","why":"late","since":` + strconv.FormatInt(int64(claybot.Now()), 10) + `}`
		time.Sleep(time.Second)
		at.say("ann", "c") // its answer comes after the mark
		if err := c.index.SetCheckpoints(c.Context(), map[string]string{storage.CheckpointDead + "chat/dm-ann": mark}); err != nil {
			t.Fatal(err)
		}
		c.wants(20*time.Second, "ann", "re: b", "re: c")
	})
}

// Dead routes that cannot be read hold up no grant, and are read only after a change.
func TestDeadRoutesHoldUpNoGrants(t *testing.T) {
	marks := new(countedMarks)
	nodesInBubble(t, 2, func(c *clusterRig) {
		c.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Marks = markReads{s.Marks, marks}
			return s
		}
	}, func(c *clusterRig) {
		time.Sleep(10 * time.Second)
		if n := marks.reads.Load(); n > 4 {
			t.Errorf("%d reads without a change", n)
		}
		marks.broken.Store(true)
		if err := c.index.SetCheckpoints(c.Context(), map[string]string{storage.CheckpointDead + "chat/x": "{}"}); err != nil {
			t.Fatal(err)
		}
		if err := c.nodes[0].system.People.Grant(c.Context(), storage.Grant{Connector: "chat", Subject: "bob"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if !c.nodes[1].system.People.Granted("chat", "bob") {
			t.Error("the other member does not know the grant")
		}
	})
}

// A reply whose route is dead goes out once in another private conversation of its
// reader, marked with where it belongs; without one it ends with its reason.
func TestReroute(t *testing.T) {
	t.Parallel()
	there := claybot.User("other", "ann2", "ann2")
	group := claybot.User("other", "-100200", "ann2")
	for _, x := range []struct {
		name string
		to   []claybot.Descriptor // where she wrote before
		want string
	}{
		{"to her other chat", []claybot.Descriptor{there}, "This belongs to our conversation on Chat, where I can't write at present:\n\nre: a"},
		{"never into a group", []claybot.Descriptor{group}, ""},
		{"nowhere", nil, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				other := r.linked()
				r.start()
				for _, d := range x.to {
					m := msg("before", "before")
					m.Context.Group = strings.HasPrefix(d.ChannelID, "-")
					r.post(d, m)
				}
				synctest.Wait()
				other.mu.Lock()
				other.posts = nil
				other.mu.Unlock()
				r.chat.will(refused(true))
				r.say("a")
				synctest.Wait()
				var want []string
				if x.want != "" {
					want = []string{x.want}
				}
				if got := other.seen(); !slices.Equal(got, want) {
					t.Errorf("the other chat shows %q, want %q", got, want)
				}
				if o := r.reply("a"); o.State != claybot.SendFailed || o.Cause == "" {
					t.Errorf("the reply is %s: %s", o.State, o.Cause)
				}
			})
		})
	}
}

// A workflow sends to the chats that its file names. What cannot be delivered there goes to no other reader: not to
// the person whose message started the run, unless it was for a chat which they alone read.
func TestRerouteOfFlows(t *testing.T) {
	t.Parallel()
	for to, moved := range map[string]bool{"trigger": true, "chat/ann": true, "chat/dm-bob": false, "chat/ops": false} {
		t.Run(strings.ReplaceAll(to, "/", " "), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				other := r.linked()
				r.workflows(map[string]string{"order": "owner: chat/boss\nstart: tell\nnodes: {tell: {kind: reply, text: the risk is high, to: [" + to + "], next: END}}\n"})
				r.start()
				r.post(claybot.User("other", "ann2", "ann2"), msg("before", "before"))
				r.post(bob, msg("hi", "hi"))
				after(time.Minute)
				seen := len(other.seen())
				r.chat.judge = func(claybot.Outgoing) verdict { return refused(true) }
				r.post(claybot.User("chat", "ann", "ann"), msg("order tea", "order tea"))
				after(time.Minute)
				if got := other.seen()[seen:]; (len(got) == 1 && strings.HasSuffix(got[0], "the risk is high")) != moved || len(got) > 1 {
					t.Errorf("the other chat of ann shows %q", got)
				}
			})
		})
	}
}

// Two dead routes end a reply; it does not go to and fro.
func TestRerouteOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		other := r.linked()
		r.start()
		r.post(claybot.User("other", "ann2", "ann2"), msg("before", "before"))
		synctest.Wait()
		r.chat.judge = func(claybot.Outgoing) verdict { return refused(true) }
		other.judge = r.chat.judge
		r.say("a")
		after(time.Hour)
		if n, m := len(r.chat.sent()), len(other.sent()); n != 1 || m != 2 {
			t.Errorf("%d and %d calls", n, m)
		}
	})
}

// A process that dies at any step of a send to a dead route sends the reply elsewhere
// once, and knows the route as dead.
func TestRerouteCrashes(t *testing.T) {
	t.Parallel()
	for k := range 40 {
		bubble(t, func(r *rig) {
			finds := func(l *line) connectors.Connector { return findingLine{l} }
			other := r.linked()
			r.line = finds
			r.also = []connectors.Connector{finds(&line{name: "other", chat: other, fuse: newFuse(-1)})}
			r.start()
			r.post(claybot.User("other", "ann2", "ann2"), msg("before", "before"))
			synctest.Wait()
			r.shut()
			r.chat.judge = func(claybot.Outgoing) verdict { return refused(true) }
			r.blowAfter = k
			r.start()
			taken := false
			for i := 0; i < 3 && !taken; i++ {
				taken = r.system.Post(r.Context(), ann, msg("a", "a")) == nil
				time.Sleep(time.Second)
			}
			after(time.Minute)
			if r.fuse.dead() {
				r.crash()
				r.start()
				if !taken {
					r.say("a")
				}
				after(time.Hour)
			}
			n := 0
			for _, text := range other.seen() {
				if strings.HasSuffix(text, "re: a") {
					n++
				}
			}
			if n != 1 {
				t.Errorf("step %d: %d copies elsewhere: %q", k, n, other.seen())
			}
			if why, _ := r.system.DeadRoute(ann.Route()); why == "" && taken {
				t.Errorf("step %d: the route is not known as dead", k)
			}
		})
	}
}

// Two members that store changes of one route at the same moment keep the newest: the older
// one was compared before the newer one was stored.
func TestRouteChangesOfTwoMembers(t *testing.T) {
	var meanwhile atomic.Pointer[func()]
	nodesInBubble(t, 2, func(c *clusterRig) {
		c.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Marks = interruptedMarks{s.Marks, func() {
				if now := meanwhile.Swap(nil); now != nil {
					(*now)()
				}
			}}
			return s
		}
	}, func(c *clusterRig) {
		c.nodes[0].say("ann", "a")
		c.wants(20*time.Second, "ann", "re: a")
		time.Sleep(time.Second)
		change := func(m *member, second int, dead string) {
			at := claybot.At(time.Now().Add(time.Duration(second) * time.Second))
			if err := m.system.RouteChanged(c.Context(), connectors.RouteChange{Connector: "chat", ChannelID: "dm-ann", Dead: dead, At: at}); err != nil {
				t.Error(err)
			}
		}
		now := func() { change(c.nodes[1], 20, "") }
		meanwhile.Store(&now)
		change(c.nodes[0], 10, "the user blocked the bot")
		time.Sleep(20 * time.Second)
		if all, err := c.index.ListCheckpoints(c.Context(), storage.CheckpointDead); err != nil || len(all) > 0 {
			t.Errorf("the store has the marks %v, %v", all, err)
		}
		for _, m := range c.nodes {
			if why, _ := m.system.DeadRoute(ann.Route()); why != "" {
				t.Errorf("%s: the route is dead: %s", m.name, why)
			}
		}
	})
}

// An interruptedMarks has something happen before marks are stored.
type interruptedMarks struct {
	storage.CheckpointSet
	before func()
}

func (m interruptedMarks) SetCheckpoints(ctx context.Context, values map[string]string) error {
	m.before()
	return m.CheckpointSet.SetCheckpoints(ctx, values)
}

func (m interruptedMarks) AdvanceCheckpoint(ctx context.Context, key string, to int64, values map[string]string) (bool, error) {
	m.before()
	return m.CheckpointSet.AdvanceCheckpoint(ctx, key, to, values)
}

type countedMarks struct {
	reads  atomic.Int64
	broken atomic.Bool
}

// A markReads counts how often the dead routes are listed, and fails to list them while broken.
type markReads struct {
	storage.CheckpointSet
	*countedMarks
}

func (m markReads) ListCheckpoints(ctx context.Context, prefix string) ([]storage.Checkpoint, error) {
	if prefix == storage.CheckpointDead {
		m.reads.Add(1)
		if m.broken.Load() {
			return nil, storage.ErrBusy
		}
	}
	return m.CheckpointSet.ListCheckpoints(ctx, prefix)
}
