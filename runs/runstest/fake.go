package runstest

import (
	"context"
	"io"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// A Fake is the parts of a Turn, made of functions. One that is nil does nothing.
type Fake struct {
	InjectFunc     func(ctx context.Context) ([]claybot.Record, error)
	StartedFunc    func(ctx context.Context, call claybot.ToolCall, effect string) error
	EmitFunc       func(ctx context.Context, now bool, ev ...claybot.Event) error
	InDoubt        func(callID string) bool
	GrowFunc       func(step int, text string)
	UsedFunc       func(u claybot.Usage)
	LostFunc       func(model string, u claybot.Usage)
	TellFunc       func(ctx context.Context, key, text string) error
	AskFunc        func(ctx context.Context, round string, qs []claybot.Question) ([]claybot.Answer, *claybot.Awaiting, error)
	SaveResultFunc func(ctx context.Context, call, text string) (string, error)
	SaveFileFunc   func(ctx context.Context, name, mimeType string, content []byte) (claybot.FileReference, error)
}

// Of returns the Fake of a turn that was made with one.
func Of(t *runs.Turn) *Fake { return t.Journal.(*Fake) }

// Turn completes a turn with the parts of f that have functions.
func (f *Fake) Turn(t runs.Turn) *runs.Turn {
	t.Journal, t.Costs = f, f
	if f.TellFunc != nil || f.AskFunc != nil {
		t.Reader = f
	}
	if f.SaveResultFunc != nil || f.SaveFileFunc != nil {
		t.Files = f
	}
	return &t
}

// Inject implements runs.Journal.
func (f *Fake) Inject(ctx context.Context) ([]claybot.Record, error) {
	if f.InjectFunc == nil {
		return nil, nil
	}
	return f.InjectFunc(ctx)
}

// Started implements runs.Journal.
func (f *Fake) Started(ctx context.Context, call claybot.ToolCall, effect string) error {
	if f.StartedFunc == nil {
		return nil
	}
	return f.StartedFunc(ctx, call, effect)
}

// Emit implements runs.Journal.
func (f *Fake) Emit(ctx context.Context, now bool, ev ...claybot.Event) error {
	if f.EmitFunc == nil {
		return nil
	}
	return f.EmitFunc(ctx, now, ev...)
}

// Began implements runs.Journal.
func (f *Fake) Began(callID string) claybot.Time {
	if f.InDoubt == nil || !f.InDoubt(callID) {
		return 0
	}
	return claybot.Now()
}

// Grow implements runs.Journal.
func (f *Fake) Grow(step int, text string) {
	if f.GrowFunc != nil {
		f.GrowFunc(step, text)
	}
}

// Used implements runs.Costs.
func (f *Fake) Used(u claybot.Usage) {
	if f.UsedFunc != nil {
		f.UsedFunc(u)
	}
}

// Lost implements runs.Costs.
func (f *Fake) Lost(model string, u claybot.Usage) {
	if f.LostFunc != nil {
		f.LostFunc(model, u)
	}
}

// Tell implements runs.Reader.
func (f *Fake) Tell(ctx context.Context, key, text string) error {
	if f.TellFunc == nil {
		return nil
	}
	return f.TellFunc(ctx, key, text)
}

// Ask implements runs.Reader.
func (f *Fake) Ask(ctx context.Context, round string, qs []claybot.Question) ([]claybot.Answer, *claybot.Awaiting, error) {
	if f.AskFunc == nil {
		return nil, nil, runs.ErrNobody
	}
	return f.AskFunc(ctx, round, qs)
}

// SaveResult implements runs.Files.
func (f *Fake) SaveResult(ctx context.Context, call, text string) (string, error) {
	return f.SaveResultFunc(ctx, call, text)
}

// SaveFile implements runs.Files.
func (f *Fake) SaveFile(ctx context.Context, name, mimeType string, content []byte) (claybot.FileReference, error) {
	return f.SaveFileFunc(ctx, name, mimeType, content)
}

// OpenFile implements runs.Files.
func (f *Fake) OpenFile(context.Context, claybot.FileReference) (io.ReadCloser, error) {
	return nil, io.ErrUnexpectedEOF
}
