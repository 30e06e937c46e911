package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/webchat"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/demo"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/ask"
	"github.com/claybot/claybot/tools/clock"
	"github.com/claybot/claybot/tools/messaging"
	"github.com/claybot/claybot/tools/todos"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/api"
	"github.com/claybot/claybot/web/dashboard"
	"github.com/claybot/claybot/web/webtest"
)

// A rig is a daemon on real stores with the web chat, the API and the pages,
// and a model that follows plans. Fields are to be set before start.
type rig struct {
	*testing.T
	mind *mind
	// also are further connectors, tasks and heartbeats what the pages show of them.
	also       []connectors.Connector
	tasks      web.Tasks
	heartbeats web.Heartbeats
	addr       string // to listen on; a free port by default
	// engines are further ones, by name; engine is that of agents that choose
	// none, react by default.
	engines map[string]runs.Engine
	engine  string
	// desk may replace contracts of what is behind the pages.
	desk func(*web.Backend)
	// workflows are started by messages; nil: there are none.
	workflows agentsystem.Flows
	// bare: without tooling and budgets.
	bare bool

	dir    string
	db     *sqlite.DB
	agents *files.Store
	set    *tools.Set
	shop   *webtest.Toolbench // what agents work with
	hub    *runs.Hub
	system *agentsystem.AgentSystem
	chat   *webchat.Chat
	srv    *web.Server
	links  chan string
	log    *strings.Builder
	logMu  sync.Mutex
	stop   func()
}

// newRig makes a rig that is not started.
func newRig(t *testing.T) *rig {
	r := &rig{T: t, mind: &mind{plans: make(map[string]plan)}, dir: folders.Data(t), addr: "127.0.0.1:0", stop: func() {}}
	// However often it is started, it stops after everything that was made with it: what a
	// browser still asks for is answered until the browser has been judged.
	t.Cleanup(func() { r.stop() })
	return r
}

// lasts gives the rig an address for being started again at its port: on Linux one
// that no other program uses, which could take the port meanwhile.
func (r *rig) lasts() {
	if runtime.GOOS == "linux" {
		r.addr = "127.0.0.2:0"
	}
}

// startRig makes a rig and starts it.
func startRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.start()
	return r
}

// Write keeps the log for the message of a failed test.
func (r *rig) Write(b []byte) (int, error) {
	r.logMu.Lock()
	defer r.logMu.Unlock()
	return r.log.Write(b)
}

func (r *rig) logged() string {
	r.logMu.Lock()
	defer r.logMu.Unlock()
	return r.log.String()
}

// start opens the stores and runs everything until the test ends.
func (r *rig) start() {
	r.Helper()
	ctx := context.WithoutCancel(r.Context())
	r.hub, r.links, r.log = runs.NewHub(), make(chan string, 10), new(strings.Builder)
	log := slog.New(slog.NewTextHandler(r, nil))
	r.db, r.agents = webtest.OpenStores(ctx, r, r.dir, r.hub, nil)
	r.system = agentsystem.New(r.systemConfig(log))
	set, err := tools.NewSet(slices.Concat(clock.Tools(), ask.Tools(r.system.Questions.Asker), messaging.Tools(r.system.Subagents, r.system.Subagents.Directory, r.system.Subagents.Reminders),
		todos.Tools(r.db, r.system.Output, func(tools.Env) bool { return true }))...)
	if err != nil {
		r.Fatal(err)
	}
	r.set, r.shop = set, webtest.NewToolbench(r.db, r.agents, set, filepath.Join(r.dir, "skills"))
	r.system.Handle("react", &react.Loop{
		Model: func(claybot.Agent) llm.Model { return r.mind },
		Tools: func(a claybot.Agent) *tools.Set { return set.Only(r.system.Profiles.OwnSettings(a.ID).Tools) },
	})
	for name, engine := range r.engines {
		r.system.Handle(name, engine)
	}
	r.chat = webchat.New(webchat.Config{HTML: true, Log: log})
	r.srv, err = web.New(web.Config{
		Addr: r.addr, Dir: r.dir, Tree: storage.MirrorAlone(files.OpenNamed(r.dir, web.Names(), web.Load(log))), Log: log, Ready: func() (bool, web.Problem) { ok, why := r.system.Overview.Ready(); return ok, web.Problem{Message: why} }, Routes: r.routes(log),
		Announce: func(l web.LoginLink) { r.links <- l.URL },
	})
	if err != nil {
		r.Fatal(err)
	}
	r.run(ctx)
}

