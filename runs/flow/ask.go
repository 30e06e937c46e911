package flow

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// ask puts a question to a person.
func (v *visit) ask(ctx context.Context, spec *flows.Ask) (out Result, next string, err error) {
	text, _, err := v.text(spec.Text, nil)
	if err != nil {
		return out, "", err
	}
	q := claybot.Question{Key: v.node.Name, Text: text, Type: claybot.QuestionType(spec.Type), Options: spec.Options, Approvers: spec.By, Required: true}
	if q.Type == "" {
		q.Type = claybot.QuestionConfirm
	}
	if q.Type == claybot.QuestionConfirm {
		q.Once = true
	}
	expires := spec.Expires
	if expires == 0 {
		expires = flows.DefaultExpires
	}
	until, known := v.state.Scratch.Waits[v.node.Name]
	if !known {
		until = claybot.At(v.cfg.Now().Add(expires))
	}
	q.Expires = until
	if err := q.Valid(); err != nil {
		return out, "", v.failed(CodeFlow, "%v", err)
	}
	answers, wait, err := v.state.Turn.Ask(ctx, "flow/"+v.id(""), []claybot.Question{q})
	switch {
	case err != nil && ctx.Err() != nil:
		return out, "", runs.Ended(ctx)
	case errors.Is(err, runs.ErrNobody):
		return out, "", v.failed(CodeExpired, "no person can be asked; name who in by")
	case err != nil:
		return out, "", err
	case wait != nil:
		if v.state.Scratch.Waits == nil {
			v.state.Scratch.Waits = make(map[string]claybot.Time)
		}
		v.state.Scratch.Waits[v.node.Name] = until
		return out, "", &runs.WaitError{Awaiting: *wait}
	}
	return v.heard(spec, q, answers)
}

// heard goes where an answer leads.
func (v *visit) heard(spec *flows.Ask, q claybot.Question, answers []claybot.Answer) (out Result, next string, err error) {
	if len(answers) != 1 || answers[0].Value == nil || answers[0].Via == claybot.ViaDefault {
		v.state.Because("expired")
		if spec.Expired == "" {
			return out, "", v.failed(CodeExpired, "no answer in time")
		}
		out = v.put(nil, mark{})
		out.More = map[string]any{"answered": false, "by": ""}
		return out, spec.Expired, nil
	}
	a := answers[0]
	out = Result{Output: json.RawMessage(a.Value), More: map[string]any{"answered": true, "by": a.By}}
	next = v.node.Next
	if q.Type == claybot.QuestionConfirm {
		yes := tools.Approved(a)
		out = v.put(yes, mark{})
		out.More = map[string]any{"answered": true, "by": a.By}
		if !yes {
			v.state.Because("denied")
			if spec.Denied != "" {
				next = spec.Denied
			}
		}
	}
	return out, next, nil
}
