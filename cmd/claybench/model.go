package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// callsAtOnce is how many calls the emulated model makes in one answer.
const callsAtOnce = 50

// What the emulated model reads: orders of people, tasks of background agents,
// and what is heard from them.
var (
	orderForm  = regexp.MustCompile(`\b(start|spawn|burst)=(\S+)`)
	taskForm   = regexp.MustCompile(`(?m)^work (\S+):(ok|bad)$`)
	failedForm = regexp.MustCompile(`^The subagent "([^"]+)" \(id \S+\) failed in run `)
	didForm    = regexp.MustCompile(`^did (\S+)$`)
	askForm    = regexp.MustCompile(`\bask=(\S+)`)
)

// A job is the work of one background agent. The model refuses one that fails.
type job struct {
	name  string
	fails bool
}

func (j job) String() string {
	if j.fails {
		return j.name + ":bad"
	}
	return j.name + ":ok"
}

// task is the text that the background agent gets.
func (j job) task() string { return "work " + j.String() }

// done is what an agent says whose work succeeded.
func (j job) done() string { return "did " + j.name }

// An order is what a person asks the emulated model to do besides answering,
// written as
//
//	start=NAME:ok|bad       a subagent in the background that reports
//	spawn=NAME:ok|bad,…     subagents that are waited for
//	burst=NAME:N            N subagents in the background, each tenth of which fails
//
// Apart from these, ask=NAME makes it look at the clock, for which the fault lab's agents
// need an approval.
type order struct {
	awaited bool // the jobs are for one spawn_and_wait
	report  bool
	jobs    []job
}

// orders reads the orders in a text; what is none is left out.
func orders(text string) []order {
	var all []order
	for _, m := range orderForm.FindAllStringSubmatch(text, -1) {
		if name, count, _ := strings.Cut(m[2], ":"); m[1] == "burst" {
			n, err := strconv.Atoi(count)
			for i := range n {
				if err == nil {
					all = append(all, order{jobs: []job{{fmt.Sprintf("%s.%d", name, i), i%10 == 9}}})
				}
			}
			continue
		}
		o := order{awaited: m[1] == "spawn", report: m[1] == "start"}
		for _, s := range strings.Split(m[2], ",") {
			name, fate, _ := strings.Cut(s, ":")
			o.jobs = append(o.jobs, job{name, fate == "bad"})
		}
		all = append(all, o)
	}
	return all
}

// call is the tool call that carries an order out. Its id is made of the name
// of the first job, which exists once.
func (o order) call() claybot.ToolCall {
	type task struct {
		Task   string `json:"task"`
		Name   string `json:"name"`
		Report bool   `json:"report,omitempty"`
	}
	tasks := make([]task, len(o.jobs))
	for i, j := range o.jobs {
		tasks[i] = task{j.task(), j.name, o.report}
	}
	name, args := "start_subagent", any(tasks[0])
	if o.awaited {
		name, args = "spawn_and_wait", map[string]any{"tasks": tasks}
	}
	b, _ := json.Marshal(args) // strings always marshal
	return claybot.ToolCall{ID: "call." + o.jobs[0].name, Name: name, Args: string(b)}
}

// An actor is the emulated model of agents that have others work for them.
type actor struct {
	thought time.Duration // the longest that an answer to a person takes
	least   time.Duration // the shortest that the work of a background agent takes
	most    time.Duration // the longest
	// begun and refused are told, without waiting, when the work of a subagent
	// begins, and when that of one ends that fails.
	begun, refused chan time.Time
	moments        moments
	memory         memory

	mu     sync.Mutex
	worked map[string]bool // names of the jobs that were answered
}

func newActor(thought, least, most time.Duration) *actor {
	return &actor{
		thought: thought, least: least, most: most, worked: make(map[string]bool),
		begun: make(chan time.Time, 1), refused: make(chan time.Time, 1),
	}
}

// reply answers one request by what it says.
func (a *actor) reply(r openaitest.Request) openaitest.Reply {
	a.memory.look(r.Messages)
	if len(r.Messages) > 0 {
		text := llm.Unwrap(r.Messages[0].Content)
		if m := taskForm.FindStringSubmatch(text); m != nil {
			return a.work(job{m[1], m[2] == "bad"}, strings.TrimSpace(text) == m[0])
		}
	}
	s := readScene(r.Messages)
	now, delay := time.Now(), upTo(a.thought)
	if s.hearsFailure() {
		a.moments.note(telling, now, delay+after)
	}
	if calls := s.open(callsAtOnce); len(calls) > 0 {
		a.moments.note(starting, now.Add(delay), after)
		return openaitest.Reply{Calls: calls, Delay: delay}
	}
	return openaitest.Reply{Text: s.text(), Delay: delay}
}

