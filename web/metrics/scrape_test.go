package metrics

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/storage"
)

// parse reads a page with the parser of Prometheus.
func parse(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	all, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("the page cannot be parsed: %v\n%s", err, text)
	}
	return all
}

// value is what a series of a page has, of a histogram its count; labels are pairs of names and values.
func value(t *testing.T, page map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	for _, m := range page[name].GetMetric() {
		fits := len(m.GetLabel()) == len(labels)/2
		for _, l := range m.GetLabel() {
			found := false
			for pair := range slices.Chunk(labels, 2) {
				found = found || pair[0] == l.GetName() && pair[1] == l.GetValue()
			}
			fits = fits && found
		}
		switch {
		case !fits:
		case m.Counter != nil:
			return m.Counter.GetValue()
		case m.Gauge != nil:
			return m.Gauge.GetValue()
		case m.Histogram != nil:
			return float64(m.Histogram.GetSampleCount())
		}
	}
	return math.NaN()
}

// What happened in a real system is what a scrape shows.
func TestScrape(t *testing.T) {
	r := newRig(t, Config{Serve: yes}, nil,
		reply(llmtest.Use(claybot.ToolCall{ID: "1", Name: "look", Args: "{}"}, claybot.ToolCall{ID: "2", Name: "pay", Args: "{}"}, claybot.ToolCall{ID: "3", Name: "made\nup", Args: "{}"}), "gpt-5"),
		reply(llmtest.Say("done"), "gpt-5"),
		llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Status: 400, Text: "no"}},
	)
	srv := serve(t, r.metrics)
	r.say("m1", "hello")
	r.line.arrived(t, 1)
	r.say("m1", "hello") // again
	r.say("m2", "")      // refused with a notice
	r.line.arrived(t, 1)
	r.post(claybot.User("chat", "dm2", "eve"), "m3", "let me in")
	if err := r.system.Post(t.Context(), ann, claybot.AgentMessage{Type: claybot.MessageUser}); err == nil {
		t.Error("a message without an id was taken")
	}
	r.say("m4", "fail")
	r.line.arrived(t, 1)
	r.stop() // all is counted; the store is closed

	text, head := get(t, srv.URL+"/metrics", "")
	if got := head.Get("Content-Type"); got != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	page := parse(t, text)
	for _, tt := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{2, "claybot_messages_received_total", []string{"connector", "chat", "outcome", "accepted"}},
		{1, "claybot_messages_received_total", []string{"connector", "chat", "outcome", "duplicate"}},
		{1, "claybot_messages_received_total", []string{"connector", "chat", "outcome", "refused"}},
		{1, "claybot_messages_received_total", []string{"connector", "chat", "outcome", "stranger"}},
		{1, "claybot_messages_received_total", []string{"connector", "chat", "outcome", "error"}},
		{6, "claybot_message_receive_duration_seconds", []string{"connector", "chat"}},
		{3, "claybot_sends_total", []string{"connector", "chat", "outcome", "sent"}},
		{3, "claybot_send_duration_seconds", []string{"connector", "chat"}},
		{2, "claybot_runs_started_total", nil},
		{1, "claybot_runs_ended_total", []string{"state", "SUCCEEDED", "code", ""}},
		{1, "claybot_runs_ended_total", []string{"state", "FAILED", "code", "model_refused"}},
		{1, "claybot_run_duration_seconds", []string{"state", "SUCCEEDED"}},
		{2, "claybot_run_steps", nil},
		{120, "claybot_model_tokens_total", []string{"model", "gpt-5", "kind", "input"}},
		{80, "claybot_model_tokens_total", []string{"model", "gpt-5", "kind", "cached_input"}},
		{14, "claybot_model_tokens_total", []string{"model", "gpt-5", "kind", "output"}},
		{.005, "claybot_model_cost_usd_total", []string{"model", "gpt-5"}},
		{1, "claybot_tool_calls_total", []string{"tool", "look", "outcome", "succeeded"}},
		{1, "claybot_tool_calls_total", []string{"tool", "pay", "outcome", "failed"}},
		{1, "claybot_tool_calls_total", []string{"tool", "other", "outcome", "failed"}},
		{1, "claybot_tool_duration_seconds", []string{"tool", "look"}},
		{0, "claybot_panics_total", []string{"where", "engine"}},
		{0, "claybot_store_up", nil},
		{1, "claybot_build_info", []string{"version", "test", "goversion", runtime.Version()}},
	} {
		if got := value(t, page, tt.name, tt.labels...); got != tt.want {
			t.Errorf("%s%q = %v, want %v", tt.name, tt.labels, got, tt.want)
		}
	}
	if page["claybot_agents"] != nil {
		t.Error("figures are shown of a store that cannot be read")
	}
	for _, leak := range []string{"ann", "eve", "made", "secret", "hello", "m1"} {
		if strings.Contains(strings.ReplaceAll(text, "channel", ""), `"`+leak) {
			t.Errorf("the page shows %q:\n%s", leak, text)
		}
	}
}

