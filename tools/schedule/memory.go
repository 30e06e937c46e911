package schedule

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/tools"
)

// MemoryTools are the tools for the memory of a task. They are for the agents
// of tasks and refuse all others; the task is that of the caller.
func MemoryTools(t connectors.Tasks) []tools.Tool {
	return []tools.Tool{readMemory(t), writeMemory(t)}
}

// ownTask is the uid of the task whose agent calls.
func ownTask(env tools.Env) (string, error) {
	d := env.Agent.Descriptor
	if d.Type != claybot.AgentCron || d.UID == "" {
		return "", errors.New("only the agent of a task has its memory")
	}
	return d.UID, nil
}

func readMemory(t connectors.Tasks) tools.Tool {
	s := spec("cron_read_memory", "Reads what earlier runs of this task have noted.", tools.ReadOnly)
	return tools.New(s, func(ctx context.Context, env tools.Env, _ struct{}) (tools.Result, error) {
		uid, err := ownTask(env)
		if err != nil {
			return tools.Result{}, err
		}
		text, err := t.Memory(ctx, uid)
		if err != nil {
			return tools.Result{}, err
		}
		if text == "" {
			text = "No memory"
		}
		return tools.Result{Text: text}, nil
	})
}

// writeMemory is Once, as adding twice is not adding once.
func writeMemory(t connectors.Tasks) tools.Tool {
	type input struct {
		Text string `json:"text" jsonschema:"what later runs of this task shall know"`
		Mode string `json:"mode,omitempty" jsonschema:"replace: the text is the whole memory; append: it is added at the end; replace when absent"`
	}
	s := spec("cron_write_memory", "Notes something for later runs of this task, which begin without any other memory.", tools.Once)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		uid, err := ownTask(env)
		if err != nil {
			return tools.Result{}, err
		}
		if in.Mode != "" && in.Mode != "replace" && in.Mode != "append" {
			return tools.Result{}, fmt.Errorf("field mode: %.40q, want replace or append", in.Mode)
		}
		text, add := "", in.Mode == "append"
		if add {
			text, err = required("text", in.Text, maxMemory)
		} else {
			text, err = optional("text", in.Text, maxMemory) // emptied on purpose
		}
		if err != nil {
			return tools.Result{}, err
		}
		if err := t.Remember(ctx, uid, text, add); err != nil {
			return tools.Result{}, err
		}
		if add {
			return tools.Result{Text: "added to the memory"}, nil
		}
		return tools.Result{Text: "the memory is replaced"}, nil
	})
}
