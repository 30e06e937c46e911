package flow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/tools"
)

// A Recording is a run from which a Case is made.
type Recording struct {
	Run     claybot.Run
	Message claybot.AgentMessage // that started it
	Records []claybot.Record
}

// maxPlays bounds how often a case is played while what it does not need is taken out.
const maxPlays = 3000

// Record makes a case of a run that has ended: the same way through the flow, with what the run was given.
// Texts, numbers and members on which the way does not depend are replaced or left out. An error says why
// the run cannot be a case; it holds no text of the run.
func (p Player) Record(ctx context.Context, r Recording) (c Case, err error) {
	if r.Run.State == claybot.RunCanceled {
		return c, errors.New("it was canceled")
	}
	x := &recorder{player: p, run: r, nodes: make(map[string][]any), answers: make(map[string][]any)}
	if err := x.collect(); err != nil {
		return c, err
	}
	x.tree = x.whole()
	first, err := x.play(ctx)
	if err != nil {
		return c, err
	}
	path := x.path()
	if got := strings.Join(first.Path, " "); got != strings.Join(path, " ") {
		return c, fmt.Errorf("played without a model and tools, it takes the way %s, where the run took %s", got, strings.Join(path, " "))
	}
	if got, want := codeOf(played(first)), codeOfRun(r.Run); got != want {
		return c, fmt.Errorf("played without a model and tools, it fails with %q, where the run failed with %q", got, want)
	}
	x.want = first
	for _, part := range []string{"trigger", "nodes", "answers"} {
		if err := x.shrink(ctx, x.tree[part], func(any) {}); err != nil {
			return c, err
		}
	}
	if c, err = x.asCase(); err != nil {
		return c, err
	}
	last, err := p.Play(ctx, c, 0, false)
	if err != nil {
		return c, err
	}
	c.Name = "run " + string(r.Run.ID)
	c.Expect = Expected{Path: last.Path, Replies: last.Replies, Fails: codeOf(played(last))}
	b, err := json.Marshal(c)
	if _, secrets := platforms.MaskSecrets(string(b)); err == nil && len(secrets) > 0 {
		return Case{}, fmt.Errorf("its way depends on %s", strings.Join(secrets, " and "))
	}
	return c, err
}

// played is the error of a run that was played; nil for none.
func played(p Played) error {
	if p.Err == nil {
		return nil
	}
	return p.Err
}

func codeOfRun(r claybot.Run) string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// A recorder makes one case.
type recorder struct {
	player  Player
	run     Recording
	nodes   map[string][]any // what each call or visit of a node came to, in order
	answers map[string][]any
	tree    map[string]any // the case as JSON
	want    Played
	plays   int
}

// path are the nodes that ended in the run.
func (x *recorder) path() (path []string) {
	for _, r := range x.run.Records {
		if r.Run == x.run.Run.ID && r.Type == claybot.RecordNode && r.Next != r.Name {
			path = append(path, r.Name)
		}
	}
	return path
}

// collect reads what the nodes and the people of the run put out.
func (x *recorder) collect() error {
	past := PastOf(x.run.Run.ID, x.run.Records)
	visits, at := make(map[string]int), x.player.Flow.Start
	for _, r := range x.run.Records {
		if r.Run != x.run.Run.ID {
			continue
		}
		switch r.Type {
		case claybot.RecordTool:
			if err := x.result(r); err != nil {
				return err
			}
		case claybot.RecordQuestion:
			x.question(r.Question)
		case claybot.RecordNode:
			if at = r.Next; r.Next == r.Name {
				continue
			}
			visits[r.Name]++
			if e := past.visit(r.Name, visits[r.Name]); e != nil {
				x.ended(r.Name, *e)
			}
		}
	}
	if e := x.run.Run.Error; e != nil { // in a node that leads nowhere then
		x.ended(at, ended{failed: &Failure{Node: at, Code: e.Code}})
	}
	return nil
}

