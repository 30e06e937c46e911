package dashboard

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

func TestPeriod(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 30, 0, 0, time.FixedZone("far east", 9*3600)) // 28 February in UTC
	for _, test := range []struct {
		length   string
		days     int
		from, to string
	}{
		{"7", 7, "2026-02-22", "2026-02-28"},
		{"30", 30, "2026-01-30", "2026-02-28"},
		{"90", 90, "2025-12-01", "2026-02-28"},
		{"", 30, "2026-01-30", "2026-02-28"},
		{"8", 30, "2026-01-30", "2026-02-28"},
		{"-7", 30, "2026-01-30", "2026-02-28"},
		{"007", 30, "2026-01-30", "2026-02-28"},
		{"<script>", 30, "2026-01-30", "2026-02-28"},
	} {
		p := periodOf(test.length, now)
		if p.Days != test.days || p.From != test.from || p.To != test.to {
			t.Errorf("period of %q is %+v, want %d days from %s to %s", test.length, p, test.days, test.from, test.to)
		}
		days := p.days()
		if len(days) != test.days || days[0] != test.from || days[len(days)-1] != test.to {
			t.Errorf("the days of %q are %v", test.length, days)
		}
	}
}

func spent(by, key, model string, micro, tokens, runs int64) storage.Spent {
	s := storage.Spent{Model: model, Runs: runs, Usage: claybot.Usage{Input: tokens, CostMicroUSD: micro, LLMCalls: 1}}
	switch by {
	case storage.ByDay:
		s.Day = key
	case storage.ByAgent:
		s.Agent = claybot.AgentID(key)
	case storage.ByOwner:
		s.Owner = key
	case storage.ByType:
		s.Type = claybot.AgentType(key)
	}
	return s
}

// Tokens of a model without a price are never shown as money that was not
// spent, wherever they are summed up.
func TestUnknownPrice(t *testing.T) {
	sums := []storage.Spent{
		spent(storage.ByAgent, "paid", "", 2_500_000, 1000, 3),
		spent(storage.ByAgent, "mixed", "", 1_000_000, 900, 2),
		spent(storage.ByAgent, "free", "", 0, 800, 1),
		spent(storage.ByAgent, "idle", "", 0, 0, 4),
		spent(storage.ByAgent, "toy", "", 0, 100, 1),
	}
	byModel := []storage.Spent{
		spent(storage.ByAgent, "paid", "dear", 2_500_000, 1000, 0),
		spent(storage.ByAgent, "mixed", "dear", 1_000_000, 500, 0),
		spent(storage.ByAgent, "mixed", "own", 0, 400, 0),
		spent(storage.ByAgent, "free", "own", 0, 800, 0),
		spent(storage.ByAgent, "toy", freeModel, 0, 100, 0),
	}
	got := tabulate(storage.ByAgent, sums, byModel, nil)
	want := []struct {
		key, cost string
		runs      int64
		share     int
	}{
		{"paid", "$2.50", 3, 100}, {"mixed", "$1.00 + unknown price", 2, 40}, {"free", "unknown price", 1, 0}, {"toy", "free", 1, 0}, {"idle", "$0", 4, 0},
	}
	if len(got.Rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(got.Rows), len(want))
	}
	for i, w := range want {
		r := got.Rows[i]
		if r.Key != w.key || r.Cost.String() != w.cost || r.Runs != w.runs || r.Share != w.share {
			t.Errorf("row %d is %s %q, %d runs, %d %%; want %+v", i, r.Key, r.Cost, r.Runs, r.Share, w)
		}
	}
	if c := got.Total.Cost; c.String() != "$3.50 + unknown price" || c.Unpriced != 1200 || got.Total.Runs != 11 {
		t.Errorf("the total is %+v, %d runs", c, got.Total.Runs)
	}
	if got.Rows[0].URL != "/ui/agents/paid" {
		t.Errorf("the row of an agent leads to %q", got.Rows[0].URL)
	}
}

