package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/connectors/heartbeat"
	"github.com/claybot/claybot/connectors/webchat"
	"github.com/claybot/claybot/llm"
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
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/api"
	"github.com/claybot/claybot/web/webtest"
)

// patience is how long a test waits for something that happens at once unless
// the machine is very busy.
const patience = time.Minute

// A rig is a daemon with its API: real stores, the real system, a real server
// and a model that says what it is told to.
type rig struct {
	*testing.T
	dir        string
	addr       string // host:port
	mind       *mind
	wrap       func(*web.Backend)     // optional; may replace contracts
	usage      storage.Usages         // optional; in place of the store
	tasks      web.Tasks              // instead of cron
	heartbeats web.Heartbeats         // instead of the heartbeat
	bare       bool                   // neither cron nor heartbeat, nor tooling
	shop       *webtest.Toolbench     // what agents work with
	graphs     map[string]runs.Engine // beside react
	engine     string                 // of the profile; empty: react
	marks      func(storage.Checkpoints) storage.Checkpoints
	alive      time.Duration // between signs of life; 0: the default
	tools      []tools.Tool  // beside those of all rigs
	// watches are how many requests wait for something to happen in a run.
	watches atomic.Int64
	doc     *document // all answers are held against it; nil until it was read
	http    *http.Client
	token   string // of the owner
	db      *sqlite.DB
	agents  *files.Store
	system  *agentsystem.AgentSystem
	srv     *web.Server
	stop    func()
}

// start runs a daemon until the test ends.
func start(t *testing.T, change ...func(*rig)) *rig {
	t.Helper()
	tr := &http.Transport{MaxIdleConnsPerHost: 4}
	t.Cleanup(tr.CloseIdleConnections)
	r := &rig{T: t, dir: folders.Data(t), addr: "127.0.0.1:0", mind: newMind(), http: &http.Client{Transport: tr, Timeout: 5 * patience}}
	for _, c := range change {
		c(r)
	}
	r.begin()
	t.Cleanup(func() { r.stop() })
	r.doc = r.readDocument()
	return r
}