// result adds the result of a call.
func (x *recorder) result(r claybot.Record) error {
	text, node := tools.Unmarked(r.Text), nodeOf(r.ToolCallID)
	switch {
	case r.OK:
		var v any = text
		if strings.HasPrefix(strings.TrimSpace(text), "{") || strings.HasPrefix(strings.TrimSpace(text), "[") {
			v = numbered([]byte(text), text)
		}
		x.nodes[node] = append(x.nodes[node], v)
	case r.Interrupted:
		return fmt.Errorf("a call of the node %s was cut off", node)
	case !strings.HasPrefix(strings.TrimPrefix(text, "error: "), "not approved"):
		x.nodes[node] = append(x.nodes[node], map[string]any{"fails": strings.TrimPrefix(text, "error: ")})
	}
	return nil
}

// numbered decodes JSON with its numbers as written; or returns a value in its place.
func numbered(raw []byte, or any) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil || d.More() {
		return or
	}
	return v
}

// ended adds what a node put out that starts others.
func (x *recorder) ended(name string, e ended) {
	n := x.player.Flow.Node(name)
	if n == nil {
		return
	}
	var v any
	if w, ok := n.Spec.(*flows.Wait); ok && w.Event != "" {
		if v = "expire"; e.failed == nil && e.reason != "expired" {
			v = numbered(e.out.Output, nil)
		}
		x.answers[name] = append(x.answers[name], v)
		return
	}
	switch spec := n.Spec.(type) {
	case *flows.Template, *flows.Switch, *flows.Wait, *flows.Ask, *flows.Reply, *flows.Tool, *flows.HTTP:
		return // computed, or added otherwise
	case *flows.Each:
		if items, ok := numbered(e.out.Output, nil).([]any); ok && e.failed == nil {
			if items = itemsOf(items, e.out, spec.OnError); len(items) > 0 {
				x.nodes[name] = append(x.nodes[name], items...)
			}
			return
		}
		v = map[string]any{"fails": "failed"}
	case *flows.Parallel:
		v = branchesOf(e.out, spec)
	default:
		v = numbered(e.out.Output, nil)
	}
	if e.failed != nil {
		v = map[string]any{"fails": "failed"}
		if e.failed.Code == CodeOutput {
			v = unfit(n)
		} else if e.failed.Code == CodeFlow || e.failed.Code == CodeVisits {
			return // it started none
		}
	}
	x.nodes[name] = append(x.nodes[name], v)
}

// question adds the answer to a question.
func (x *recorder) question(q *claybot.Question) {
	if q == nil {
		return
	}
	node := cmp.Or(nodeOf(q.ToolCallID), q.Key)
	for _, r := range x.run.Records {
		if r.Type != claybot.RecordAnswer || r.Answer == nil || r.Answer.Question != q.ID {
			continue
		}
		var v any
		switch a := *r.Answer; {
		case a.Via == claybot.ViaDefault || a.Value == nil:
			v = "expire"
		case q.Type == claybot.QuestionConfirm && tools.Approved(a):
			v = "approve"
		case q.Type == claybot.QuestionConfirm:
			v = "deny"
		default:
			v = numbered(a.Value, nil)
		}
		x.answers[node] = append(x.answers[node], v)
		return
	}
}

// listed is a list as a case has it.
func listed(all []any) any {
	for _, v := range all[1:] {
		if jsonOf(v) != jsonOf(all[0]) {
			return map[string]any{"visits": all}
		}
	}
	return all[0]
}

