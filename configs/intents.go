package configs

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot"
)

// An Intent is something that people come for, and what must be known for it.
type Intent struct {
	Name        string             `key:"name" kind:"name"` // unique in its list
	Description string             `key:"description"`      // for the model that chooses among them
	Tools       []string           `key:"tools" kind:"tool patterns"`
	Inputs      []claybot.Question `key:"inputs" kind:"inputs"` // each with a key that is unique in its list
}

func (in *Intent) fault() string {
	switch {
	case in.Name == "":
		return "has no name"
	case in.Description == "":
		return "has no description"
	}
	return ""
}

// A question is an input as it is written.
type question struct {
	Key         string               `key:"key"`
	Text        string               `key:"text"`
	Type        claybot.QuestionType `key:"type" kind:"question type"`
	Options     []string             `key:"options" kind:"texts"`
	Min         *float64             `key:"min" kind:"number"`
	Max         *float64             `key:"max" kind:"number"`
	Format      string               `key:"format"`
	Placeholder string               `key:"placeholder"`
	Example     string               `key:"example"`
	Default     string               `key:"default"`
	Required    bool                 `key:"required"`
}

func anyNumber(v string) (*float64, error) {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%s is not a number", quote(v))
	}
	return &f, nil
}

func setInputs(r *reader, at place, n *yaml.Node, inputs *[]claybot.Question) {
	if n.Kind != yaml.SequenceNode {
		r.warn(at, "want a list of inputs, found %s; ignored", kindOf(n))
		return
	}
	for i, e := range n.Content {
		where := place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i)}
		if !isGroup[question](r, where, e) {
			continue
		}
		// What is listed is needed, unless it says otherwise.
		in, before := question{Type: claybot.QuestionText, Required: true}, len(r.warnings)
		if r.group(where, e, &in); len(r.warnings) > before {
			continue
		}
		q := claybot.Question{
			Key: in.Key, Text: in.Text, Type: in.Type, Options: in.Options, Min: in.Min, Max: in.Max, Format: in.Format,
			Placeholder: in.Placeholder, Example: in.Example, Default: in.Default, Required: in.Required,
		}
		if err := checkInput(q, *inputs); err != nil {
			r.warn(where, "the input %s: %v; ignored", quote(q.Key), err)
			continue
		}
		*inputs = append(*inputs, q)
	}
}

// checkInput says what is wrong with an input whose keys are right one by one.
func checkInput(q claybot.Question, others []claybot.Question) error {
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
