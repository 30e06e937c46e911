package dashboard_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/connectors/webchat"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/clock"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/api"
	"github.com/claybot/claybot/web/dashboard"
	"github.com/claybot/claybot/web/webtest"
)

// The bulk of BenchmarkPages, as a store of some months has it: a tenth of the
// agents in the background, one in a hundred busy; of the runs one in a thousand
// failed; 90 days of usage of four models, one of them without a price.
var bulk = []string{
	`WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 10000)
	INSERT INTO agents (id, key, descriptor, type, owner, created_at, last_user_at, last_user_n, usage)
	SELECT printf('a%023d', i), 'bulk' || i,
		'{"type":"' || iif(i % 10, 'user', 'cron') || '","connector":"telegram","channelId":"' || i || '","userId":"' || i || '"}', iif(i % 10, 'user', 'cron'),
		'telegram/' || (i % 100), i, iif(i % 10, i, 0), iif(i % 10, i, 0), '{"input":120000,"output":3000,"costMicroUSD":250000,"llmCalls":40}' FROM k`,
	`WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 100000)
	INSERT INTO runs (id, agent, state, last_seq, attempts, outcome, started, ended)
	SELECT printf('c%023d', i), printf('a%023d', i % 10000 + 1),
		CASE WHEN i > 99900 THEN 'RUNNING' WHEN i % 1000 = 7 THEN 'FAILED' ELSE 'SUCCEEDED' END, 3, 1,
		'{"output":"The forecast says sun until noon and rain after three.","usage":{"input":1200,"output":30,"costMicroUSD":2500,"llmCalls":1}}',
		$now - (100000 - i) * 60000, CASE WHEN i > 99900 THEN 0 ELSE $now - (100000 - i) * 60000 + 4000 END FROM k`,
	`UPDATE agents SET run = r.id, busy = 1 FROM (SELECT id, agent FROM runs WHERE state = 'RUNNING') r WHERE agents.id = r.agent`,
	`WITH RECURSIVE k (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < 100000)
	INSERT INTO spent (day, agent, owner, model, type, input, output, cached, cost, calls, tools, estimated, runs)
	SELECT date('now', -(i % 90) || ' days'), printf('a%023d', i % 10000 + 1), 'telegram/' || (i % 100), 'model-' || (i / 10000 % 4), iif(i % 10, 'user', 'cron'),
		1200 + i % 77, 30 + i % 7, 100, iif(i / 10000 % 4 = 3, 0, 2500), 1, 1, 0, 1 FROM k WHERE true
	ON CONFLICT DO UPDATE SET cost = cost + excluded.cost`,
	`INSERT INTO spent_days (day, model, type, input, output, cached, cost, calls, tools, estimated, runs)
	SELECT day, model, type, sum(input), sum(output), sum(cached), sum(cost), sum(calls), sum(tools), max(estimated), sum(runs) FROM spent GROUP BY day, model, type`,
	`WITH RECURSIVE k (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k WHERE i < 8999)
	INSERT INTO latencies (day, what, bucket, n) SELECT date('now', -(i % 90) || ' days'), CASE i / 90 % 5 WHEN 0 THEN 'run' ELSE 'model:model-' || (i / 90 % 5 - 1) END, 60 + i / 450, 3 FROM k`,
	`INSERT INTO counters VALUES ('agents', 10000), ('run:SUCCEEDED', 99800), ('run:FAILED', 100), ('run:RUNNING', 100) ON CONFLICT DO UPDATE SET n = n + excluded.n`,
}

// A benchRig is a daemon with a full store, and a browser that is logged in.
type benchRig struct {
	*rig
	hc  *http.Client
	run claybot.RunID
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return v
	}
}

