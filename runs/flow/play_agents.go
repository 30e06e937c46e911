package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/tools"
)

// spawn is Config.Spawn. Each pass lets as many tasks end as are at work at the same time.
func (d *desk) spawn(_ context.Context, env tools.Env, tasks []tools.Subagent, how tools.Spawning) (tools.Result, error) {
	key := "agents/" + env.CallID
	if how.Call != nil {
		key += "*" // a node that has several at work
	}
	passes, atOnce := d.passes[key], how.AtOnce
	if atOnce == 0 {
		atOnce = len(tasks)
	}
	d.passes[key]++
	begun := min(passes*atOnce, len(tasks))
	all, open := make([]*claybot.Result, len(tasks)), false
	for i, t := range tasks {
		own, n := how.Of(env, i)
		id := fmt.Sprintf("%s.%d", own.CallID, n)
		if i >= begun {
			if i < begun+atOnce && !d.started["task/"+id] {
				d.started["task/"+id] = true
				d.flowStarted(own, t)
			}
			open = true // they take their time
			continue
		}
		r, err := d.taskEnded(id, t, own.Tainted)
		if err != nil {
			return tools.Result{}, err
		}
		all[i] = r
	}
	enough := how.Enough != nil && how.Enough(all)
	if !open && !enough && slices.Contains(all, nil) {
		d.fault = fmt.Errorf("%s: the case says nothing of what as many branches put out as join needs", nodeOf(env.CallID))
		return tools.Result{}, d.fault
	}
	if passes == 0 || open && !enough {
		return tools.Result{Wait: &claybot.Awaiting{Reason: claybot.AwaitChildren, Answers: []claybot.MessageID{"answer"}, Until: claybot.At(d.now)}}, nil
	}
	b, err := json.Marshal(all)
	return tools.Result{Text: string(b)}, err
}

// taskEnded is what came of a task; nil of a branch of which the case says nothing where not all are
// needed.
func (d *desk) taskEnded(id string, t tools.Subagent, tainted bool) (*claybot.Result, error) {
	v, fails, err := d.branchValue(id)
	if err != nil || v == nil && fails == notEnded {
		return nil, err
	}
	if d.tasks == nil {
		d.tasks = make(map[claybot.RunID]string)
	}
	run := claybot.RunID(id)
	d.tasks[run] = t.Task
	r := &claybot.Result{RunID: run, OK: fails == "", Error: fails, Output: textOf(v), Tainted: tainted}
	if _, text := v.(string); t.Flow != "" && !text {
		r.Value = json.RawMessage(r.Output)
	}
	if v == nil {
		r.Output = ""
	}
	return r, nil
}

// notEnded is the failure of a branch that is at work when the node ends.
const notEnded = "\x00not ended"

// branchValue is value; of a branch, its member of what the node puts out.
func (d *desk) branchValue(id string) (v any, fails string, err error) {
	parts := strings.Split(id, ".")
	n := d.player.Flow.Node(parts[0])
	p, ok := (*flows.Parallel)(nil), false
	if n != nil {
		p, ok = n.Spec.(*flows.Parallel)
	}
	if !ok {
		return d.value(id)
	}
	v, fails, err = d.value(parts[0] + "." + parts[2]) // one for each visit
	if err != nil || fails != "" {
		return nil, fails, err
	}
	of, _ := v.(map[string]any)
	v, known := of[parts[1]]
	switch m, _ := v.(map[string]any); {
	case !known && p.All():
		d.fault = fmt.Errorf("%s: the case says nothing of what the branch %s puts out", parts[0], parts[1])
		return nil, "", d.fault
	case !known:
		return nil, notEnded, nil
	case len(m) == 1:
		if text, ok := m["fails"].(string); ok {
			return nil, text, nil
		}
	}
	d.given[id] = v
	return v, "", nil
}
