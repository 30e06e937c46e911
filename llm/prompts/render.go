package prompts

import (
	"fmt"
	"maps"
	"time"
)

// maxWarnings is how many warnings name an expression.
const maxWarnings = 20

// A renderer fills one template once. What stops it panics with an *Error.
type renderer struct {
	name   string
	strict bool
	data   Data
	roots  map[string]any // of data, as far as they were asked for
	scopes []map[string]any
	out    *sheet
	line   int // of what is evaluated

	work, turns int
	warnings    []string
	reported    map[undefined]bool
}

func (r *renderer) spend(n int) {
	if r.work += n; r.work > maxWork || n < 0 {
		exceed(r.line, "the template takes too long")
	}
}

func (r *renderer) spendTurn() {
	if r.turns++; r.turns > MaxTurns {
		exceed(r.line, "the loops have more than %d turns in all", MaxTurns)
	}
}

func (r *renderer) report(u *undefined) {
	if r.strict {
		stop(u.line, "%s is not defined", u.what)
	}
	if r.reported == nil {
		r.reported = make(map[undefined]bool)
	}
	if r.reported[*u] {
		return
	}
	r.reported[*u] = true
	switch {
	case len(r.warnings) < maxWarnings:
		e := Error{Name: r.name, Line: u.line, Text: fmt.Sprintf("%s is not defined; it is left empty", u.what)}
		r.warnings = append(r.warnings, e.Error())
	case len(r.warnings) == maxWarnings:
		r.warnings = append(r.warnings, r.name+": more names are not defined")
	}
}

func (r *renderer) render(parts []part) {
	for _, p := range parts {
		r.spend(1)
		p(r)
	}
}

func (r *renderer) root(name string) (any, bool) {
	if v, ok := r.roots[name]; ok {
		return v, true
	}
	v, ok := r.data.root(name)
	if ok {
		v = plain(v, 0)
		r.roots[name] = v
	}
	return v, ok
}

func (d Data) root(name string) (any, bool) {
	switch name {
	case "trigger":
		return d.Trigger.object(), true
	case "user":
		return d.User.object(), true
	case "agent":
		a := d.Agent
		return map[string]any{
			"id": a.ID, "type": a.Type, "name": a.Name, "profile": a.Profile,
			"connector": a.Connector, "channel": a.Channel, "engine": a.Engine, "model": a.Model,
		}, true
	case "now":
		return d.Now, !d.Now.IsZero()
	case "env":
		env := make(map[string]any, len(d.Env))
		for k, v := range d.Env {
			env[k] = v
		}
		return env, true
	case "nodes":
		nodes := make(map[string]any, len(d.Nodes))
		for id, n := range d.Nodes {
			nodes[id] = step(n)
		}
		return nodes, true
	}
	if v, ok := d.Names[name]; ok {
		return v, true
	}
	n, ok := d.Nodes[name]
	return step(n), ok
}

func (u User) object() map[string]any { return map[string]any{"id": u.ID, "name": u.Name} }

func (t Trigger) object() map[string]any {
	files := make([]any, len(t.Files))
	for i, f := range t.Files {
		files[i] = map[string]any{
			"id": f.ID, "name": f.Name, "type": f.MIMEType, "size": f.Size, "path": f.Path, "text": f.Text,
		}
	}
	return map[string]any{
		"name": t.Name, "text": t.Text, "payload": t.Payload, "event": t.Event, "files": files, "user": t.User.object(),
		"channel": t.Channel, "connector": t.Connector, "at": optional(t.At),
	}
}

func optional(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}

// step is what a finished step put out. What other systems call _messages and
// _token_usage has both names, and the fields of the output are the node's own.
func step(n any) any {
	m, ok := plain(n, 0).(map[string]any)
	if !ok {
		return n
	}
	if used, ok := m["token_usage"].(map[string]any); ok {
		m["token_usage"] = counted(used)
	}
	fields := make(map[string]any, len(m)+2)
	if output, ok := m["output"].(map[string]any); ok {
		for k, v := range output {
			fields[k] = v
		}
	}
	for k, v := range m {
		fields[k] = v
	}
	for _, name := range []string{"messages", "token_usage"} {
		if v, ok := m[name]; ok {
			fields["_"+name] = v
		} else if v, ok := m["_"+name]; ok {
			fields[name] = v
		}
	}
	return fields
}

// counted has the counts of claybot.Usage by the names that other systems have for them, too.
func counted(used map[string]any) map[string]any {
	if _, own := used["llmCalls"]; !own {
		return used
	}
	all := maps.Clone(used)
	for name, own := range map[string]string{"cached_input": "cachedInput", "llm_calls": "llmCalls", "tool_invocations": "toolCalls"} {
		all[name] = used[own]
	}
	in, _ := used["input"].(int64)
	out, _ := used["output"].(int64)
	cost, _ := used["costMicroUSD"].(int64)
	all["total"], all["cost_usd"] = in+out, float64(cost)/1e6
	return all
}
