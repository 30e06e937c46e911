package agentsystem_test

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/tools"
)

// A mind is a model that answers by what the chat says, so that it says the
// same to a process that asks again after a crash. It notices calls of one
// agent that overlap, and requests that no provider would take.
type mind struct {
	t  testing.TB
	mu sync.Mutex
	// plans are the answers to a user message that contains the key, one for
	// each step. Without one it echoes.
	plans    map[string][]llmtest.Reply
	before   func(ctx context.Context, r llm.Request) error // called first; may block
	pace     time.Duration                                  // between the first half of a text and the second
	requests []llm.Request
	busy     map[claybot.AgentID]int
}

func newMind(t testing.TB) *mind {
	return &mind{t: t, plans: make(map[string][]llmtest.Reply), busy: make(map[claybot.AgentID]int)}
}

func (m *mind) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	m.mu.Lock()
	m.requests = append(m.requests, r.Keep())
	if m.busy[r.Agent]++; m.busy[r.Agent] > 1 {
		m.t.Errorf("two model calls of agent %s at the same time", r.Agent)
	}
	before := m.before
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.busy[r.Agent]--
	}()
	if err := llm.Check(r.Messages); err != nil {
		m.t.Errorf("invalid request: %v", err)
	}
	if before != nil {
		if err := before(ctx, r); err != nil {
			return llm.Response{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return llm.Response{}, &llm.Error{Class: llm.Transient, Text: err.Error()}
	}
	reply := m.reply(r)
	if reply.Err != nil {
		return llm.Response{}, reply.Err
	}
	if half := len(reply.Text) / 2; r.Delta != nil && reply.Text != "" {
		r.Delta(0, reply.Text[:half])
		if err := rest(ctx, m.pace); err != nil {
			return llm.Response{}, err
		}
		r.Delta(half, reply.Text[half:])
		if err := rest(ctx, m.pace); err != nil {
			return llm.Response{}, err
		}
	}
	reply.Usage = claybot.Usage{Input: 10, Output: 1}
	return reply.Response, nil
}

// reply follows the plan of the last user message that has one.
func (m *mind) reply(r llm.Request) llmtest.Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	step := 0
	for i := len(r.Messages) - 1; i >= 0; i-- {
		switch msg := r.Messages[i]; msg.Role {
		case llm.RoleAssistant:
			step++
		case llm.RoleUser:
			if plan := m.planOf(llm.Unwrap(msg.Content)); step < len(plan) {
				return plan[step]
			}
			if step == 0 {
				return llmtest.Say("re: " + said(msg.Content))
			}
		}
	}
	return llmtest.Say("nothing")
}

// planOf is the plan whose key is in a text: of several the longest. Called under the
// lock.
func (m *mind) planOf(text string) (plan []llmtest.Reply) {
	text = withoutIDs(text)
	best := ""
	for key, p := range m.plans {
		if len(key) > len(best) && strings.Contains(text, key) {
			best, plan = key, p
		}
	}
	return plan
}

// An id is made of random letters, which may spell any short word.
var idForm = regexp.MustCompile(`\b[a-z][a-z0-9]{23,31}\b`)

func withoutIDs(text string) string { return idForm.ReplaceAllString(text, "") }

// said is what a person wrote, without its wrapper.
func said(content string) string {
	if _, after, ok := strings.Cut(content, "</earlier_messages>\n"); ok {
		content = ">" + after
	}
	_, text, ok := strings.Cut(content, ">")
	if !ok {
		return content
	}
	text, _, _ = strings.Cut(text, "<")
	return strings.TrimSpace(text)
}

func (m *mind) plan(key string, replies ...llmtest.Reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plans[key] = replies
}

func (m *mind) asked() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]llm.Request(nil), m.requests...)
}

// hold makes model calls whose newest user message contains key take so long,
// or until they are canceled.
func (m *mind) hold(key string, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before = func(ctx context.Context, r llm.Request) error {
		if !strings.Contains(withoutIDs(r.Messages[len(r.Messages)-1].Content), key) {
			return nil
		}
		return rest(ctx, d)
	}
}

// rest waits for d or the end of ctx.
func rest(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return &llm.Error{Class: llm.Transient, Text: ctx.Err().Error()}
	case <-time.After(d):
		return nil
	}
}

// use calls tools, one after another in one step.
func use(names ...string) llmtest.Reply {
	var calls []claybot.ToolCall
	for _, n := range names {
		calls = append(calls, claybot.ToolCall{Name: n, Args: "{}"})
	}
	return llmtest.Use(calls...)
}

// A bench is the tools: pay acts once, look reads, work takes a second.
type bench struct {
	mu    sync.Mutex
	acted map[string]int            // by tool, run and call
	work  func(ctx context.Context) // what the tool work does
	fuse  func() *fuse              // of the process at work
}

func (b *bench) set(t testing.TB, more ...tools.Tool) *tools.Set {
	t.Helper()
	tool := func(name string, e tools.Effect) tools.Tool {
		spec := tools.Spec{Tool: llm.Tool{Name: name, Description: name}, Effect: e, Timeout: time.Hour}
		return tools.New(spec, func(ctx context.Context, env tools.Env, _ struct{}) (tools.Result, error) {
			err := b.fuse().step("tool "+name, func() error {
				b.mu.Lock()
				b.acted[name+" "+string(env.Run)+" "+env.CallID]++
				work := b.work
				b.mu.Unlock()
				if name == "work" && work != nil {
					work(ctx)
				}
				return nil
			})
			return tools.Result{Text: name + " done"}, err
		})
	}
	more = append(more, tool("pay", tools.Once), tool("look", tools.ReadOnly), tool("work", tools.Idempotent))
	s, err := tools.NewSet(more...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// times are how often the calls of a tool acted.
func (b *bench) times(name string) (counts []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, n := range b.acted {
		if strings.HasPrefix(key, name+" ") {
			counts = append(counts, n)
		}
	}
	return counts
}

// restALittle is a second of work.
func restALittle(ctx context.Context) { _ = rest(ctx, time.Second) } // an end of ctx ends the work

// A model that is tested with must do the same each time: random letters of an id are
// no word, and of two plans the one with the longer key is meant.
func TestMindTakesNoIDForAWord(t *testing.T) {
	t.Parallel()
	m := newMind(t)
	m.plan("dig", llmtest.Say("digs"))
	m.plan("failed in run", llmtest.Say("heard"))
	for text, want := range map[string]string{
		"dig\n": "digs",
		`The subagent "X" (id kxdig0123456789abcdefghi) failed in run cc2digjqo0008bmc7d1jzbqb8: refused`: "heard",
		"to dig failed in run 1":      "heard",
		"id kxdig0123456789abcdefghi": "",
	} {
		got := ""
		if plan := m.planOf(text); len(plan) > 0 {
			got = plan[0].Text
		}
		if got != want {
			t.Errorf("%q is answered with %q, want %q", text, got, want)
		}
	}
}
