package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
)

// CallbackID is the id of the message with what a program sends to the address of a wait.
func CallbackID(run claybot.RunID, wait string) claybot.MessageID {
	return claybot.MessageID(fmt.Sprintf("callback/%s/%s", run, wait))
}

// callback waits for a call of a program. What comes first ends it: the call, or its time.
func (v *visit) callback(ctx context.Context, spec *flows.Wait) (out Result, next string, err error) {
	until, known := v.state.Scratch.Waits[v.node.Name]
	if !known {
		limit := spec.For
		if limit == 0 {
			limit = flows.DefaultExpires
		}
		until = claybot.At(v.cfg.Now().Add(limit))
	}
	got, err := v.cfg.Callback(ctx, v.state.Turn, v.id(""), claybot.At(v.cfg.Now()) >= until)
	switch {
	case err != nil && ctx.Err() != nil:
		return out, "", runs.Ended(ctx)
	case err != nil:
		return out, "", stored(err)
	case got == nil:
		if v.state.Scratch.Waits == nil {
			v.state.Scratch.Waits = make(map[string]claybot.Time)
		}
		v.state.Scratch.Waits[v.node.Name] = until
		id := CallbackID(v.state.Turn.Run.ID, v.id(""))
		return out, "", &runs.WaitError{Awaiting: claybot.Awaiting{Reason: claybot.AwaitCallback, Answers: []claybot.MessageID{id}, Until: until}}
	case !got.OK:
		v.state.Because("expired")
		if spec.Expired == "" {
			return out, "", v.failed(CodeExpired, "no call in time")
		}
		return v.put(nil, mark{}), spec.Expired, nil
	}
	var value any = got.Output
	if got.Value != nil {
		value = json.RawMessage(got.Value)
	}
	return v.put(value, mark{tainted: true}), v.node.Next, nil
}

// addresses gives templates the addresses of the nodes that wait for calls, if one may read them.
func (v *visit) addresses(text string, nodes map[string]any) error {
	if !strings.Contains(text, flows.CallbackField) {
		return nil
	}
	for i := range v.flow.Nodes {
		n := &v.flow.Nodes[i]
		w, ok := n.Spec.(*flows.Wait)
		if !ok || w.Event == "" {
			continue
		}
		of := visit{node: n, number: v.state.Scratch.Visits[n.Name] + 1}
		at, err := v.cfg.Address(context.Background(), v.state.Turn.Run.ID, of.id(""))
		if err != nil {
			return err
		}
		fields, _ := nodes[n.Name].(map[string]any)
		if fields == nil {
			fields = make(map[string]any)
		}
		fields[flows.CallbackField] = at
		nodes[n.Name] = fields
	}
	return nil
}
