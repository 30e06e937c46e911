package react

import (
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
)

// Shares of the window, in tokens.
const (
	maxReserve = 16_384 // kept free for the answer, at most
	slack      = 512    // kept free for what no guess sees
)

// Parts of the room for a request, in percent.
const (
	fillingAt = 75 // the reader is told
	foldAt    = 90 // older records are folded
	keptPart  = 50 // of what stays as it is beside a summary, at most
	worthPart = 10 // that folding gains, at least
)

// maxScale bounds how far the guess of a size is corrected by what a provider
// counted: no byte makes more than a token.
const maxScale = 4

// reserve is what is kept free for the answer.
func reserve(window int64) int64 { return min(maxReserve, window/4) }

// room is how many tokens a request may have.
func (p *pass) room() int64 {
	n := p.window - reserve(p.window) - slack
	if p.ceiling > 0 {
		n = min(n, p.ceiling)
	}
	return max(n, slack)
}

// weight is about how many bytes of a request a record takes.
func (p *pass) weight(r claybot.Record) int {
	if len(p.offered) > 0 {
		return llm.Bytes(r)
	}
	switch r.Type { // such a chat shows no calls
	case claybot.RecordTool:
		return 0
	case claybot.RecordAssistant:
		r.ToolCalls = nil
	}
	return llm.Bytes(r)
}

func (p *pass) weigh(records []claybot.Record) int {
	n := 0
	for _, r := range records {
		n += p.weight(r)
	}
	return n
}

// scaled corrects a guess by what the provider counted the last time.
func (p *pass) scaled(bytes int) int64 { return int64(float64(llm.Tokens(bytes)) * p.scale) }

// bytes is how many bytes make a number of tokens, the reverse of scaled.
func (p *pass) bytes(tokens int64) int {
	return int(float64(tokens) / p.scale * (1 << 20) / float64(llm.Tokens(1<<20)))
}

// fixed is how many bytes of each request are no part of the conversation.
func (p *pass) fixed() int {
	n := len(p.system)
	for _, t := range p.offered {
		n += toolBytes(t)
	}
	return n
}

func toolBytes(t llm.Tool) int { return len(t.Name) + len(t.Description) + len(t.Parameters) }

// tokens is about how many tokens a request with these messages has.
func (p *pass) tokens(messages []llm.Message) int64 {
	guess := llm.Estimate(llm.Request{System: p.system, Messages: messages, Tools: p.offered}, llm.Response{})
	return int64(float64(guess.Input) * p.scale)
}

// size is about how many tokens the next request has when nothing is folded or
// cut. Where the provider counted more in the last one than was guessed, that
// is what counts, and what all later guesses are scaled by.
func (p *pass) size() int64 {
	summary, rest := llm.Folded(p.history)
	bytes := p.fixed() + p.weigh(rest)
	if summary != nil {
		bytes += p.weight(*summary)
	}
	guess := llm.Tokens(bytes)
	real := p.counted()
	p.scale = min(max(float64(real)/float64(max(guess, 1)), 1), maxScale)
	return max(p.scaled(bytes), real)
}

// counted is what the provider counted for the newest answer since the last
// summary, with what has come since; 0 when it counted none.
func (p *pass) counted() int64 {
	since := 0
	for _, r := range slices.Backward(p.history) {
		if r.Marker() || r.Type == claybot.RecordSummary {
			return 0
		}
		// The usage of an answer that took two calls is that of both.
		if u := r.Tokens; r.Type == claybot.RecordAssistant && u != nil && !u.Estimated && u.Input > 0 && u.LLMCalls <= 1 {
			return u.Input + u.Output + llm.Tokens(since)
		}
		since += p.weight(r)
	}
	return 0
}

// Measure implements runs.Compactor.
func (l *Loop) Measure(t *runs.Turn) runs.ContextSize {
	p := l.pass(t, nil)
	size := runs.ContextSize{
		Window: p.window, Reserve: reserve(p.window),
		System: llm.Tokens(len(p.system)), Tools: llm.Tokens(p.fixed() - len(p.system)),
		Last: t.Agent.State.Context,
	}
	summary, rest := llm.Folded(p.history)
	if summary != nil {
		size.Summary = llm.Tokens(p.weight(*summary))
	}
	talk, results := 0, 0
	for _, r := range rest {
		if r.Type == claybot.RecordTool {
			results += p.weight(r)
		} else {
			talk += p.weight(r)
		}
	}
	size.Conversation, size.Results = llm.Tokens(talk), llm.Tokens(results)
	return size
}