// What caches saved is counted at the prices of the models, in each table; a model without a price leaves it unknown.
func TestCacheSavings(t *testing.T) {
	prices := llm.Prices{"dear": {Input: 3, CachedInput: 0.3, CacheWrite: 4, Output: 15}}
	row := func(agent, model string, cached, written int64) storage.Spent {
		s := spent(storage.ByAgent, agent, model, 5_000_000, 2_000_000, 1)
		s.Usage.CachedInput, s.Usage.CacheWrite = cached, written
		return s
	}
	byModel := []storage.Spent{row("ann", "dear", 1_000_000, 0), row("ann", "own", 1_000_000, 0), row("bob", "dear", 0, 100_000), row("cat", "own", 500_000, 0)}
	sums := []storage.Spent{row("ann", "", 2_000_000, 0), row("bob", "", 0, 100_000), row("cat", "", 500_000, 0)}
	table := tabulate(storage.ByAgent, sums, byModel, prices)
	got := make(map[string]string)
	for _, r := range table.Rows {
		got[r.Key] = r.Cost.CacheSaved()
	}
	want := map[string]string{"ann": "$2.70", "bob": "−$0.100", "cat": "–"}
	if !maps.Equal(got, want) || table.Total.Cost.CacheSaved() != "$2.60" {
		t.Errorf("saved: %v, in all %s, want %v", got, table.Total.Cost.CacheSaved(), want)
	}
	v := usageView{period: periodOf("7", time.Now()), By: storage.ByAgent, Days: table, Split: table}
	html := rendered(t, &pages{views: sync.OnceValue(readViews)}, pageCase{"usage", "main", v})
	for _, want := range []string{"<b>$2.60</b><span>saved by caches", ">Saved by cache</th>", `data-label="Saved by cache">−$0.100</td>`} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestTabulate(t *testing.T) {
	var sums []storage.Spent
	for i := range spentRows + 7 {
		sums = append(sums, spent(storage.ByOwner, "telegram/"+string(rune('a'+i)), "", 0, int64(i+1), 1))
	}
	got := tabulate(storage.ByOwner, sums, sums, nil)
	if len(got.Rows) != spentRows || got.More != 7 {
		t.Errorf("%d rows and %d more", len(got.Rows), got.More)
	}
	if got.Total.Runs != int64(len(sums)) {
		t.Errorf("the total leaves out what is not shown: %d runs", got.Total.Runs)
	}
	if got.Rows[0].Usage.Input != int64(len(sums)) || got.Rows[0].Share != 100 || got.Unit() != "tokens" {
		t.Errorf("without prices the rows go by tokens: %+v in %s", got.Rows[0], got.Unit())
	}
	for _, test := range []struct{ by, key, label string }{
		{storage.ByOwner, "", "none"},
		{storage.ByModel, "", "not recorded"},
		{storage.ByType, "cron", "cron tasks"},
		{storage.ByType, "new", "new"},
		{storage.ByType, "", "not recorded"},
		{storage.ByAgent, "", "no agent"},
		{storage.ByDay, "2026-01-02", "2026-01-02"},
	} {
		if label, _ := labelOf(test.by, test.key); label != test.label {
			t.Errorf("%s %q is called %q, want %q", test.by, test.key, label, test.label)
		}
	}
	if empty := tabulate(storage.ByModel, nil, nil, nil); len(empty.Rows) != 0 || empty.Total.Cost.String() != "$0" {
		t.Errorf("nothing is %+v", empty)
	}
}

func TestSeries(t *testing.T) {
	p := period{Days: 3, From: "2026-02-27", To: "2026-03-01"}
	s := series(p,
		[]storage.Spent{spent(storage.ByDay, "2026-02-28", "", 1_250_000, 70, 2), spent(storage.ByDay, "2020-01-01", "", 9, 9, 9)},
		[]storage.Spent{{Day: "2026-02-28", Model: "own", Usage: claybot.Usage{Output: 30}}, {Day: "2026-02-28", Model: "dear", Usage: claybot.Usage{Output: 5, CostMicroUSD: 1}}},
		[]storage.Latency{
			{Day: "2026-03-01", What: storage.LatencyModel + "b", P50: 1, P90: 2, P99: 3},
			{Day: "2026-02-27", What: storage.LatencyRun, P50: 10, P90: 20, P99: 30},
			{Day: "2019-01-01", What: storage.LatencyModel + "old", P50: 1},
		})
	if len(s.Days) != 3 || s.Days[1] != "2026-02-28" {
		t.Fatalf("days %v", s.Days)
	}
	if s.Cost[0] != 0 || s.Cost[1] != 1.25 || s.Input[1] != 70 || s.Runs[1] != 2 || s.Unpriced[1] != 30 {
		t.Errorf("sums %+v", s)
	}
	if len(s.Durations) != 2 || s.Durations[0].Name != "runs, including pauses" || s.Durations[1].Name != "model calls: b" {
		t.Fatalf("durations %+v", s.Durations)
	}
	if d := s.Durations[0]; *d.P50[0] != 10 || d.P50[1] != nil || *d.P99[0] != 30 {
		t.Errorf("a day without runs is shown as one on which they took no time: %+v", d)
	}
}

// The sums of days that are over are read once, the others each time, and
// together they are what one query would say.
func TestBookkeeper(t *testing.T) {
	p := period{Days: 7, From: "2026-11-15", To: "2026-11-21"}
	over, since := p.split()
	if over != "2026-11-19" || since != "2026-11-20" {
		t.Errorf("the days are split after %s, before %s", over, since)
	}
	if over, since := (period{Days: 2, From: "2026-11-20", To: "2026-11-21"}).split(); over != "" || since != "2026-11-20" {
		t.Errorf("two days are split after %q, before %s", over, since)
	}
	old := []storage.Spent{spent(storage.ByOwner, "a", "m", 5, 50, 0), spent(storage.ByOwner, "b", "m", 7, 70, 0)}
	fresh := []storage.Spent{spent(storage.ByOwner, "c", "m", 1, 10, 0), spent(storage.ByOwner, "a", "m", 2, 20, 0), spent(storage.ByOwner, "a", "n", 4, 40, 0)}
	var got []string
	for _, s := range addUp(old, fresh) {
		got = append(got, fmt.Sprint(s.Owner, s.Model, s.Usage.CostMicroUSD, "/", s.Usage.Input))
	}
	if want := "[am7/70 bm7/70 cm1/10 an4/40]"; fmt.Sprint(got) != want {
		t.Errorf("the sum is %v, want %s", got, want)
	}
	if old[0].Usage.CostMicroUSD != 5 {
		t.Error("what is kept was changed")
	}

	var k kept[int]
	reads := 0
	read := func() ([]int, error) { reads++; return []int{reads}, nil }
	if k.has("today", "a") {
		t.Error("something is kept before it was read")
	}
	if _, err := k.rows("today", "a", func() ([]int, error) { return nil, storage.ErrBusy }); err == nil || k.has("today", "a") {
		t.Error("an error is kept")
	}
	for range 3 {
		if rows, err := k.rows("today", "a", read); err != nil || len(rows) != 1 || rows[0] != 1 || !k.has("today", "a") {
			t.Errorf("rows %v, %v", rows, err)
		}
	}
	if rows, _ := k.rows("today", "b", read); rows[0] != 2 {
		t.Errorf("another key has %v", rows)
	}
	if rows, _ := k.rows("tomorrow", "a", read); rows[0] != 3 || k.has("today", "b") {
		t.Errorf("on the next day it is %v", rows)
	}
}

func TestTask(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name  string
		task  connectors.Task
		state string
		when  string
	}{
		{"on", connectors.Task{Enabled: true, Next: []time.Time{at}, TaskSpec: connectors.TaskSpec{Schedule: "0 9 * * *"}}, "on", "0 9 * * *"},
		{"off", connectors.Task{Next: []time.Time{at}, TaskSpec: connectors.TaskSpec{Every: "2h"}}, "off", "every 2h"},
		{"paused", connectors.Task{Enabled: true, Paused: "it failed ten times", TaskSpec: connectors.TaskSpec{Every: "2h"}}, "paused", "every 2h"},
		{"over", connectors.Task{Enabled: true, TaskSpec: connectors.TaskSpec{At: "2020-01-01T00:00:00Z"}}, "done", "once, at 2020-01-01T00:00:00Z"},
		{"none", connectors.Task{Enabled: true}, "done", "no schedule"},
	} {
		v := viewTask(test.task, "k")
		if v.State != test.state || v.When != test.when || (v.State == "on") != (v.Words == "") {
			t.Errorf("%s: %s %q %q", test.name, v.State, v.When, v.Words)
		}
	}
}

