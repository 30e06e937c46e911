package flow

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// The tools with which http nodes make their requests, by what one that was cut off may have done.
const (
	toolRead  = "http_read"
	toolKeyed = "http_keyed"
	toolOnce  = "http_once"
)

// request makes the request of an http node as the call of a tool.
func (v *visit) request(ctx context.Context, spec *flows.HTTP, try int) (out Result, next string, err error) {
	args := map[string]any{"url": spec.URL, "method": cmp.Or(spec.Method, "GET")}
	headers, secrets := make(map[string]any), make(map[string]any)
	for name, value := range spec.Headers {
		// Only what the file says is a reference: what a template makes may come from a stranger.
		if text, ok := value.(string); ok && (strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "file:")) && !strings.Contains(text, "{") {
			secrets[name] = text
			continue
		}
		headers[name] = value
	}
	tool := toolOf(spec)
	if tool == toolKeyed {
		sum := sha256.Sum256([]byte(string(v.state.Turn.Run.ID) + "/" + v.id("")))
		headers[spec.KeyHeader] = hex.EncodeToString(sum[:16])
	}
	if len(headers) > 0 {
		args["headers"] = headers
	}
	if len(secrets) > 0 {
		args["secrets"] = secrets
	}
	if spec.Body != nil {
		args["body"] = spec.Body
	}
	return v.call(ctx, &flows.Tool{Tool: tool, Args: args}, try)
}

// toolOf is the tool that makes a request.
func toolOf(spec *flows.HTTP) string {
	switch {
	case spec.Method == "" || spec.Method == "GET" || spec.Method == "HEAD":
		return toolRead
	case spec.KeyHeader != "":
		return toolKeyed
	}
	return toolOnce
}

// call makes the call of a tool.
func (v *visit) call(ctx context.Context, spec *flows.Tool, try int) (out Result, next string, err error) {
	id := v.id(strconv.Itoa(try))
	asked, result := earlier(v.recorded(), v.state.Turn.Run.ID, id)
	if asked == nil {
		args, taint, err := v.fill(spec.Args, nil)
		if err != nil {
			return out, "", err
		}
		b, err := json.Marshal(args)
		if err != nil || args == nil {
			b = []byte("{}")
		}
		// The taint of the record is that of the arguments: by it the call is judged.
		asked = &claybot.Record{
			Type: claybot.RecordAssistant, At: claybot.Now(), Run: v.state.Turn.Run.ID, Step: len(v.recorded()),
			ToolCalls: []claybot.ToolCall{{ID: id, Name: spec.Tool, Args: string(b)}}, Tainted: taint.tainted, Private: taint.private,
		}
		if err := v.state.Record(*asked); err != nil {
			return out, "", err
		}
	}
	if result == nil {
		if err := v.unchanged(spec.Tool, id); err != nil {
			return out, "", err
		}
		if result, err = v.settle(ctx, spec, *asked); err != nil {
			return out, "", err
		}
	}
	got := *result
	if !asked.Private && v.cfg.Outside != nil && v.cfg.Outside(v.state.Turn.Agent, spec.Tool) {
		got.Private = false
	}
	if start(v.state.Turn).Dry && !got.OK && strings.HasSuffix(tools.Unmarked(got.Text), "not approved: no person can be asked") {
		return v.would()
	}
	out, next, err = v.resulted(spec, got)
	if v.again() && codeOf(err) == CodeDenied { // what has acted stays
		if e := v.past.visit(v.node.Name, v.number); e != nil {
			return v.reuse(*e)
		}
	}
	return out, next, err
}

// noteSchemas keeps what the arguments of the tools of the flow are when the run begins to wait.
func (v *visit) noteSchemas() {
	if s := v.state.Scratch.Schemas; s != nil && s.Version == v.flow.Hash {
		return
	}
	s := &Schemas{Version: v.flow.Hash, Tools: make(map[string]string)}
	for _, n := range v.flow.Nodes {
		if spec, ok := n.Spec.(*flows.Tool); ok {
			if schema := v.cfg.Schema(v.state.Turn.Agent, spec.Tool); schema != "" {
				s.Tools[spec.Tool] = schema
			}
		}
	}
	if len(s.Tools) > 0 {
		v.state.Scratch.Schemas = s
	}
}

