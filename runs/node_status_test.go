package runs

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
)

// The events of a run say of each node, and of each call, whether it is running, waits, succeeded or failed.
func TestNodeStatuses(t *testing.T) {
	ended := func(node string, n int, result string) claybot.Event {
		return NodeEnded(planRun, node, n, result, time.Millisecond)
	}
	call := claybot.ToolCall{ID: "c1", Name: "pay", Args: "{}"}
	tool := func(ok bool) claybot.Event {
		ev, _ := EventOf(claybot.Record{Type: claybot.RecordTool, Run: planRun, Name: "pay", ToolCallID: "c1", OK: ok})
		return ev
	}
	for _, tt := range []struct {
		name   string
		events []claybot.Event
		want   string // of each event
	}{
		{"one after another", []claybot.Event{
			NodeBegan(planRun, "a", 1), ended("a", 1, "fine"), edge("a", "b", ""), NodeBegan(planRun, "b", 1), ended("b", 1, ""), edge("b", End, ""), Finished(planRun, "", claybot.Usage{}),
		}, "a running, a success, -, b running, b success, -, -"},
		{"waits", []claybot.Event{NodeBegan(planRun, "a", 1), ended("a", 1, "waits"), NodeBegan(planRun, "a", 2), ended("a", 2, "")}, "a running, a waiting, a running, a success"},
		{"tries again", []claybot.Event{NodeBegan(planRun, "a", 1), ended("a", 1, NodeRetrying), NodeBegan(planRun, "a", 1), ended("a", 1, "failed")}, "a running, -, -, a failed"},
		{"cut off", []claybot.Event{NodeBegan(planRun, "a", 1), ended("a", 1, "cut off"), NodeBegan(planRun, "a", 1)}, "a running, a waiting, a running"},
		{"cut off behind its record", []claybot.Event{
			NodeBegan(planRun, "a", 1), ended("a", 1, "cut off"), edge("a", "b", ""), NodeBegan(planRun, "b", 1), ended("b", 1, ""), edge("b", End, ""), Finished(planRun, "", claybot.Usage{}),
		}, "a running, a waiting, a success, b running, b success, -, -"},
		{"cut off without an edge", []claybot.Event{
			NodeBegan(planRun, "a", 1), ended("a", 1, "cut off"), NodeBegan(planRun, "b", 1), ended("b", 1, ""), Finished(planRun, "", claybot.Usage{}),
		}, "a running, a waiting, b running, b success, a success"},
		{"cut off for good", []claybot.Event{NodeBegan(planRun, "a", 1), ended("a", 1, "cut off"), Failed(planRun, claybot.RunError{}, 0)}, "a running, a waiting, a failed"},
		{"once more", []claybot.Event{NodeBegan(planRun, "a", 1), ended("a", 1, ""), edge("a", "a", ""), NodeBegan(planRun, "a", 2)}, "a running, a success, -, a running"},
		{"canceled", []claybot.Event{
			NodeBegan(planRun, "a", 1), ended("a", 1, ""), NodeBegan(planRun, "b", 1), ended("b", 1, "waits"), Stopped(planRun, "user", ""),
		}, "a running, a success, b running, b waiting, b failed"},
		{"failed", []claybot.Event{NodeBegan(planRun, "a", 1), Failed(planRun, claybot.RunError{}, 0)}, "a running, a failed"},
		{"calls", []claybot.Event{
			ToolCalled(planRun, call, "once"), ToolWaits(planRun, call, claybot.AwaitApproval), ToolCalled(planRun, call, "once"), tool(true), tool(false),
		}, "pay c1 running, pay c1 waiting, pay c1 running, pay c1 success, pay c1 failed"},
		{"canceled with calls", []claybot.Event{
			NodeBegan(planRun, "a", 1), ToolCalled(planRun, call, "once"), tool(true), ToolCalled(planRun, claybot.ToolCall{ID: "c2", Name: "pay", Args: "{}"}, "once"),
			ToolWaits(planRun, claybot.ToolCall{ID: "c2", Name: "pay", Args: "{}"}, claybot.AwaitApproval), ended("a", 1, "waits"), Stopped(planRun, "user", ""),
		}, "a running, pay c1 running, pay c1 success, pay c2 running, pay c2 waiting, a waiting, a failed + pay c2 failed"},
	} {
		var s NodeStatuses
		var got []string
		for _, ev := range tt.events {
			all := []string{}
			for _, n := range s.Add(ev) {
				all = append(all, strings.Join(strings.Fields(fmt.Sprint(n.Node, " ", n.Call, " ", n.Status)), " "))
			}
			got = append(got, cmp.Or(strings.Join(all, " + "), "-"))
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, strings.Join(got, ", "), tt.want)
		}
	}
}
