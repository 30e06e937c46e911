package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/tools"
)

const (
	maxForms    = 5 // that one call may ask
	maxFields   = 5 // of a form
	maxFormText = 600
)

// asks stands before the words of a server.
const asks = "The MCP server %s asks: %s"

// The answers to a form that the protocol has.
const (
	accept  = "accept"
	decline = "decline"
	dismiss = "cancel"
)

// An asking is a call whose server may ask the person of the run for something.
//
// A form that the person has not answered yet is canceled for the server, and the call
// ends: the run pauses with the fields as its questions, for as long as it takes. The call
// is made again with the answers, and the server, which asks again, gets them. So a server
// may ask only in calls that may be repeated.
type asking struct {
	tool *tool
	env  tools.Env

	mu      sync.Mutex
	seen    map[string]int // how often a form was asked in this call
	forms   int
	wait    *claybot.Awaiting
	refused string // why a form was not shown
}

// mayAsk reports whether the server may ask persons at all: only a trusted one may.
func (l *link) mayAsk() bool { return l.server.Trusted && l.m.cfg.Questions != nil }

// enter notes a call of the connection until the returned function is called.
func (l *link) enter(a *asking) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asking == nil {
		l.asking = make(map[*asking]bool)
	}
	l.asking[a] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.asking, a)
	}
}

// elicited answers a form of the server. The protocol does not say of which call it is:
// with several at once, no person is asked.
func (l *link) elicited(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.asking))
	l.mu.Unlock()
	if len(all) != 1 {
		for _, a := range all {
			a.refuse("it asked while several of its tools were called, so claybot cannot tell whom; call one at a time")
		}
		return &sdk.ElicitResult{Action: dismiss}, nil
	}
	return all[0].answer(ctx, r.Params), nil
}

func (a *asking) refuse(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused = why
}

// paused returns what the call waits for, and why a form was not shown.
func (a *asking) paused() (*claybot.Awaiting, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wait, a.refused
}

// answer returns the answer to a form. Secrets are never asked for in a chat.
func (a *asking) answer(ctx context.Context, p *sdk.ElicitParams) *sdk.ElicitResult {
	say := a.env.Say
	if say == nil {
		say = fmt.Sprintf
	}
	f, why := readForm(say(asks, a.tool.link.server.Name, plain(p.Message, maxFormText)), p)
	switch {
	case why != "":
		a.refuse(why)
		return &sdk.ElicitResult{Action: decline}
	case a.tool.spec.Effect == tools.Once:
		a.refuse("it asked the person for something, which only tools may do whose calls may be repeated; the operator says so with effects in the configuration of the server")
		return &sdk.ElicitResult{Action: dismiss}
	}
	env, ok := a.round(p)
	if !ok {
		a.refuse(fmt.Sprintf("it asked more than %d times", maxForms))
		return &sdk.ElicitResult{Action: dismiss}
	}
	r, err := a.tool.link.m.cfg.Questions().Ask(ctx, env, f.questions)
	switch {
	case err != nil:
		a.refuse("it asked the person for something, and " + err.Error())
		return &sdk.ElicitResult{Action: dismiss}
	case r.Wait != nil:
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.wait == nil {
			a.wait = r.Wait
		}
		return &sdk.ElicitResult{Action: dismiss}
	}
	return f.result(r.Text)
}

// round is the call as the one who asks a form: the same whenever the call is made.
func (a *asking) round(p *sdk.ElicitParams) (tools.Env, bool) {
	b, _ := json.Marshal(p) // it came as JSON
	sum := sha256.Sum256(b)
	form := hex.EncodeToString(sum[:8])
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil {
		a.seen = make(map[string]int)
	}
	env := a.env
	env.CallID = fmt.Sprintf("%s/%s/%d", env.CallID, form, a.seen[form])
	a.seen[form]++
	a.forms++
	return env, a.forms <= maxForms
}

// A form is what a server asks for, as questions.
type form struct {
	questions []claybot.Question
	fields    []field
}

// A field is a property of a form.
type field struct {
	name   string
	values map[string]any // of its options, by what the person reads; nil: the answer as it is
}

// A property is what claybot reads of the schema of a field.
type property struct {
	Type, Title, Description, Format string
	Enum                             []string
	EnumNames                        []string
	OneOf, AnyOf                     []struct{ Const, Title string }
	Items                            *property
	MinLength, MaxLength             *float64
	Minimum, Maximum                 *float64
	MinItems, MaxItems               *float64
}

var secretWords = lazyregexp.New(`(?i)pass ?(word|phrase|wd|code)|secret|token|credential|(api|private|access|secret)[ _-]?key|\b(pin|otp|cvv|cvc|ssn|iban)\b|card number|2fa`)

