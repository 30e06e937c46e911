// Package ask holds the tool ask_user: the agent asks its person something, and
// goes on when the answer comes.
//
// The tool checks what the model made up; who is asked, how, and what an answer
// is worth is the affair of tools.Questions. Only cmd imports it.
package ask

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// Name is the tool's name.
const Name = "ask_user"

const (
	maxQuestions = 5
	minExpires   = time.Minute
	maxExpires   = 7 * 24 * time.Hour
)

type question struct {
	Question    string   `json:"question,omitempty" jsonschema:"what to ask"`
	Key         string   `json:"key,omitempty" jsonschema:"a short name for the answer, such as colour"`
	Type        string   `json:"type,omitempty" jsonschema:"text (the default), textarea, email, email_list, datetime, date, time, number, select, multiselect or boolean"`
	Options     []string `json:"options,omitempty" jsonschema:"the answers to choose from"`
	Min         *float64 `json:"min,omitempty" jsonschema:"the smallest number, the least characters of a text, or the least options"`
	Max         *float64 `json:"max,omitempty" jsonschema:"the largest number, the most characters of a text, or the most options"`
	Format      string   `json:"format,omitempty" jsonschema:"a regular expression that the whole text must match; give an example too"`
	Placeholder string   `json:"placeholder,omitempty" jsonschema:"a hint inside the empty field of a form"`
	Example     string   `json:"example,omitempty" jsonschema:"what an answer looks like"`
	Default     string   `json:"default,omitempty" jsonschema:"the answer when none comes in time; without it the work ends then"`
	ExpiresIn   string   `json:"expiresIn,omitempty" jsonschema:"how long to wait, such as 30m, 12h or 3d; 24h when absent"`
}

type input struct {
	question
	Questions []question `json:"questions,omitempty" jsonschema:"several questions at once, at most 5, instead of the fields above; the result has the answers by key"`
}

// Tools are all tools of this package.
func Tools(q tools.Questions) []tools.Tool {
	s := tools.Spec{
		Tool:   llm.Tool{Name: Name, Description: "Asks the person and waits, for hours if need be. Only if you cannot go on without the answer."},
		Effect: tools.Idempotent,
		Scopes: []string{"questions"}, Brief: []string{"question", "options"},
		Public: true, // what the person types in this conversation
	}
	return []tools.Tool{tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		qs, err := in.read(time.Now())
		if err != nil {
			return tools.Result{}, err
		}
		return q.Ask(ctx, env, qs)
	})}
}

func (in input) read(now time.Time) ([]claybot.Question, error) {
	all := in.Questions
	single := len(all) == 0
	switch {
	case single:
		all = []question{in.question}
	case in.Question != "":
		return nil, errors.New("give either question or questions, not both")
	case len(all) > maxQuestions:
		return nil, fmt.Errorf("field questions: %d are given, at most %d are asked at once", len(all), maxQuestions)
	}
	qs := make([]claybot.Question, len(all))
	keys := make(map[string]bool)
	for i, a := range all {
		q, err := a.read(now)
		if q.Key == "" {
			q.Key = "answer"
			if !single {
				q.Key = fmt.Sprintf("q%d", i+1)
			}
		}
		if err == nil && keys[strings.ToLower(q.Key)] {
			err = fmt.Errorf("field key: %q is there twice", q.Key)
		}
		if err != nil {
			if !single {
				err = fmt.Errorf("question %d: %w", i+1, err)
			}
			return nil, err
		}
		keys[strings.ToLower(q.Key)] = true
		qs[i] = q
	}
	return qs, nil
}

func (a question) read(now time.Time) (claybot.Question, error) {
	q := claybot.Question{
		Key: strings.TrimSpace(a.Key), Text: strings.TrimSpace(a.Question), Type: claybot.QuestionType(strings.TrimSpace(a.Type)),
		Min: a.Min, Max: a.Max, Format: a.Format, Required: true,
		Placeholder: strings.TrimSpace(a.Placeholder), Example: strings.TrimSpace(a.Example), Default: strings.TrimSpace(a.Default),
	}
	for _, o := range a.Options {
		q.Options = append(q.Options, strings.TrimSpace(o))
	}
	switch {
	case q.Type == "" && len(q.Options) > 0:
		q.Type = claybot.QuestionSelect
	case q.Type == "":
		q.Type = claybot.QuestionText
	case q.Type == claybot.QuestionConfirm:
		return q, errors.New("field type: approvals are not asked for by you; use boolean")
	}
	if err := q.Valid(); err != nil {
		return q, err
	}
	wait, err := duration(a.ExpiresIn)
	if wait > 0 {
		q.Expires = claybot.At(now.Add(wait))
	}
	return q, err
}

func duration(s string) (time.Duration, error) {
	s = strings.ToLower(strings.ReplaceAll(s, " ", ""))
	if s == "" {
		return 0, nil
	}
	d, err := tools.ParseDuration(s, 0)
	if err != nil || d < minExpires || d > maxExpires {
		return 0, fmt.Errorf("field expiresIn: %.40q; want a time from 1m to 7d, such as 30m, 12h or 3d", s)
	}
	return d, nil
}
