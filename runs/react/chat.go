package react

import (
	"context"
	"encoding/json"
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
	album  *llm.Album            // the pictures that the model sees; nil: no files can be read
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
	var switched []claybot.Event
	req.Failed = func(a llm.Attempt) {
		if a.Next != "" {
			switched = append(switched, c.switched(a))
		}
	}
	resp, err := c.model.Chat(ctx, req)
	if len(switched) > 0 {
		if failed := c.turn.Emit(ctx, false, switched...); failed != nil && err == nil {
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

// switched is the event that another provider is asked.
func (c *chat) switched(a llm.Attempt) claybot.Event {
	facts := runs.ProviderSwitched{From: a.Route, To: a.Next}
	if a.Err != nil {
		facts.Class = string(a.Err.Class)
	}
	data, _ := json.Marshal(facts) // strings always marshal
	return claybot.Event{V: 1, Run: c.turn.Run.ID, Type: claybot.EventProviderSwitched, At: claybot.Now(), Data: data}
}

// shown are messages with the pictures among their files. What cannot be opened
// stays a line of text.
func (c *chat) shown(ctx context.Context, messages []llm.Message) []llm.Message {
	if c.turn.Files == nil {
		return messages
	}
	if c.album == nil {
		c.album = llm.NewAlbum(func(f claybot.FileReference) ([]byte, error) { return c.picture(ctx, f) })
	}
	return c.album.Show(messages)
}

var errLargePicture = errors.New("the picture is too large")

// picture reads a file of the agent.
func (c *chat) picture(ctx context.Context, f claybot.FileReference) ([]byte, error) {
	r, err := c.turn.Files.OpenFile(ctx, f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, llm.MaxPicture+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", f.ID, err)
	case len(b) > llm.MaxPicture:
		return nil, errLargePicture
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
