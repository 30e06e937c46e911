package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// When the typing sign comes and how often it is refreshed; a run that is over
// before shows none. Previews are told at most this often.
const (
	typingAfter  = 300 * time.Millisecond
	typingEvery  = 4 * time.Second
	typingWait   = 5 * time.Second
	previewEvery = 50 * time.Millisecond
	draftTimeout = 15 * time.Second
	// An answer that is complete so soon after its first text is sent as one
	// message: nothing to edit, and nothing to repair after a crash.
	draftAfter = 250 * time.Millisecond
)

// A progressView shows the progress of a run: the typing indicator, and the unfinished
// answer. It is best effort and never delays the run. The draft is recorded with the
// run before it is sent.
type progressView struct {
	job       *job
	store     draftStore
	deliverer *delivery.Deliverer
	work      *runs.AtWork
	meter     Meter
	route     claybot.Route
	show      powers
	status    *statusLine // nil: the platform has none

	cancel   context.CancelFunc
	kick     chan struct{}
	done     chan struct{}
	closeOne sync.Once

	mu   sync.Mutex
	text written

	draft draft // the loop's own until done is closed
}

// A draftStore records the drafts of runs.
type draftStore struct {
	storage.Runs
	storage.Outbox
}

// powers are the capabilities of the reader's platform.
type powers struct {
	typer   connectors.Typer
	preview connectors.Previewer
	sender  connectors.Sender
	drafter connectors.Drafter // nil: the platform shows no drafts here
	finder  bool               // it can look up sent messages
	stream  connectors.Streaming
	grows   bool // it shows unfinished text
}

// written is the unfinished text of a step.
type written struct {
	step  int
	text  string
	since time.Time // of the step's first text
	tool  string    // that is running; empty for the model
}

// A draft is the visible part of an unfinished answer.
type draft struct {
	current *claybot.Draft // nil for nothing
	faint   bool           // what it shows is a draft of the platform, and no message
	sent    string         // what it shows, without a sign of life
	fresh   string         // the id of the next one; empty for any
	quiet   time.Time      // no edit is sent before
	sign    signOfLife
}

