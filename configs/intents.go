package configs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot"
)

// An Intent is something that people come for, and what must be known for it.
type Intent struct {
	Name        string // unique in its list
	Description string // for the model that chooses among them
	Tools       []string
	Inputs      []claybot.Question // each with a key that is unique in its list
}

// setIntents reads the list of intents and leaves out bad ones, whole: half an
// intent might ask for less than is needed. It returns false when none is left
// of what was written.
func setIntents(r *reader, at place, n *yaml.Node, p *planDraft) bool {
	if n.Kind != yaml.SequenceNode {
		r.warn(at, "want a list of intents, found %s; ignored", kind(n))
		return false
	}
	p.Intents = nil
	lines := make(map[string]int)
	for i, e := range n.Content {
		where := place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i)}
		in, ok := r.intent(where, e)
		switch {
		case !ok:
		case lines[in.Name] != 0:
			r.warn(where, "the name %s was given in line %d already; ignored", quote(in.Name), lines[in.Name])
			instead(r, len(r.warnings)-1, "the intent is left out")
		default:
			lines[in.Name] = e.Line
			p.Intents = append(p.Intents, in)
		}
	}
	return len(p.Intents) > 0 || len(n.Content) == 0
}

// intent reads one entry, and returns false after a warning about it.
func (r *reader) intent(at place, n *yaml.Node) (in Intent, ok bool) {
	before := len(r.warnings)
	switch {
	case n.Kind != yaml.MappingNode:
		r.warn(at, "want a group of keys (%s), found %s; ignored", strings.Join(names(intentKeys()), ", "), kind(n))
	default:
		group(r, at, n, &in, intentKeys())
		if len(r.warnings) == before && in.Name == "" {
			r.warn(at, "has no name; ignored")
		}
		if len(r.warnings) == before && in.Description == "" {
			r.warn(at, "has no description; ignored")
		}
	}
	if len(r.warnings) == before {
		return in, true
	}
	instead(r, before, "the intent is left out")
	return in, false
}

func intentKeys() []key[Intent] {
	return []key[Intent]{
		text("name", func(r *reader, at place, v string, in *Intent) {
			if len(v) > 64 || !helperName.MatchString(v) {
				r.warn(at, "%s is not a name of at most 64 of a-z, 0-9, _ and -; ignored", quote(v))
				return
			}
			in.Name = v
		}),
		text("description", func(_ *reader, _ place, v string, in *Intent) { in.Description = v }),
		{"tools", func(r *reader, at place, n *yaml.Node, in *Intent) { in.Tools = r.globs(at, n) }},
		{"inputs", setInputs},
	}
}

func setInputs(r *reader, at place, n *yaml.Node, in *Intent) {
	if n.Kind != yaml.SequenceNode {
		r.warn(at, "want a list of inputs, found %s; ignored", kind(n))
		return
	}
	for i, e := range n.Content {
		where := place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i)}
		if e.Kind != yaml.MappingNode {
			r.warn(where, "want a group of keys (%s), found %s; ignored", strings.Join(names(inputKeys()), ", "), kind(e))
			continue
		}
		// What is listed is needed, unless it says otherwise.
		q := claybot.Question{Type: claybot.QuestionText, Required: true}
		before := len(r.warnings)
		group(r, where, e, &q, inputKeys())
		if len(r.warnings) > before {
			continue
		}
		if err := r.input(q, in.Inputs); err != nil {
			r.warn(where, "the input %s: %v; ignored", quote(q.Key), err)
			continue
		}
		in.Inputs = append(in.Inputs, q)
	}
}

// input says what is wrong with an input whose keys are right one by one.
func (r *reader) input(q claybot.Question, others []claybot.Question) error {
	switch {
	case q.Key == "":
		return fmt.Errorf("it has no key")
	case slices.ContainsFunc(others, func(o claybot.Question) bool { return o.Key == q.Key }):
		return fmt.Errorf("its key is there twice")
	case q.Text == "":
		return fmt.Errorf("it has no text, which is what people are asked")
	case q.Type == claybot.QuestionConfirm:
		return fmt.Errorf("confirm is for steps; an input that is yes or no is of the type boolean")
	}
	return q.Valid()
}

func inputKeys() []key[claybot.Question] {
	number := func(name string, of func(*claybot.Question) **float64) key[claybot.Question] {
		return text(name, func(r *reader, at place, v string, q *claybot.Question) {
			f, err := strconv.ParseFloat(v, 64)
			if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
				r.warn(at, "%s is not a number; ignored", quote(v))
				return
			}
			*of(q) = &f
		})
	}
	word := func(name string, of func(*claybot.Question) *string) key[claybot.Question] {
		return text(name, func(_ *reader, _ place, v string, q *claybot.Question) { *of(q) = v })
	}
	return []key[claybot.Question]{
		word("key", func(q *claybot.Question) *string { return &q.Key }),
		word("text", func(q *claybot.Question) *string { return &q.Text }),
		text("type", func(_ *reader, _ place, v string, q *claybot.Question) { q.Type = claybot.QuestionType(v) }),
		{"options", func(r *reader, at place, n *yaml.Node, q *claybot.Question) {
			items, _ := r.list(at, n)
			for _, it := range items {
				q.Options = append(q.Options, it.text)
			}
		}},
		number("min", func(q *claybot.Question) **float64 { return &q.Min }),
		number("max", func(q *claybot.Question) **float64 { return &q.Max }),
		word("format", func(q *claybot.Question) *string { return &q.Format }),
		word("placeholder", func(q *claybot.Question) *string { return &q.Placeholder }),
		word("example", func(q *claybot.Question) *string { return &q.Example }),
		word("default", func(q *claybot.Question) *string { return &q.Default }),
		text("required", func(r *reader, at place, v string, q *claybot.Question) { r.truth(at, v, &q.Required) }),
	}
}
