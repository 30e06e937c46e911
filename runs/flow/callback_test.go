package flow_test

import (
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs/flow"
)

// calledBack hands out an address, and waits for a call to it.
const calledBack = `
owner: chat/ann
start: link
nodes:
  link: {kind: reply, text: "Pay at {{ paid.callback }}", next: paid}
  paid: {kind: wait, event: callback, for: 2d, expired: late, next: thanks}
  thanks: {kind: reply, text: "Paid {{ paid.output.total }}, {{ paid.total }}", next: again}
  again: {kind: wait, event: callback, max_visits: 2, next: more, error: failed}
  more: {kind: switch, max_visits: 2, value: "{{ again.output }}", cases: {more: again}, else: END}
  late: {kind: reply, text: Too late, next: END}
  failed: {kind: template, value: "{{ error.code }} {{ again.callback }}", next: END}
`

var calledBackWays = []flow.Case{
	{
		Name: "called", Answers: obj{"paid": obj{"total": 5}, "again": obj{"visits": []any{"more", "done"}}},
		Expect: flow.Expected{
			Path: []string{"link", "paid", "thanks", "again", "more", "again", "more"}, Outputs: obj{"again": "done"},
			Replies: []string{"Pay at https://claybot.example/callbacks/case/paid.1", "Paid 5, 5"},
		},
	},
	{Name: "not called", Answers: obj{"paid": "expire"}, Expect: flow.Expected{Path: []string{"link", "paid", "late"}, Replies: []string{"Pay at https://claybot.example/callbacks/case/paid.1", "Too late"}}},
	{
		Name: "not called without an edge", Answers: obj{"paid": obj{"total": 5}, "again": "expire"},
		Expect: flow.Expected{Path: []string{"link", "paid", "thanks", "again", "failed"}, Outputs: obj{"failed": "expired https://claybot.example/callbacks/case/again.2"}},
	},
}

// A wait ends with a call to its address or its time, cut off behind and before each record as well; and a run that
// was called is a case again.
func TestCallbacks(t *testing.T) {
	p := player(t, calledBack)
	for _, c := range calledBackWays {
		c.Trigger.User = "chat/ann"
		goesItsWay(t, p, c)
		played, err := p.Play(t.Context(), c, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		message := claybot.AgentMessage{Flow: &claybot.FlowStart{Name: "every", Connector: "chat"}, From: claybot.Sender{UserID: "ann"}}
		got, err := p.Record(t.Context(), flow.Recording{Run: claybot.Run{ID: "case", State: claybot.RunSucceeded}, Message: message, Records: played.Log})
		if err != nil || len(got.Expect.Path) != len(played.Path) {
			t.Errorf("%s: recorded %+v, %v", c.Name, got, err)
		}
	}
}

// A live replay uses what a program sent, which knows the address of the earlier run; where that had expired, it waits
// again.
func TestReplayOfCallbacks(t *testing.T) {
	p := player(t, calledBack)
	for _, c := range calledBackWays {
		c.Trigger.User = "chat/ann"
		played, err := p.Play(t.Context(), c, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		c.Past, c.Replay = played.Log, &claybot.FlowReplay{Run: "case"}
		c.Answers = obj{"paid": "expire", "again": "expire"}
		c.Expect = flow.Expected{Path: played.Path}
		if wrong, got, err := p.Test(t.Context(), c); err != nil || len(wrong) > 0 || len(got.Replies) > 0 {
			t.Errorf("%s: %v %s, sent %q", c.Name, err, strings.Join(wrong, "\n"), got.Replies)
		}
		if wrong, _, err := p.Crash(t.Context(), c); err != nil || len(wrong) > 0 {
			t.Errorf("%s: cut off: %v %s", c.Name, err, strings.Join(wrong, "\n"))
		}
	}
}
