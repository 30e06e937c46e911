package api_test

import (
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web/api"
)

func TestUsage(t *testing.T) {
	r := start(t)
	a := r.say("hello")
	r.ended(a.Run)
	r.ended(r.say("again").Run)
	type report struct {
		Usage []struct {
			Day, Agent, Model, Type, Owner string
			Runs                           int64
			Usage                          struct{ Input, Output int64 }
		}
	}
	var all report
	r.ask("GET", "/usage", "", http.StatusOK, &all)
	if len(all.Usage) != 1 || all.Usage[0].Usage.Input != 20 || all.Usage[0].Usage.Output != 4 || all.Usage[0].Runs != 2 {
		t.Errorf("usage %+v", all)
	}
	r.ask("GET", "/usage?by=day,agent,owner,model,type&from="+time.Now().UTC().AddDate(0, 0, -29).Format(time.DateOnly), "", http.StatusOK, &all) // 31 days when midnight passes here
	if x := all.Usage[0]; len(x.Day) != 10 || x.Agent != a.Agent || x.Model != "script" || x.Type != "user" || x.Owner != "api/owner" {
		t.Errorf("by everything %+v", all)
	}
	r.ask("GET", "/usage?agent="+a.Agent+"&from=2000-01-01&to=2000-01-02", "", http.StatusOK, &all)
	if len(all.Usage) > 0 && all.Usage[0].Usage.Input != 0 {
		t.Errorf("of another time %+v", all)
	}
	g := r.do("GET", "/usage?by=day,model&format=csv", "")
	lines, err := csv.NewReader(strings.NewReader(g.body)).ReadAll()
	if err != nil || g.head.Get("Content-Type") != "text/csv; charset=utf-8" || len(lines) < 2 ||
		strings.Join(lines[0], ",") != "day,model,input,output,cached_input,cost_micro_usd,llm_calls,tool_calls,runs,cache_write,reasoning,unpriced_calls" {
		t.Fatalf("csv %v %q", err, g.body)
	}
	input := 0
	for _, line := range lines[1:] { // two, when midnight passed between the runs
		n, err := strconv.Atoi(line[2])
		if input += n; err != nil || line[1] != "script" {
			t.Errorf("csv %v %q", err, g.body)
		}
	}
	if input != 20 {
		t.Errorf("csv %q", g.body)
	}
	for _, bad := range []string{
		"from=yesterday", "to=2026-13-01", "from=2026-02-01&to=2026-01-01", "by=hour", "by=day,day", "by=,", "by=day;drop", "format=xml",
	} {
		r.refused("GET", "/usage?"+bad, "", 400, "bad_request", "")
	}
	if g := r.do("GET", "/latency", ""); g.code != 200 || !strings.Contains(g.body, `"what":"run"`) {
		t.Errorf("latency %d %s", g.code, g.body)
	}
	r.refused("GET", "/latency?from=x", "", 400, "bad_request", "such as")
}

// What would be as many rows as agents times days is refused beyond a month.
func TestWideReports(t *testing.T) {
	r := start(t)
	back := func(days int) string { return time.Now().UTC().AddDate(0, 0, -days).Format(time.DateOnly) }
	for query, ok := range map[string]bool{
		"by=day,agent":                                 false,
		"by=day,owner&from=" + back(400):               false,
		"by=type,owner,day&to=" + back(0):              false,
		"by=day,agent&from=" + back(40):                false,
		"by=day,agent&from=2026-01-01&to=2026-02-01":   false,
		"by=day,agent&from=2026-01-01&to=2026-01-31":   true,
		"by=day,owner&from=" + back(29):                true,
		"by=day,agent,owner&agent=a&from=" + back(400): true,
		"by=day,model,type":                            true,
		"by=agent,owner,model,type":                    true,
		"by=day,agent&format=csv&from=" + back(400):    false,
		"by=day,agent&from=2027-01-01&to=2027-01-02":   true,
	} {
		if ok {
			r.ask("GET", "/usage?"+query, "", http.StatusOK, nil)
			continue
		}
		r.refused("GET", "/usage?"+query, "", 400, "bad_request", "at most 31 days")
	}
}

// A rich store has spent n rows each day, and notes how many it was asked for.
type rich struct {
	storage.Usages
	n     func(day string) int
	limit *int
}

