package react

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

// The keys under which a person is notified of the size of the conversation, once each.
const (
	keyFilling = "context-75"
	keyFolded  = "compacted"
)

// noteFilling says in history that the reader was told, so that it is told once
// in a context.
const noteFilling = "the reader was told that the conversation fills the context"

// upkeep looks after the size of the next request. Before it fills the window,
// older records are folded; before that, the reader is told.
func (p *pass) upkeep(ctx context.Context) error {
	size, room := p.size(), p.room()
	if size*100 >= room*foldAt {
		if done, err := p.fold(ctx, worthwhile); done || err != nil {
			return err
		}
	}
	if size*100 >= room*fillingAt && !p.told() {
		return p.tellFilling(ctx)
	}
	return nil
}

// told reports whether the reader was told in this context that it fills up.
func (p *pass) told() bool {
	for _, r := range slices.Backward(p.history) {
		switch {
		case r.Marker(), r.Type == claybot.RecordSummary:
			return false
		case r.Type == claybot.RecordNote && r.Text == noteFilling:
			return true
		}
	}
	return false
}

func (p *pass) tellFilling(ctx context.Context) error {
	if p.turn.Reader == nil {
		return nil
	}
	p.tell(ctx, keyFilling, texts.ContextFilling)
	return p.emit(claybot.Record{
		Type: claybot.RecordNote, At: claybot.Now(), Run: p.turn.Run.ID, Level: "info", Text: noteFilling,
	})
}

// tell says a sentence to the reader. It is not worth failing for.
func (p *pass) tell(ctx context.Context, key, text string) {
	if p.turn.Reader == nil {
		return
	}
	if err := p.turn.Reader.Tell(ctx, key, text); err != nil {
		p.log.Warn("the reader was not told about the size of the conversation", "what", key, "error", err)
	}
}

// What makes a fold worth its model calls.
type worth func(p *pass, old []claybot.Record) bool

// worthwhile: it makes noticeably more room.
func worthwhile(p *pass, old []claybot.Record) bool {
	return p.scaled(p.weigh(old))*100 >= p.room()*worthPart
}

// anything: there is more than a last exchange to fold.
func anything(_ *pass, old []claybot.Record) bool { return len(old) > 2 }

// fold replaces older records by a summary, and reports whether it did. A model
// that fails changes nothing, as long as the conversation fits or the failure
// may pass; else the older part is cut without it.
func (p *pass) fold(ctx context.Context, enough worth) (bool, error) {
	f := p.plan()
	old := f.old()
	// A run folds once: a second time, its own records would be most of what is
	// left, and those stay.
	again := f.summary != nil && f.summary.Run == p.turn.Run.ID
	if again || p.unfolded || !enough(p, old) {
		return false, nil
	}
	d, err := p.summarize(ctx, f.before(), old)
	if err != nil && ctx.Err() != nil {
		d.drop()
		return false, runs.Ended(ctx)
	}
	say := texts.ContextCompacted
	if err != nil {
		p.log.Warn("the conversation was not summarized", "records", len(old), "error", summaryError(err))
		if passing(err) || p.size() <= p.room() {
			d.drop()
			p.unfolded = true
			return false, nil
		}
		f, d.text, say = p.cut(f), withMark(d.text), texts.ContextCut
	}
	p.log.Debug("conversation folded", "records", len(old), "kept", f.keep(), "bytes", len(d.text))
	p.tell(ctx, keyFolded, say) // first: a crash in between folds again, and tells nothing twice
	return true, p.emit(p.summary(f, d))
}

// passing reports whether a failure of the model says nothing about what it was
// asked.
func passing(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && (e.Class == llm.Transient || e.Class == llm.Rate || e.Class == llm.Budget)
}

// summary is the record of a summary, which is counted with it.
func (p *pass) summary(f fold, d *digest) claybot.Record {
	r := claybot.Record{
		Type: claybot.RecordSummary, At: claybot.Now(), Run: p.turn.Run.ID, Text: d.text, Keep: f.keep(),
	}
	if d.used.LLMCalls > 0 {
		r.Tokens, r.Model = &d.used, d.by
		p.turn.Used(d.used)
	}
	return r
}

// Compact implements runs.Compactor. It folds whatever the newest messages leave,
// however much room there is; two messages are not worth it. When the model
// fails, nothing changes and the error says why.
func (l *Loop) Compact(ctx context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		p := l.pass(t, yield)
		if err := p.compact(ctx); err != nil && !errors.Is(err, errConsumed) {
			yield(claybot.Record{}, err)
		}
	}
}

func (p *pass) compact(ctx context.Context) error {
	p.size() // which learns how wide of the mark guesses are
	f := p.plan()
	old := f.old()
	if !anything(p, old) {
		return nil
	}
	if p.model == nil {
		return errNoModel()
	}
	d, err := p.summarize(ctx, f.before(), old)
	if err != nil {
		d.drop()
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return runs.Ended(ctx)
	case err != nil:
		return summaryError(err)
	}
	r := p.summary(f, d)
	r.Run = "" // no run is at work
	return p.emit(r)
}

// summaryError is why there is no summary, without words of the model.
func summaryError(err error) error {
	if errors.Is(err, errNoSummary) {
		return &runs.Error{Code: runs.CodeModel, Text: err.Error(), Err: err}
	}
	return modelError(err)
}
