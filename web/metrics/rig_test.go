package metrics

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/tools"
)

var errNo = errors.New("no")

// A line is a chat of people who only read.
type line struct {
	connectors.Pulse
	fails  int   // of the next sends, with an unknown fate
	refuse error // of the next send

	mu   sync.Mutex
	news chan struct{} // one for each message that arrived
}

func (*line) Name() string                   { return "chat" }
func (*line) Split(text string) []string     { return []string{text} }
func (*line) Resend(o claybot.Outgoing) bool { return o.Attempts < 3 }

func (l *line) Run(ctx context.Context, _ connectors.Handler) error {
	l.OK()
	<-ctx.Done()
	return context.Cause(ctx)
}

func (l *line) Send(_ context.Context, o claybot.Outgoing) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails > 0 {
		l.fails--
		return "", &connectors.AmbiguousError{Err: io.ErrUnexpectedEOF}
	}
	if err := l.refuse; err != nil {
		l.refuse = nil
		return "", err
	}
	l.news <- struct{}{}
	return "r", nil
}

// arrived waits until people saw n more messages.
func (l *line) arrived(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-l.news:
		case <-time.After(time.Minute):
			t.Fatal("no answer arrived")
		}
	}
}

// A rig is a daemon on real stores with a meter.
type rig struct {
	*testing.T
	line    *line
	model   llm.Model
	system  *agentsystem.AgentSystem
	metrics *Metrics
	stop    func() // ends the system, then the exporter
}

// newRig starts a system whose model gives the replies, and that is measured as
// cfg says.
func newRig(t *testing.T, cfg Config, log *slog.Logger, replies ...llmtest.Reply) *rig {
	t.Helper()
	r := &rig{T: t, line: &line{news: make(chan struct{}, 100)}, model: llmtest.NewScript(replies...)}
	dir := t.TempDir()
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "claybot.db"), sqlite.Config{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	agents, err := files.Open(files.Config{Dir: dir, Index: db, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Status = func(ctx context.Context) (overview.Status, error) { return r.system.Overview.Status(ctx) }
	cfg.Events, cfg.Log, cfg.Version = db.Events, log, "test"
	r.metrics = New(cfg)
	patient(r.metrics)
	r.system = agentsystem.New(agentsystem.Config{
		Stores: agentsystem.Stores{
			Agents: agents, Index: db, Inbox: db, Runs: db, Outbox: db, Access: db, Counts: db, Later: db, Texts: db,
			Asked: db, Parking: db,
		},
		Log: log, Members: cluster.Alone(storage.Member{ID: "node", Name: "node", Version: "test"}), Version: "test", Meter: r.metrics,
		PeopleSettings: agentsystem.PeopleSettings{
			Admission: func() people.Access {
				return people.Access{Allow: []string{"chat:ann"}, Mode: people.AccessAllowlist}
			},
		},
		Settings: agentsystem.Settings{
			Profile: func(claybot.Descriptor) profiles.Profile { return profiles.Profile{} },
		},
	})
	set, err := tools.NewSet(tool("look", nil), tool("pay", io.ErrClosedPipe))
	if err != nil {
		t.Fatal(err)
	}
	r.system.Handle("react", &react.Loop{
		Model: func(claybot.Agent) llm.Model { return r.model },
		Tools: func(claybot.Agent) *tools.Set { return set }, Log: log,
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	exporting, last := context.WithCancel(context.WithoutCancel(t.Context()))
	systemEnded, exporterEnded := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(systemEnded)
		if err := r.system.Run(ctx, r.line); err != nil {
			t.Errorf("system: %v", err)
		}
	}()
	go func() { defer close(exporterEnded); _ = r.metrics.Run(exporting) }() // returns the cause of its end
	r.stop = sync.OnceFunc(func() {
		cancel()
		<-systemEnded
		last()
		<-exporterEnded
		for _, c := range []io.Closer{agents, db} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(r.stop)
	return r
}

// tool is a tool that says what it does, or fails with err.
func tool(name string, err error) tools.Tool {
	spec := tools.Spec{Tool: llm.Tool{Name: name, Description: name}, Effect: tools.Idempotent}
	return tools.New(spec, func(context.Context, tools.Env, struct{}) (tools.Result, error) {
		return tools.Result{Text: "secret result of " + name}, err
	})
}

var ann = claybot.User("chat", "dm", "ann")

// say posts a message of Ann.
func (r *rig) say(id, text string) {
	r.Helper()
	r.post(ann, id, text)
}

// sayIn posts a message of Ann that belongs to a trace.
func (r *rig) sayIn(traceparent, id, text string) {
	r.Helper()
	ctx := claybot.WithTrace(r.Context(), claybot.ParseTrace(traceparent))
	err := r.system.Post(ctx, ann, claybot.AgentMessage{
		ID: claybot.MessageID(id), Type: claybot.MessageUser, Text: text, FirstHand: true, From: claybot.Sender{UserID: ann.UserID}, At: claybot.Now(),
	})
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) post(d claybot.Descriptor, id, text string) {
	r.Helper()
	err := r.system.Post(r.Context(), d, claybot.AgentMessage{
		ID: claybot.MessageID(id), Type: claybot.MessageUser, Text: text, FirstHand: true, From: claybot.Sender{UserID: d.UserID}, At: claybot.Now(),
	})
	if err != nil {
		r.Fatal(err)
	}
}

// reply is a reply that took tokens.
func reply(r llmtest.Reply, model string) llmtest.Reply {
	r.Model = model
	r.Usage = claybot.Usage{Input: 100, CachedInput: 40, Output: 7, CostMicroUSD: 2500, LLMCalls: 1}
	return r
}

// serve serves the routes of a meter without a door.
func serve(t *testing.T, m *Metrics) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	for _, route := range m.Routes() {
		mux.Handle(route.Pattern, route.Handler)
	}
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv
}

// get reads a page.
func get(t *testing.T, url, accept string) (string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %d: %s", url, resp.StatusCode, strings.TrimSpace(string(b)))
	}
	return string(b), resp.Header
}