// work answers a background agent. Others than subagents have more to read than
// the task alone.
func (a *actor) work(j job, subagent bool) openaitest.Reply {
	a.mu.Lock()
	a.worked[j.name] = true
	a.mu.Unlock()
	now, delay := time.Now(), a.least+upTo(a.most-a.least)
	if subagent {
		a.moments.note(working, now, delay)
		tell(a.begun, now)
	}
	if !j.fails {
		return openaitest.Reply{Text: j.done(), Delay: delay}
	}
	if subagent {
		a.moments.note(failing, now.Add(delay), after)
		tell(a.refused, now.Add(delay))
	}
	return openaitest.Reply{Fault: openaitest.FaultBadRequest, Delay: delay}
}

// tell sends when a receiver can take it.
func tell(to chan<- time.Time, at time.Time) {
	select {
	case to <- at:
	default:
	}
}

// count is how many jobs the model was asked about.
func (a *actor) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.worked)
}

func upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d)
}

// A scene is what happened since the model's last answer without calls.
type scene struct {
	markers []string
	orders  []order
	asks    []string          // names
	results map[string]string // of the calls made, by id; empty while there is none
	heard   []string
}

func readScene(messages []llm.Message) scene {
	s := scene{results: make(map[string]string)}
	for _, m := range messages {
		switch {
		case m.Role == llm.RoleAssistant && len(m.Calls) == 0:
			s = scene{results: make(map[string]string)}
		case m.Role == llm.RoleAssistant:
			for _, c := range m.Calls {
				s.results[c.ID] = ""
			}
		case m.Role == llm.RoleTool:
			s.results[m.CallID] = m.Content
		case strings.HasPrefix(m.Content, "<system_message"):
			s.listen(llm.Unwrap(m.Content))
		case m.Role == llm.RoleUser:
			text := llm.Unwrap(m.Content)
			s.markers = append(s.markers, marker.FindAllString(text, -1)...)
			s.orders = append(s.orders, orders(text)...)
			for _, m := range askForm.FindAllStringSubmatch(text, -1) {
				s.asks = append(s.asks, m[1])
			}
		}
	}
	return s
}

// listen notes what another agent says, or what is said of it.
func (s *scene) listen(text string) {
	if m := failedForm.FindStringSubmatch(text); m != nil {
		s.heard = append(s.heard, m[1]+" failed")
	} else if m := didForm.FindStringSubmatch(text); m != nil {
		s.heard = append(s.heard, m[1]+" ended")
	}
}

// hearsFailure reports whether the scene has a notice of a failed subagent.
func (s scene) hearsFailure() bool {
	return slices.ContainsFunc(s.heard, func(h string) bool { return strings.HasSuffix(h, " failed") })
}

// open are up to limit calls for the orders that have none yet.
func (s scene) open(limit int) []claybot.ToolCall {
	var calls []claybot.ToolCall
	for _, o := range s.orders {
		c := o.call()
		if _, made := s.results[c.ID]; !made && len(calls) < limit {
			calls = append(calls, c)
		}
	}
	for _, name := range s.asks {
		if _, made := s.results["ask."+name]; !made && len(calls) < limit {
			calls = append(calls, claybot.ToolCall{ID: "ask." + name, Name: "current_time", Args: "{}"})
		}
	}
	return calls
}

// text is the answer that ends the scene: all markers, and what came of the
// orders. A job that was waited for stands there as NAME=ok or NAME=failed.
func (s scene) text() string {
	parts := []string{strings.TrimSpace("re " + strings.Join(s.markers, " "))}
	started := 0
	for _, o := range s.orders {
		result := s.results[o.call().ID]
		var answers []claybot.Result
		switch {
		case !o.awaited && strings.HasPrefix(result, "agent "):
			started++
		case !o.awaited || json.Unmarshal([]byte(result), &answers) != nil || len(answers) != len(o.jobs):
			parts = append(parts, fmt.Sprintf("%s was refused: %s", o.jobs[0].name, result))
		default:
			for i, j := range o.jobs {
				parts = append(parts, j.name+"="+fate(answers[i].OK && answers[i].Output == j.done()))
			}
		}
	}
	if started > 0 {
		parts = append(parts, fmt.Sprintf("started %d", started))
	}
	for _, h := range s.heard {
		parts = append(parts, "heard that "+h)
	}
	return strings.Join(parts, ", ")
}

func fate(ok bool) string {
	if ok {
		return "ok"
	}
	return "failed"
}
