package react

import (
	"context"
	"fmt"
	"log/slog"
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

// An answerer makes the next answer of the model and records it.
type answerer struct {
	costs      runs.Costs
	talk       *conversation
	window     *window
	chat       *chat
	compaction compacter
	limits     limiter
	named      func(tool string) string // see tools.Set.Named
	log        *slog.Logger
}

// A compacter keeps the conversation within the window.
type compacter interface {
	// upkeep looks after the size of the next request.
	upkeep(ctx context.Context) error
	// fold replaces older records by a summary where that is worth it, and reports
	// whether it did.
	fold(ctx context.Context, enough worth) (bool, error)
}

// A limiter decides what follows from a model call that a budget refused: nil, and the
// call is made again, or how the run ends. Other errors it returns as they are.
type limiter interface {
	limited(ctx context.Context, err error) error
}

// step makes one model call and records its answer. An answer cut at the length
// limit is continued once, within the step: the record has the whole text. The
// result says in a few words what came.
func (a *answerer) step(ctx context.Context) (result string, err error) {
	if a.chat.model == nil {
		return "", runs.NoModel()
	}
	if err := a.compaction.upkeep(ctx); err != nil {
		return "", err
	}
	began := time.Now()
	messages, resp, err := a.ask(ctx)
	if err != nil {
		return "", err
	}
	usage := counted(resp.Usage)
	last := usage
	if resp.Stop == llm.StopLength && len(resp.Calls) == 0 && strings.TrimSpace(resp.Text) != "" {
		messages = append(messages,
			llm.Message{Role: llm.RoleAssistant, Content: resp.Text, State: resp.State},
			llm.Message{Role: llm.RoleUser, Content: goOn})
		more, err := a.chat.call(ctx, a.talk.progress.steps+1, messages, resp.Text)
		switch {
		case err == nil:
			a.costs.Used(usage)
			usage = usage.Add(counted(more.Usage))
			last = counted(more.Usage)
			more.Text = resp.Text + more.Text
			resp = more
		case ctx.Err() != nil:
			a.costs.Lost(resp.Model, usage)
			return "", err
		default:
			a.log.Warn("answer cut at the length limit not continued", "error", err)
		}
	}
	if resp, last, usage, err = a.inFormat(ctx, messages, resp, last, usage); err != nil {
		return "", err
	}
	a.costs.Used(last)
	calls := a.repair(resp.Calls)
	if len(calls) == 0 {
		resp.Text = finalText(resp)
	}
	return summed(calls), a.talk.emit(claybot.Record{
		Type: claybot.RecordAssistant, At: claybot.Now(), Run: a.talk.run, Step: a.talk.progress.steps + 1,
		Text: resp.Text, ToolCalls: calls, Tokens: &usage, Model: resp.Model, Stop: string(resp.Stop), State: resp.State,
		MS: time.Since(began).Milliseconds(),
	})
}

// ask makes the model call of a step, and returns what it asked. A conversation
// that the provider finds too long is folded and sent again, then cut and sent
// for the last time. How much the provider takes is unknown; each time it is
// much less.
func (a *answerer) ask(ctx context.Context) ([]llm.Message, llm.Response, error) {
	for try := 1; ; try++ {
		messages := a.window.fitting(a.talk.all(), a.talk.run)
		if try > 1 { // what models want back may be what is too long
			messages = llm.Stateless(messages)
		}
		resp, err := a.chat.call(ctx, a.talk.progress.steps+1, messages, "")
		if err != nil {
			if err = a.limits.limited(ctx, err); err == nil {
				try--
				continue
			}
		}
		if err == nil || try > 2 || !runs.TooLong(err) {
			return messages, resp, err
		}
		sent := a.window.tokens(messages)
		a.log.Warn("conversation too long for the provider", "tokens", sent, "window", a.window.total, "try", try)
		if try == 1 {
			a.window.ceiling = sent / 2
			if _, err := a.compaction.fold(ctx, anything); err != nil {
				return nil, resp, err
			}
		} else {
			a.window.ceiling = sent / 8
		}
	}
}

// summed says in a few words what a model call came to.
func summed(calls []claybot.ToolCall) string {
	switch n := len(calls); n {
	case 0:
		return "answered"
	case 1:
		return "1 tool call"
	default:
		return fmt.Sprintf("%d tool calls", n)
	}
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
func (a *answerer) repair(calls []claybot.ToolCall) []claybot.ToolCall {
	var fixed []claybot.ToolCall
	for i, c := range calls {
		c.ID = llm.RepairCallID(c.ID, fmt.Sprintf("%d.%d", a.talk.progress.steps+1, i), a.talk.progress.ids)
		c.Name = a.named(strings.ToValidUTF8(c.Name[:min(len(c.Name), maxName)], ""))
		if len(c.Args) > maxArgs {
			c.Args = strings.ToValidUTF8(c.Args[:1024], "")
		}
		fixed = append(fixed, c)
	}
	return fixed
}
