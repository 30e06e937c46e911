package messaging

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// TaskTool is the tool task over a: it runs one of the helpers with an empty
// memory, waits, and gives back its last text.
func TaskTool(a tools.Agents, helpers []claybot.Helper) tools.Tool {
	type input struct {
		Subagent string `json:"subagent" jsonschema:"the name of the helper"`
		Task     string `json:"task" jsonschema:"what it shall do; it knows nothing of this conversation"`
	}
	var b strings.Builder
	b.WriteString("Gives a task to one of your helpers, waits, and returns what it says in the end. The helpers are:")
	for _, h := range helpers {
		fmt.Fprintf(&b, "\n- %s: %s", h.Name, tools.Short(h.Description, maxPrompt))
	}
	return tools.New(spec("task", b.String(), tools.Idempotent, scopeAgents), func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		i := slices.IndexFunc(helpers, func(h claybot.Helper) bool { return h.Name == strings.TrimSpace(in.Subagent) })
		if i < 0 {
			return tools.Result{}, fmt.Errorf("field subagent: there is no subagent %.40q", in.Subagent)
		}
		h := helpers[i]
		task, err := tools.Required("task", in.Task, maxTask)
		if err != nil {
			return tools.Result{}, err
		}
		r, err := a.SpawnAndWait(ctx, env, []tools.Subagent{{Task: task, Name: h.Name, Model: h.Model, Prompt: h.SystemPrompt, Tools: h.Tools}})
		if err != nil || r.Wait != nil {
			return r, err
		}
		if r, err = lastText(r.Text); err == nil {
			r.What = fmt.Sprintf(texts.DidTask, h.Name)
		}
		return r, err
	})
}

func lastText(answers string) (tools.Result, error) {
	var list []claybot.Result
	if err := json.Unmarshal([]byte(answers), &list); err != nil || len(list) != 1 {
		return tools.Result{}, errors.New("the answer of the helper cannot be read")
	}
	if !list[0].OK {
		return tools.Result{}, fmt.Errorf("the helper failed: %s", list[0].Error)
	}
	return tools.Result{Text: list[0].Output}, nil
}