func TestFiring(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		firing      connectors.Firing
		tone, words string
	}{
		{connectors.Firing{State: "waiting"}, "busy", "waiting to start"},
		{connectors.Firing{State: "skipped", Reason: "missed (3)"}, "calm", "skipped: claybot was not running at that time (3)"},
		{connectors.Firing{State: "skipped", Reason: "overlap"}, "calm", "skipped: the previous run was still active"},
		{connectors.Firing{State: "skipped", Reason: "gate"}, "calm", "skipped: the gate command refused"},
		{connectors.Firing{State: "skipped", Reason: "of its own"}, "calm", "skipped: of its own"},
		{connectors.Firing{State: "skipped"}, "calm", "skipped: no reason recorded"},
		{connectors.Firing{State: "RUNNING"}, "busy", "running"},
		{connectors.Firing{State: "AWAITING"}, "busy", "waiting for an answer"},
		{connectors.Firing{State: "SUCCEEDED", Started: at, Ended: at.Add(3 * time.Second)}, "good", "succeeded"},
		{connectors.Firing{State: "FAILED"}, "bad", "failed"},
		{connectors.Firing{State: "CANCELED"}, "calm", "canceled"},
		{connectors.Firing{State: "LATER"}, "calm", "LATER"},
	} {
		v := viewFiring(test.firing)
		if v.Tone != test.tone || v.Words != test.words {
			t.Errorf("%+v: %s %q", test.firing, v.Tone, v.Words)
		}
		if want := test.firing.Ended.Sub(test.firing.Started).Milliseconds(); v.MS != want {
			t.Errorf("%+v took %d ms, want %d", test.firing, v.MS, want)
		}
	}
	if !viewFiring(connectors.Firing{Instant: "manual/x"}).Manual || viewFiring(connectors.Firing{Instant: "2026-11-21T09:00:00Z"}).Manual {
		t.Error("what was fired by hand is not told from what was scheduled")
	}
}

