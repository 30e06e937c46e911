package react

import (
	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// Shares of the window, in tokens.
const (
	maxReserve = 16_384 // kept free for the answer, at most
	slack      = 512    // kept free for what no guess sees
)

// Parts of the room for a request, in percent.
const (
	fillingAt = 75 // the reader is notified
	foldAt    = 90 // older records are compacted
	keptPart  = 50 // of what stays as it is beside a summary, at most
	worthPart = 10 // that folding gains, at least
	// documentPart is for documents, at most.
	documentPart = 75
	// documentSteps is in how many steps that part shrinks.
	documentSteps = 5
)

// maxScale bounds how far the guess of a size is corrected by what a provider
// counted: no byte makes more than a token.
const maxScale = 4

// reserve is what is kept free for the answer.
func reserve(window int64) int64 { return min(maxReserve, window/4) }

// A window is the context of the model: how much of it a request may take, and how
// much records take. It learns how far its estimates are off.
type window struct {
	prompt  string // the system prompt without the index of notes and skills
	system  string
	format  string // what the prompt says of the form of the answer
	tools   []llm.Tool
	total   int64   // tokens
	ceiling int64   // tokens of a request at most, after a refusal; 0: as the total allows
	scale   float64 // tokens for each that is estimated
	kept    kept    // messages of turns before
}

// frame sets the system prompt of a conversation.
func (w *window) frame(records []claybot.Record) {
	w.system = w.prompt
	parts := []string{w.format}
	if first, _ := indexes(records); first != nil {
		parts = []string{first.Files, first.Text, w.format}
	}
	for _, text := range parts {
		if text != "" {
			w.system += "\n\n" + text
		}
	}
}

// room is how many tokens a request may have.
func (w *window) room() int64 {
	n := w.total - reserve(w.total) - slack
	if w.ceiling > 0 {
		n = min(n, w.ceiling)
	}
	return max(n, slack)
}

// weight is about how many bytes of a request a record takes.
func (w *window) weight(r *claybot.Record) int {
	if len(w.tools) > 0 {
		return llm.Bytes(r)
	}
	switch r.Type { // such a chat shows no calls
	case claybot.RecordTool:
		return 0
	case claybot.RecordAssistant:
		return len(r.Text)
	}
	return llm.Bytes(r)
}

func (w *window) weigh(records []claybot.Record) int {
	n := 0
	for i := range records {
		n += w.weight(&records[i])
	}
	return n
}

// scaled corrects a guess by what the provider counted the last time.
func (w *window) scaled(bytes int) int64 { return int64(float64(llm.Tokens(bytes)) * w.scale) }

// bytes is how many bytes make a number of tokens, the reverse of scaled.
func (w *window) bytes(tokens int64) int {
	return int(float64(tokens) / w.scale * (1 << 20) / float64(llm.Tokens(1<<20)))
}

// fixed is how many bytes of each request are no part of the conversation.
func (w *window) fixed() int {
	n := len(w.system)
	for _, t := range w.tools {
		n += t.Bytes()
	}
	return n
}

// request is about how many bytes a request with these records has.
func (w *window) request(summary *claybot.Record, rest []claybot.Record) int {
	n := w.fixed() + w.weigh(rest)
	if summary != nil {
		n += w.weight(summary)
	}
	return n
}

// tokens is about how many tokens a request with these messages has.
func (w *window) tokens(messages []llm.Message) int64 {
	guess := llm.Estimate(llm.Request{System: w.system, Messages: messages, Tools: w.tools}, llm.Response{})
	return int64(float64(guess.Input) * w.scale)
}

// left is how many tokens the documents among messages may take: most of the room, and
// no more than the texts leave. It shrinks in steps while the texts grow: each document that
// goes changes the chat in its middle, behind which a provider's cache is of no use.
func (w *window) left(messages []llm.Message) int64 {
	guess := llm.Estimate(llm.Request{System: w.system, Messages: messages, Tools: w.tools}, llm.Response{})
	step := max(w.room()*documentPart/100/documentSteps, 1)
	return min(max(w.room()-guess.Input, 0)/step, documentSteps) * step
}

// size is about how many tokens the next request has when nothing is folded or
// cut. Where the provider counted more in the last one than was guessed, that
// is what counts, and what all later guesses are scaled by.
func (w *window) size(records []claybot.Record) int64 {
	summary, rest := llm.Folded(records)
	bytes := w.request(summary, rest)
	guess := llm.Tokens(bytes)
	real := w.counted(records)
	w.scale = min(max(float64(real)/float64(max(guess, 1)), 1), maxScale)
	return max(w.scaled(bytes), real)
}

// counted is what the provider counted for the newest answer since the last
// summary, with what has come since; 0 when it counted none.
func (w *window) counted(records []claybot.Record) int64 {
	since := 0
	for i := len(records) - 1; i >= 0; i-- {
		r := &records[i]
		if r.Marker() || r.Type == claybot.RecordSummary {
			return 0
		}
		// The usage of an answer that took two calls is that of both.
		if u := r.Tokens; r.Type == claybot.RecordAssistant && u != nil && !u.Estimated && u.Input > 0 && u.LLMCalls <= 1 {
			return u.Input + u.Output + llm.Tokens(since)
		}
		since += w.weight(r)
	}
	return 0
}