// What the store counts is read at the scrape.
func TestStored(t *testing.T) {
	r := newRig(t, Config{Serve: yes}, nil, llmtest.Say("one"))
	srv := serve(t, r.metrics)
	r.say("m1", "hello")
	r.line.arrived(t, 1)
	deadline := time.Now().Add(time.Minute)
	var page map[string]*dto.MetricFamily
	for { // the receipt is stored after the message has arrived
		text, _ := get(t, srv.URL+"/metrics", "")
		page = parse(t, text)
		if value(t, page, "claybot_outbox_messages", "state", "sent") == 1 || time.Now().After(deadline) {
			break
		}
		runtime.Gosched()
	}
	for _, tt := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{1, "claybot_store_up", nil},
		{1, "claybot_agents", nil},
		{0, "claybot_messages_waiting", nil},
		{0, "claybot_messages_waiting_oldest_seconds", nil},
		{1, "claybot_runs", []string{"state", "SUCCEEDED"}},
		{0, "claybot_runs", []string{"state", "RUNNING"}},
		{1, "claybot_outbox_messages", []string{"state", "sent"}},
		{0, "claybot_outbox_messages", []string{"state", "failed"}},
		{0, "claybot_outbox_ambiguous_total", nil},
		{1, "claybot_connector_up", []string{"connector", "chat"}},
	} {
		if got := value(t, page, tt.name, tt.labels...); got != tt.want {
			t.Errorf("%s%q = %v, want %v", tt.name, tt.labels, got, tt.want)
		}
	}
	if got := value(t, page, "claybot_connector_last_success_age_seconds", "connector", "chat"); !(got >= 0 && got < 300) {
		t.Errorf("last success %v s ago", got)
	}
}

// row is a row of the table in docs/metrics.md.
var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (counter|gauge|histogram) \\| (seconds|bytes|usd|) ?\\| ([^|]*) ?\\| (\\S.*) \\|$")

// The guide has all figures that are exported, and no others.
func TestGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, fmt.Sprintf("%s %s unit %q labels %s", m[1], m[2], m[3], strings.ReplaceAll(strings.TrimSpace(m[4]), "`", "")))
	}
	if len(documented) < 40 || len(documented) != strings.Count(string(text), "\n| `claybot_")+strings.Count(string(text), "\n| `process_")+strings.Count(string(text), "\n| `go_") {
		t.Fatalf("%d rows could be read", len(documented))
	}
	// What is exported, by what the page itself says.
	m := everything(t)
	srv := serve(t, m)
	page, _ := get(t, srv.URL+"/metrics", "application/openmetrics-text")
	var exported []string
	for _, f := range m.all {
		name := f.base()
		unit := ""
		if _, after, ok := strings.Cut(page, "# UNIT "+name+" "); ok {
			unit, _, _ = strings.Cut(after, "\n")
		}
		if !strings.Contains(page, "# TYPE "+name+" "+string(f.kind)+"\n") {
			t.Errorf("the page has no %s %s", f.kind, name)
		}
		sample := regexp.MustCompile(`(?m)^` + f.name + `(?:_count)?(?:\{(.*)\})? \S+$`).FindStringSubmatch(page)
		if sample == nil {
			if runtime.GOOS == "linux" || !strings.HasPrefix(f.name, "process_") {
				t.Errorf("the page has no sample of %s", f.name)
			}
			continue
		}
		var labels []string
		for _, l := range regexp.MustCompile(`([a-z]+)="`).FindAllStringSubmatch(sample[1], -1) {
			labels = append(labels, l[1])
		}
		exported = append(exported, fmt.Sprintf("%s %s unit %q labels %s", f.name, f.kind, unit, strings.Join(labels, ", ")))
	}
	if n := strings.Count(page, "\n# TYPE ") + strings.Count(page[:7], "# TYPE "); n != len(m.all) {
		t.Errorf("the page has %d families, want %d", n, len(m.all))
	}
	if runtime.GOOS != "linux" {
		documented = slices.DeleteFunc(documented, func(s string) bool { return strings.HasPrefix(s, "process_") })
	}
	for _, d := range documented {
		if !slices.Contains(exported, d) {
			t.Errorf("docs/metrics.md has %s, which is not exported so", d)
		}
	}
	for _, e := range exported {
		if !slices.Contains(documented, e) {
			t.Errorf("docs/metrics.md lacks %s", e)
		}
	}
}

