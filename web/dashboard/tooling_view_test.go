package dashboard

import (
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// A call shows whether its result is of strangers, and what ran in place of what
// the model had asked for.
func TestTimelineMarks(t *testing.T) {
	call := claybot.ToolCall{ID: "c1", Name: "shell", Args: `{"command":"rm x"}`}
	edited := `{"command":"ls","note":"a\n\nb"}`
	for _, tt := range []struct {
		name             string
		rec              claybot.Record
		edited, out, why string
		tainted          bool
	}{
		{"as asked", claybot.Record{OK: true, Text: "gone"}, "", "gone", "", false},
		{"of a stranger", claybot.Record{OK: true, Text: "page", Tainted: true}, "", "page", "", true},
		{"edited", claybot.Record{OK: true, Text: tools.Edited(edited, "a\n\nb")}, edited, "a\n\nb", "", false},
		{"edited and failed", claybot.Record{Text: tools.Edited(edited, "no shell"), Tainted: true}, edited, "no shell", "", true},
		{"a long one is cut", claybot.Record{OK: true, Text: tools.Edited(strings.Repeat("x", 2*runs.PreviewLimit), "never shown")}, strings.Repeat("x", 100), "", "", false},
		{"with a file", claybot.Record{OK: true, Text: "much", Saved: "results/c1.txt"}, "", "much", "full result in results/c1.txt", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := tt.rec
			rec.Type, rec.ToolCallID, rec.Name, rec.MS = claybot.RecordTool, "c1", "shell", 12
			ended, _ := runs.EventOf(rec)
			items := told(story(runs.ToolCalled("r", call, "once"), ended))
			if len(items) != 1 {
				t.Fatalf("%d items", len(items))
			}
			it := items[0]
			if !strings.HasPrefix(it.Edited, tt.edited) || (tt.edited == "") != (it.Edited == "") || it.Out != tt.out || it.Tainted != tt.tainted || it.MS != 12 || it.Args != call.Args || it.Note != tt.why {
				t.Errorf("it shows %+v", it)
			}
		})
	}
}

// Calls without a price are named where others of the same model have one, and
// never hidden in the sum.
func TestUnpricedCalls(t *testing.T) {
	usage := claybot.Usage{Input: 10, CostMicroUSD: 1_000_000, LLMCalls: 5, Unpriced: 2}
	if got := spendOf(usage, "m"); got.String() != "$1.00 + unknown price" || got.Calls != 2 || got.Unpriced != 0 {
		t.Errorf("it is %+v: %s", got, got)
	}
	if got := cost(usage); got != "$1.00 + unknown price" {
		t.Errorf("a run cost %s", got)
	}
	usage.CostMicroUSD = 0
	if got := spendOf(usage, "m"); got.String() != unpriced {
		t.Errorf("it is %s", got)
	}
	if got := spendOf(usage, freeModel); got.String() != "free" {
		t.Errorf("the built-in model is %s", got)
	}
}

func TestUsageByChannel(t *testing.T) {
	sums := []storage.Spent{
		{Channel: "slack:C1", Connector: "slack", Usage: claybot.Usage{CostMicroUSD: 5}}, {Channel: "slack:C2", Connector: "slack", Usage: claybot.Usage{CostMicroUSD: 7}}, {},
	}
	got := addUp(sums, []storage.Spent{{Channel: "slack:C1", Connector: "slack", Usage: claybot.Usage{CostMicroUSD: 4}}})
	table := tabulate(storage.ByChannel, got, got, nil)
	want := []string{"slack:C1", "slack:C2", "none"}
	for i, w := range want {
		if table.Rows[i].Label != w {
			t.Errorf("row %d is %q, want %q", i, table.Rows[i].Label, w)
		}
	}
	if table.Rows[0].Cost.MicroUSD != 9 || len(table.Rows) != len(want) {
		t.Errorf("the rows are %+v", table.Rows)
	}
}

func TestBudgetRow(t *testing.T) {
	for _, tt := range []struct {
		b                      storage.Budget
		left, resets, tone, to string
		share                  int
	}{
		{storage.Budget{Period: "2026-11-22", Unit: storage.UnitMicroUSD, Hard: true, Limit: 2_000_000, Spent: 500_000}, "$1.50", "at the end of 2026-11-22", "good", "2026-11-22-0", 25},
		{storage.Budget{Period: "2026-11", Unit: storage.UnitMicroUSD, Hard: true, Limit: 1_000_000, Spent: 1_250_000}, "−$0.250", "at the end of the month 2026-11", "bad", "2026-11-0", 100},
		{storage.Budget{Period: "always", Unit: storage.UnitTokens, Limit: 1000, Extension: 500, Spent: 1000, Reserved: 300}, "200 tokens", "never", "warn", "always-500", 86},
		{storage.Budget{Period: "run", Unit: storage.UnitTokens, Hard: true}, "0 tokens", "with each run", "bad", "run-0", 100},
	} {
		r := budgetRow{tt.b}
		if got := r.Amount(r.Left()); got != tt.left || r.Resets() != tt.resets || r.Tone() != tt.tone || r.Share() != tt.share || r.Step() != tt.to {
			t.Errorf("%+v is %s left, %s, %s, %d %%, %s", tt.b, got, r.Resets(), r.Tone(), r.Share(), r.Step())
		}
	}
}

func TestScopeWords(t *testing.T) {
	for scope, want := range map[string]string{
		"agent/abc": "Notes of agent abc", "owner/slack/U1": "Notes shared by the agents of slack/U1", "global": "Notes shared by all agents",
	} {
		if got := scopeWords(scope); got != want {
			t.Errorf("%s is %q, want %q", scope, got, want)
		}
	}
}
