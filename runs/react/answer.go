package react

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
)

// What users read when the model ends without an answer, or in the middle of
// one.
const (
	sayEmpty    = "The model gave an empty answer. Please ask again, perhaps in other words."
	sayUsedUp   = "The model reached its length limit before it said anything. A shorter question may help."
	sayFiltered = "The model's provider withheld the answer (content filter)."
	markCut     = "[cut off: the model reached its length limit]"
	markFilter  = "[ended by the content filter of the model's provider]"
	goOn        = "[claybot] Your answer was cut off at the length limit. Continue exactly where it stopped; repeat nothing and add no introduction."
)

// step makes one model call and records its answer. An answer cut at the length
// limit is continued once, within the step: the record has the whole text. The
// result says in a few words what came.
func (p *pass) step(ctx context.Context) (result string, err error) {
	if p.model == nil {
		return "", errNoModel()
	}
	if err := p.upkeep(ctx); err != nil {
		return "", err
	}
	began := time.Now()
	messages, resp, err := p.ask(ctx)
	if err != nil {
		return "", err
	}
	usage := counted(resp.Usage)
	last := usage
	if resp.Stop == llm.StopLength && len(resp.Calls) == 0 && strings.TrimSpace(resp.Text) != "" {
		messages = append(messages,
			llm.Message{Role: llm.RoleAssistant, Content: resp.Text},
			llm.Message{Role: llm.RoleUser, Content: goOn})
		more, err := p.chat(ctx, messages, resp.Text)
		switch {
		case err == nil:
			p.turn.Used(usage)
			usage = usage.Add(counted(more.Usage))
			last = counted(more.Usage)
			more.Text = resp.Text + more.Text
			resp = more
		case ctx.Err() != nil:
			p.turn.Lost(resp.Model, usage)
			return "", err
		default:
			p.log.Warn("an answer cut at the length limit was not continued", "error", err)
		}
	}
	p.turn.Used(last)
	calls := p.repair(resp.Calls)
	if len(calls) == 0 {
		resp.Text = finalText(resp)
	}
	return summed(calls), p.emit(claybot.Record{
		Type: claybot.RecordAssistant, At: claybot.Now(), Run: p.turn.Run.ID, Step: p.progress.steps + 1,
		Text: resp.Text, ToolCalls: calls, Tokens: &usage, Model: resp.Model, Stop: string(resp.Stop),
		MS: time.Since(began).Milliseconds(),
	})
}

// ask makes the model call of a step, and returns what it asked. A conversation
// that the provider finds too long is folded and sent again, then cut and sent
// for the last time. How much the provider takes is unknown; each time it is
// much less.
func (p *pass) ask(ctx context.Context) ([]llm.Message, llm.Response, error) {
	for try := 1; ; try++ {
		messages := p.fitting()
		resp, err := p.chat(ctx, messages, "")
		if err != nil {
			if err = p.limited(ctx, err); err == nil {
				try--
				continue
			}
		}
		if err == nil || try > 2 || !tooLong(err) {
			return messages, resp, err
		}
		sent := p.tokens(messages)
		p.log.Warn("the provider finds the conversation too long", "tokens", sent, "window", p.window, "try", try)
		if try == 1 {
			p.ceiling = sent / 2
			if _, err := p.fold(ctx, anything); err != nil {
				return nil, resp, err
			}
		} else {
			p.ceiling = sent / 8
		}
	}
}

// tooLong reports whether a provider refused a request for its length.
func tooLong(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && e.Class == llm.Context
}