func (r *rig) systemConfig(log *slog.Logger) agentsystem.Config {
	return agentsystem.Config{
		Stores: webtest.StoresOf(r.db, r.agents),
		Log:    log, Members: cluster.Alone(storage.Member{ID: "rig", Name: "rig", Version: "test"}), Version: "test", Hub: r.hub, Limits: agentsystem.Limits{Grace: time.Millisecond},
		PeopleSettings: agentsystem.PeopleSettings{
			Admission: func() people.Access {
				return people.Access{Mode: people.AccessPairing, Trusted: []string{"web"}}
			},
		},
		Settings: agentsystem.Settings{
			Profile: func(claybot.Descriptor) profiles.Profile {
				return profiles.Profile{Name: "plain", Engine: r.engine, Model: "demo", Prompt: "You are a test.", MaxSteps: 20}
			},
			Flows:  r.workflows,
			Models: func(claybot.Agent) []string { return []string{"demo", "second"} },
			Tools:  func(claybot.Agent) []string { return []string{"ask_user", "current_time", "wait"} },
		},
	}
}

func (r *rig) routes(log *slog.Logger) []web.Route {
	d := webtest.NewSystem(r.system).Backend()
	if r.desk != nil {
		r.desk(&d)
	}
	chat := r.chat.Handler(webtest.NewSystem(r.system), webtest.NewSystem(r.system), web.User)
	all := []web.Route{
		{Pattern: "/chat/", Scope: web.Operate, Handler: chat},
		{Pattern: "POST /chat/files", Scope: web.Operate, Handler: http.StripPrefix("/chat", chat), Raw: true, Body: webchat.MaxUpload + 1},
	}
	all = append(all, api.Routes(api.Config{Backend: d, Usage: r.db, Tasks: r.tasks, Heartbeats: r.heartbeats, Log: log, Version: "test"})...)
	cfg := dashboard.Config{Backend: d, Usage: r.db, Tasks: r.tasks, Heartbeats: r.heartbeats, Log: log, Version: "test"}
	if !r.bare {
		cfg.Tooling, cfg.Budgets = r.shop.Tooling(), r.db
	}
	return append(all, dashboard.Routes(cfg)...)
}

// run works until stop, or the end of the test.
func (r *rig) run(ctx context.Context) {
	r.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.system.Run(ctx, append([]connectors.Connector{r.chat}, r.also...)...) }) // ends with ctx
	wg.Go(func() {
		if err := r.srv.Run(ctx); ctx.Err() == nil {
			r.Errorf("the server ended early: %v", err)
		}
	})
	r.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		for _, c := range []io.Closer{r.agents, r.db} {
			if err := c.Close(); err != nil {
				r.Error(err)
			}
		}
	})
	select {
	case <-r.srv.Up():
	case <-time.After(time.Minute):
		r.Fatal("the server did not come up")
	}
	r.eventually("the system is ready", func() bool { ok, _ := r.system.Overview.Ready(); return ok })
}

// eventually waits until something holds. Its limit is for a broken test, not
// for a slow machine.
func (r *rig) eventually(what string, holds func() bool) {
	r.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			r.Fatalf("%s: not within a minute; log:\n%s", what, r.logged())
		}
	}
}

// main is the first conversation of the page.
var main = claybot.User("web", "main", web.Operator)

// say posts a message of the owner and returns its id.
func (r *rig) say(text string) claybot.MessageID {
	r.Helper()
	id := claybot.MessageID("web/main/" + string(claybot.NewID()))
	r.post(main, claybot.AgentMessage{ID: id, Type: claybot.MessageUser, Text: text, FirstHand: true, From: claybot.Sender{UserID: web.Operator}})
	return id
}

func (r *rig) post(d claybot.Descriptor, m claybot.AgentMessage) {
	r.Helper()
	if m.At == 0 {
		m.At = claybot.Now()
	}
	if err := r.system.Post(r.Context(), d, m); err != nil {
		r.Fatal(err)
	}
}

// agent is the id of the agent of d.
func (r *rig) agent(d claybot.Descriptor) claybot.AgentID {
	r.Helper()
	id, err := r.db.IndexedAgent(r.Context(), d)
	if err != nil {
		r.Fatal(err)
	}
	return id
}

// ran waits until the message with that id is in a run of that state.
func (r *rig) ran(id claybot.MessageID, state claybot.RunState) claybot.Run {
	r.Helper()
	var run claybot.Run
	r.eventually(fmt.Sprint("a run of ", id, " is ", state), func() bool {
		rec, err := r.db.Receipt(r.Context(), id)
		if err != nil || rec.Run == nil {
			return false
		}
		run = *rec.Run
		return run.State == state
	})
	return run
}

