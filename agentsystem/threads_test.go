package agentsystem_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// A shelf has flows that take the messages which begin with their names.
type shelf map[string]*flows.Flow

func (s shelf) Engine(start claybot.FlowStart) string { return flow.NameOf(start.Name, "1") }
func (s shelf) Max(name string) int                   { return s[name].Concurrency.Max }
func (s shelf) Shapes() map[string]runs.Shape         { return nil }

func (s shelf) Take(to claybot.Descriptor, m claybot.AgentMessage) (claybot.Descriptor, claybot.AgentMessage, bool) {
	name, _, _ := strings.Cut(m.Text, " ")
	if s[name] == nil {
		return to, m, false
	}
	route, owner := m.ReplyRoute(to), m.Speaker(to)
	m.Type, m.Kind, m.Route, m.Alone = claybot.MessageSystem, claybot.KindTrigger, &route, true
	m.Flow = &claybot.FlowStart{Name: name, Connector: to.Connector, ChannelID: to.ChannelID}
	d := claybot.Descriptor{Type: claybot.AgentFlow, UID: string(m.ID), Owner: owner, Name: name}
	if c := s[name].Concurrency; c.Key != "" {
		d.UID, m.Flow.Busy = c.Key, c.Busy
	}
	return d, m, true
}

// shelve gives a rig the engine of flows, and these. A prompt that is {text} is the text of the trigger.
func shelve(r *rig, all shelf) {
	r.flows = all
	r.engines = map[string]runs.Engine{claybot.EngineFlow: flow.New(flow.Config{
		Flow: func(_ context.Context, name, _ string) (*flows.Flow, error) { return all[name], nil },
		Fill: func(t *runs.Turn, text string, names flow.Names) (any, error) {
			return strings.ReplaceAll(text, "{text}", t.Messages[0].Text), nil
		},
		Uses:   func(string) ([]flows.Use, error) { return nil, nil },
		Rules:  func(claybot.Agent) tools.Rules { return tools.Rules{} },
		Effect: func(claybot.Agent, string) tools.Effect { return tools.ReadOnly },
		Spawn: func(ctx context.Context, env tools.Env, tasks []tools.Subagent, how tools.Spawning) (tools.Result, error) {
			return r.system.Subagents.Spawn(ctx, env, tasks, how)
		},
		Send: func(ctx context.Context, t *runs.Turn, to claybot.Route, key, text string) error {
			return r.system.Output.Reply(ctx, t.Agent, t.Run.ID, to, key, text)
		},
		Notify: func(context.Context, claybot.Agent, string, func(texts.Voice) string) {},
	})}
}

// remembering is a flow of agents, one after another, each with a memory of a kind.
func remembering(name string, agents ...*flows.Agent) *flows.Flow {
	f := &flows.Flow{Name: name, Hash: "1", Owner: "chat/boss", Start: "n0"}
	for i, a := range agents {
		f.Nodes = append(f.Nodes, flows.Node{Name: fmt.Sprint("n", i), Kind: flows.KindAgent, Common: flows.Common{Next: fmt.Sprint("n", i+1), Tries: 1}, Spec: a})
	}
	f.Nodes[len(f.Nodes)-1].Next = flows.End
	return f
}

// saw are the texts of which a request of a model has the word, of the newest request with another one.
func (r *rig) saw(newest string, words ...string) (seen []string) {
	r.Helper()
	for _, x := range slices.Backward(r.mind.asked()) {
		if !strings.Contains(x.Messages[len(x.Messages)-1].Content, newest) {
			continue
		}
		for _, w := range words {
			if slices.ContainsFunc(x.Messages, func(m llm.Message) bool { return strings.Contains(m.Content, w) }) {
				seen = append(seen, w)
			}
		}
		return seen
	}
	r.Errorf("nothing was asked of %q", newest)
	return nil
}

// An agent of a workflow remembers what was said before to the same workflow by the same person in the
// same chat, also after a restart, and nothing else: no other person, chat or workflow, and no node with a
// memory of its own.
func TestFlowThreads(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		on := func() *flows.Agent { return &flows.Agent{Prompt: "{text}", Memory: flows.MemoryOn} }
		own := &flows.Agent{Prompt: "own {text}", Memory: flows.MemoryOn, Thread: flows.ThreadNode}
		shelve(r, shelf{
			"memo":  remembering("memo", on(), &flows.Agent{Prompt: "more {text}", Memory: flows.MemoryOn, System: "Be short."}, own),
			"diary": remembering("diary", on()), "plain": remembering("plain", &flows.Agent{Prompt: "{text}"}),
		})
		r.start()
		room, bobs := claybot.User("chat", "room", "ann"), claybot.User("chat", "room", "bob")
		from := func(d claybot.Descriptor, text string) {
			m := msg(text, text)
			m.From = claybot.Sender{UserID: d.UserID}
			r.post(d, m)
			after(time.Minute)
		}
		from(ann, "memo alpha")
		from(room, "memo bravo")
		from(bobs, "memo charlie")
		from(ann, "diary delta")
		from(claybot.User("chat", "a:b%", "ann"), "diary hotel")
		from(ann, "plain echo")
		from(ann, "plain foxtrot")
		r.restart()
		from(ann, "memo golf")
		words := []string{"alpha", "bravo", "charlie", "delta", "echo"}
		for newest, want := range map[string]string{
			"more memo alpha": "[alpha]", "more memo bravo": "[bravo]", "more memo charlie": "[charlie]", "diary delta": "[delta]", "diary hotel": "[]", "plain foxtrot": "[]",
			"more memo golf": "[alpha]", "own memo golf": "[alpha]",
		} {
			if got := fmt.Sprint(r.saw(newest, words...)); got != want {
				t.Errorf("%s: it saw %s, want %s", newest, got, want)
			}
		}
		if got := r.saw("own memo golf", "more memo alpha", "own memo alpha"); !slices.Equal(got, []string{"own memo alpha"}) {
			t.Errorf("a node with a memory of its own saw %q", got)
		}
		var keys []string
		threads := r.threads("chat/ann")
		for _, e := range append(threads, r.threads("chat/bob")...) {
			keys = append(keys, e.Descriptor.UID)
		}
		slices.Sort(keys)
		want := []string{
			"thread:chat/ann:chat/a%3Ab%25:diary", "thread:chat/ann:chat/dm-ann:diary", "thread:chat/ann:chat/dm-ann:memo", "thread:chat/ann:chat/dm-ann:memo:n2",
			"thread:chat/ann:chat/room:memo", "thread:chat/ann:chat/room:memo:n2", "thread:chat/bob:chat/room:memo", "thread:chat/bob:chat/room:memo:n2",
		}
		if !slices.Equal(keys, want) {
			t.Errorf("threads %q", keys)
		}
	})
}