// Two presses of one button are one run; a press after the task fired is
// another.
func TestKey(t *testing.T) {
	task := connectors.Task{UID: "u"}
	first := keyFor(task)
	if first != keyFor(task) {
		t.Error("the same page has two keys")
	}
	seen := map[string]bool{first: true}
	for _, f := range []connectors.Firing{{Instant: "manual/" + first}, {Instant: "2026-11-21T09:00:00Z"}, {Instant: "2026-11-21T09:00:00Z", Attempt: 2}} {
		task.Last = &f
		key := keyFor(task)
		if seen[key] {
			t.Errorf("after %+v the key is an old one", f)
		}
		seen[key] = true
		if len(key) > 64 {
			t.Errorf("key %q is longer than keys may be", key)
		}
	}
	if pressKey("a", "bc") == pressKey("ab", "c") {
		t.Error("the parts of a key run together")
	}
}

func TestChanges(t *testing.T) {
	was := connectors.TaskSpec{Name: "Report", Every: "2h", Prompt: "Say\nhello", Retries: 1, Owner: "telegram/1"}
	same := was
	same.Prompt += "\n" // the browser adds one
	same.Owner = ""     // the form has none
	if ch, any := changes(was, same); any {
		t.Errorf("nothing changed, and %+v", ch)
	}
	is := was
	is.Every, is.Schedule, is.Retries, is.Once = "", "0 9 * * *", 0, true
	ch, any := changes(was, is)
	if !any || ch.Schedule == nil || *ch.Schedule != "0 9 * * *" || ch.Every != nil || ch.At != nil || ch.Name != nil || ch.Prompt != nil {
		t.Errorf("another timing is %+v", ch)
	}
	if ch.Retries == nil || *ch.Retries != 0 || ch.Once == nil || !*ch.Once {
		t.Errorf("retries and once: %+v", ch)
	}
}

