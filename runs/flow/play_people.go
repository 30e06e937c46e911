package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

var (
	_ runs.Journal = (*desk)(nil)
	_ runs.Reader  = (*desk)(nil)
)

// Inject implements runs.Journal.
func (d *desk) Inject(context.Context) ([]claybot.Record, error) { return nil, nil }

// Started implements runs.Journal.
func (d *desk) Started(_ context.Context, call claybot.ToolCall, _ string) error {
	d.started[call.ID] = true
	return nil
}

// Emit implements runs.Journal.
func (d *desk) Emit(context.Context, bool, ...claybot.Event) error { return nil }

// Began implements runs.Journal.
func (d *desk) Began(call string) claybot.Time {
	if d.started[call] {
		return claybot.At(d.now)
	}
	return 0
}

// Grow implements runs.Journal.
func (d *desk) Grow(int, string) {}

// Tell implements runs.Reader.
func (d *desk) Tell(context.Context, string, string) error { return nil }

// Ask implements runs.Reader.
func (d *desk) Ask(_ context.Context, round string, qs []claybot.Question) (answers []claybot.Answer, wait *claybot.Awaiting, err error) {
	if d.asked == nil {
		d.asked, d.answers = make(map[string]claybot.Question), make(map[string]claybot.Answer)
	}
	open := claybot.Awaiting{Reason: claybot.AwaitInfo, Until: claybot.At(d.now.AddDate(0, 0, 1))}
	for i, q := range qs {
		q.ID = fmt.Sprintf("%s/%d", round, i)
		if _, known := d.asked[q.ID]; !known {
			d.asked[q.ID] = q
			d.records = append(d.records, claybot.Record{Type: claybot.RecordQuestion, Run: "case", Question: &q})
		}
		if a, ok := d.answers[q.ID]; ok {
			answers = append(answers, a)
			continue
		}
		open.Questions = append(open.Questions, d.asked[q.ID])
		open.Answers = append(open.Answers, q.AnswerID())
	}
	if len(open.Questions) > 0 {
		return nil, &open, nil
	}
	return answers, nil, nil
}

// say answers a question as the case says.
func (d *desk) say(q claybot.Question) error {
	node := strings.TrimPrefix(strings.TrimPrefix(q.ID, "flow/"), "approve/")
	node = nodeOf(node)
	d.out.Asks[node] = q.Text
	said, known := d.c.Answers[node]
	if !known {
		return fmt.Errorf("%s: the case says nothing of the answer to %q", node, q.Text)
	}
	if m, ok := said.(map[string]any); ok {
		if list, ok := m["visits"].([]any); ok && len(m) == 1 && len(list) > 0 {
			said = list[min(d.said[node], len(list)-1)]
		}
	}
	d.said[node]++
	a := claybot.Answer{Question: q.ID, By: d.c.Trigger.User, Via: claybot.ViaButton}
	if len(q.Approvers) > 0 {
		a.By = q.Approvers[0]
	}
	switch {
	case said == "expire":
		a.Via, a.By = claybot.ViaDefault, ""
		if q.Type == claybot.QuestionConfirm {
			a.Value = json.RawMessage("false")
		}
	case q.Type == claybot.QuestionConfirm:
		a.Value = json.RawMessage("false")
		if said == "approve" || said == true {
			a.Value = json.RawMessage("true")
		}
	default:
		b, err := json.Marshal(said)
		if err != nil {
			return err
		}
		a.Value = b
	}
	d.answers[q.ID] = a
	d.records = append(d.records, claybot.Record{Type: claybot.RecordAnswer, Run: "case", Answer: &a})
	return nil
}

// called is what a program sends to a wait, as the case says, or expire.
func (d *desk) called(wait string) any {
	node, number, _ := strings.Cut(wait, ".")
	said, known := d.c.Answers[node]
	if !known {
		d.fault = fmt.Errorf("%s: the case says nothing of what is sent to its address", node)
		return nil
	}
	if m, ok := said.(map[string]any); ok {
		if list, ok := m["visits"].([]any); ok && len(m) == 1 && len(list) > 0 {
			n, _ := strconv.Atoi(number) // from 1
			said = list[min(max(n-1, 0), len(list)-1)]
		}
	}
	return said
}

// callback is Config.Callback.
func (d *desk) callback(_ context.Context, _ *runs.Turn, wait string, closed bool) (*claybot.Result, error) {
	said := d.called(wait)
	switch {
	case d.fault != nil:
		return nil, d.fault
	case closed && said == "expire":
		return &claybot.Result{Error: "expired"}, nil
	case said == "expire" || !d.started["callback/"+wait]: // it takes its time
		d.started["callback/"+wait] = true
		return nil, nil
	}
	b, err := json.Marshal(said)
	return &claybot.Result{OK: true, Value: b}, err
}
