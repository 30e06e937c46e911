package provider

import (
	"encoding/json"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// A Stream gathers the events of one answer. It belongs to one goroutine.
type Stream interface {
	// Take adds one event.
	Take(data []byte) *Failure
	// Whole adds an answer that is one JSON object; ok is false when the body is none.
	Whole(body []byte) (fail *Failure, ok bool)
	// Stopped says why the answer ended, StopLength, StopFilter, else StopEnd, and whether it is whole.
	Stopped() (why llm.Stop, whole bool)
	// State is what the provider wants back with the answer, whose calls have their ids by now; nil for
	// nothing. ErrState: it is too large, and not whole.
	State(calls []claybot.ToolCall) (json.RawMessage, error)
	// Usage is what the provider counted so far.
	Usage() claybot.Usage
	// Taken is what the provider took for an answer that failed, with an estimate of it.
	Taken(guess claybot.Usage) claybot.Usage
}

// An Answer is what a stream has brought.
type Answer struct {
	Refusal strings.Builder // what the model says instead of an answer
	Calls   []claybot.ToolCall
	Args    [][]byte // of the calls
	Stop    string   // the reason of the end
	Model   string
	Events  int
	Done    bool // the end mark was seen
	Grown   bool // the newest event brought content
	Hidden  int  // bytes of reasoning, which are not shown and have their price
	Charged bool // the cost in Stream.Usage is what the provider says that it charged; known after Usage

	text  strings.Builder
	delta func(int, string)
}

// Grows reports whether a piece of an answer is content: blanks alone are not,
// as a model that is stuck may write them without end.
func Grows(pieces ...string) bool {
	return strings.TrimSpace(strings.Join(pieces, "")) != ""
}

// Text is the text so far.
func (a *Answer) Text() string { return a.text.String() }

// Say adds to the text.
func (a *Answer) Say(s string) {
	if s == "" {
		return
	}
	offset := a.text.Len()
	a.text.WriteString(s)
	if a.delta != nil {
		a.delta(offset, s)
	}
}

// Finish returns the calls, each with an id that is in no other call of the
// chat: missing, repeated and impossible ids are replaced. Names and arguments
// stay as the model wrote them.
func (a *Answer) Finish(seed string, chat []llm.Message) []claybot.ToolCall {
	used := map[string]bool{}
	for i := range chat {
		for _, c := range chat[i].Calls {
			used[c.ID] = true
		}
	}
	for i := range a.Calls {
		a.Calls[i].ID = llm.RepairCallID(a.Calls[i].ID, seed, used)
		a.Calls[i].Args = string(a.Args[i])
	}
	return a.Calls
}

func (a *Answer) spent(s Stream, r llm.Request) claybot.Usage {
	if a.Events == 0 {
		return claybot.Usage{}
	}
	return s.Taken(a.estimate(r, llm.Response{Text: a.Text(), Calls: a.Finish("", nil)}))
}

// estimate is about what a call took for which the provider counted nothing.
func (a *Answer) estimate(r llm.Request, resp llm.Response) claybot.Usage {
	u := llm.Estimate(r, resp)
	u.Reasoning = llm.Tokens(a.Hidden)
	u.Output += u.Reasoning
	return u
}
