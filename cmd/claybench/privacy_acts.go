package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// actForm is what people tell the model to do. allKnown stands there for every secret that
// the model knows.
var actForm = regexp.MustCompile(`(?s)\bdo ([a-z_]+) (\{.*\})`)

const (
	allKnown  = "ALL-THAT-YOU-KNOW"
	knownMost = 25 // secrets in one text

	answeredMost = 8 // of them, from messages of people
)

// gossip is a model that calls whatever it is told to, and puts every secret that it knows
// into whatever it says.
func (r *leakRig) gossip(q openaitest.Request) openaitest.Reply {
	all, told := q.System, ""
	for _, m := range q.Messages {
		all += "\n" + m.Content
		if m.Role == llm.RoleUser {
			told += "\n" + m.Content
		}
	}
	if by, ok := r.readers(claybot.AgentID(q.Agent)); ok {
		r.judge.see(all, by, "the prompt of an agent of "+string(by))
	}
	known := knownIn(told, answeredMost) + " " + knownIn(all, knownMost)
	last := q.Messages[len(q.Messages)-1]
	if m := actForm.FindStringSubmatch(llm.Unwrap(last.Content)); m != nil && last.Role == llm.RoleUser {
		args := strings.ReplaceAll(m[2], allKnown, known)
		if json.Valid([]byte(args)) {
			return openaitest.Reply{Text: "I know " + known, Calls: []claybot.ToolCall{{ID: fmt.Sprint("call.", q.N), Name: m[1], Args: args}}}
		}
	}
	return openaitest.Reply{Text: "I know " + known}
}

// knownIn are the newest secrets of a text, each once.
func knownIn(text string, most int) string {
	var known []string
	all := secretForm.FindAllString(text, -1)
	for _, s := range slices.Backward(all) {
		if !slices.Contains(known, s) {
			known = append(known, s)
		}
		if len(known) == most {
			break
		}
	}
	slices.Reverse(known)
	return strings.Join(known, " ")
}

// An author writes what a person tells an agent, or one agent another. depth is how often
// what it writes is part of other orders.
type author struct {
	rng   *rand.Rand
	ids   []claybot.AgentID // agents of conversations
	count func(tool string)
	depth int
}

// A deed is a call that a person orders.
type deed struct {
	tool string
	args func(a author) map[string]any
}

// deeds returns the ways in and out that people have in chats. They are made anew, because
// some contain others.
func deeds() []deed {
	return []deed{
		{"list_agents", func(author) map[string]any { return map[string]any{} }},
		{"read_agent_history", func(a author) map[string]any { return map[string]any{"id": a.agent()} }},
		{"search_history", func(author) map[string]any { return map[string]any{"query": "canary"} }},
		{"ask_agent", func(a author) map[string]any {
			return map[string]any{"to": a.agent(), "text": a.order(), "timeout": "5s"}
		}},
		{"send_agent_message", func(a author) map[string]any {
			return map[string]any{"to": a.agent(), "text": a.order(), "silent": a.rng.IntN(4) == 0}
		}},
		{"send_message", func(a author) map[string]any {
			return map[string]any{"to": oneOf(a.rng, leakChats...), "text": allKnown}
		}},
		{"start_subagent", func(a author) map[string]any {
			return map[string]any{"task": a.order(), "report": a.rng.IntN(2) == 0}
		}},
		{"spawn_and_wait", func(a author) map[string]any {
			task := map[string]any{"task": a.order(), "timeout": "5s"}
			if a.rng.IntN(2) == 0 {
				task["agent"] = a.agent()
			}
			return map[string]any{"tasks": []any{task}}
		}},
		{"remind_me", func(author) map[string]any { return map[string]any{"note": allKnown, "in": "1s"} }},
		{"cron_add", func(a author) map[string]any {
			return map[string]any{"name": "later", "prompt": a.order(), "at": time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)}
		}},
		{"cron_list", func(author) map[string]any { return map[string]any{} }},
		{"memory_write", func(a author) map[string]any {
			return map[string]any{"path": a.path(), "text": allKnown, "scope": a.scope()}
		}},
		{"memory_list", func(a author) map[string]any { return map[string]any{"scope": a.scope()} }},
		{"memory_read", func(a author) map[string]any { return map[string]any{"path": a.path(), "scope": a.scope()} }},
		{"memory_search", func(a author) map[string]any { return map[string]any{"query": "canary", "scope": a.scope()} }},
		{"memory_search", func(author) map[string]any { return map[string]any{"query": "canary"} }},
		{"write_file", func(a author) map[string]any { return map[string]any{"path": a.path(), "text": allKnown} }},
		{"read_file", func(a author) map[string]any { return map[string]any{"path": a.path()} }},
		{"grep", func(author) map[string]any { return map[string]any{"pattern": "canary"} }},
	}
}

func oneOf[T any](rng *rand.Rand, all ...T) T { return all[rng.IntN(len(all))] }

func (a author) agent() claybot.AgentID { return oneOf(a.rng, a.ids...) }
func (a author) scope() string          { return oneOf(a.rng, "agent", "owner", "owner", "global") }
func (a author) path() string           { return oneOf(a.rng, "a.md", "b/c.md") }

// deepest is how often an order may be part of another one.
const deepest = 2

// order is everything that its reader knows and, mostly, a call.
func (a author) order() string {
	if len(a.ids) == 0 || a.depth > deepest || a.rng.IntN(5) == 0 {
		return allKnown
	}
	a.depth++
	x := oneOf(a.rng, deeds()...)
	b, err := json.Marshal(x.args(a))
	if err != nil {
		return allKnown
	}
	a.count(x.tool)
	return allKnown + " do " + x.tool + " " + string(b)
}
