package react

import (
	"context"
	"errors"
	"log/slog"
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

// A compaction keeps the conversation within the window: it replaces older records by a
// summary, and tells the reader.
type compaction struct {
	turn   *runs.Turn
	talk   *conversation
	window *window
	model  llm.Model
	log    *slog.Logger
	failed bool // the model could not summarize in this pass, and nothing changed
}

// upkeep looks after the size of the next request. Before it fills the window,
// older records are compacted; before that, the reader is notified.
func (c *compaction) upkeep(ctx context.Context) error {
	size, room := c.window.size(c.talk.all()), c.window.room()
	if size*100 >= room*foldAt {
		if done, err := c.fold(ctx, worthwhile); done || err != nil {
			return err
		}
	}
	if size*100 >= room*fillingAt && !c.told() {
		return c.tellFilling(ctx)
	}
	return nil
}

// told reports whether the reader was told in this context that it fills up.
func (c *compaction) told() bool {
	for _, r := range slices.Backward(c.talk.all()) {
		switch {
		case r.Marker(), r.Type == claybot.RecordSummary:
			return false
		case r.Type == claybot.RecordNote && r.Text == noteFilling:
			return true
		}
	}
	return false
}

func (c *compaction) tellFilling(ctx context.Context) error {
	if c.turn.Reader == nil {
		return nil
	}
	c.tell(ctx, keyFilling, texts.ContextFilling)
	return c.talk.emit(claybot.Record{
		Type: claybot.RecordNote, At: claybot.Now(), Run: c.turn.Run.ID, Level: "info", Text: noteFilling,
	})
}

// tell says a sentence to the reader. It is not worth failing for.
func (c *compaction) tell(ctx context.Context, key, text string) {
	text = texts.Of(ctx).In(text)
	if c.turn.Reader == nil {
		return
	}
	if err := c.turn.Reader.Tell(ctx, key, text); err != nil {
		c.log.Warn("failed to notify the user of the conversation size", "what", key, "error", err)
	}
}

// What makes a fold worth its model calls.
type worth func(w *window, old []claybot.Record) bool

// worthwhile: it makes noticeably more room.
func worthwhile(w *window, old []claybot.Record) bool {
	return w.scaled(w.weigh(old))*100 >= w.room()*worthPart
}

// anything: there is more than a last exchange to fold.
func anything(_ *window, old []claybot.Record) bool { return len(old) > 2 }

// fold replaces older records by a summary, and reports whether it did. A model
// that fails changes nothing, as long as the conversation fits or the failure
// may pass; else the older part is cut without it.
func (c *compaction) fold(ctx context.Context, enough worth) (bool, error) {
	f := c.window.plan(c.talk.all(), c.turn.Run.ID)
	old := f.old()
	// A run folds once: a second time, its own records would be most of what is
	// left, and those stay.
	again := f.summary != nil && f.summary.Run == c.turn.Run.ID
	if again || c.failed || !enough(c.window, old) {
		return false, nil
	}
	d, err := c.summarize(ctx, f.before(), old)
	if err != nil && ctx.Err() != nil {
		d.drop()
		return false, runs.Ended(ctx)
	}
	say := texts.ContextCompacted
	if err != nil {
		c.log.Warn("failed to summarize the conversation", "records", len(old), "error", summaryError(err))
		if passing(err) || c.window.size(c.talk.all()) <= c.window.room() {
			d.drop()
			c.failed = true
			return false, nil
		}
		f, d.text, say = c.window.cut(f), withMark(d.text), texts.ContextCut
	}
	c.log.Debug("conversation compacted", "records", len(old), "kept", f.keep(), "bytes", len(d.text))
	c.tell(ctx, keyFolded, say) // first: a crash in between folds again, and tells nothing twice
	if err := c.talk.emit(c.summary(f, d)); err != nil {
		return true, err
	}
	c.window.frame(c.talk.all())
	return true, nil
}

// summarize makes a summary of the one so far and of old records. The digest is never nil.
func (c *compaction) summarize(ctx context.Context, before string, old []claybot.Record) (*digest, error) {
	d := newDigest(c.turn, c.model, before, c.window.bytes(min(c.window.total, 2*c.window.room())/2))
	return d, d.summarize(ctx, old)
}

// passing reports whether a failure of the model says nothing about what it was
// asked.
func passing(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && (e.Class == llm.Transient || e.Class == llm.Rate || e.Class == llm.Budget)
}

// summary is the record of a summary, which is counted with it.
func (c *compaction) summary(f fold, d *digest) claybot.Record {
	r := claybot.Record{
		Type: claybot.RecordSummary, At: claybot.Now(), Run: c.turn.Run.ID, Text: d.text, Keep: f.keep(),
	}
	if d.used.LLMCalls > 0 {
		r.Tokens, r.Model = &d.used, d.by
		c.turn.Used(d.used)
	}
	return r
}

// compact replaces whatever the newest messages leave, however much room there is.
func (c *compaction) compact(ctx context.Context) error {
	c.window.size(c.talk.all()) // which learns how wide of the mark guesses are
	f := c.window.plan(c.talk.all(), c.turn.Run.ID)
	old := f.old()
	if !anything(c.window, old) {
		return nil
	}
	if c.model == nil {
		return runs.NoModel()
	}
	d, err := c.summarize(ctx, f.before(), old)
	if err != nil {
		d.drop()
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return runs.Ended(ctx)
	case err != nil:
		return summaryError(err)
	}
	r := c.summary(f, d)
	r.Run = "" // no run is at work
	return c.talk.emit(r)
}

// summaryError is why there is no summary, without words of the model.
func summaryError(err error) error {
	if errors.Is(err, errNoSummary) {
		return &runs.Error{Code: runs.CodeModel, Text: err.Error(), Err: err}
	}
	return runs.ModelError(err)
}