func (d rich) Spent(_ context.Context, q storage.SpentQuery) ([]storage.Spent, error) {
	*d.limit = max(*d.limit, q.Limit)
	rows := make([]storage.Spent, min(d.n(q.From), q.Limit))
	for i := range rows {
		rows[i] = storage.Spent{Day: q.From, Agent: "a", Runs: int64(i)}
	}
	return rows, nil
}

func TestLongReportsAreCut(t *testing.T) {
	n, limit := 0, 0
	r := start(t, func(r *rig) {
		r.usage = rich{nil, func(string) int { return n }, &limit}
	})
	for _, tc := range []struct {
		n, rows int
		more    bool
	}{{0, 0, false}, {10_000, 10_000, false}, {10_001, 10_000, true}, {1_000_000, 10_000, true}} {
		n = tc.n
		var out struct {
			Usage []storage.Spent
			More  bool
		}
		r.ask("GET", "/usage?by=agent", "", http.StatusOK, &out)
		if len(out.Usage) != tc.rows || out.More != tc.more || limit > 10_001 {
			t.Errorf("of %d rows: %d, more %v, asked for %d", tc.n, len(out.Usage), out.More, limit)
		}
		if tc.more {
			r.refused("GET", "/usage?by=agent&format=csv", "", 400, "bad_request", "more than 10000 rows")
			continue
		}
		g := r.do("GET", "/usage?by=agent&format=csv", "")
		if lines := strings.Count(g.body, "\n"); g.code != http.StatusOK || lines != tc.rows+1 {
			t.Errorf("csv of %d rows: %d, %d lines", tc.n, g.code, lines)
		}
	}
}

// A file of many rows is read day by day, and is whole or cut off.
func TestFilesOfManyDays(t *testing.T) {
	n, limit := map[string]int{"2026-02-27": 10_000, "2026-02-28": 0, "2026-03-01": 9_000}, 0
	r := start(t, func(r *rig) {
		r.usage = rich{nil, func(day string) int { return n[day] }, &limit}
	})
	const path = "/usage?by=day,agent&format=csv&from=2026-02-27&to=2026-03-01"
	g := r.do("GET", path, "")
	lines := strings.Split(strings.TrimSuffix(g.body, "\n"), "\n")
	if g.code != http.StatusOK || len(lines) != 19_001 || lines[1] != "2026-02-27,a,0,0,0,0,0,0,0,0,0,0" || lines[19_000] != "2026-03-01,a,0,0,0,0,0,0,8999,0,0,0" {
		t.Errorf("%d, %d lines, the last %q", g.code, len(lines), lines[len(lines)-1])
	}
	n["2026-03-01"] = 10_001
	resp := r.open("GET", path, "")
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("a file that is not whole ends well after %d bytes", len(b))
	}
	n["2026-02-27"] = 10_001
	r.refused("GET", path, "", 400, "bad_request", "more than 10000 rows")
}

// A cell that a spreadsheet would take for a formula is kept from being one.
func TestCells(t *testing.T) {
	for in, want := range map[string]string{"": "", "gpt": "gpt", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\tx": "'\tx", "a=b": "a=b"} {
		if got := api.Cell(in); got != want {
			t.Errorf("cell(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestReceiptsAndStatus(t *testing.T) {
	r := start(t)
	a := r.say("hello")
	r.ended(a.Run)
	var list struct {
		Receipts []struct {
			MessageID, AgentID, Text string
			Run                      *runRow
			Steps                    []struct{ What, Text string }
		}
	}
	for _, ref := range []string{a.Message, a.Run} {
		r.ask("GET", "/receipts?message="+url.QueryEscape(ref), "", http.StatusOK, &list)
		if len(list.Receipts) != 1 || list.Receipts[0].MessageID != a.Message || list.Receipts[0].Run == nil || list.Receipts[0].Run.RunID != a.Run || len(list.Receipts[0].Steps) == 0 {
			t.Errorf("receipts of %s: %+v", ref, list)
		}
	}
	r.refused("GET", "/receipts?message=nothing", "", 404, "not_found", "Unknown message")
	r.refused("GET", "/receipts", "", 400, "bad_request", "message is missing")
	var status struct {
		Version    string
		Agents     int
		Connectors []struct{ Name string }
	}
	r.ask("GET", "/status", "", http.StatusOK, &status)
	if status.Version != "test" || status.Agents != 1 || len(status.Connectors) == 0 {
		t.Errorf("status %+v", status)
	}
}