// watch starts showing the run, until close or the end of ctx.
func (s *Worker) watch(ctx context.Context, j *job) *progressView {
	ctx, cancel := context.WithCancel(ctx)
	v := &progressView{
		job: j, store: draftStore{s.stores.Runs, s.stores.Outbox}, deliverer: s.parts.Deliverer, work: s.parts.AtWork, meter: s.meter,
		route: j.work().Route(), cancel: cancel, kick: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if d := j.run.Draft; d != nil && d.Outgoing != "" {
		v.draft.current = d
	}
	c := s.parts.Active(v.route.Connector)
	v.show.typer, _ = c.(connectors.Typer)
	_, v.show.finder = c.(connectors.Finder)
	if v.show.preview, _ = c.(connectors.Previewer); v.show.preview == nil {
		v.show.stream.Off = true
		if x, ok := c.(connectors.Streamer); ok {
			v.show.sender, _ = c.(connectors.Sender)
			v.show.drafter, _ = c.(connectors.Drafter)
			v.show.stream = x.Streaming(v.route)
			v.show.stream.Off = v.show.stream.Off || v.show.sender == nil || j.profile.Progress || j.unsent()
			if v.show.stream.Placeholder = v.show.stream.Placeholder && j.work().Addressed(); v.show.stream.Placeholder {
				v.show.drafter = nil // the answer must be an edit of a message
			}
		}
	}
	if j.unsent() {
		v.show.preview, v.show.drafter = nil, nil
	}
	v.show.grows = v.show.preview != nil || !v.show.stream.Off
	v.draft.sign = newSign(c, v.show, j.work())
	if to, ok := c.(connectors.Statuser); ok {
		v.status = newStatusLine(ctx, j, to, v.route, s.meter, s.parts.Queued(j.agent.ID))
	}
	go v.loop(ctx)
	return v
}

// grow receives the text of a step while it is generated. It never blocks.
func (v *progressView) grow(step int, text string) {
	if !v.show.grows {
		return
	}
	v.mu.Lock()
	if step != v.text.step || v.text.text == "" {
		v.text.step, v.text.since = step, time.Now()
	}
	v.text.text = text
	v.mu.Unlock()
	select {
	case v.kick <- struct{}{}:
	default:
	}
}

// close stops showing, waits for a send in flight, and for a short time until the status is
// cleared. It is idempotent.
func (v *progressView) close() {
	v.closeOne.Do(func() {
		v.cancel()
		<-v.done
		if v.status != nil {
			v.status.settle(statusWait)
		}
	})
}

// end waits until nothing more is shown. Call it only after close.
func (v *progressView) end() {
	if v.status != nil {
		<-v.status.done
	}
}

// visible returns the draft that the reader may see; nil for none. Call it only
// after close.
func (v *progressView) visible() *claybot.Draft { return v.draft.current }

// shown returns the text that the reader sees. Call it only after close.
func (v *progressView) shown() string {
	v.close()
	if !v.began() {
		return ""
	}
	return v.draft.sent
}

func (v *progressView) loop(ctx context.Context) {
	defer close(v.done)
	defer func() { // the run continues without being shown
		if x := recover(); x != nil {
			v.meter.Panicked("live")
			v.job.log.Error("live view panicked", "panic", fmt.Sprint(x), "stack", string(debug.Stack()))
		}
	}()
	if v.show.stream.Placeholder && !v.show.stream.Off {
		v.showPlaceholder(ctx)
	}
	typing := time.NewTimer(typingAfter)
	defer typing.Stop()
	defer v.draft.sign.timer.Stop()
	var edit <-chan time.Time // when the text may be shown next
	var last time.Time        // when it was shown last
	for {
		select {
		case <-ctx.Done():
			return
		case <-typing.C:
			v.sign(ctx)
			typing.Reset(typingEvery)
		case <-v.draft.sign.timer.C:
			v.showSign(ctx)
		case <-v.kick:
			if edit == nil {
				edit = after(v.delay(last))
			}
		case <-edit:
			edit = nil
			if !v.ready() {
				edit = after(v.delay(last))
				continue
			}
			v.display(ctx)
			if quiet := time.Until(v.draft.quiet); quiet > 0 {
				edit = time.After(quiet)
				continue
			}
			last = time.Now()
			v.draft.sign.timer.Reset(v.draft.sign.after)
		}
	}
}

// after returns a channel that receives once d has passed. It starts no timer of no duration: two that are
// read at one instant of a synctest bubble crash the race detector of Go 1.26.
func after(d time.Duration) <-chan time.Time {
	if d > 0 {
		return time.After(d)
	}
	now := make(chan time.Time, 1)
	now <- time.Now()
	return now
}

// delay returns how long the current text must wait before it may be shown.
func (v *progressView) delay(last time.Time) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.show.preview != nil:
		return time.Until(last.Add(previewEvery))
	case v.began():
		return time.Until(last.Add(v.show.stream.Every))
	case len(v.text.text) < v.show.stream.First:
		// Check in small steps, because new text wakes the loop only if no
		// check is planned.
		return min(time.Until(v.text.since.Add(v.show.stream.Wait)), 100*time.Millisecond)
	default:
		return time.Until(v.text.since.Add(draftAfter))
	}
}

// began reports whether the reader sees unfinished text.
func (v *progressView) began() bool { return v.draft.current != nil || v.draft.faint }

// ready reports whether the text is long or old enough for the first draft.
func (v *progressView) ready() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	age := time.Since(v.text.since)
	return v.show.preview != nil || v.show.stream.Off || v.began() || age >= v.show.stream.Wait ||
		age >= draftAfter && len(v.text.text) >= v.show.stream.First
}

func (v *progressView) sign(ctx context.Context) {
	if v.show.typer == nil {
		return
	}
	if _, dead := v.deliverer.Routes.Dead(v.route); dead {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, typingWait)
	defer cancel()
	if err := v.show.typer.Typing(ctx, v.route); err != nil && ctx.Err() == nil {
		v.job.log.Debug("failed to show the typing indicator", "err", err)
	}
}

// display shows the reader the present text.
func (v *progressView) display(ctx context.Context) {
	v.mu.Lock()
	step, text := v.text.step, v.text.text
	v.mu.Unlock()
	if v.show.preview != nil {
		v.show.preview.Preview(v.route, v.job.run.ID, step, text)
		return
	}
	text = strings.TrimSpace(text)
	if v.show.stream.Off || text == "" || text == v.draft.sent || runs.MayBeNoReply(text) {
		return
	}
	if r := []rune(text); v.show.stream.Limit > 0 && len(r) > v.show.stream.Limit {
		text = string(r[:v.show.stream.Limit]) + " …"
		if text == v.draft.sent {
			return
		}
	}
	if err := v.send(ctx, text); err != nil && ctx.Err() == nil {
		v.job.log.Debug("failed to update the draft", "err", err)
	}
}

