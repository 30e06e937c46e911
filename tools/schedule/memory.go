package schedule

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/texts"
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

// ofTask calls do with the uid of the task whose agent calls.
func ofTask[In any](do func(ctx context.Context, uid string, in In) (tools.Result, error)) func(context.Context, tools.Env, In) (tools.Result, error) {
	return func(ctx context.Context, env tools.Env, in In) (tools.Result, error) {
		d := env.Agent.Descriptor
		if d.Type != claybot.AgentCron || d.UID == "" {
			return tools.Result{}, errors.New("only the agent of a task has its memory")
		}
		return do(ctx, d.UID, in)
	}
}

func readMemory(t Memories) tools.Tool {
	s := memorySpec("cron_read_memory", "Reads the notes of earlier runs of this task.", tools.ReadOnly)
	s.Brief = []string{}
	return tools.New(s, ofTask(func(ctx context.Context, uid string, _ struct{}) (tools.Result, error) {
		text, err := t.Memory(ctx, uid)
		return tools.Result{Text: cmp.Or(text, "No memory")}, err
	}))
}

// writeMemory is Once, as adding twice is not adding once.
func writeMemory(t Memories) tools.Tool {
	type input struct {
		Text string `json:"text" jsonschema:"what later runs of this task should know"`
		Mode string `json:"mode,omitempty" jsonschema:"replace: the text is the whole memory; append: it is added at the end; omit for replace"`
	}
	s := memorySpec("cron_write_memory", "Writes a note for later runs of this task, which start without any other memory.", tools.Once)
	s.Undoes, s.Brief = true, []string{"text", "mode"}
	return tools.New(s, ofTask(func(ctx context.Context, uid string, in input) (tools.Result, error) {
		if in.Mode != "" && in.Mode != "replace" && in.Mode != "append" {
			return tools.Result{}, fmt.Errorf("field mode: %.40q, want replace or append", in.Mode)
		}
		add := in.Mode == "append" // else it may be emptied
		if err := (rule{limit: maxMemory, must: add}).check("text", &in.Text); err != nil {
			return tools.Result{}, err
		}
		old, unread := t.Memory(ctx, uid)
		if err := t.Remember(ctx, uid, in.Text, add); err != nil {
			return tools.Result{}, err
		}
		r := tools.Result{Text: "the memory is replaced", What: texts.DidChangeMemory}
		if add {
			r.Text = "added to the memory"
		}
		if made, err := t.Memory(ctx, uid); err == nil && unread == nil && len(old) <= maxMemory {
			r.Undo = tools.UndoCall(restoreName, remembering{Text: old, Made: sum(made)})
		}
		return r, nil
	}))
}

// restoreName is the hidden tool that undoes a note.
const restoreName = "cron_restore_memory"

type remembering struct {
	Text string `json:"text" jsonschema:"the notes before"`
	Made string `json:"made" jsonschema:"sum of the notes now"`
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:16])
}

// restoreMemory gives a task the memory from before, unless a later run has
// changed it. It is called by undo alone.
func restoreMemory(t Memories) tools.Tool {
	s := memorySpec(restoreName, "Undoes a note for later runs.", tools.Idempotent)
	s.Hidden = true
	return tools.New(s, ofTask(func(ctx context.Context, uid string, in remembering) (tools.Result, error) {
		now, err := t.Memory(ctx, uid)
		switch {
		case err != nil:
			return tools.Result{}, err
		case now == in.Text: // undone already
		case sum(now) != in.Made:
			return tools.Result{}, errors.New("the memory was changed since and stays as it is")
		default:
			err = t.Remember(ctx, uid, in.Text, false)
		}
		return tools.Result{Text: "the memory is as it was before"}, err
	}))
}