// unchanged returns an error for a call of a tool whose arguments are others than when the run began to
// wait: what the flow gives it was checked against those. A call that was begun is not one.
func (v *visit) unchanged(tool, id string) error {
	s := v.state.Scratch.Schemas
	if s == nil || s.Version != v.flow.Hash || v.state.Turn.InDoubt(id) {
		return nil
	}
	known, now := s.Tools[tool], v.cfg.Schema(v.state.Turn.Agent, tool)
	if known == "" || now == "" || known == now {
		return nil
	}
	return v.failed(CodeChanged, "the arguments of the tool %s have changed since the run began to wait; it was not called", tool)
}

// codeOf is the code of an error; empty for none.
func codeOf(err error) string {
	if failed := (*runs.Error)(nil); errors.As(err, &failed) {
		return failed.Code
	}
	return ""
}

// earlier returns the records of a call that a run made; nil where there are none.
func earlier(records []claybot.Record, run claybot.RunID, id string) (asked, result *claybot.Record) {
	for _, r := range records {
		switch {
		case r.Run != run:
		case r.Type == claybot.RecordAssistant && len(r.ToolCalls) == 1 && r.ToolCalls[0].ID == id:
			asked = &r
		case r.Type == claybot.RecordTool && r.ToolCallID == id:
			result = &r
		}
	}
	return asked, result
}

// settle makes a call that is recorded. The loop sees nothing of the run but the call, and what
// people were asked about it and said.
func (v *visit) settle(ctx context.Context, spec *flows.Tool, asked claybot.Record) (result *claybot.Record, err error) {
	turn := *v.state.Turn
	turn.History = nil
	if asked.Tainted || asked.Private {
		turn.History = append(turn.History, claybot.Record{Type: claybot.RecordSystem, Run: turn.Run.ID, Tainted: asked.Tainted, Private: asked.Private})
	}
	turn.History = append(turn.History, asked)
	questions := make(map[string]bool)
	for _, r := range v.state.Turn.History {
		switch {
		case r.Run != turn.Run.ID:
		case r.Type == claybot.RecordQuestion && r.Question != nil && r.Question.ToolCallID == asked.ToolCalls[0].ID:
			questions[r.Question.ID] = true
			turn.History = append(turn.History, r)
		case r.Type == claybot.RecordAnswer && r.Answer != nil && questions[r.Answer.Question]:
			turn.History = append(turn.History, r)
		}
	}
	var rules *tools.Rules
	if spec.Approve != nil || v.again() {
		r := v.cfg.Rules(turn.Agent)
		r.Ask = []string{"*"}
		if spec.Approve != nil {
			r.Approvers = spec.Approve.By
		}
		rules = &r
	}
	err = v.cfg.Settle(ctx, &turn, rules, func(r claybot.Record) error {
		if r.Type == claybot.RecordTool && r.ToolCallID == asked.ToolCalls[0].ID {
			result = &r
		}
		return v.state.Record(r)
	})
	if err == nil && result == nil {
		err = v.failed(CodeTool, "%s has no result", spec.Tool)
	}
	return result, err
}

// resulted is what comes of a result.
func (v *visit) resulted(spec *flows.Tool, r claybot.Record) (out Result, next string, err error) {
	text := tools.Unmarked(r.Text)
	if !r.OK {
		text = strings.TrimPrefix(text, "error: ")
		switch {
		case r.Interrupted:
			return out, "", v.failed(CodeUnknown, "%s was cut off and may have acted; it is not called again", spec.Tool)
		case strings.HasPrefix(text, "not approved"):
			return out, "", v.failed(CodeDenied, "%s: %s", spec.Tool, text)
		case v.cfg.Effect(v.state.Turn.Agent, spec.Tool) == tools.ReadOnly:
			return out, "", &runs.TransientError{Err: v.failed(CodeTool, "%s: %s", spec.Tool, text)}
		}
		return out, "", v.failed(CodeTool, "%s: %s", spec.Tool, text)
	}
	out = v.put(text, mark{r.Tainted, r.Private})
	var object any
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if strings.ContainsAny(strings.TrimSpace(text)[:min(1, len(strings.TrimSpace(text)))], "{[") && d.Decode(&object) == nil && !d.More() {
		out = v.put(object, mark{r.Tainted, r.Private})
	}
	out.More = map[string]any{"text": text}
	if r.Saved != "" {
		out.More["saved"] = r.Saved
	}
	return out, v.node.Next, nil
}