// send sends or edits the draft. The draft is recorded before it is first sent
// and again with its receipt. A destination with unsent messages gets no draft,
// so that nothing overtakes them.
func (v *progressView) send(ctx context.Context, text string) error {
	if now := time.Now(); now.Before(v.deliverer.Silences.Until(v.route)) || now.Before(v.draft.quiet) {
		return nil // the platform asked for silence, or others have the calls
	}
	if _, dead := v.deliverer.Routes.Dead(v.route); dead {
		return nil
	}
	if v.show.stream.Drafts && v.draft.current == nil && v.showDraft(ctx, text) {
		return nil
	}
	if v.draft.current == nil && (v.deliverer.IsBusy(v.route.Dest()) || v.queued(ctx)) {
		return nil
	}
	if v.draft.current != nil && v.draft.current.Receipt == "" {
		return nil // its outcome is unknown; the end of the run looks it up
	}
	// A send that began is completed even if the run ends: an unknown outcome
	// costs more than the wait.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), draftTimeout)
	defer cancel()
	o := claybot.Outgoing{
		ID: cmp.Or(v.draft.fresh, runs.NewID()), Kind: claybot.OutgoingAnswer, Run: v.job.run.ID, Agent: v.job.agent.ID,
		Route: v.route, Text: text, Part: 1, Parts: 1, At: claybot.Now(), Progress: true,
	}
	if v.draft.current != nil {
		o.ID, o.Edit = v.draft.current.Outgoing, v.draft.current.Receipt
	} else if err := v.save(ctx, &claybot.Draft{Outgoing: o.ID, Tried: claybot.Now()}); err != nil {
		return err
	}
	if err := v.job.box.Trusted(); err != nil {
		return err // another member may continue the run: do not overwrite its text
	}
	receipt, err := v.show.sender.Send(ctx, o)
	var ambiguous *connectors.AmbiguousError
	var retry *connectors.RetryError
	var permanent *connectors.PermanentError
	switch {
	case errors.As(err, &retry) && (o.Edit != "" || retry.GivesWay):
		v.draft.quiet = time.Now().Add(retry.After)
	case errors.As(err, &retry):
		v.deliverer.Silences.Obey(v.route, retry)
	case errors.As(err, &permanent):
		v.show.stream.Off = true // the end of the run retries and reports the cause
	}
	switch {
	case err == nil && o.Edit == "":
		v.draft.faint = false // the message has taken the draft's place
		v.grew()
		v.draft.sent, v.draft.sign.said = text, ""
		return v.save(ctx, &claybot.Draft{Outgoing: o.ID, Receipt: receipt, Tried: v.draft.current.Tried})
	case err == nil:
		v.grew()
		v.draft.sent, v.draft.sign.said = text, ""
		return nil
	case o.Edit == "" && !errors.As(err, &ambiguous):
		return errors.Join(err, v.save(ctx, nil)) // nothing was sent
	case errors.Is(err, connectors.ErrEditGone):
		v.show.stream.Off = true // no second draft: the end of the run sends the answer as a new message
	}
	return err
}

// grew lets the status give way to text.
func (v *progressView) grew() {
	if v.status != nil {
		v.status.grew()
	}
}

// queued reports whether the destination has messages to send: the replies of the
// previous run may be committed but not queued yet, and other members may have stored
// some. It returns true if that cannot be determined.
func (v *progressView) queued(ctx context.Context) bool {
	waiting, err := v.store.Unsent(ctx, v.route.Dest(), 0, 1)
	return err != nil || len(waiting) > 0
}

// save records the draft with the run; nil records that there is none.
func (v *progressView) save(ctx context.Context, d *claybot.Draft) error {
	var stored claybot.Draft
	if d != nil {
		stored = *d
	}
	err := v.store.SaveDraft(ctx, v.job.box.Lease, v.job.run.ID, stored)
	// A draft that was sent exists even if it could not be recorded; one that
	// was not sent yet does not.
	if err == nil || d == nil || d.Receipt != "" {
		v.draft.current = d
	}
	return err
}

// reply returns the outgoing messages of a text and ends the view; o has what they have in
// common. If a draft is visible, the first part replaces it.
func (v *progressView) reply(o claybot.Outgoing, text string) []claybot.Outgoing {
	v.close()
	if text == "" {
		text = v.leftover(v.job.voice().In(texts.NothingToAdd))
	}
	if text == "" {
		return nil
	}
	out := v.deliverer.Compose(o, text)
	d := v.visible()
	if d == nil || len(out) == 0 {
		return out
	}
	out[0].ID, out[0].Edit = d.Outgoing, d.Receipt
	if d.Receipt != "" {
		return out
	}
	// It is unknown whether the draft is visible: if the platform can look it up, do that
	// first; otherwise the whole text carries the resend mark.
	if v.show.finder {
		out[0].State, out[0].Tried = claybot.SendAmbiguous, d.Tried
	} else {
		out[0].Resent, out[0].Copies = true, 1
		out[0].Due = claybot.At(delivery.ResendAt(d.Tried.Time()))
	}
	return out
}