// threads are those of a person.
func (r *rig) threads(owner string) (all []storage.IndexEntry) {
	r.Helper()
	entries, err := r.db.OwnedAgents(r.Context(), owner)
	if err != nil {
		r.Fatal(err)
	}
	return slices.DeleteFunc(entries, func(e storage.IndexEntry) bool { return !e.Descriptor.IsThread() })
}

// A thread works for one run at a time. A run that ends early takes its own task along, at work or not,
// and leaves those of the others.
func TestFlowThreadTakesTurns(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		held := make(chan struct{})
		r.mind.before = func(ctx context.Context, x llm.Request) error {
			if strings.Contains(x.Messages[len(x.Messages)-1].Content, "memo one") {
				select {
				case <-held:
				case <-ctx.Done():
				}
			}
			return nil
		}
		shelve(r, shelf{"memo": remembering("memo", &flows.Agent{Prompt: "{text}", Memory: flows.MemoryOn})})
		r.start()
		for _, text := range []string{"memo one", "memo two", "memo three"} {
			r.say(text)
			after(time.Second)
		}
		if n := len(r.mind.asked()); n != 1 {
			t.Errorf("%d at work, want one at a time", n)
		}
		cancel := func(id string) {
			if _, err := r.system.Control.CancelRun(r.Context(), r.ranID(claybot.MessageID(id)), "operator"); err != nil {
				t.Fatal(err)
			}
			after(time.Second)
		}
		cancel("memo two") // it waits for its turn
		if n := len(r.mind.asked()); n != 1 {
			t.Errorf("%d at work after the waiting one was canceled", n)
		}
		cancel("memo one") // it is at work
		after(time.Minute)
		if got := r.saw("memo three", "memo one", "memo two"); !slices.Equal(got, []string{"memo one"}) {
			t.Errorf("the third saw %q", got)
		}
		for id, want := range map[string]claybot.RunState{"memo one": claybot.RunCanceled, "memo two": claybot.RunCanceled, "memo three": claybot.RunSucceeded} {
			if got := r.receipt(claybot.MessageID(id)).Run.State; got != want {
				t.Errorf("%s: %s, want %s", id, got, want)
			}
		}
		close(held)
	})
}

// However often the process dies, each task is done once and remembered once, in its order.
func TestCrashOfFlowThreads(t *testing.T) {
	live := func(t *testing.T, k int) (steps int) {
		bubble(t, func(r *rig) {
			r.line, r.blowAfter = platforms[0].line, k
			r.mind.plan("memo first", llmtest.Say("heard one"))
			r.mind.plan("memo second", llmtest.Say("heard two"))
			shelve(r, shelf{"memo": remembering("memo", &flows.Agent{Prompt: "{text}", Memory: flows.MemoryOn}, &flows.Agent{Prompt: "and then", Memory: flows.MemoryOn})})
			r.start()
			tell := func() {
				r.source("memo first")
				after(time.Minute)
				r.source("memo second")
				after(time.Minute)
			}
			tell()
			steps = len(r.fuse.steps)
			if r.fuse.dead() {
				r.crash()
				r.start()
				tell()
				after(time.Hour)
			}
			all := r.threads("chat/ann")
			if len(all) != 1 {
				t.Fatalf("threads %v", all)
			}
			records, err := r.agents.Records(r.Context(), all[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, rec := range records {
				if rec.Type == claybot.RecordSystem || rec.Type == claybot.RecordAssistant {
					said = append(said, rec.Text)
				}
			}
			want := []string{"memo first", "heard one", "and then", "re: and then", "memo second", "heard two", "and then", "re: and then"}
			if !slices.Equal(said, want) {
				t.Errorf("it remembers %q", said)
			}
		})
		return steps
	}
	steps, every := live(t, -1), 1
	if raced || testing.Short() {
		every = 3
	}
	for k := 0; k < steps; k += every {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			live(t, k)
		})
	}
}

// What an agent of a workflow says is not shortened as what a model reads of a subagent.
func TestFlowOfLongOutput(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		long := strings.Repeat("x", 50<<10)
		r.mind.plan("plain long", llmtest.Say(long))
		shelve(r, shelf{"plain": remembering("plain", &flows.Agent{Prompt: "{text}"})})
		r.start()
		r.say("plain long")
		after(time.Minute)
		if run := r.receipt("plain long").Run; run == nil || !strings.Contains(string(run.Result), long) {
			t.Errorf("%+v", run)
		}
	})
}