// begin opens everything on the data directory.
func (r *rig) begin() {
	r.Helper()
	log := slog.New(slog.DiscardHandler)
	hub := runs.NewHub()
	r.db, r.agents = webtest.OpenStores(r.Context(), r, r.dir, hub, log)
	node := "node-" + string(claybot.NewID())
	r.system = agentsystem.New(agentsystem.Config{
		Stores: webtest.StoresOf(r.db, r.agents),
		Log:    log, Members: cluster.Alone(storage.Member{ID: node, Name: node, Version: "test"}), Version: "test", Hub: hub, Limits: agentsystem.Limits{Grace: time.Nanosecond},
		PeopleSettings: agentsystem.PeopleSettings{
			Admission: func() people.Access {
				return people.Access{Mode: people.AccessPairing, Trusted: []string{"web", claybot.ConnectorAPI}}
			},
		},
		Settings: agentsystem.Settings{
			Profile: func(d claybot.Descriptor) profiles.Profile {
				return profiles.Profile{Name: "default", Model: "script", MaxSteps: 9, Engine: r.engine}
			},
			Models: func(claybot.Agent) []string { return []string{"script", "other"} },
			Tools:  func(claybot.Agent) []string { return append([]string{"wait", "ask_user"}, names(r.tools)...) },
		},
	})
	set, err := tools.NewSet(slices.Concat(ask.Tools(r.system.Questions.Asker), clock.Tools(), r.tools)...)
	if err != nil {
		r.Fatal(err)
	}
	r.system.Handle("react", &react.Loop{
		Model: func(claybot.Agent) llm.Model { return r.mind }, Tools: func(claybot.Agent) *tools.Set { return set }, Log: log,
	})
	for name, g := range r.graphs {
		r.system.Handle(name, g)
	}
	r.shop = webtest.NewToolbench(r.db, r.agents, set, filepath.Join(r.dir, "skills"))
	page := webchat.New(webchat.Config{Name: "web"})
	all := []connectors.Connector{page}
	cfg := api.Config{
		Backend: webtest.NewSystem(r.system).Backend(), Usage: r.db, Tasks: r.tasks, Heartbeats: r.heartbeats, Log: log, Version: "test", Marks: r.db, KeepAlive: r.alive,
		Profiles: func() []string { return []string{"default", "night"} },
		Engine:   func(claybot.Descriptor) string { return r.engine },
	}
	if !r.bare {
		cfg.Tooling = r.shop.Tooling()
	}
	if !r.bare {
		cfg.Budgets = agentsystem.NewLimiter(r.system, budgets.Config{Store: r.db})
	}
	if r.marks != nil {
		cfg.Marks = r.marks(r.db)
	}
	cfg.Backend.Runs = watched{cfg.Backend.Runs, &r.watches}
	if r.wrap != nil {
		r.wrap(&cfg.Backend)
	}
	if r.usage != nil {
		cfg.Usage = r.usage
	}
	if !r.bare && r.tasks == nil {
		c := cron.New(cron.Config{Dir: filepath.Join(r.dir, "cron"), Tree: storage.MirrorFolder(files.OpenTree(files.TreeConfig{Dir: filepath.Join(r.dir, "cron"), Layout: cron.Layout, Marks: r.db})), Claims: r.db, Node: func() string { return "alone" }, Ledger: r.db, Index: r.db, Log: log})
		h := heartbeat.New(heartbeat.Config{Dir: filepath.Join(r.dir, "heartbeat"), Tree: storage.MirrorFolder(files.OpenTree(files.TreeConfig{Dir: filepath.Join(r.dir, "heartbeat"), Layout: heartbeat.Layout, Marks: r.db})), Claims: r.db, Node: func() string { return "alone" }, Receipts: r.db, Log: log, Place: r.system.People.Foreground})
		all, cfg.Tasks, cfg.Heartbeats = append(all, c, h), c, h
	}
	r.srv, err = web.New(web.Config{Addr: r.addr, Dir: r.dir, Tree: storage.MirrorAlone(files.OpenNamed(r.dir, web.Names(), web.Load(log))), Log: log, Ready: func() (bool, web.Problem) { ok, why := r.system.Overview.Ready(); return ok, web.Problem{Message: why} }, Routes: api.Routes(cfg)})
	if err != nil {
		r.Fatal(err)
	}
	r.serve(all)
	if !r.bare && r.tasks == nil {
		r.planned(cfg)
	}
}

// planned waits until what happens by the clock is read.
func (r *rig) planned(cfg api.Config) {
	r.Helper()
	r.until("the tasks and the heartbeats are read", func() bool {
		_, _, err := cfg.Tasks.Tasks(r.Context())
		_, _, err2 := cfg.Heartbeats.Heartbeats(r.Context())
		return err == nil && err2 == nil
	})
}

// serve runs what begin opened.
func (r *rig) serve(all []connectors.Connector) {
	r.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	serving, closeDoors := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		defer closeDoors()
		if err := r.system.Run(ctx, all...); ctx.Err() == nil {
			r.Errorf("the system ended early: %v", err)
		}
	})
	wg.Go(func() {
		if err := r.srv.Run(serving); serving.Err() == nil {
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
	case <-time.After(patience):
		r.Fatal("the server did not come up")
	}
	r.addr = r.srv.Addr()
	b, err := os.ReadFile(filepath.Join(r.dir, "web.token"))
	if err != nil {
		r.Fatal(err)
	}
	r.token = strings.TrimSpace(string(b))
}

// restart ends the daemon in order and begins again on the same directory, at
// another address: another process may have taken the port meanwhile.
func (r *rig) restart() {
	r.Helper()
	r.stop()
	r.http.CloseIdleConnections()
	r.addr = "127.0.0.1:0"
	r.begin()
	r.Cleanup(func() { r.stop() })
}

// A got is an answer that was read.
type got struct {
	code int
	head http.Header
	body string
}

// open sends a request; head are pairs of names and values, among them perhaps
// a token of its own.
func (r *rig) open(method, path, body string, head ...string) *http.Response {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), method, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	resp, err := r.http.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	return resp
}

