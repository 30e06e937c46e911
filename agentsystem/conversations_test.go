package agentsystem_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/storagetest"
)

// in is a message of Ann in a thread; "" for none.
func in(thread, id, text string) claybot.AgentMessage {
	m := msg(id, text)
	m.Context = claybot.MessageContext{MessageID: id, ThreadID: thread, Group: true}
	return m
}

// Where threads are conversations of their own, each has its own agent and history, and its
// answers go into it; elsewhere a person has one conversation per channel.
func TestThreads(t *testing.T) {
	for _, tt := range []struct {
		own           bool
		first, second []string // what the agents of thread 1 and of no thread remember of people
	}{
		{true, []string{"a", "c"}, []string{"flat"}},
		{false, nil, []string{"a", "b", "c", "flat"}},
	} {
		t.Run(fmt.Sprint("own ", tt.own), func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.ownThreads = tt.own
				r.start()
				for _, m := range []claybot.AgentMessage{in("1", "a", "a"), in("2", "b", "b"), in("1", "c", "c"), in("", "flat", "flat")} {
					r.post(room, m)
					synctest.Wait()
					if r.restart(); m.ID == "c" { // redelivered, after a restart
						r.post(room, m)
					}
				}
				r.wants("re: a", "re: b", "re: c", "re: flat")
				for i, thread := range []string{"1", "2", "1", ""} {
					if got := r.chat.posts[i].out.Route; got.ThreadID != thread || got.ChannelID != room.ChannelID {
						t.Errorf("answer %d went to %+v, want thread %q", i, got, thread)
					}
				}
				if got := r.userTexts(room); !slices.Equal(got, tt.second) {
					t.Errorf("outside threads the agent heard %q, want %q", got, tt.second)
				}
				if tt.own {
					if got := r.userTexts(thread("1")); !slices.Equal(got, tt.first) {
						t.Errorf("in thread 1 the agent heard %q, want %q", got, tt.first)
					}
				}
			})
		})
	}
}

func thread(id string) claybot.Descriptor {
	d := room
	d.ThreadID = id
	return d
}

// userTexts are what an agent remembers that people said.
func (r *rig) userTexts(d claybot.Descriptor) (texts []string) {
	r.Helper()
	for _, rec := range r.records(d) {
		if rec.Type == claybot.RecordUser {
			texts = append(texts, rec.Text)
		}
	}
	return texts
}

// A command that its platform offers outside threads only concerns the conversation to
// which its person wrote last; /new in a thread ends that one alone.
func TestThreadsAndCommands(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ownThreads = true
		r.start()
		r.post(room, in("1", "a", "a"))
		synctest.Wait()
		r.post(room, in("2", "b", "b"))
		synctest.Wait()
		slash := typed("s", claybot.MessageReset, "")
		slash.Context.Group = true
		r.post(room, slash)
		synctest.Wait()
		r.remember("1", "a")
		r.remember("2")
		reset := in("1", "n", "")
		reset.Type = claybot.MessageReset
		r.post(room, reset)
		synctest.Wait()
		r.remember("1")
		for i, thread := range []string{"1", "2", "2", "1"} {
			if got := r.chat.posts[i].out.Route.ThreadID; got != thread {
				t.Errorf("answer %d went to thread %q, want %q", i, got, thread)
			}
		}
	})
}

// remember checks which messages of people a thread remembers.
func (r *rig) remember(id string, want ...string) {
	r.Helper()
	if got := r.userTexts(thread(id)); !slices.Equal(got, want) {
		r.Errorf("thread %s remembers %q, want %q", id, got, want)
	}
}

// However the messages of twenty threads mingle, and whenever the process dies, each is
// answered in its thread, and no thread hears of another.
func TestThreadsMingled(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 17))
			bubble(t, func(r *rig) {
				r.ownThreads = true
				r.start()
				said := make(map[string][]string) // by thread
				for n := range 120 {
					thread := fmt.Sprint("thread", dice.IntN(20))
					id := fmt.Sprintf("%s-%d", thread, n)
					said[thread] = append(said[thread], id)
					r.post(room, in(thread, id, id))
					if dice.IntN(12) == 0 {
						r.crash()
						r.start()
					}
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				answered := make(map[string]string) // by thread: all that was said there
				for _, p := range r.chat.posts {
					answered[p.out.Route.ThreadID] += " " + p.text
				}
				for id, want := range said {
					if got := strings.Join(r.userTexts(thread(id)), "\n"); got != strings.Join(want, "\n") {
						t.Errorf("%s heard %q, want %q", id, got, want)
					}
					for other := range said {
						if other != id && strings.Contains(answered[id]+" ", " "+other+"-") {
							t.Errorf("answers for %s went to %s: %s", other, id, answered[id])
						}
					}
					last := want[len(want)-1]
					if !strings.Contains(answered[id], last) && !strings.Contains(answered[id], "while I was sending it.") {
						t.Errorf("%s got no answer to %s: %s", id, last, answered[id])
					}
				}
			})
		})
	}
}

