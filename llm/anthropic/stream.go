package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// maxBlocks bounds what a broken server can make the answer hold.
const maxBlocks = 4096

// An event is one event of a stream. Which fields are set depends on Type.
type event struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message *struct {
		Model string    `json:"model"`
		Usage *apiUsage `json:"usage"`
	} `json:"message"`
	Block *struct {
		Type  string          `json:"type"`
		Text  string          `json:"text"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"content_block"`
	Delta struct {
		Type       string  `json:"type"`
		Text       string  `json:"text"`
		Partial    string  `json:"partial_json"`
		Thinking   string  `json:"thinking"`
		Signature  string  `json:"signature"` // of reasoning that is not shown
		StopReason *string `json:"stop_reason"`
	} `json:"delta"`
	Usage *apiUsage       `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// apiUsage is what the API counts. Later events have newer counts, and leave out
// what they have nothing new of.
type apiUsage struct {
	Input      *int64 `json:"input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	Output     *int64 `json:"output_tokens"`
	Details    *struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// A counted usage is the sum of what events said.
type counted struct{ input, cacheWrite, cacheRead, output, thinking int64 }

func (c *counted) take(u *apiUsage) {
	if u == nil {
		return
	}
	set := func(to *int64, from *int64) {
		if from != nil && *from >= 0 {
			*to = *from
		}
	}
	set(&c.input, u.Input)
	set(&c.cacheWrite, u.CacheWrite)
	set(&c.cacheRead, u.CacheRead)
	set(&c.output, u.Output)
	if u.Details != nil {
		set(&c.thinking, u.Details.Thinking)
	}
}

// usage counts input as others do: what was read from the cache and written to
// it is a part of it.
func (c *counted) usage() claybot.Usage {
	return claybot.Usage{
		Input: c.input + c.cacheRead + c.cacheWrite, CachedInput: c.cacheRead, CacheWrite: c.cacheWrite,
		Output: c.output, Reasoning: min(c.thinking, c.output), LLMCalls: 1,
	}
}

// A block is a part of an answer while it is gathered.
type block struct {
	call int // its position among the calls, -1 for text and what is not shown
	text bool
	done bool
}

// An answer gathers a stream.
type answer struct {
	text   strings.Builder
	calls  []claybot.ToolCall
	args   [][]byte
	blocks map[int]*block
	stop   string
	model  string
	count  counted
	events int
	done   bool // the end mark was seen
	grown  bool // the newest event brought content
}

// read gathers a stream to its end and judges it.
func (c *Client) read(x *llm.Exchange, r llm.Request) (llm.Response, *failure) {
	events := llm.NewEventReader(x)
	defer events.Close()
	a := answer{blocks: map[int]*block{}}
	var end error
	for !a.done && end == nil {
		var data []byte
		if data, end = events.Next(); end == nil {
			stopped := a.stop != ""
			a.grown = false
			if fail := c.take(&a, data, r.Delta); fail != nil {
				fail.usage = a.taken(r)
				return llm.Response{}, fail
			}
			switch {
			case !stopped && a.stop != "":
				x.Tail()
			case a.grown:
				x.Progress()
			}
		}
	}
	if a.complete() && !errors.Is(end, llm.ErrTooLarge) && !errors.Is(end, llm.ErrLineTooLong) {
		return c.response(&a, r), nil
	}
	return llm.Response{}, &failure{Error: x.Cut(end, a.events == 0), usage: a.taken(r)}
}

// complete reports that a reason of the end was seen, and the end of each block.
func (a *answer) complete() bool {
	if a.stop == "" {
		return false
	}
	for _, b := range a.blocks {
		if !b.done {
			return false
		}
	}
	return true
}

// taken is what an answer took that failed: nothing when nothing came.
func (a *answer) taken(r llm.Request) claybot.Usage {
	if a.events == 0 {
		return claybot.Usage{}
	}
	u := a.count.usage()
	guess := llm.Estimate(r, llm.Response{Text: a.text.String(), Calls: a.finish("", nil)})
	if u.Input == 0 {
		return guess
	}
	if a.stop == "" && (guess.Output > u.Output || a.unseen()) { // the count of the output comes at the end
		u.Output, u.Estimated = max(guess.Output, u.Output), true
	}
	return u
}

// unseen reports whether the model wrote something that is not shown, which
// counts all the same.
func (a *answer) unseen() bool {
	for _, b := range a.blocks {
		if b.call < 0 && !b.text {
			return true
		}
	}
	return false
}

// take adds one event.
func (c *Client) take(a *answer, data []byte, delta func(int, string)) *failure {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return failed(llm.Transient, "a part of the answer cannot be read")
	}
	if e.Type == "error" || len(e.Error) > 0 && string(e.Error) != "null" {
		p := parseProblem(0, data)
		p.inStream()
		return c.problem(p)
	}
	if e.Type == "ping" {
		return nil
	}
	a.events++
	switch e.Type {
	case "message_start":
		if e.Message != nil {
			a.model = e.Message.Model
			a.count.take(e.Message.Usage)
		}
	case "content_block_start":
		return a.begin(&e, delta)
	case "content_block_delta":
		return a.grow(&e, delta)
	case "content_block_stop":
		if b := a.blocks[e.Index]; b != nil {
			b.done = true
		}
	case "message_delta":
		if e.Delta.StopReason != nil && *e.Delta.StopReason != "" {
			a.stop = *e.Delta.StopReason
		}
		a.count.take(e.Usage)
	case "message_stop":
		a.done = true
	}
	return nil // other events may come at any time
}

