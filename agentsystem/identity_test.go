package agentsystem_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

// agents are the agent directories on disk.
func (r *rig) directories() []string {
	r.Helper()
	entries, err := os.ReadDir(filepath.Join(r.dir, "agents"))
	if err != nil {
		r.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

// Concurrent first messages of one triple make one agent, and all are handled
// (ID-02).
func TestFirstMessagesMakeOneAgent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() { r.say(fmt.Sprint("m", i)) })
		}
		all.Wait()
		after(time.Second)
		if got := r.directories(); len(got) != 1 || got[0] != string(r.agent(ann)) {
			t.Errorf("agents %q", got)
		}
		for i := range 50 {
			if rec := r.receipt(claybot.MessageID(fmt.Sprint("m", i))); rec.Run == nil || rec.Run.State != claybot.RunSucceeded {
				t.Errorf("message %d: %+v", i, rec)
			}
		}
	})
}

// Ids are opaque: no separator in one makes two triples the same (ID-03), and
// each part counts (ID-01), also after a restart.
func TestIdsAreOpaque(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.access.Trusted = []string{"chat"} // a slash in the id of a user is one of another organization
		r.start()
		triples := []claybot.Descriptor{
			claybot.User("chat", "a/b", "c"), claybot.User("chat", "a", "b/c"),
			claybot.User("chat", "a\x00b", "c"), claybot.User("chat", "a", "b\x00c"),
			claybot.User("chat", `a","b`, "c"), claybot.User("chat", "a", `b","c`),
			claybot.User("chat:a", "b", "c"), claybot.User("chat", "a:b", "c"),
			claybot.User("chat", "A", "b"), claybot.User("chat", "a", "b"), claybot.User("chat", "..", "."),
		}
		for round := range 2 {
			ids := make(map[claybot.AgentID]bool)
			for i, d := range triples {
				id := fmt.Sprint(round, ".", i)
				r.post(d, msg(id, id))
				ids[r.agent(d)] = true
			}
			synctest.Wait()
			if len(ids) != len(triples) || len(r.directories()) != len(triples) {
				t.Errorf("round %d: %d agents, %d directories, want %d", round, len(ids), len(r.directories()), len(triples))
			}
			r.restart()
		}
		for i, d := range triples {
			if got, want := r.history(d)[0], fmt.Sprint("user_message 0.", i); got != want {
				t.Errorf("%+v remembers %q, want %q", d, got, want)
			}
		}
	})
}

// The same message four times, also after a crash, is one run.
func TestRedeliveryIsOneRun(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		r.start()
		mention := msg("event 2", "hello")
		mention.Keys = []string{"ts 1"} // the same post as another event
		first := msg("event 1", "hello")
		first.Keys = []string{"ts 1"}
		r.post(ann, first, first, mention)
		synctest.Wait()
		r.crash()
		r.start()
		r.post(ann, first, mention)
		after(time.Minute)
		r.wants("re: hello")
		if n := len(r.mind.asked()); n != 1 {
			t.Errorf("%d model calls", n)
		}
	})
}

// An agent whose model hangs delays no other agent (PR-09).
func TestAgentsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.hold("hang", time.Hour)
		r.start()
		r.post(claybot.User("chat", "dm-bob", "bob"), msg("hang", "hang"))
		for i := range 20 {
			user := fmt.Sprint("u", i)
			r.post(claybot.User("chat", "dm-"+user, user), msg(user, user))
		}
		synctest.Wait()
		if got := r.chat.seen(); len(got) != 20 {
			t.Errorf("%d answers while one agent hangs", len(got))
		}
	})
}

// Runs of one agent follow each other, in the order of the messages; the mind
// reports overlapping calls.
func TestOneAgentOneRunAtATime(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.setPolicy(oneByOne)
		r.mind.hold("", 100*time.Millisecond)
		r.start()
		var want []string
		for i := range 20 {
			text := fmt.Sprint("m", i)
			r.say(text)
			want = append(want, "re: "+text)
			time.Sleep(30 * time.Millisecond)
		}
		after(5 * time.Second)
		r.wants(want...)
	})
}

// A channel with a new id keeps its agents and, where it was let in, its right
// to speak (ID-08).
func TestMovedChannel(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.access.Mode = "allowlist"
		r.access.Allow = []string{"chat:old"}
		r.start()
		group := func(id string) claybot.AgentMessage {
			m := msg(id, id)
			m.Context.Group = true
			return m
		}
		r.post(claybot.User("chat", "old", "ann"), group("a"))
		synctest.Wait()
		id := r.agent(claybot.User("chat", "old", "ann"))
		for range 2 {
			if err := r.system.Moved(r.Context(), "chat", "old", "new", claybot.Now()); err != nil {
				t.Fatal(err)
			}
		}
		r.restart()
		r.post(claybot.User("chat", "new", "ann"), group("b"))
		r.wants("re: a", "re: b")
		if got := r.agent(claybot.User("chat", "new", "ann")); got != id {
			t.Errorf("another agent: %s, was %s", got, id)
		}
		if got := r.directories(); len(got) != 1 {
			t.Errorf("agents %q", got)
		}
	})
}

// The state of an agent says where it is spoken to and what it used, over
// crashes too.
func TestStateOfAnAgent(t *testing.T) {
	steps := stepsUntil(t, "append history") // the answer of step 1
	bubble(t, func(r *rig) {
		r.line = platforms[0].line
		r.mind.plan("first", use("look"), llmtest.Say("one"))
		r.blowAfter = steps
		r.start()
		_ = r.system.Post(r.Context(), ann, msg("first", "first")) // dies
		synctest.Wait()
		r.crash()
		r.start()
		after(time.Minute)
		r.wants("one")
		agent, err := r.agents.Agent(r.Context(), r.agent(ann))
		if err != nil {
			t.Fatal(err)
		}
		s := agent.State
		if s.Routing == nil || *s.Routing != ann.Route() || s.LastUserAt == 0 || s.Context != 10 {
			t.Errorf("state %+v, routing %+v", s, s.Routing)
		}
		if want := (claybot.Usage{Input: 20, Output: 2, LLMCalls: 2, ToolCalls: 1}); s.Usage != want {
			t.Errorf("usage %+v, want %+v", s.Usage, want)
		}
		if run := r.receipt("first").Run; run.Usage != s.Usage {
			t.Errorf("the run used %+v", run.Usage)
		}
	})
}

// stepsUntil is how many steps a process takes up to the first one of a name.
func stepsUntil(t *testing.T, name string) (n int) {
	bubble(t, func(r *rig) {
		r.mind.plan("first", use("look"), llmtest.Say("one"))
		r.start()
		r.say("first")
		synctest.Wait()
		n = slices.Index(r.fuse.steps, name) + 1
		if n == 0 {
			t.Fatalf("no step %q in %q", name, r.fuse.steps)
		}
	})
	return n
}
