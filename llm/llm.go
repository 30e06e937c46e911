// Package llm is the model behind an agent: what is asked, what comes back,
// and how an agent's history becomes a context that providers accept.
//
// It guarantees that Messages is total: whatever history it gets, the result
// is a valid chat. It knows no provider; those are its subfolders.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot"
)

// A Model answers a chat. Chat returns when the answer is complete; an answer that was
// cut off is an error, never a shorter success. Its errors are *Error. With an error, the
// response has only the names of the model and the Usage of the last try, as far as that
// is known; see Request.Lost for all tries.
type Model interface {
	Chat(ctx context.Context, r Request) (Response, error)
}

// A Fitter is a Model that knows which pictures and documents of a request it does not
// take. Fit returns the request with lines of text in their place, which is what Chat
// sends, and what the call takes and costs; the request given does not change.
type Fitter interface {
	Model
	Fit(r Request) Request
}

// Fit is the request as m takes it; as it is where m is no Fitter.
func Fit(m Model, r Request) Request {
	if f, ok := m.(Fitter); ok {
		return f.Fit(r)
	}
	return r
}

// A Request is one model call.
type Request struct {
	Agent    claybot.AgentID
	Run      claybot.RunID
	System   string    // the system prompt
	Messages []Message // valid until Chat returns; see Keep
	Tools    []Tool
	// Delta, if set, gets the text as it grows: offset is the position of text in the
	// answer, in bytes. A retry begins at offset 0 again.
	Delta func(offset int, text string)
	// Failed, if set, gets each try that failed, also if another one follows.
	Failed func(Attempt)
	// Lost, if set, gets the usage of each failed try before Chat returns, as far as it
	// is known, with the name of the model and the cost: also if another try answered
	// or ctx ended. Metered calls it, once for each try; it includes the usage that
	// Chat returns with an error.
	Lost func(model string, u claybot.Usage)
	// Format asks for an answer that is JSON; nil: a text. A client whose provider knows no
	// such thing ignores it.
	Format *claybot.AnswerFormat
	// MaxTokens bounds the answer; 0 leaves that to the client.
	MaxTokens int64
}

// Keep returns a request that stays as it is after Chat has returned.
func (r Request) Keep() Request {
	r.Messages = slices.Clone(r.Messages)
	return r
}

// An Attempt is one try of a call that failed.
type Attempt struct {
	Route string // that was asked; empty when there is only one
	Next  string // the route that is asked next, empty when it stays or ends
	Try   int    // from 1; 0 where the try was told before, and Next is news
	Err   *Error
	At    time.Time     // when the try ended
	Took  time.Duration // from its beginning
	Again bool          // the same route is asked again
	Wait  time.Duration // until then
}

// Role is the author of a chat message.
type Role string

// The roles of a chat.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A Message is one turn of a chat as models see it.
type Message struct {
	ID      string // stable id where one exists, for example system_prompt_fallback
	Role    Role
	Content string
	Calls   []claybot.ToolCall      // assistant
	State   *claybot.ModelState     // assistant; nil for none
	CallID  string                  // tool
	Images  []Image                 // user and tool; models that see none get a line of text instead
	Files   []claybot.FileReference // what the record came with; an Album shows its pictures and documents, providers ignore it
	// Documents belong to messages as Images do.
	Documents []Document

	encoding *encoding // of a settled message; see Encoded
}

// An Image is a picture that a model looks at.
type Image struct {
	MIMEType string // image/png, image/jpeg, image/gif or image/webp
	Data     []byte
	Name     string // for the line that stands in its place
}

// A Tool is the description of a tool for a model. Parameters is a JSON schema.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage
}

// Bytes is about how many bytes of a request the description takes.
func (t Tool) Bytes() int { return len(t.Name) + len(t.Description) + len(t.Parameters) }

// A Response is a complete answer.
type Response struct {
	Text  string
	Calls []claybot.ToolCall
	Stop  Stop
	Model string // as the provider names it
	Asked string // the model that was asked for, as it is configured
	State *claybot.ModelState
	Usage claybot.Usage
	// Charged: the cost in Usage is what the provider says that it charged.
	Charged bool
}

// Stop is why an answer ended.
type Stop string

// The reasons of an end.
const (
	StopEnd    Stop = "stop"
	StopTools  Stop = "tool_calls"
	StopLength Stop = "length"
	StopFilter Stop = "content_filter"
)

// Class is how to handle an Error.
type Class string

// The classes of errors.
const (
	Transient Class = "transient" // try again
	Rate      Class = "rate"      // try again after RetryAfter
	Permanent Class = "permanent" // the request or the account is refused
	Context   Class = "context"   // the conversation is too long
	Budget    Class = "budget"    // the call would cost more than is left; nothing was sent
	Off       Class = "off"       // a bad setting switches the model off; nothing was sent
)

// An Error is a failed model call. Text is for operators and holds no secret,
// no URL and no provider body beyond a short message.
type Error struct {
	Class      Class
	Status     int           // HTTP status, 0 when there was none
	RetryAfter time.Duration // asked for by the provider, 0 when it did not
	// Account: the key or the account is refused, not what was asked. Another key
	// may do.
	Account bool
	// Paid: the provider gave its answer to the end, and that cannot be used. Another try may bring the same.
	Paid bool
	// Agent: with Off, not the model is switched off, but the agent that asks it.
	Agent bool
	Text  string
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("model: %s (HTTP %d)", e.Text, e.Status)
	}
	return "model: " + e.Text
}

// SummaryRequest is the ID of a message that asks a model to summarize what the
// message holds.
const SummaryRequest = "summary_request"

// Failed makes an error.
func Failed(class Class, format string, args ...any) *Error {
	return &Error{Class: class, Text: fmt.Sprintf(format, args...)}
}

// StepTime is the most that one call takes, repetitions and other models included,
// where nothing else is set.
const StepTime = 10 * time.Minute

// ErrStep is the cause by which StepTime, or what is set instead, ends a call.
var ErrStep = errors.New("the call took too long")

// The ids of the requests of an engine that plans: a model that is scripted
// knows by them what is asked of it.
const (
	ClassifyRequest    = "plan_classify" // which intent it is, and what was said
	PlanRequest        = "plan_steps"    // the steps
	PlanSummaryRequest = "plan_summary"  // what to tell the person
)

// MaxAudio is how many bytes of audio a Transcriber takes.
const MaxAudio = 25 << 20

// A Transcriber turns speech into text. It may be used by any number of
// goroutines. Its errors are *Error; that of a call that ctx ended also wraps the
// cause of ctx.
type Transcriber interface {
	// Transcribe returns what is said in audio. name and mime tell its form; the
	// name itself is not sent anywhere.
	Transcribe(ctx context.Context, name, mime string, audio []byte) (Speech, error)
}

// MaxSpoken is how many characters a Speaker takes.
const MaxSpoken = 4096

// A Speaker turns text into speech. It may be used by any number of goroutines. Its errors are
// *Error; that of a call that ctx ended also wraps the cause of ctx.
type Speaker interface {
	// Speak returns a recording of a text without formatting.
	Speak(ctx context.Context, text string) (Recording, error)
}

// A Recording is a text as it was spoken.
type Recording struct {
	Audio []byte // Ogg Opus
	Model string
	Usage claybot.Usage // its cost is unknown and counted as Unpriced
}

// Speech is a transcript.
type Speech struct {
	Text  string // empty when the audio has no speech
	Model string
	// Usage has the tokens where the provider counts any. Its cost is unknown and
	// counted as Unpriced.
	Usage claybot.Usage
}