// everything is a meter that has been told one thing of each kind.
func everything(t *testing.T) *Metrics {
	t.Helper()
	m := New(Config{Serve: yes, Version: "1", Status: func(context.Context) (overview.Status, error) {
		var st overview.Status
		st.Connectors = []overview.ConnectorStatus{{Name: "chat"}}
		st.Connectors[0].LastOK = time.Now()
		st.Connectors[0].Refused = &connectors.Refusals{Count: 1, Why: "unsigned", At: time.Now()}
		st.Checks = map[string]overview.CheckStatus{"database": {At: claybot.Now(), Text: "whole"}}
		return st, nil
	}, Cluster: member})
	m.Received("chat", agentsystem.ReceivedAccepted, time.Second)
	m.Rated("chat", claybot.VoteUp)
	m.Sent(claybot.Outgoing{Route: claybot.Route{Connector: "chat"}}, delivery.AttemptSent, time.Second)
	for _, e := range story("r1") {
		m.Event("a1", e)
	}
	m.Event("a1", event("r1", 15, claybot.EventModelCallFailed, runs.ModelCallFailed{Class: "rate"}))
	return m
}

// The counts of failures are there before the first failure, which is an increase then.
func TestFailuresFromZero(t *testing.T) {
	m := New(Config{Serve: yes, Models: func() []string { return []string{"fast"} }, Status: func(context.Context) (overview.Status, error) {
		return overview.Status{Connectors: []overview.ConnectorStatus{{Name: "telegram"}}}, nil
	}})
	page := parse(t, pageOf(t, m))
	for _, class := range []string{"transient", "rate", "permanent"} {
		if got := value(t, page, "claybot_model_calls_failed_total", "model", "fast", "class", class); got != 0 {
			t.Errorf("%s: %v", class, got)
		}
	}
	if got := value(t, page, "claybot_sends_total", "connector", "telegram", "outcome", "failed"); got != 0 {
		t.Errorf("sends: %v", got)
	}
	m.Event("a", event("r", 1, claybot.EventModelCallFailed, runs.ModelCallFailed{Route: "fast", Class: "rate"}))
	if got := value(t, parse(t, pageOf(t, m)), "claybot_model_calls_failed_total", "model", "fast", "class", "rate"); got != 1 {
		t.Errorf("after a failure: %v", got)
	}
}

// member is a member of a cluster with all counts.
func member() Cluster {
	return Cluster{
		Member: "a", Live: true, Members: 3, MembershipsLost: 1, LeasesLost: 2,
		Traffic: storage.Traffic{
			Pools: []storage.PoolTraffic{
				{Name: "work", InUse: 5, Idle: 4, Max: 16, Acquired: 100, Waited: 7, WaitTime: 1500 * time.Millisecond},
				{Name: "renewals", Idle: 1, Max: 2},
			},
			Retried:     map[string]int64{storage.ConflictDeadlock: 1, storage.ConflictUnique: 9},
			AgentsTaken: 11, ClaimsTaken: 12, NotificationsLost: 13,
			Listener: &storage.ListenerTraffic{Up: true, Reconnects: 14},
		},
	}
}

