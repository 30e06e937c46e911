package flow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// agent has an agent do a task.
func (v *visit) agent(ctx context.Context, spec *flows.Agent, try int) (out Result, next string, err error) {
	task, taint, err := v.task(spec, nil)
	if err != nil {
		return out, "", err
	}
	done, err := v.spawn(ctx, strconv.Itoa(try), task, taint)
	if err != nil {
		return out, "", err
	}
	if out, err = v.answered(spec, done, taint); codeOf(err) == runs.CodeBudget {
		return out, "", err // it is spent the next time as well
	} else if err != nil {
		return out, "", &runs.TransientError{Err: err}
	}
	out.Messages, err = v.messages(ctx, []claybot.Result{done})
	return out, v.node.Next, err
}

// task fills the templates of an agent.
func (v *visit) task(spec *flows.Agent, more map[string]any) (t tools.Subagent, m mark, err error) {
	prompt, m, err := v.text(spec.Prompt, more)
	if err != nil {
		return t, m, err
	}
	system, also, err := v.text(spec.System, more)
	if err != nil {
		return t, m, err
	}
	m.add(also)
	t = tools.Subagent{
		Task: prompt + wanted(spec.Output), Name: v.flow.Name + "/" + v.node.Name, Model: spec.Model, Prompt: system,
		Tools: append([]string{}, spec.Tools...), Timeout: v.node.Timeout, Engine: spec.Engine,
	}
	if deep, ok := v.node.Spec.(*flows.Deep); ok {
		t.Deep = &claybot.Deep{Todos: deep.Todos, Files: deep.Files, Subagents: deep.Subagents}
	}
	if t.Timeout == 0 {
		t.Timeout = flows.DefaultTimeout
	}
	t.Timeout = min(t.Timeout, flows.MaxTimeout)
	if spec.Remembers() {
		t.Thread, t.Name = v.thread(spec)
	}
	return t, m, nil
}

// thread is the key of the memory of an agent, and its name: {user}:{chat}:{flow}, and the node where
// that has a memory of its own. Without a chat, as at a time, its part is left out.
func (v *visit) thread(spec *flows.Agent) (key, name string) {
	t := v.state.Turn
	chat, names := "", []string{v.flow.Name}
	if i := slices.IndexFunc(t.Messages, func(m claybot.AgentMessage) bool { return m.Flow != nil && m.Flow.ChannelID != "" }); i >= 0 {
		start := t.Messages[i].Flow
		chat = start.Connector + "/" + start.ChannelID
	}
	if spec.Thread == flows.ThreadNode {
		names = append(names, v.node.Name)
	}
	return claybot.ThreadKey(cmp.Or(t.Agent.Descriptor.OwnerID(), "anon"), chat, names...), strings.Join(names, "/")
}

// wanted tells an agent what to put out.
func wanted(fields []flows.Field) string {
	if len(fields) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nAnswer with one JSON object and nothing else. Its members:\n")
	for _, f := range fields {
		fmt.Fprintf(&b, "- %s: %s\n", f.Name, f.Wants())
	}
	return b.String()
}

// answered is what an agent put out.
func (v *visit) answered(spec *flows.Agent, d claybot.Result, m mark) (out Result, err error) {
	if !d.OK {
		if why, spent := strings.CutPrefix(d.Error, runs.CodeBudget+": "); spent {
			return out, v.failed(runs.CodeBudget, "%s", why)
		}
		return out, v.failed(CodeAgent, "%s", d.Error)
	}
	m.add(mark{d.Tainted, d.Private})
	out = v.put(d.Output, m)
	if len(spec.Output) > 0 {
		object, err := fields(spec.Output, d.Output)
		if err != nil {
			return out, v.failed(CodeOutput, "%v", err)
		}
		out = v.put(object, m)
		for _, f := range spec.Output {
			if f.Clean() {
				out.Clean = append(out.Clean, f.Name)
			}
		}
	}
	usage := d.TokenUsage
	out.Usage = &usage
	return out, nil
}

// fields reads the object that an agent was asked for: every field, and no other.
func fields(want []flows.Field, text string) (map[string]any, error) {
	begin, end := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if begin < 0 || end < begin {
		return nil, fmt.Errorf("the answer has no JSON object")
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text[begin : end+1])))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, fmt.Errorf("the answer is no JSON object: %w", err)
	}
	all := make(map[string]any, len(want))
	for _, f := range want {
		value, given := object[f.Name]
		if !given {
			return nil, fmt.Errorf("%s is missing in the answer", f.Name)
		}
		if !f.Fits(value) {
			return nil, fmt.Errorf("%s does not fit in the answer", f.Name)
		}
		all[f.Name] = value
	}
	return all, nil
}