// whole is the case with all that the run was given.
func (x *recorder) whole() map[string]any {
	m := x.run.Message
	trigger := map[string]any{"text": m.Text, "user": cmp.Or(m.Flow.Connector, claybot.ConnectorAPI) + "/" + m.From.UserID}
	if m.Flow.Trigger != "" {
		trigger["name"] = m.Flow.Trigger
	}
	if len(m.Payload) > 0 {
		trigger["payload"] = numbered(m.Payload, nil)
	}
	if m.Tainted {
		trigger["tainted"] = true
	}
	nodes, answers := make(map[string]any), make(map[string]any)
	for name, all := range x.nodes {
		nodes[name] = listed(all)
	}
	for name, all := range x.answers {
		answers[name] = listed(all)
	}
	return map[string]any{"trigger": trigger, "nodes": nodes, "answers": answers}
}

func (x *recorder) asCase() (c Case, err error) {
	b, err := json.Marshal(x.tree)
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(b, &c)
}

func (x *recorder) play(ctx context.Context) (Played, error) {
	if ctx.Err() != nil {
		return Played{}, ctx.Err()
	}
	if x.plays++; x.plays > maxPlays {
		return Played{}, errors.New("it was given too much for a case")
	}
	c, err := x.asCase()
	if err != nil {
		return Played{}, err
	}
	got, err := x.player.Play(ctx, c, 0, false)
	if err != nil && ctx.Err() == nil && x.want.Path == nil {
		return got, errors.New("played without a model and tools, it comes to a node of which the run says nothing")
	}
	return got, err
}

// same reports whether the case as it is now takes the way of the run.
func (x *recorder) same(ctx context.Context) (bool, error) {
	got, err := x.play(ctx)
	if x.plays > maxPlays || ctx.Err() != nil {
		return false, cmp.Or(ctx.Err(), err)
	}
	return err == nil && slices.Equal(got.Path, x.want.Path) && codeOf(played(got)) == codeOf(played(x.want)) &&
		maps.Equal(got.Called, x.want.Called) && len(got.Replies) == len(x.want.Replies), nil
}

// shrink leaves out and replaces what a value does not need to have. set puts another one in its place.
func (x *recorder) shrink(ctx context.Context, v any, set func(any)) error {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			part := v[key]
			delete(v, key)
			same, err := x.same(ctx)
			if err != nil || same {
				if err != nil {
					return err
				}
				continue
			}
			v[key] = part
			if err := x.shrink(ctx, part, func(other any) { v[key] = other }); err != nil {
				return err
			}
		}
	case []any:
		for len(v) > 1 {
			half := v[:len(v)/2]
			set(half)
			same, err := x.same(ctx)
			if err != nil {
				return err
			}
			if !same {
				set(v)
				break
			}
			v = half
		}
		for i, part := range v {
			if err := x.shrink(ctx, part, func(other any) { v[i] = other }); err != nil {
				return err
			}
		}
	case string:
		if slices.Contains([]string{"approve", "deny", "expire"}, v) {
			return nil
		}
		return x.replace(ctx, v, set, "text", shaped(v, nil), shaped(v, x.knows))
	case json.Number:
		return x.replace(ctx, v, set, 1)
	}
	return nil
}

// replace puts the first of some values in place of another one that leaves the way as it is.
func (x *recorder) replace(ctx context.Context, v any, set func(any), others ...any) error {
	for _, other := range others {
		set(other)
		if same, err := x.same(ctx); err != nil || same {
			return err
		}
	}
	set(v)
	return nil
}

// knows reports whether a word is one of the file of the flow.
func (x *recorder) knows(word string) bool {
	return len(word) > 2 && strings.Contains(strings.ToLower(x.player.Flow.Text), strings.ToLower(word))
}

// shaped is a text with other letters and digits, but for words that are known.
func shaped(text string, known func(word string) bool) string {
	var b, word strings.Builder
	flush := func() {
		if w := word.String(); known != nil && known(w) {
			b.WriteString(w)
		} else {
			b.WriteString(strings.Map(func(r rune) rune {
				if unicode.IsDigit(r) {
					return '0'
				}
				return 'x'
			}, w))
		}
		word.Reset()
	}
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			word.WriteRune(r)
			continue
		}
		flush()
		b.WriteRune(r)
	}
	flush()
	return b.String()
}