// A process that has its store for itself has no metrics of a cluster, and a member
// without notifications none of their connection.
func TestClusterMetrics(t *testing.T) {
	deaf := func() Cluster { c := member(); c.Listener = nil; return c }
	none := math.NaN()
	for _, tt := range []struct {
		name                  string
		labels                []string
		member, deaf, outside float64
	}{
		{"claybot_member_info", []string{"member", "a"}, 1, 1, none},
		{"claybot_member_live", nil, 1, 1, none},
		{"claybot_members", nil, 3, 3, none},
		{"claybot_memberships_lost_total", nil, 1, 1, none},
		{"claybot_leases_lost_total", nil, 2, 2, none},
		{"claybot_takeovers_total", []string{"kind", "agent"}, 11, 11, none},
		{"claybot_takeovers_total", []string{"kind", "claim"}, 12, 12, none},
		{"claybot_notifications_lost_total", nil, 13, 13, none},
		{"claybot_listener_up", nil, 1, none, none},
		{"claybot_listener_reconnects_total", nil, 14, none, none},
		{"claybot_db_connections", []string{"pool", "work", "state", "in_use"}, 5, 5, none},
		{"claybot_db_connections", []string{"pool", "work", "state", "idle"}, 4, 4, none},
		{"claybot_db_connections_max", []string{"pool", "renewals"}, 2, 2, none},
		{"claybot_db_acquires_total", []string{"pool", "work"}, 100, 100, none},
		{"claybot_db_acquires_waited_total", []string{"pool", "work"}, 7, 7, none},
		{"claybot_db_acquire_wait_seconds_total", []string{"pool", "work"}, 1.5, 1.5, none},
		{"claybot_db_transactions_retried_total", []string{"conflict", "unique"}, 9, 9, none},
		{"claybot_db_transactions_retried_total", []string{"conflict", "serialization"}, 0, 0, none},
	} {
		for _, x := range []struct {
			of   func() Cluster
			want float64
		}{{member, tt.member}, {deaf, tt.deaf}, {nil, tt.outside}} {
			text, _ := get(t, serve(t, New(Config{Serve: yes, Cluster: x.of})).URL+"/metrics", "")
			got := value(t, parse(t, text), tt.name, tt.labels...)
			if got != x.want && !(math.IsNaN(got) && math.IsNaN(x.want)) {
				t.Errorf("%s%q = %v, want %v", tt.name, tt.labels, got, x.want)
			}
		}
	}
}

// Figures that are old, or not known, are left out; what the daemon knows is there.
func TestFiguresOfAnotherTime(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*overview.Status)
		up     float64
	}{
		"of now":  {func(*overview.Status) {}, 1},
		"old":     {func(s *overview.Status) { s.AsOf = claybot.Now() }, 0},
		"unknown": {func(s *overview.Status) { s.Unknown = true }, 0},
	} {
		m := New(Config{Serve: yes, Status: func(context.Context) (overview.Status, error) {
			st := overview.Status{StoreStatus: overview.StoreStatus{Agents: 7}, Connectors: []overview.ConnectorStatus{{Name: "chat"}}}
			tt.change(&st)
			return st, nil
		}})
		text, _ := get(t, serve(t, m).URL+"/metrics", "")
		page := parse(t, text)
		if value(t, page, "claybot_store_up") != tt.up || (page["claybot_agents"] != nil) != (tt.up == 1) || page["claybot_connector_up"] == nil {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// A store that fails does not fail the scrape.
func TestBrokenStore(t *testing.T) {
	m := New(Config{Serve: yes, Status: func(context.Context) (overview.Status, error) {
		return overview.Status{StoreStatus: overview.StoreStatus{Agents: 7}}, errors.New("disk is gone")
	}})
	m.Received("chat", agentsystem.ReceivedError, time.Millisecond)
	text, _ := get(t, serve(t, m).URL+"/metrics", "")
	page := parse(t, text)
	if value(t, page, "claybot_store_up") != 0 || page["claybot_agents"] != nil || value(t, page, "claybot_messages_received_total", "connector", "chat", "outcome", "error") != 1 {
		t.Errorf("page:\n%s", text)
	}
}
