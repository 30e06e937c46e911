package runs

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/claybot/claybot"
)

// A Turn is one pass of an engine over a run. What the engine does in it goes through the
// methods; where a part of the Turn is nil, they do nothing, and what asks for something
// says that there is none.
type Turn struct {
	Run   claybot.Run
	Agent claybot.Agent
	// History is what the agent remembers, the messages of this run included.
	History []claybot.Record
	// Messages are what the run works on so far, oldest first.
	Messages []claybot.AgentMessage

	Journal Journal
	Costs   Costs
	Reader  Reader // nil: no person reads the run
	Files   Files  // nil: no files can be kept
}

// A Journal keeps what happens between the records of a run.
type Journal interface {
	// Inject returns messages that joined the run since the last call, as records that
	// are durable already; none under whenBusy wait. It is called only after all tool
	// results of a step.
	Inject(ctx context.Context) ([]claybot.Record, error)
	// Started is called before a tool runs and returns when that is durable.
	Started(ctx context.Context, call claybot.ToolCall, effect string) error
	// Emit reports events. They are stored, in their place, with the next record or tool
	// at the latest, and before Emit returns when now is set.
	Emit(ctx context.Context, now bool, ev ...claybot.Event) error
	// Began is when an earlier pass first started the tool of a call; 0 where none did.
	Began(callID string) claybot.Time
	// Grow receives the text of the current step as it grows: step counts from 1, and
	// text is all of it so far. It does not block.
	Grow(step int, text string)
}

// Costs count what a run uses.
type Costs interface {
	// Used counts a model call that answered, or tool calls. For a model call it comes
	// before the record that has the same as Tokens.
	Used(u claybot.Usage)
	// Lost counts what a model call used that no record will have: it failed, or its
	// answer was dropped. It is durable when Lost returns. For Request.Lost of package llm.
	Lost(model string, u claybot.Usage)
}

// A Reader is the person who reads a run, and those who may answer its questions.
type Reader interface {
	// Tell sends a text to the reader, as a message of its own, once in a run for each key.
	Tell(ctx context.Context, key, text string) error
	// Ask puts questions to those who may answer them. wait is how the pass ends when an
	// answer is missing; the same Ask in a later pass returns the answers: one for each
	// question, in their order. round names the questions within the run, so that each is
	// asked once. A question without Expires is open for 24 hours. A value is nil when
	// there was no answer and there is no default; a confirm is denied then. The error is
	// ErrNobody when there is no person to ask.
	Ask(ctx context.Context, round string, qs []claybot.Question) (answers []claybot.Answer, wait *claybot.Awaiting, err error)
}

// Files are those of the agent.
type Files interface {
	// SaveResult keeps a tool result that is too long for history, and returns the path of
	// its file.
	SaveResult(ctx context.Context, call, text string) (path string, err error)
	// SaveFile keeps a file that the run made, and returns its reference. The same name and
	// content again is harmless.
	SaveFile(ctx context.Context, name, mimeType string, content []byte) (claybot.FileReference, error)
	// OpenFile opens a file of the agent, such as one of a record.
	OpenFile(ctx context.Context, f claybot.FileReference) (io.ReadCloser, error)
}

// Owner is Work.Owner.
func (t *Turn) Owner() string { return Work{Agent: t.Agent, Messages: t.Messages}.Owner() }

// Speakers are those who decide about what is owners': for the group of a shared agent, the
// member for whom the run works, see Owner.
func (t *Turn) Speakers(owners []string) []string {
	all := slices.Clone(owners)
	for i, owner := range all {
		if t.Agent.Descriptor.Shared() && owner == t.Agent.Descriptor.OwnerID() {
			all[i] = t.Owner()
		}
	}
	return all
}

// Emit is Journal.Emit.
func (t *Turn) Emit(ctx context.Context, now bool, ev ...claybot.Event) error {
	if t.Journal == nil {
		return nil
	}
	if err := t.Journal.Emit(ctx, now, ev...); err != nil {
		return fmt.Errorf("emit events: %w", err)
	}
	return nil
}

// Started is Journal.Started.
func (t *Turn) Started(ctx context.Context, call claybot.ToolCall, effect string) error {
	if t.Journal == nil {
		return nil
	}
	return t.Journal.Started(ctx, call, effect)
}

// Began is Journal.Began.
func (t *Turn) Began(callID string) claybot.Time {
	if t.Journal == nil {
		return 0
	}
	return t.Journal.Began(callID)
}

// InDoubt reports whether an earlier pass started the tool of a call.
func (t *Turn) InDoubt(callID string) bool { return t.Began(callID) != 0 }

// Used is Costs.Used.
func (t *Turn) Used(u claybot.Usage) {
	if t.Costs != nil {
		t.Costs.Used(u)
	}
}

// Lost is Costs.Lost.
func (t *Turn) Lost(model string, u claybot.Usage) {
	if t.Costs != nil {
		t.Costs.Lost(model, u)
	}
}

// Ask is Reader.Ask. The error is ErrNobody where there is no reader.
func (t *Turn) Ask(ctx context.Context, round string, qs []claybot.Question) ([]claybot.Answer, *claybot.Awaiting, error) {
	if t.Reader == nil {
		return nil, nil, ErrNobody
	}
	return t.Reader.Ask(ctx, round, qs)
}

// SaveResult is Files.SaveResult as tools take it; nil where no files can be kept.
func (t *Turn) SaveResult() func(ctx context.Context, call, text string) (string, error) {
	if t.Files == nil {
		return nil
	}
	return t.Files.SaveResult
}

// Route is where the run answers; zero where that is nowhere.
func (t *Turn) Route() claybot.Route {
	for _, m := range slices.Backward(t.Messages) {
		if !m.Silent {
			return m.ReplyRoute(t.Agent.Descriptor)
		}
	}
	return claybot.Route{}
}

// Place is where the run is answered or, of one that has a task of another run, where the work is answered
// to which the task belongs; zero where that is nowhere or not known.
func (t *Turn) Place() claybot.Route {
	for _, m := range slices.Backward(t.Messages) {
		if m.Place != nil {
			return *m.Place
		}
	}
	return t.Route()
}
