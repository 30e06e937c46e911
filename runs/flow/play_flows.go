package flow

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// start is Config.Start.
func (d *desk) start(_ context.Context, env tools.Env, task tools.Subagent) (claybot.AgentID, error) {
	if key := "agents/" + env.CallID; !d.started[key] {
		d.started[key] = true
		d.flowStarted(env, task)
	}
	return claybot.AgentID(task.Flow), nil
}

// flowStarted notes that a flow was started.
func (d *desk) flowStarted(env tools.Env, t tools.Subagent) {
	if t.Flow == "" {
		return
	}
	with := map[string]any{"flow": t.Flow, "text": t.Task}
	if t.Payload != nil {
		with["payload"] = t.Payload
	}
	d.out.Called["flow:"+t.Flow]++
	d.out.Calls[nodeOf(env.CallID)] = with
}
