package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// A Message is one of a run of an agent, as templates see it.
type Message struct {
	Role string `json:"role"` // user, assistant or tool
	Text string `json:"text"`
	// Calls are the calls of an assistant; Name, Call and OK are of the result of a tool.
	Calls []Call `json:"tool_calls,omitempty"`
	Name  string `json:"name,omitempty"`
	Call  string `json:"tool_call_id,omitempty"`
	OK    *bool  `json:"ok,omitempty"`
}

// A Call is one call of a tool, with its arguments as JSON.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// messages are those of the runs of agents, if a template of the flow reads them. They are read once:
// what the node puts out keeps them.
func (v *visit) messages(ctx context.Context, done []claybot.Result) (all []Message, err error) {
	if !v.flow.Reads(v.node.Name, "messages", v.cfg.Uses) {
		return nil, nil
	}
	for _, d := range done {
		records, err := v.cfg.Recorded(ctx, d.RunID)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, runs.Ended(ctx)
		case errors.Is(err, storage.ErrNotFound): // its agent was deleted
		case err != nil:
			return nil, fmt.Errorf("read the messages of %s: %w", v.node.Name, stored(err))
		}
		for _, r := range records {
			if m, ok := messageOf(r); ok {
				all = append(all, m)
			}
		}
	}
	return fitting(all), nil
}

// messageOf returns a record as a message; ok is false for records that are none.
func messageOf(r claybot.Record) (m Message, ok bool) {
	switch r.Type {
	case claybot.RecordUser, claybot.RecordSystem:
		return Message{Role: "user", Text: r.Text}, !r.Silent
	case claybot.RecordAssistant:
		m = Message{Role: "assistant", Text: r.Text}
		for _, c := range r.ToolCalls {
			m.Calls = append(m.Calls, Call{c.ID, c.Name, c.Args})
		}
		return m, true
	case claybot.RecordTool:
		return Message{Role: "tool", Text: tools.Unmarked(r.Text), Name: r.Name, Call: r.ToolCallID, OK: &r.OK}, true
	}
	return m, false
}

// fitting shortens the texts of messages, all to the same length, and leaves out the oldest ones, so that
// together they are no longer than what a node may put out.
func fitting(all []Message) []Message {
	size := func() int {
		b, _ := json.Marshal(all) // texts always marshal
		return len(b)
	}
	for room := flows.MaxOutput; room >= 256 && size() > flows.MaxOutput; room /= 2 {
		for i := range all {
			all[i].Text = texts.Shorten(all[i].Text, room)
			for k := range all[i].Calls {
				all[i].Calls[k].Args = texts.Shorten(all[i].Calls[k].Args, room)
			}
		}
	}
	for len(all) > 0 && size() > flows.MaxOutput {
		all = all[(len(all)+1)/2:]
	}
	return all
}

// shown are messages as the node may read them: an agent without tools sees no calls of others, which it
// could not make.
func (v *visit) shown(all []Message) []Message {
	shown := make([]Message, 0, len(all))
	a := v.node.Agent()
	if a == nil || len(a.Tools) > 0 || v.node.Kind == flows.KindDeep {
		return append(shown, all...)
	}
	for _, m := range all {
		if m.Role == "tool" || m.Text == "" && len(m.Calls) > 0 {
			continue
		}
		m.Calls = nil
		shown = append(shown, m)
	}
	return shown
}
