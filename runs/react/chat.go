package react

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
)

// A chat calls the model for answers, and shows them as they grow.
type chat struct {
	turn   *runs.Turn
	model  llm.Model // nil: none is configured
	window *window
	format *claybot.AnswerFormat // of the final answer; nil: a text
	album  *llm.Album            // the pictures and documents that the model sees; nil: no files can be read
}

// call makes one model call, which the caller counts when it answered. The text
// before the answer belongs to the same step.
func (c *chat) call(ctx context.Context, step int, messages []llm.Message, before string) (llm.Response, error) {
	req := llm.Request{
		Agent: c.turn.Agent.ID, Run: c.turn.Run.ID,
		System: c.window.system, Messages: c.shown(ctx, messages), Tools: c.window.tools, Lost: c.turn.Lost, Format: c.format,
	}
	if c.turn.Journal != nil {
		g := newGrowth(before)
		req.Delta = func(offset int, text string) { c.turn.Journal.Grow(step, g.put(offset, text)) }
	}
	var failures []claybot.Event
	req.Failed = func(a llm.Attempt) { failures = append(failures, c.failed(step, a)) }
	span := claybot.TraceOf(ctx).In(runs.ChatSpan(c.turn.Run.ID, step))
	resp, err := c.model.Chat(claybot.WithTrace(ctx, span), req)
	if len(failures) > 0 {
		if failed := c.turn.Emit(ctx, false, failures...); failed != nil && err == nil {
			c.turn.Lost(resp.Model, counted(resp.Usage))
			err = failed
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return resp, runs.Ended(ctx)
	case err != nil:
		return resp, runs.ModelError(err)
	}
	return resp, nil
}

// failed is the event of a try that failed, or that another provider is asked then.
func (c *chat) failed(step int, a llm.Attempt) claybot.Event {
	class, status := "", 0
	if a.Err != nil {
		class, status = string(a.Err.Class), a.Err.Status
	}
	if a.Next != "" {
		return runs.ProviderChanged(c.turn.Run.ID, runs.ProviderSwitched{From: a.Route, To: a.Next, Class: class})
	}
	return runs.CallFailed(c.turn.Run.ID, claybot.At(a.At), runs.ModelCallFailed{
		Step: step, Route: a.Route, Try: a.Try, Class: class, Status: status, MS: a.Took.Milliseconds(), Again: a.Again, WaitMS: a.Wait.Milliseconds(),
	})
}

// shown are messages with the pictures and documents among their files. What cannot
// be opened, or does not fit, stays a line of text.
func (c *chat) shown(ctx context.Context, messages []llm.Message) []llm.Message {
	if c.turn.Files == nil {
		return messages
	}
	if c.album == nil {
		c.album = llm.NewAlbum(func(f claybot.FileReference) ([]byte, error) { return c.file(ctx, f) })
	}
	return c.album.Show(messages, c.window.left(messages))
}

var errLarge = errors.New("the file is too large")

// file reads a file of the agent that may be shown.
func (c *chat) file(ctx context.Context, f claybot.FileReference) ([]byte, error) {
	r, err := c.turn.Files.OpenFile(ctx, f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	most := llm.MaxShown(f)
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", f.ID, err)
	case int64(len(b)) > most:
		return nil, errLarge
	}
	return b, nil
}

// counted makes sure that the call itself is counted.
func counted(u claybot.Usage) claybot.Usage {
	u.LLMCalls = max(u.LLMCalls, 1)
	return u
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