// fillStore puts the bulk into the store, and 10,000 deliveries.
func (r *benchRig) fillStore(b *testing.B) {
	b.Helper()
	raw := must(sql.Open("sqlite", filepath.Join(r.dir, "claybot.db")+"?vfs="+sqlite.VFS+"&_pragma=busy_timeout(60000)"))(b)
	defer func() { _ = raw.Close() }() // only read from now on
	for _, q := range bulk {
		if _, err := raw.ExecContext(b.Context(), q, sql.Named("now", time.Now().UnixMilli())); err != nil {
			b.Fatalf("%v in %.80s", err, q)
		}
	}
	var all []claybot.Outgoing
	for i := range 10_000 {
		all = append(all, claybot.Outgoing{
			ID: fmt.Sprint("bulk", i), Kind: claybot.OutgoingAnswer, Run: claybot.RunID(fmt.Sprintf("c%023d", i+1)), Part: 1, Parts: 1, At: claybot.Now(),
			Route: claybot.Route{Connector: "telegram", ChannelID: fmt.Sprint(i)}, Text: "The forecast says sun until noon and rain after three. " + strings.Repeat("More of it. ", 20),
		})
	}
	must(r.db.Enqueue(b.Context(), all...))(b)
	if _, err := raw.ExecContext(b.Context(), `UPDATE outbox SET state = iif(n % 100, 'sent', 'failed'), open = 0, attempts = 1, receipt = n WHERE id LIKE 'bulk%'`); err != nil {
		b.Fatal(err)
	}
	if _, err := raw.ExecContext(b.Context(), "ANALYZE"); err != nil {
		b.Fatal(err)
	}
}