// To which messages of a group an agent responds, its profile says; in threads, whether an
// agent takes part there, after a restart as well.
func TestRespond(t *testing.T) {
	overheard := func(thread, id, user string) claybot.AgentMessage {
		m := in(thread, id, id)
		m.Context.Unaddressed, m.From.UserID = true, user
		return m
	}
	eve := claybot.User("chat", "room", "eve")
	for _, tt := range []struct {
		respond string
		own     bool
		want    []string
	}{
		{profiles.RespondMention, true, []string{"re: addressed"}},
		{"", true, []string{"re: addressed"}},
		{profiles.RespondThread, true, []string{"re: addressed", "re: goes on", "re: joins"}},
		{profiles.RespondThread, false, []string{"re: addressed", "re: goes on"}},
		{profiles.RespondAll, true, []string{"re: before", "re: addressed", "re: goes on", "re: joins", "re: elsewhere", "re: flat"}},
		{profiles.RespondOff, true, []string{}},
	} {
		t.Run(fmt.Sprint(tt.respond, " ", tt.own), func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.ownThreads, r.profile.Respond = tt.own, tt.respond
				r.start()
				for _, x := range []struct {
					to claybot.Descriptor
					m  claybot.AgentMessage
				}{
					{room, overheard("1", "before", "bob")},
					{room, in("1", "addressed", "addressed")},
					{room, overheard("1", "goes on", "bob")},
					{eve, overheard("1", "joins", "eve")},
					{room, overheard("2", "elsewhere", "bob")},
					{room, overheard("", "flat", "bob")},
				} {
					r.post(x.to, x.m)
					synctest.Wait()
					r.restart()
				}
				r.wants(tt.want...)
			})
		})
	}
}

// Of an album in a group only the part with the caption is addressed to the bot, and all are for
// it: also where several people share albums at once, after a restart, and not for ever. A group
// without access leaves nothing in the store.
func TestAlbumsInAGroup(t *testing.T) {
	bubble(t, func(r *rig) {
		eve := claybot.User("chat", "room", "eve")
		part := func(to claybot.Descriptor, album, id string, addressed bool) {
			t.Helper()
			m := in("", id, id)
			m.Context.GroupID, m.Context.Unaddressed, m.From.UserID = album, !addressed, to.UserID
			r.post(to, m)
			synctest.Wait()
		}
		marks := func() int {
			t.Helper()
			all, err := r.db.ListCheckpoints(r.Context(), storage.CheckpointRepeats)
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		r.access = people.Access{Allow: []string{"chat:room"}}
		r.start()
		part(claybot.User("chat", "elsewhere", "bob"), "a", "refused", true)
		if n := marks(); n != 0 {
			t.Errorf("a group without access has %d marks", n)
		}
		part(room, "a", "a1", true)
		part(eve, "b", "b1", true)
		part(room, "a", "a2", false)
		part(eve, "b", "b2", false)
		part(room, "c", "c1", false)
		r.restart()
		part(eve, "b", "b3", false)
		part(room, "a", "a3", false)
		part(room, "c", "c2", false)
		after(time.Minute)
		for to, want := range map[claybot.Descriptor][]string{room: {"a1", "a2", "a3"}, eve: {"b1", "b2", "b3"}} {
			if got := r.userTexts(to); !slices.Equal(got, want) {
				t.Errorf("the agent of %s got %q, want %q", to.UserID, got, want)
			}
		}
		after(25 * time.Hour)
		if err := r.db.Prune(r.Context(), time.Now(), storagetest.Retention); err != nil || marks() != 0 {
			t.Errorf("%d marks of albums are left: %v", marks(), err)
		}
	})
}

// What is said to others in a thread approves nothing.
func TestOverheardYesApprovesNothing(t *testing.T) {
	for _, own := range []bool{true, false} {
		bubble(t, func(r *rig) {
			r.approving()
			r.shut()
			r.ownThreads, r.profile.Respond = own, profiles.RespondThread
			r.start()
			at := room
			if own {
				at.ThreadID = "1"
			}
			q := r.asksFor(at, "ask", payment("Pay?"))["Pay?"]
			yes := in("1", "yes", "yes")
			yes.Context.Unaddressed = true
			r.post(room, yes)
			synctest.Wait()
			if said := r.saidTo(q); said != "" {
				t.Errorf("own %v: the payment was answered with %q", own, said)
			}
		})
	}
}

// An Undo button concerns the run that it names, whatever was written since.
func TestUndoOfAThread(t *testing.T) {
	bubble(t, func(r *rig) {
		r.ownThreads = true
		r.engine = engineFunc(effective)
		r.engines = map[string]runs.Engine{claybot.EngineUndo: engineFunc(hesitant)}
		r.start()
		r.post(room, in("", "go", "go"))
		synctest.Wait()
		r.post(room, in("1", "later", "go"))
		synctest.Wait()
		press := command("u1", "undo")
		press.Text, press.Context.Group = string(r.receipt("go").Run.ID), true
		r.post(room, press)
		synctest.Wait()
		if got := r.chat.seen(); !strings.HasPrefix(got[len(got)-2], "Undoing: ") && !strings.HasPrefix(got[len(got)-1], "Undoing: ") {
			t.Errorf("people see %q", got)
		}
	})
}