// An answer is a response that was read.
type answer struct {
	code int
	head http.Header
	body string
}

// A visitor is a browser without a screen that is logged in.
type visitor struct {
	*rig
	hc *http.Client
}

// visitor logs in by a link.
func (r *rig) visitor() *visitor {
	r.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		r.Fatal(err)
	}
	tr := &http.Transport{}
	r.Cleanup(tr.CloseIdleConnections)
	v := &visitor{r, &http.Client{Jar: jar, Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	link, err := url.Parse(r.srv.NewLoginLink().URL)
	if err != nil {
		r.Fatal(err)
	}
	if got := v.send(http.MethodPost, "/login", "application/json", `{"token":"`+link.Query().Get("token")+`"}`); got.code != http.StatusNoContent {
		r.Fatalf("login = %d %s", got.code, got.body)
	}
	return v
}

// do makes a request, with a form as its body unless that is nil.
func (v *visitor) do(method, path string, form url.Values, head ...string) answer {
	v.Helper()
	if form == nil {
		return v.send(method, path, "", "", head...)
	}
	return v.send(method, path, "application/x-www-form-urlencoded", form.Encode(), head...)
}

// send makes a request with a body of some kind; head are names and values.
func (v *visitor) send(method, path, kind, body string, head ...string) answer {
	v.Helper()
	req, err := http.NewRequestWithContext(v.Context(), method, "http://"+v.srv.Addr()+path, strings.NewReader(body))
	if err != nil {
		v.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if v.hc.Jar != nil {
		req.Header.Set("Sec-Fetch-Site", "same-origin") // as browsers say
	}
	for i := 0; i+1 < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	resp, err := v.hc.Do(req)
	if err != nil {
		v.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		v.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// page gets a page or a fragment that must be there.
func (v *visitor) page(path string) string {
	v.Helper()
	got := v.do(http.MethodGet, path, nil)
	if got.code != http.StatusOK {
		v.Fatalf("GET %s = %d: %s", path, got.code, got.body)
	}
	return got.body
}

// A plan is what the model does about a message: one reply for each step.
type plan []llmtest.Reply

// A mind is a model that follows the plan of the newest message that has one;
// without a plan it is the demo model.
type mind struct {
	mu    sync.Mutex
	plans map[string]plan // by a part of the message
	hold  chan struct{}   // a text is told half, then waits for this; nil: does not wait
}

func (m *mind) plan(part string, replies ...llmtest.Reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plans[part] = replies
}

// pause makes texts wait in their middle until the returned function is called.
func (m *mind) pause() (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	hold := make(chan struct{})
	m.hold = hold
	return sync.OnceFunc(func() {
		m.mu.Lock()
		m.hold = nil
		m.mu.Unlock()
		close(hold)
	})
}

// next is the reply of the plan, and whether there is one.
func (m *mind) next(r llm.Request) (llmtest.Reply, chan struct{}, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	step := 0
	for i := len(r.Messages) - 1; i >= 0; i-- {
		switch msg := r.Messages[i]; msg.Role {
		case llm.RoleAssistant:
			step++
		case llm.RoleUser:
			for part, p := range m.plans {
				if strings.Contains(llm.Unwrap(msg.Content), part) && step < len(p) {
					return p[step], m.hold, true
				}
			}
			return llmtest.Reply{}, nil, false
		}
	}
	return llmtest.Reply{}, nil, false
}

func (m *mind) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	reply, hold, ok := m.next(r)
	if !ok {
		return demo.New(demo.Config{Pace: time.Microsecond}).Chat(ctx, r)
	}
	if reply.Err != nil {
		return llm.Response{}, reply.Err
	}
	if half := len(reply.Text) / 2; r.Delta != nil && reply.Text != "" {
		r.Delta(0, reply.Text[:half])
		if hold != nil {
			select {
			case <-hold:
			case <-ctx.Done():
				return llm.Response{}, &llm.Error{Class: llm.Transient, Text: context.Cause(ctx).Error()}
			}
		}
		r.Delta(half, reply.Text[half:])
	}
	reply.Model = "mind"
	reply.Usage = claybot.Usage{Input: 1200, Output: 30, CostMicroUSD: 2500, LLMCalls: 1}
	return reply.Response, nil
}

// use is a call of a tool.
func use(id, tool, args string) llmtest.Reply {
	return llmtest.Use(claybot.ToolCall{ID: id, Name: tool, Args: args})
}