func newBenchRig(b *testing.B) *benchRig {
	b.Helper()
	r := &benchRig{rig: &rig{mind: &mind{plans: make(map[string]plan)}, dir: b.TempDir()}}
	ctx, cancel := context.WithCancel(context.Background())
	r.hub = runs.NewHub()
	r.db, r.agents = webtest.OpenStores(ctx, b, r.dir, r.hub, nil)
	r.fillStore(b) // after Open, which forgets agents without files
	log := slog.New(slog.DiscardHandler)
	r.system = agentsystem.New(r.systemConfig(log))
	set := must(tools.NewSet(clock.Tools()...))(b)
	r.system.Handle("react", &react.Loop{Model: func(claybot.Agent) llm.Model { return r.mind }, Tools: func(claybot.Agent) *tools.Set { return set }})
	r.chat = webchat.New(webchat.Config{HTML: true})
	for i := range 100 {
		dir := filepath.Join(r.dir, "cron", fmt.Sprint("task-", i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		text := fmt.Sprintf("---\nuid: k%023d\nname: Task %d\nschedule: \"%d 9 * * *\"\n---\nSay it.\n", i, i, i%60)
		if err := os.WriteFile(filepath.Join(dir, "TASK.md"), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	tasks := cron.New(cron.Config{Dir: filepath.Join(r.dir, "cron"), Tree: storage.MirrorFolder(files.OpenTree(files.TreeConfig{Dir: filepath.Join(r.dir, "cron"), Layout: cron.Layout, Marks: r.db})), Claims: r.db, Node: func() string { return "alone" }, Ledger: r.db, Index: r.db})
	d := webtest.NewSystem(r.system).Backend()
	r.srv = must(web.New(web.Config{
		Addr: "127.0.0.1:0", Dir: r.dir, Tree: storage.MirrorAlone(files.OpenNamed(r.dir, web.Names(), web.Load(slog.Default()))), Ready: func() (bool, web.Problem) { ok, why := r.system.Overview.Ready(); return ok, web.Problem{Message: why} },
		Routes: append(api.Routes(api.Config{Backend: d, Usage: r.db}), dashboard.Routes(dashboard.Config{Backend: d, Usage: r.db, Tasks: tasks, Version: "bench"})...),
	}))(b)
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.system.Run(ctx, r.chat, tasks) }) // ends with ctx
	wg.Go(func() { _ = r.srv.Run(ctx) })                   // likewise
	b.Cleanup(func() {
		cancel()
		wg.Wait()
		_, _ = r.agents.Close(), r.db.Close() // the directory goes
	})
	<-r.srv.Up()
	r.converse(b)
	return r
}

// converse logs in, and has a conversation of 100 messages.
func (r *benchRig) converse(b *testing.B) {
	b.Helper()
	r.hc = &http.Client{Jar: must(cookiejar.New(nil))(b)}
	page, code, _ := strings.Cut(r.srv.NewLoginLink().URL, "?token=")
	resp, err := r.hc.Post(page, "application/json", strings.NewReader(`{"token":"`+code+`"}`))
	if err != nil || resp.StatusCode != http.StatusNoContent {
		b.Fatal("login: ", resp, err)
	}
	_ = resp.Body.Close() // it is empty
	for i := range 100 {
		m := claybot.AgentMessage{ID: claybot.MessageID(fmt.Sprint("bench", i)), Type: claybot.MessageUser, Text: "What is the weather like?", From: claybot.Sender{UserID: web.Operator}, At: claybot.Now()}
		if err := r.system.Post(b.Context(), main, m); err != nil {
			b.Fatal(err)
		}
	}
	for {
		rec, err := r.db.Receipt(b.Context(), "bench99")
		if err == nil && rec.Run != nil && rec.Run.State.Ended() {
			r.run = rec.Run.ID
			return
		}
		select {
		case <-b.Context().Done():
			b.Fatal("the conversation does not end")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// get fetches a page and returns its size. A status of -1 may be any.
func (r *benchRig) get(b *testing.B, path string, want int) int {
	b.Helper()
	resp, err := r.hc.Get("http://" + r.srv.Addr() + path)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	body := must(io.ReadAll(resp.Body))(b)
	if want >= 0 && resp.StatusCode != want {
		b.Fatalf("GET %s = %d: %.500s", path, resp.StatusCode, body)
	}
	return len(body)
}

// BenchmarkPages serves every page over loopback from a store with 10,000
// agents, 100,000 runs, 10,000 deliveries and 90 days of usage. The bar is
// 100 ms for each.
func BenchmarkPages(b *testing.B) {
	r := newBenchRig(b)
	id := must(r.db.IndexedAgent(b.Context(), main))(b)
	// What a page of the usage fetches after it is there, the first time.
	first := make(map[string]time.Duration)
	for _, q := range []string{"days=7", "days=30", "days=90", "days=90&by=agent", "days=90&by=owner"} {
		began := time.Now()
		r.get(b, "/ui/usage/now?"+q, http.StatusOK)
		first["/ui/usage?"+q] = time.Since(began)
	}
	for _, page := range []struct{ name, path string }{
		{"chats", "/"},
		{"agents", "/ui/agents"},
		{"agents busy", "/ui/agents?busy=1"},
		{"agents of an owner", "/ui/agents?owner=telegram%2F7"},
		{"agent", "/ui/agents/" + string(id)},
		{"runs", "/ui/runs"},
		{"runs failed", "/ui/runs?state=FAILED"},
		{"run", "/ui/runs/" + string(r.run)},
		{"schedule", "/ui/schedule"},
		{"task", "/ui/schedule/tasks/task-7"},
		{"deliveries", "/ui/deliveries"},
		{"deliveries failed", "/ui/deliveries?show=failed"},
		{"usage at first", "/ui/usage?days=90&by=type"},
		{"usage 7 days", "/ui/usage?days=7"},
		{"usage 30 days", "/ui/usage?days=30"},
		{"usage 90 days", "/ui/usage?days=90"},
		{"usage by agent", "/ui/usage?days=90&by=agent"},
		{"usage by user", "/ui/usage?days=90&by=owner"},
		{"usage data", "/ui/usage/data?days=90"},
		{"access", "/ui/access"},
		{"health", "/ui/health"},
		{"why", "/ui/why?q=bench7"},
		{"why nothing", "/ui/why?q=nothing"},
	} {
		b.Run(page.name, func(b *testing.B) {
			took := make([]time.Duration, 0, b.N)
			size := 0
			for range b.N {
				began := time.Now()
				size = r.get(b, page.path, http.StatusOK)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
			b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
			b.ReportMetric(float64(size)/1000, "kB")
			if d, ok := first[page.path]; ok {
				b.ReportMetric(ms(d), "first-figures-ms")
			}
		})
	}
	var count int // the store is as full as it should be
	raw := must(sql.Open("sqlite", filepath.Join(r.dir, "claybot.db")+"?vfs="+sqlite.VFS))(b)
	defer func() { _ = raw.Close() }()
	if err := raw.QueryRowContext(b.Context(), "SELECT count(*) FROM runs").Scan(&count); err != nil || count < 100_000 {
		b.Errorf("%d runs, %v", count, err)
	}
}