func TestDelivery(t *testing.T) {
	for _, test := range []struct {
		o           claybot.Outgoing
		tone, words string
		retry, drop bool
	}{
		{claybot.Outgoing{State: claybot.SendWaiting}, "busy", "pending", true, true},
		{claybot.Outgoing{State: claybot.SendWaiting, Attempts: 2}, "busy", "waiting to retry", true, true},
		{claybot.Outgoing{State: claybot.SendAttempted}, "busy", "sending", false, false},
		{claybot.Outgoing{State: claybot.SendSent}, "good", "sent", false, false},
		{claybot.Outgoing{State: claybot.SendAmbiguous}, "warn", "ambiguous", false, false},
		{claybot.Outgoing{State: claybot.SendFailed}, "bad", "failed", true, false},
	} {
		v := viewDelivery(test.o)
		if v.Tone != test.tone || v.Words != test.words || v.Retry() != test.retry || v.Drop() != test.drop {
			t.Errorf("%s: %s %q, retry %v, drop %v", test.o.State, v.Tone, v.Words, v.Retry(), v.Drop())
		}
	}
	long := viewDelivery(claybot.Outgoing{Text: "one\ntwo\x1b[31m\u202e three"})
	if long.Preview != "one two [31m three" || long.Whole {
		t.Errorf("preview %q, whole %v", long.Preview, long.Whole)
	}
}

func TestDeliveryFilter(t *testing.T) {
	for _, test := range []struct {
		f    deliveryFilter
		want storage.OutgoingQuery
	}{
		{deliveryFilter{}, storage.OutgoingQuery{}},
		{deliveryFilter{Show: "open"}, storage.OutgoingQuery{Open: true}},
		{deliveryFilter{Show: "failed", Before: 7}, storage.OutgoingQuery{State: claybot.SendFailed, Before: 7}},
		{deliveryFilter{Show: "'; DROP TABLE outbox"}, storage.OutgoingQuery{}},
		{deliveryFilter{Connector: "telegram", Channel: "-1 0"}, storage.OutgoingQuery{Dest: "telegram\x00-1 0"}},
	} {
		test.want.Limit = deliveryRows + 1
		if got := test.f.query(); got != test.want {
			t.Errorf("%+v asks for %+v, want %+v", test.f, got, test.want)
		}
	}
	if got := (deliveryFilter{Show: "failed", Channel: "a&b"}).values(9).Encode(); got != "before=9&channel=a%26b&show=failed" {
		t.Errorf("the address is %q", got)
	}
}