// begin opens a block.
func (a *answer) begin(e *event, delta func(int, string)) *failure {
	if e.Block == nil || a.blocks[e.Index] != nil {
		return failed(llm.Transient, "a part of the answer cannot be read")
	}
	if len(a.blocks) == maxBlocks {
		return failed(llm.Permanent, "the answer has too many parts")
	}
	a.grown = true
	b := &block{call: -1}
	a.blocks[e.Index] = b
	switch e.Block.Type {
	case "text":
		b.text = true
		a.say(e.Block.Text, delta)
	case "tool_use":
		b.call = len(a.calls)
		a.calls = append(a.calls, claybot.ToolCall{ID: e.Block.ID, Name: e.Block.Name})
		var args []byte
		if in := e.Block.Input; len(in) > 0 && string(in) != "{}" && string(in) != "null" { // some servers send all at once
			args = append(args, in...)
		}
		a.args = append(a.args, args)
	}
	return nil
}

// grow adds a piece to a block.
func (a *answer) grow(e *event, delta func(int, string)) *failure {
	b := a.blocks[e.Index]
	if b == nil || b.done {
		return failed(llm.Transient, "a part of the answer cannot be read")
	}
	// Blanks alone are no content: a model that is stuck may write them without end.
	a.grown = strings.TrimSpace(e.Delta.Text+e.Delta.Partial+e.Delta.Thinking+e.Delta.Signature) != ""
	switch e.Delta.Type {
	case "text_delta":
		if b.text {
			a.say(e.Delta.Text, delta)
		}
	case "input_json_delta":
		if b.call >= 0 {
			a.args[b.call] = append(a.args[b.call], e.Delta.Partial...)
		}
	}
	return nil
}

func (a *answer) say(s string, delta func(int, string)) {
	if s == "" {
		return
	}
	offset := a.text.Len()
	a.text.WriteString(s)
	if delta != nil {
		delta(offset, s)
	}
}

// finish returns the calls, each with an id that is in no other call of the
// chat. Names and arguments stay as the model wrote them.
func (a *answer) finish(seed string, chat []llm.Message) []claybot.ToolCall {
	used := map[string]bool{}
	for _, m := range chat {
		for _, c := range m.Calls {
			used[c.ID] = true
		}
	}
	for i := range a.calls {
		a.calls[i].ID = llm.RepairCallID(a.calls[i].ID, seed, used)
		a.calls[i].Args = string(a.args[i])
	}
	return a.calls
}

// response makes the answer of a complete stream. An answer that ended by
// length or refusal has no calls: the last one may be half. A turn that the
// provider paused goes on like one that was too long.
func (c *Client) response(a *answer, r llm.Request) llm.Response {
	resp := llm.Response{Text: a.text.String(), Model: a.model, Asked: c.cfg.Model, Usage: a.count.usage()}
	if resp.Model == "" {
		resp.Model = c.cfg.Model
	}
	switch a.stop {
	case "max_tokens", "model_context_window_exceeded", "pause_turn":
		resp.Stop = llm.StopLength
	case "refusal":
		resp.Stop = llm.StopFilter
	default:
		resp.Calls = a.finish(fmt.Sprintf("%s/%d", r.Run, len(r.Messages)), r.Messages)
		resp.Stop = llm.StopEnd
		if len(resp.Calls) > 0 {
			resp.Stop = llm.StopTools
		}
	}
	if resp.Usage.Input == 0 && resp.Usage.Output == 0 {
		resp.Usage = llm.Estimate(r, resp)
	}
	return resp
}