// do makes a request and holds its answer against the document.
func (r *rig) do(method, path, body string, head ...string) got {
	r.Helper()
	resp := r.open(method, path, body, head...)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	if r.doc != nil {
		r.doc.check(r.T, method, path, resp, b)
	}
	return got{resp.StatusCode, resp.Header, string(b)}
}

// ask makes a request that succeeds, and reads its answer into v.
func (r *rig) ask(method, path, body string, status int, v any) {
	r.Helper()
	g := r.do(method, path, body)
	if g.code != status {
		r.Fatalf("%s %s %.200s = %d %s, want %d", method, path, body, g.code, g.body, status)
	}
	if v != nil {
		r.read(g.body, v)
	}
}

func (r *rig) read(s string, v any) {
	r.Helper()
	if err := json.Unmarshal([]byte(s), v); err != nil {
		r.Fatalf("%v in %s", err, s)
	}
}

// scoped is a token of a scope.
func (r *rig) scoped(name, scope string) string {
	r.Helper()
	var out struct{ Token string }
	g := r.do("POST", "/tokens", `{"name":"`+name+`","scope":"`+scope+`"}`)
	r.read(g.body, &out)
	if out.Token == "" {
		r.Fatalf("no token: %d %s", g.code, g.body)
	}
	return out.Token
}

// An acceptedRun is the answer to the start of a run.
type acceptedRun struct {
	Run     string `json:"runId"`
	Agent   string `json:"agentId"`
	Message string `json:"messageId"`
	State   string `json:"state"`
	Stream  string `json:"stream"`
}

// say starts a run of the thread main.
func (r *rig) say(text string) acceptedRun {
	r.Helper()
	b, err := json.Marshal(map[string]any{"text": text, "descriptor": map[string]string{"channelId": "main"}})
	if err != nil {
		r.Fatal(err)
	}
	var a acceptedRun
	r.ask("POST", "/agents/runs", string(b), http.StatusAccepted, &a)
	return a
}

// A told is one event of a stream.
type told struct {
	id, event, data string
}

// stream reads a whole stream.
func (r *rig) stream(path string, head ...string) []told {
	r.Helper()
	resp := r.open("GET", path, "", head...)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		r.Fatalf("GET %s = %d %s", path, resp.StatusCode, b)
	}
	var all []told
	for e := range events(resp.Body) {
		all = append(all, e)
	}
	return all
}

// events yields the events of a stream until it ends.
func events(body io.Reader) func(yield func(told) bool) {
	return func(yield func(told) bool) {
		var e told
		lines := bufio.NewScanner(body)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "id":
				e.id = value
			case "event":
				e.event = value
			case "data":
				e.data = value
			case "":
				if e.data != "" && !yield(e) {
					return
				}
				e = told{}
			}
		}
	}
}

// ended waits for the end of a run and returns its state.
func (r *rig) ended(id string) string {
	r.Helper()
	r.stream("/agents/runs/" + id + "/stream")
	var run struct{ State string }
	r.ask("GET", "/agents/runs/"+id, "", http.StatusOK, &run)
	return run.State
}

// until asks again and again until ok.
func (r *rig) until(what string, ok func() bool) {
	r.Helper()
	tick, end := time.NewTicker(5*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			r.Fatal("it never came to this: " + what)
		}
	}
}

func names(all []tools.Tool) (out []string) {
	for _, t := range all {
		out = append(out, t.Spec().Name)
	}
	return out
}