// chat is one model call, which the caller counts when it answered. The text
// before the answer belongs to the same step.
func (p *pass) chat(ctx context.Context, messages []llm.Message, before string) (llm.Response, error) {
	req := llm.Request{
		Agent: p.turn.Agent.ID, Run: p.turn.Run.ID,
		System: p.system, Messages: p.shown(ctx, messages), Tools: p.offered, Lost: p.turn.Lost,
	}
	if p.turn.Journal != nil {
		step := p.progress.steps + 1
		g := newGrowth(before)
		req.Delta = func(offset int, text string) { p.turn.Journal.Grow(step, g.put(offset, text)) }
	}
	var switched []claybot.Event
	req.Failed = func(a llm.Attempt) {
		if a.Next != "" {
			switched = append(switched, p.switched(a))
		}
	}
	resp, err := p.model.Chat(ctx, req)
	if len(switched) > 0 {
		if told := p.turn.Emit(ctx, false, switched...); told != nil && err == nil {
			p.turn.Lost(resp.Model, counted(resp.Usage))
			err = told
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return resp, runs.Ended(ctx)
	case err != nil:
		return resp, modelError(err)
	}
	return resp, nil
}

// switched tells that another provider is asked.
func (p *pass) switched(a llm.Attempt) claybot.Event {
	facts := runs.ProviderSwitched{From: a.Route, To: a.Next}
	if a.Err != nil {
		facts.Class = string(a.Err.Class)
	}
	data, _ := json.Marshal(facts) // strings always marshal
	return claybot.Event{V: 1, Run: p.turn.Run.ID, Type: claybot.EventProviderSwitched, At: claybot.Now(), Data: data}
}

// counted makes sure that the call itself is counted.
func counted(u claybot.Usage) claybot.Usage {
	u.LLMCalls = max(u.LLMCalls, 1)
	return u
}

func errNoModel() error {
	return &runs.Error{Code: runs.CodeNoModel, Text: "no model is configured"}
}

func modelError(err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return &runs.Error{Code: runs.CodeModel, Text: fmt.Sprintf("the model failed with an error of type %T", err), Err: err}
	}
	code := runs.CodeModel
	switch e.Class {
	case llm.Permanent:
		if e.Status < 500 { // a server that broke has not refused anything
			code = runs.CodeRefused
		}
	case llm.Context:
		code = runs.CodeContext
	case llm.Budget:
		return &runs.Error{Code: runs.CodeBudget, Text: e.Error(), Err: err, Say: e.Text}
	case llm.Off:
		return runs.Off(e)
	case llm.Transient, llm.Rate:
	}
	return &runs.Error{Code: code, Text: e.Error(), Err: err}
}

// finalText is what an answer without calls says: never nothing.
func finalText(r llm.Response) string {
	empty := strings.TrimSpace(r.Text) == ""
	switch {
	case r.Stop == llm.StopFilter && empty:
		return sayFiltered
	case r.Stop == llm.StopFilter:
		return r.Text + "\n\n" + markFilter
	case r.Stop == llm.StopLength && empty:
		return sayUsedUp
	case r.Stop == llm.StopLength:
		return r.Text + "\n\n" + markCut
	case empty:
		return sayEmpty
	}
	return r.Text
}

// maxArgs is the most bytes of arguments that are recorded; longer ones are cut
// and so refused as cut JSON.
const maxArgs = 1 << 20

// maxName is the most bytes of a tool name that are recorded.
const maxName = 64

// repair gives every call an id of its own within the run, by which its start
// and its result are known, and bounds what is recorded of it.
func (p *pass) repair(calls []claybot.ToolCall) []claybot.ToolCall {
	var fixed []claybot.ToolCall
	for i, c := range calls {
		c.ID = llm.RepairCallID(c.ID, fmt.Sprintf("%d.%d", p.progress.steps+1, i), p.progress.ids)
		c.Name = strings.ToValidUTF8(c.Name[:min(len(c.Name), maxName)], "")
		if len(c.Args) > maxArgs {
			c.Args = strings.ToValidUTF8(c.Args[:1024], "")
		}
		fixed = append(fixed, c)
	}
	return fixed
}

// A growth is a text that grows from a fixed beginning, and may start again.
type growth struct {
	fixed int
	text  strings.Builder
}

func newGrowth(before string) *growth {
	g := &growth{fixed: len(before)}
	g.text.WriteString(before)
	return g
}

// put sets text at an offset behind the fixed beginning, drops what followed
// there, and returns all. The cost is that of text, not of the whole.
func (g *growth) put(offset int, text string) string {
	if at := g.fixed + max(offset, 0); at < g.text.Len() {
		kept := g.text.String()[:at]
		g.text.Reset()
		g.text.WriteString(kept)
	}
	g.text.WriteString(text)
	return g.text.String()
}
