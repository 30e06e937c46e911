package flow

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// A mark says what a value holds.
type mark struct{ tainted, private bool }

func (m *mark) add(o mark) { m.tainted, m.private = m.tainted || o.tainted, m.private || o.private }

// put is a result.
func (v *visit) put(value any, m mark) Result {
	b, err := json.Marshal(value)
	if err != nil {
		b = []byte("null") // values come from JSON
	}
	return Result{Output: b, Tainted: m.tainted, Private: m.private}
}

// room returns an error where the run would keep more of its nodes than it may.
func (v *visit) room(out Result) error {
	all := out.size()
	for name, r := range v.state.Output {
		if name != v.node.Name {
			all += r.size()
		}
	}
	if all > flows.MaxState {
		return v.failed(CodeTooLarge, "what the nodes of the run have put out would be %d bytes; the limit is %d", all, flows.MaxState)
	}
	return nil
}

// size is about how many bytes of the state the result takes.
func (r Result) size() int {
	n := len(r.Output)
	for _, m := range r.Messages {
		n += len(m.Text)
		for _, c := range m.Calls {
			n += len(c.Args)
		}
	}
	for _, value := range r.More {
		switch value := value.(type) {
		case string:
			n += len(value)
		case json.RawMessage:
			n += len(value)
		default:
			b, _ := json.Marshal(value) // values come from JSON
			n += len(b)
		}
	}
	return n
}

// fill fills the templates in a value.
func (v *visit) fill(value any, more map[string]any) (filled any, m mark, err error) {
	switch value := value.(type) {
	case string:
		return v.one(value, more)
	case []any:
		all := make([]any, len(value))
		for i, e := range value {
			part, taint, err := v.fill(e, more)
			if err != nil {
				return nil, m, err
			}
			all[i] = part
			m.add(taint)
		}
		return all, m, nil
	case map[string]any:
		all := make(map[string]any, len(value))
		for _, k := range slices.Sorted(maps.Keys(value)) {
			part, taint, err := v.fill(value[k], more)
			if err != nil {
				return nil, m, err
			}
			all[k] = part
			m.add(taint)
		}
		return all, m, nil
	}
	return value, m, nil
}

// text fills a template whose result is a text.
func (v *visit) text(text string, more map[string]any) (string, mark, error) {
	value, m, err := v.one(text, more)
	if err != nil {
		return "", m, err
	}
	switch value := value.(type) {
	case string:
		return value, m, nil
	case nil:
		return "", m, nil
	case int64:
		return strconv.FormatInt(value, 10), m, nil
	}
	b, err := json.Marshal(value)
	return string(b), m, err
}

// one fills one template.
func (v *visit) one(text string, more map[string]any) (any, mark, error) {
	names := Names{Nodes: make(map[string]any), More: maps.Clone(more)}
	if names.More == nil {
		names.More = make(map[string]any)
	}
	for name, r := range v.state.Output {
		node := map[string]any{"output": r.Output, "messages": v.shown(r.Messages)}
		if r.Usage != nil {
			node["token_usage"] = r.Usage
		}
		maps.Copy(node, r.More)
		names.Nodes[name] = node
	}
	if e := v.state.Scratch.Error; e != nil {
		names.More["error"] = map[string]any{"node": e.Node, "code": e.Code, "text": e.Text}
	}
	if err := v.addresses(text, names.Nodes); err != nil {
		return nil, mark{}, v.failed(CodeFlow, "%v", err)
	}
	value, err := v.cfg.Fill(v.state.Turn, text, names)
	if err != nil {
		return nil, mark{}, &runs.Error{Code: CodeFlow, Text: fmt.Sprintf("%s: %v", v.node.Name, err), Err: err}
	}
	m, err := v.marks(text)
	return value, m, err
}

// marks are what the names hold that a template reads.
func (v *visit) marks(text string) (m mark, err error) {
	uses, err := v.cfg.Uses(text)
	if err != nil {
		return m, &runs.Error{Code: CodeFlow, Text: fmt.Sprintf("%s: %v", v.node.Name, err), Err: err}
	}
	for _, u := range uses {
		path := u.Path
		if path[0] == "nodes" {
			if len(path) == 1 {
				for _, r := range v.state.Output {
					m.add(mark{r.Tainted, r.Private})
				}
				continue
			}
			path = path[1:]
		}
		m.add(v.markOf(path))
	}
	return m, nil
}

// markOf is what a name holds.
func (v *visit) markOf(path []string) mark {
	switch path[0] {
	case "trigger", "user":
		var m mark
		if len(path) > 1 && path[0] == "trigger" && slices.Contains([]string{"at", "name", "connector"}, path[1]) {
			return m
		}
		for _, x := range v.state.Turn.Messages {
			m.add(mark{x.Tainted && !v.data(path, x), x.Private})
		}
		return m
	case "error":
		e := v.state.Scratch.Error
		return mark{tainted: e != nil && e.Tainted && (len(path) < 2 || path[1] == "text")}
	case "item", "index":
		if each, ok := v.node.Spec.(*flows.Each); ok && path[0] == "item" {
			m, _ := v.marks(each.Over) // it was filled before
			return m
		}
		return mark{}
	}
	r, ok := v.state.Output[path[0]]
	if n := v.flow.Node(path[0]); !ok || n != nil && n.Kind == flows.KindWait && len(path) > 1 && path[1] == flows.CallbackField {
		return mark{}
	}
	field := ""
	if rest := path[1:]; len(rest) > 0 && rest[0] == "output" {
		rest = rest[1:]
		if len(rest) > 0 {
			field = rest[0]
		}
	} else if len(rest) > 0 {
		field = rest[0]
	}
	switch {
	case field == "token_usage" || field == "_token_usage": // counts
		return mark{}
	case field != "" && slices.Contains(r.Clean, field):
		return mark{private: r.Private}
	}
	return mark{r.Tainted, r.Private}
}

// data reports whether a name is a field of the input of the flow into which no text of a stranger fits, and
// the payload of the message is one that fits: it may have been stored for another version of the flow.
func (v *visit) data(path []string, m claybot.AgentMessage) bool {
	if len(path) < 3 || path[0] != "trigger" || path[1] != "payload" {
		return false
	}
	i := slices.IndexFunc(v.flow.Input, func(f flows.Field) bool { return f.Name == path[2] })
	return i >= 0 && v.flow.Input[i].Clean() && m.Flow != nil && v.flow.Refuses(m.Payload) == nil
}

// failed is an error of the node.
func (v *visit) failed(code, format string, args ...any) *runs.Error {
	return &runs.Error{Code: code, Text: v.node.Name + ": " + fmt.Sprintf(format, args...)}
}

// asError is an error of a node as it ends the run, or leads to its error edge. If the store is unavailable,
// it does neither: the run is resumed, and finds what it had started.
func (v *visit) asError(code string, err error) error {
	if coded := (*runs.Error)(nil); errors.As(err, &coded) {
		return err
	}
	if storage.Unavailable(err) {
		return stored(err)
	}
	return v.failed(code, "%v", err)
}

// stored is an error of a store. If the store is unavailable, the run is resumed instead of failing.
func stored(err error) error {
	if storage.Unavailable(err) {
		return &storage.Fault{Class: storage.ClassOf(err), Err: err}
	}
	return err
}

// recorded returns the records of the run so far, and what the agent remembers besides.
func (v *visit) recorded() []claybot.Record { return v.state.Records() }