func TestHealth(t *testing.T) {
	well := func() overview.Status {
		return overview.Status{
			Connectors:    []overview.ConnectorStatus{{Name: "telegram", Health: connectors.Health{State: connectors.StateLive, LastOK: time.Now()}}},
			OutsideStatus: overview.OutsideStatus{Model: overview.ModelStatus{Name: "gpt", LastOK: time.Now()}, Disk: &overview.DiskStatus{Free: 50 << 30, Total: 100 << 30}},
		}
	}
	for _, test := range []struct {
		name    string
		break_  func(*overview.Status)
		tone    string
		verdict string
	}{
		{"well", func(*overview.Status) {}, "good", "All systems are working."},
		{"stopped", func(s *overview.Status) { s.Connectors[0].State = connectors.StateStopped }, "bad", "1 connector is off and needs action."},
		{"failing", func(s *overview.Status) { s.Connectors[0].State = connectors.StateFailing }, "warn", "1 connector has failed and retries."},
		{"in part", func(s *overview.Status) { s.Connectors[0].Err = "a file is broken" }, "warn", "1 connector works only partly."},
		{"model", func(s *overview.Status) { s.Model.Err = "no" }, "bad", "The model does not respond."},
		{"no model", func(s *overview.Status) { s.Model = overview.ModelStatus{} }, "warn", "No model is configured."},
		{"lost", func(s *overview.Status) { s.Outbox = map[claybot.SendState]int{claybot.SendFailed: 2} }, "warn", "2 messages could not be delivered."},
		{"full", func(s *overview.Status) { s.Disk.Free = 1 << 20; s.Connectors[0].State = connectors.StateStopped }, "bad", "The disk is almost full."},
		{"no disk", func(s *overview.Status) { s.Disk = nil }, "good", "All systems are working."},
	} {
		s := well()
		test.break_(&s)
		v := viewHealth(viewer{}, s)
		if v.Tone != test.tone || v.Verdict != test.verdict {
			t.Errorf("%s: %s %q", test.name, v.Tone, v.Verdict)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 99_440: "99.4 kB", 123_456_789: "123 MB", 999_600_000: "1.0 GB", 7_500_000_000_000: "7.5 TB"} {
		if got := bytesOf(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}

func TestAccessView(t *testing.T) {
	s := overview.Status{Connectors: []overview.ConnectorStatus{{Name: "cron"}, {Name: "slack"}, {Name: "web"}}}
	v := viewAccess(viewer{}, []storage.Pairing{
		{Code: "OLD", Expires: 100}, {Code: "NEW", Expires: 101, Name: "a\u202eb\n<i>"}, {Code: "NONAME", Expires: 0},
	}, []storage.Grant{{Connector: "telegram", Subject: "1", At: 1}, {Connector: "slack", Subject: "2", At: 1}, {Connector: "slack", Subject: "3", At: 2}}, s, 100)
	if len(v.Pairings) != 2 || v.Pairings[0].Shown != "ab <i>" || v.Pairings[1].Shown != "no name" {
		t.Errorf("pairings %+v", v.Pairings)
	}
	if len(v.Grants) != 3 || v.Grants[0].Subject != "3" || v.Grants[2].Connector != "telegram" {
		t.Errorf("grants %+v", v.Grants)
	}
	if len(v.Doors) != 1 || v.Doors[0] != "slack" {
		t.Errorf("doors %v", v.Doors)
	}
	for _, mode := range []people.AccessMode{"", people.AccessPairing, people.AccessAllowlist, people.AccessOpen} {
		if modeWords(mode) == "" {
			t.Errorf("no words for %q", mode)
		}
	}
}

// A form that scripts send must do nothing before they are loaded: a browser would
// put what was typed into the address.
func TestFormsOfScripts(t *testing.T) {
	forms := 0
	err := fs.WalkDir(templates, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := templates.ReadFile(path)
		for _, form := range regexp.MustCompile(`<form[^>]*>`).FindAllString(string(text), -1) {
			forms++
			if !strings.Contains(form, ` action="`) && !strings.Contains(form, ` method="dialog"`) {
				t.Errorf("%s: %s", path, form)
			}
		}
		return err
	})
	if err != nil || forms < 10 {
		t.Fatalf("%d forms, %v", forms, err)
	}
}
