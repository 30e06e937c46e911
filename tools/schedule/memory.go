package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// Memories are what the tasks of cron know from one run to the next.
type Memories interface {
	// Memory reads MEMORY.md of a task.
	Memory(ctx context.Context, ref string) (string, error)
	// Remember replaces MEMORY.md of a task, or adds to it.
	Remember(ctx context.Context, ref, text string, add bool) error
}

// MemoryTools are the tools for the memory of a task. They are for the agents
// of tasks and refuse all others; the task is that of the caller.
func MemoryTools(t Memories) []tools.Tool {
	return []tools.Tool{readMemory(t), writeMemory(t), restoreMemory(t)}
}

// memorySpec is what the tools for a memory have in common.
func memorySpec(name, description string, effect tools.Effect) tools.Spec {
	s := spec(name, description, effect)
	s.Scopes = []string{"memory"}
	return s
}

// ownTask is the uid of the task whose agent calls.
func ownTask(env tools.Env) (string, error) {
	d := env.Agent.Descriptor
	if d.Type != claybot.AgentCron || d.UID == "" {
		return "", errors.New("only the agent of a task has its memory")
	}
	return d.UID, nil
}

func readMemory(t Memories) tools.Tool {
	s := memorySpec("cron_read_memory", "Reads what earlier runs of this task have noted.", tools.ReadOnly)
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
func writeMemory(t Memories) tools.Tool {
	type input struct {
		Text string `json:"text" jsonschema:"what later runs of this task shall know"`
		Mode string `json:"mode,omitempty" jsonschema:"replace: the text is the whole memory; append: it is added at the end; replace when absent"`
	}
	s := memorySpec("cron_write_memory", "Notes something for later runs of this task, which begin without any other memory.", tools.Once)
	s.Undoes = true
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
			text, err = tools.Required("text", in.Text, maxMemory)
		} else {
			text, err = tools.Optional("text", in.Text, maxMemory) // emptied on purpose
		}
		if err != nil {
			return tools.Result{}, err
		}
		old, unread := t.Memory(ctx, uid)
		if err := t.Remember(ctx, uid, text, add); err != nil {
			return tools.Result{}, err
		}
		r := tools.Result{Text: "the memory is replaced", What: "changed the memory of the task"}
		if add {
			r.Text = "added to the memory"
		}
		if made, err := t.Memory(ctx, uid); err == nil && unread == nil && len(old) <= maxMemory {
			r.Undo = tools.UndoCall(restoreName, remembering{Text: old, Made: sum(made)})
		}
		return r, nil
	})
}

// restoreName is the hidden tool that takes back what was noted.
const restoreName = "cron_restore_memory"

type remembering struct {
	Text string `json:"text" jsonschema:"what was noted before"`
	Made string `json:"made" jsonschema:"sum of what is noted now"`
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:16])
}

// restoreMemory gives a task the memory from before, unless a later run has
// changed it. It is called by undo alone.
func restoreMemory(t Memories) tools.Tool {
	s := memorySpec(restoreName, "Takes back what was noted for later runs.", tools.Idempotent)
	s.Hidden = true
	return tools.New(s, func(ctx context.Context, env tools.Env, in remembering) (tools.Result, error) {
		uid, err := ownTask(env)
		if err != nil {
			return tools.Result{}, err
		}
		now, err := t.Memory(ctx, uid)
		switch {
		case err != nil:
			return tools.Result{}, err
		case now == in.Text: // taken back already
		case sum(now) != in.Made:
			return tools.Result{}, errors.New("the memory was changed since and stays as it is")
		default:
			if err := t.Remember(ctx, uid, in.Text, false); err != nil {
				return tools.Result{}, err
			}
		}
		return tools.Result{Text: "the memory is as it was before"}, nil
	})
}
