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
	"github.com/claybot/claybot/storage"
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
	seen    map[string]int // how often a form was asked in this try of the call
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

// elicited answers a form of the server. The protocol does not say of which call it is: no
// person is asked with several at once, nor after a call of the connection ended without an
// answer, on which the server may still work.
func (l *link) elicited(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	l.mu.Lock()
	all, c := slices.Collect(maps.Keys(l.asking)), l.live
	l.mu.Unlock()
	why := ""
	switch {
	case c == nil || c.session != r.Session:
		return &sdk.ElicitResult{Action: dismiss}, nil // of a connection that is gone
	case c.unanswered.Load():
		why = "it asked after an earlier call had ended without an answer, so claybot cannot tell whom; it can ask again when it is connected anew"
	case len(all) != 1:
		why = "it asked while several of its tools were called, so claybot cannot tell whom; call one at a time"
	}
	if why != "" {
		for _, a := range all {
			if a.tool.spec.Effect != tools.Once { // which cannot ask
				a.refuse(why)
			}
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

// answer returns the answer to a form. What asks for a secret, as far as words can tell, is declined.
func (a *asking) answer(ctx context.Context, p *sdk.ElicitParams) *sdk.ElicitResult {
	say := a.env.Say
	if say == nil {
		say = fmt.Sprintf
	}
	f, why := readForm(say(asks, a.tool.link.server.Name, a.tool.link.seen(p.Message, maxFormText)), p, a.tool.link.seen)
	switch {
	case why != "":
		a.refuse(why)
		return &sdk.ElicitResult{Action: decline}
	case a.tool.spec.Effect == tools.Once:
		a.refuse(fmt.Sprintf("it asked for input, but its calls cannot be repeated; set `effects: {%s: idempotent}` for the server if they can", a.tool.raw))
		return &sdk.ElicitResult{Action: dismiss}
	}
	env, more, err := a.round(ctx, p)
	if !more {
		a.refuse(fmt.Sprintf("it asked more than %d times", maxForms))
		return &sdk.ElicitResult{Action: decline}
	}
	var r tools.Result
	if err == nil {
		r, err = a.tool.link.m.cfg.Questions().Ask(ctx, env, f.questions)
	}
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

// seen are the words of a server as a person reads them.
func (l *link) seen(s string, most int) string { return plain(l.red.known(s), most) }

// round is the call as the one who asks a form: the same whenever the call is made. A form
// that is new is counted: a call asks maxForms in all, over its pauses and restarts.
func (a *asking) round(ctx context.Context, p *sdk.ElicitParams) (env tools.Env, more bool, err error) {
	b, _ := json.Marshal(p) // it came as JSON
	sum := sha256.Sum256(b)
	form := hex.EncodeToString(sum[:8])
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen == nil {
		a.seen = make(map[string]int)
	}
	form = fmt.Sprintf("%s/%d", form, a.seen[form])
	a.seen[form[:16]]++
	env = a.env
	pins, key := a.tool.link.m.cfg.Pins, storage.CheckpointRepeats+"mcp-asks/"+string(env.Run)+"/"+env.CallID
	env.CallID += "/" + form
	text, err := pins.Checkpoint(ctx, key)
	_, words, _ := strings.Cut(text, " ")
	asked := strings.Fields(words)
	switch {
	case err != nil || slices.Contains(asked, form):
		return env, true, err
	case len(asked) >= maxForms:
		return env, false, nil
	}
	return env, true, pins.SetCheckpoint(ctx, key, stamped(append(asked, form)...))
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

// What asks for a secret, where words are apart by single spaces.
var (
	secretWords = lazyregexp.New(`(?i)pass ?(word|phrase|wd|code|key|wort)|kennwort|geheim|secret|token|credential|zugangsdaten|anmeldedaten|` +
		`(api|private|access|recovery|encryption) ?key|(api|privater?) ?schlüssel|\b(pin|otp|totp|cvv|cvc|ssn|iban|puk)\b|(?-i:\bTANs?\b)|2fa|` +
		`(credit ?card|card ?number|kreditkarte|karten ?nummer)|(seed|recovery) ?(phrase|word)|mnemonic|` +
		`(verification|security|confirmation|auth|authentication|authorization|one time|login|access|recovery|backup|sms|digit|\bpin) ?code|` +
		`(bestätigungs|sicherheits|verifizierungs|freigabe|einmal|zugangs|anmelde|prüf) ?code`)
	humps = lazyregexp.New(`([a-z0-9])([A-Z])`)
)

// asksSecret reports whether JSON asks for a secret anywhere, as far as words can tell.
func asksSecret(v any) bool {
	switch v := v.(type) {
	case string:
		text := strings.Join(strings.Fields(strings.NewReplacer("_", " ", "-", " ").Replace(plain(v, len(v)))), " ")
		return secretWords.MatchString(text) || secretWords.MatchString(humps.ReplaceAllString(text, "$1 $2"))
	case []any:
		return slices.ContainsFunc(v, asksSecret)
	case map[string]any:
		for name, m := range v {
			if asksSecret(name) || asksSecret(m) {
				return true
			}
		}
	}
	return false
}

// readForm returns the questions of a form, each after the intro, or why it is not shown. Its
// words are as seen returns them.
func readForm(intro string, p *sdk.ElicitParams, seen func(string, int) string) (f form, why string) {
	var schema struct {
		Properties map[string]property
		Required   []string
	}
	var all any
	raw, err := json.Marshal(p.RequestedSchema)
	switch {
	case p.Mode == "url" || p.URL != "":
		return f, "it asked the person to open a link, which claybot does not pass on"
	case err != nil || json.Unmarshal(raw, &schema) != nil:
		return f, "it asked the person for something that claybot cannot show"
	case asksSecret(p.Message) || json.Unmarshal(raw, &all) != nil || asksSecret(all):
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
		q, values, err := schema.Properties[name].question(seen)
		if err == nil {
			q.Key, q.Text, q.Required = fmt.Sprintf("q%d", i+1), seen(name, 100), true
			if p := schema.Properties[name]; p.Title != "" || p.Description != "" {
				q.Text = seen(strings.TrimSpace(p.Title+" "+p.Description), 300)
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
func (p property) question(seen func(string, int) string) (q claybot.Question, values map[string]any, err error) {
	switch {
	case p.Type == "array" && p.Items != nil:
		q.Type, q.Min, q.Max = claybot.QuestionMultiselect, p.MinItems, p.MaxItems
		q.Options, values = p.Items.options(seen)
	case p.Type == "boolean":
		q.Type = claybot.QuestionBoolean
	case p.Type == "number" || p.Type == "integer":
		q.Type, q.Min, q.Max = claybot.QuestionNumber, p.Minimum, p.Maximum
	case p.Type != "string" && p.Type != "":
		return q, nil, errField
	default:
		if q.Options, values = p.options(seen); len(q.Options) > 0 {
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
func (p property) options(seen func(string, int) string) (all []string, values map[string]any) {
	values = make(map[string]any)
	add := func(value, title string) {
		if title == "" {
			title = value
		}
		title = seen(title, 100)
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