// readForm returns the questions of a form, each after the intro, or why it is not shown.
func readForm(intro string, p *sdk.ElicitParams) (f form, why string) {
	var schema struct {
		Properties map[string]property
		Required   []string
	}
	raw, err := json.Marshal(p.RequestedSchema)
	switch {
	case p.Mode == "url" || p.URL != "":
		return f, "it asked the person to open a link, which claybot does not pass on"
	case err != nil || json.Unmarshal(raw, &schema) != nil:
		return f, "it asked the person for something that claybot cannot show"
	case secretWords.MatchString(p.Message) || secretWords.MatchString(string(raw)):
		return f, "it asked for what may be a secret, which no chat is for; the operator puts secrets into the configuration of the server"
	}
	names := schema.Required
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(schema.Properties))
	}
	if len(names) > maxFields {
		return f, fmt.Sprintf("it asked the person for more than %d things at once", maxFields)
	}
	if len(names) == 0 { // a form without fields is agreed to
		f.questions = []claybot.Question{{Key: "answer", Text: intro, Type: claybot.QuestionBoolean, Required: true}}
		return f, ""
	}
	for i, name := range names {
		q, values, err := schema.Properties[name].question()
		if err == nil {
			q.Key, q.Text, q.Required = fmt.Sprintf("q%d", i+1), plain(name, 100), true
			if p := schema.Properties[name]; p.Title != "" || p.Description != "" {
				q.Text = plain(strings.TrimSpace(p.Title+" "+p.Description), 300)
			}
			q.Text = intro + "\n" + q.Text
			err = q.Valid()
		}
		if err != nil {
			return f, "it asked the person for something that claybot cannot show"
		}
		f.questions, f.fields = append(f.questions, q), append(f.fields, field{name, values})
	}
	return f, ""
}

var errField = errors.New("no question has this type")

// question is the question for a property, without its text. values are those of the options.
func (p property) question() (q claybot.Question, values map[string]any, err error) {
	switch {
	case p.Type == "array" && p.Items != nil:
		q.Type, q.Min, q.Max = claybot.QuestionMultiselect, p.MinItems, p.MaxItems
		q.Options, values = p.Items.options()
	case p.Type == "boolean":
		q.Type = claybot.QuestionBoolean
	case p.Type == "number" || p.Type == "integer":
		q.Type, q.Min, q.Max = claybot.QuestionNumber, p.Minimum, p.Maximum
	case p.Type != "string" && p.Type != "":
		return q, nil, errField
	default:
		if q.Options, values = p.options(); len(q.Options) > 0 {
			q.Type = claybot.QuestionSelect
			return q, values, nil
		}
		q.Type, q.Min, q.Max = claybot.QuestionText, p.MinLength, p.MaxLength
		switch p.Format {
		case "email":
			q.Type, q.Min, q.Max = claybot.QuestionEmail, nil, nil
		case "date":
			q.Type, q.Min, q.Max = claybot.QuestionDate, nil, nil
		case "date-time":
			q.Format, q.Example = `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)$`, "2026-03-31T15:04:00Z"
		case "uri":
			q.Format, q.Example = `^[A-Za-z][A-Za-z0-9+.-]*:\S+$`, "https://example.org/"
		}
	}
	return q, values, nil
}

// options returns what the person chooses from, and the value of each.
func (p property) options() (all []string, values map[string]any) {
	values = make(map[string]any)
	add := func(value, title string) {
		if title == "" {
			title = value
		}
		title = plain(title, 100)
		all = append(all, title)
		values[title] = value
	}
	for i, v := range p.Enum {
		title := ""
		if i < len(p.EnumNames) {
			title = p.EnumNames[i]
		}
		add(v, title)
	}
	for _, o := range slices.Concat(p.OneOf, p.AnyOf) {
		add(o.Const, o.Title)
	}
	return all, values
}

// result is the answer to the form, of the answers to its questions.
func (f form) result(answers string) *sdk.ElicitResult {
	var by map[string]any
	if err := json.NewDecoder(bytes.NewReader([]byte(answers))).Decode(&by); err != nil {
		return &sdk.ElicitResult{Action: dismiss}
	}
	if len(f.fields) == 0 {
		if by["answer"] != true {
			return &sdk.ElicitResult{Action: decline}
		}
		return &sdk.ElicitResult{Action: accept, Content: map[string]any{}}
	}
	content := make(map[string]any)
	for i, field := range f.fields {
		v := by[f.questions[i].Key]
		switch chosen := v.(type) {
		case string:
			if value, ok := field.values[chosen]; ok {
				v = value
			}
		case []any:
			for k, one := range chosen {
				if text, ok := one.(string); ok && field.values[text] != nil {
					chosen[k] = field.values[text]
				}
			}
		}
		content[field.name] = v
	}
	return &sdk.ElicitResult{Action: accept, Content: content}
}

// call makes the call, again with answers as long as the server wants more that is there.
func (a *asking) call(ctx context.Context, c *live, args json.RawMessage) (*sdk.CallToolResult, error) {
	p := &sdk.CallToolParams{Name: a.tool.raw, Arguments: args, Meta: traced(ctx)}
	for {
		r, err := c.session.CallTool(ctx, p)
		if err != nil || !r.NeedsInput() || !a.tool.link.mayAsk() {
			return r, err
		}
		p.InputResponses, p.RequestState = make(sdk.InputResponseMap), r.RequestState
		for _, id := range slices.Sorted(maps.Keys(r.InputRequests)) {
			form, ok := r.InputRequests[id].(*sdk.ElicitParams)
			if !ok {
				return r, nil
			}
			p.InputResponses[id] = a.answer(ctx, form)
		}
		if wait, refused := a.paused(); wait != nil || len(p.InputResponses) == 0 || refused != "" {
			return r, nil
		}
	}
}
