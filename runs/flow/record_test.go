package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs/flow"
)

// recording is a case that was played, as a run that is recorded.
func recording(t *testing.T, p flow.Player, c flow.Case) flow.Recording {
	t.Helper()
	played, err := p.Play(t.Context(), c, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	r := flow.Recording{Run: claybot.Run{ID: "case", State: claybot.RunSucceeded}, Records: played.Log}
	payload, err := json.Marshal(c.Trigger.Payload)
	if err != nil {
		t.Fatal(err)
	}
	connector, user, _ := strings.Cut(c.Trigger.User, "/")
	r.Message = claybot.AgentMessage{Text: c.Trigger.Text, Payload: payload, From: claybot.Sender{UserID: user}, Flow: &claybot.FlowStart{Connector: connector, Trigger: c.Trigger.Name}}
	if played.Err != nil {
		r.Run.State, r.Run.Error = claybot.RunFailed, &claybot.RunError{Code: played.Err.Code, Text: played.Err.Text}
	}
	return r
}

// A run of each way through a flow becomes a case that passes at once, and takes the same way.
func TestRecordWays(t *testing.T) {
	for _, c := range ways {
		t.Run(c.Name, func(t *testing.T) {
			p := player(t, everyKind)
			want, err := p.Play(t.Context(), c, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Record(t.Context(), recording(t, p, c))
			if err != nil {
				t.Fatal(err)
			}
			wrong, played, err := p.Test(t.Context(), got)
			if err != nil || len(wrong) > 0 || !slices.Equal(played.Path, want.Path) || !slices.Equal(got.Expect.Path, want.Path) {
				t.Errorf("%v %v, path %v, want %v", err, wrong, played.Path, want.Path)
			}
		})
	}
}

const support = `
owner: chat/ann
start: classify
nodes:
  classify: {kind: agent, prompt: "{{ trigger.text }}", output: {intent: [refund, question], order: "/^[0-9]{0,8}$/"}, next: route}
  route: {kind: switch, value: "{{ classify.intent }}", cases: {refund: order}, else: tell}
  order: {kind: tool, tool: shop_order, args: {id: "{{ classify.order }}"}, next: big, error: tell}
  big: {kind: switch, value: "{{ order.total > 50 }}", cases: {'true': sure, 'True': sure}, else: pay}
  sure: {kind: ask, text: "Pay {{ order.total }} to {{ order.customer.name }}?", type: select, options: [all, half], by: [chat/bob], next: pay}
  pay: {kind: tool, tool: shop_refund, args: {id: "{{ order.id }}"}, approve: {by: [chat/bob]}, next: tell, error: tell}
  tell: {kind: reply, text: "Done for {{ trigger.text }}: {{ pay.output | default('no') }}", next: END}
`

// A case has no text of the run but what its way depends on, and no secret.
func TestRecordRedacts(t *testing.T) {
	p := player(t, support)
	c := flow.Case{
		Trigger: flow.Started{Name: "chat", Text: "Refund my order 4711, I am Erika Mustermann", User: "chat/U0PRIVATE", Payload: map[string]any{"mail": "erika@example.org"}},
		Nodes: map[string]any{
			"classify": map[string]any{"intent": "refund", "order": "4711"},
			"order":    map[string]any{"id": "4711", "total": 93.5, "customer": map[string]any{"name": "Erika Mustermann", "iban": "DE00123456"}},
			"pay":      "paid to DE00123456",
		},
		Answers: map[string]any{"sure": "half", "pay": "approve"},
	}
	got, err := p.Record(t.Context(), recording(t, p, c))
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, private := range []string{"Erika", "Mustermann", "4711", "DE00", "example.org", "U0PRIVATE", "iban", "mail"} {
		if strings.Contains(string(b), private) {
			t.Errorf("%s in %s", private, b)
		}
	}
	if want := []string{"classify", "route", "order", "big", "sure", "pay", "tell"}; !slices.Equal(got.Expect.Path, want) || !strings.Contains(string(b), "refund") {
		t.Errorf("path %v, %s", got.Expect.Path, b)
	}
	if wrong, _, err := p.Test(t.Context(), got); err != nil || len(wrong) > 0 {
		t.Errorf("%v %v", err, wrong)
	}
}

func TestRecordRefuses(t *testing.T) {
	key := "xoxb-" + strings.Repeat("1", 12) + "-" + strings.Repeat("2", 12) + "-" + strings.Repeat("a", 24)
	secret := strings.ReplaceAll(support, "{refund: order}", "{refund: order, '"+key+"': order}")
	secret = strings.ReplaceAll(secret, "[refund, question]", "text")
	for _, tt := range []struct {
		name, flow string
		change     func(*flow.Recording)
		says       string
	}{
		{"canceled", support, func(r *flow.Recording) { r.Run.State = claybot.RunCanceled }, "it was canceled"},
		{"another way", support, func(r *flow.Recording) { r.Records = r.Records[:3] }, "a node of which the run says nothing"},
		{"cut off", support, func(r *flow.Recording) {
			for i := range r.Records {
				if r.Records[i].Type == claybot.RecordTool {
					r.Records[i].OK, r.Records[i].Interrupted = false, true
				}
			}
		}, "a call of the node order was cut off"},
		{"a secret that its way depends on", secret, nil, "its way depends on"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := player(t, tt.flow)
			c := flow.Case{
				Trigger: flow.Started{User: "chat/ann"}, Nodes: map[string]any{"classify": map[string]any{"intent": "refund", "order": "4711"}, "order": map[string]any{"id": "7", "total": 1}, "pay": "ok"},
				Answers: map[string]any{"pay": "approve"},
			}
			if tt.flow == secret {
				c.Nodes["classify"] = map[string]any{"intent": key, "order": "4711"}
			}
			r := recording(t, p, c)
			if tt.change != nil {
				tt.change(&r)
			}
			if _, err := p.Record(t.Context(), r); err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), key) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
}

// A long list on which the way does not depend takes few plays, and a recording ends with its context.
func TestRecordLongList(t *testing.T) {
	p := player(t, "owner: chat/ann\nstart: look\nnodes:\n  look: {kind: tool, tool: look, next: tell}\n  tell: {kind: reply, text: \"{{ look.output[0] }}\", next: END}\n")
	list := make([]any, 3500)
	for i := range list {
		list[i] = "Erika"
	}
	c := flow.Case{Trigger: flow.Started{Text: "tea", User: "chat/ann"}, Nodes: map[string]any{"look": list}}
	r := recording(t, p, c)
	got, err := p.Record(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(got); err != nil || len(b) > 2000 || strings.Contains(string(b), "Erika") {
		t.Errorf("%v: %d bytes", err, len(b))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Record(ended, r); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
}
