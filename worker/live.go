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
	"github.com/claybot/claybot/runs"
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

// A live shows that a run is at work: the typing sign, and the answer while it
// grows. All of it is best effort and none of it delays the run; what it leaves
// behind, the draft, is recorded with the run before anybody sees it.
type live struct {
	p        *pass
	route    claybot.Route
	typer    connectors.Typer
	preview  connectors.Previewer
	sender   connectors.Sender
	stream   connectors.Streaming
	grows    bool // the text is shown while it grows
	cancel   context.CancelFunc
	kick     chan struct{}
	done     chan struct{}
	closeOne sync.Once

	mu    sync.Mutex
	step  int
	text  string
	since time.Time // of the step's first text

	// Below is the loop's own until done is closed.
	current *claybot.Draft
	sent    string // what the draft shows, without a sign of life
	fresh   string // the id of the next draft; empty for any
	still   still
}

// watch begins to show the run. The loop ends with close or with ctx.
func (p *pass) watch(ctx context.Context) *live {
	ctx, cancel := context.WithCancel(ctx)
	l := &live{
		p: p, route: p.route(), cancel: cancel,
		kick: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if d := p.run.Draft; d != nil && d.Outgoing != "" {
		l.current = d
	}
	c := p.Connector(l.route.Connector)
	l.typer, _ = c.(connectors.Typer)
	if l.preview, _ = c.(connectors.Previewer); l.preview == nil {
		l.stream.Off = true
		if s, ok := c.(connectors.Streamer); ok {
			l.sender, _ = c.(connectors.Sender)
			l.stream = s.Streaming(l.route)
			l.stream.Off = l.stream.Off || l.sender == nil || p.profile.Progress
		}
	}
	l.grows = l.preview != nil || !l.stream.Off
	l.waits(c)
	go l.loop(ctx)
	return l
}

// delta receives the text of a step as it grows. It never blocks.
func (l *live) delta(step int, text string) {
	if !l.grows {
		return
	}
	l.mu.Lock()
	if step != l.step || l.text == "" {
		l.step, l.since = step, time.Now()
	}
	l.text = text
	l.mu.Unlock()
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// close ends the showing and waits for a send under way. Twice is once.
func (l *live) close() {
	l.closeOne.Do(func() {
		l.cancel()
		<-l.done
	})
}

// draft is what a reader may see of the answer; nil for nothing. Only after
// close.
func (l *live) draft() *claybot.Draft { return l.current }

// shown is the text that a reader sees. Only after close.
func (l *live) shown() string {
	l.close()
	if l.current == nil {
		return ""
	}
	return l.sent
}

func (l *live) loop(ctx context.Context) {
	defer close(l.done)
	defer func() { // the run goes on without being shown
		if x := recover(); x != nil {
			l.p.Meter.Panicked("live")
			l.p.log.Error("live view panicked", "panic", fmt.Sprint(x), "stack", string(debug.Stack()))
		}
	}()
	typing := time.NewTimer(typingAfter)
	defer typing.Stop()
	defer l.still.timer.Stop()
	var edit <-chan time.Time // when the text may be shown next
	var last time.Time        // when it was shown last
	for {
		select {
		case <-ctx.Done():
			return
		case <-typing.C:
			l.sign(ctx)
			typing.Reset(typingEvery)
		case <-l.still.timer.C:
			l.stillWorking(ctx)
		case <-l.kick:
			if edit == nil {
				edit = time.After(l.delay(last))
			}
		case <-edit:
			edit = nil
			if !l.ready() {
				edit = time.After(l.delay(last))
				continue
			}
			l.show(ctx)
			last = time.Now()
			l.still.timer.Reset(stillAfter)
		}
	}
}

// delay is how long the present text must wait before it may be shown.
func (l *live) delay(last time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.preview != nil:
		return time.Until(last.Add(previewEvery))
	case l.current == nil && len(l.text) < l.stream.First:
		// Looked at again when the wait is over; new text comes with a kick of
		// its own only when no look is planned, so look in small steps.
		return min(time.Until(l.since.Add(l.stream.Wait)), 100*time.Millisecond)
	case l.current == nil:
		return time.Until(l.since.Add(draftAfter))
	default:
		return time.Until(last.Add(l.stream.Every))
	}
}

// ready reports whether the text is long or old enough to be shown first.
func (l *live) ready() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	age := time.Since(l.since)
	return l.preview != nil || l.stream.Off || l.current != nil || age >= l.stream.Wait ||
		age >= draftAfter && len(l.text) >= l.stream.First
}

func (l *live) sign(ctx context.Context) {
	if l.typer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, typingWait)
	defer cancel()
	if err := l.typer.Typing(ctx, l.route); err != nil && ctx.Err() == nil {
		l.p.log.Debug("failed to show the typing indicator", "err", err)
	}
}

// show brings the present text to the reader's eyes.
func (l *live) show(ctx context.Context) {
	l.mu.Lock()
	step, text := l.step, l.text
	l.mu.Unlock()
	if l.preview != nil {
		l.preview.Preview(l.route, l.p.run.ID, step, text)
		return
	}
	text = strings.TrimSpace(text)
	if l.stream.Off || text == "" || text == l.sent || runs.MayBeNoReply(text) {
		return
	}
	if r := []rune(text); l.stream.Limit > 0 && len(r) > l.stream.Limit {
		text = string(r[:l.stream.Limit]) + " …"
		if text == l.sent {
			return
		}
	}
	if err := l.send(ctx, text); err != nil && ctx.Err() == nil {
		l.p.log.Debug("failed to update the draft", "err", err)
	}
}

// send makes or edits the draft. The draft is recorded before its first bytes
// leave and again with its receipt. A destination that has other messages to
// send gets no draft, so that nothing overtakes them.
func (l *live) send(ctx context.Context, text string) error {
	if time.Now().Before(l.p.Deliverer.SilentUntil(l.route)) {
		return nil // the platform asked for silence
	}
	if l.current == nil && (l.p.Deliverer.IsBusy(l.route.Dest()) || l.p.queued(ctx, l.route.Dest())) {
		return nil
	}
	if l.current != nil && l.current.Receipt == "" {
		return nil // its fate is unknown; the end of the run looks it up
	}
	// A send that began is brought to its end, also when the run ends
	// meanwhile: an unknown fate costs more than the wait.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), draftTimeout)
	defer cancel()
	o := claybot.Outgoing{
		ID: cmp.Or(l.fresh, runs.NewID()), Kind: claybot.OutgoingAnswer, Run: l.p.run.ID, Agent: l.p.agent.ID,
		Route: l.route, Text: text, Part: 1, Parts: 1, At: claybot.Now(),
	}
	if l.current != nil {
		o.ID, o.Edit = l.current.Outgoing, l.current.Receipt
	} else if err := l.save(ctx, &claybot.Draft{Outgoing: o.ID, Tried: claybot.Now()}); err != nil {
		return err
	}
	if err := l.p.box.Trusted(); err != nil {
		return err // another node may go on with the run: no old text over its own
	}
	receipt, err := l.sender.Send(ctx, o)
	var ambiguous *connectors.AmbiguousError
	var retry *connectors.RetryError
	var permanent *connectors.PermanentError
	switch {
	case errors.As(err, &retry):
		l.p.Deliverer.Obey(l.route, retry)
	case errors.As(err, &permanent):
		l.stream.Off = true // the end of the run tries once more and says why
	}
	switch {
	case err == nil && o.Edit == "":
		l.sent, l.still.said = text, ""
		return l.save(ctx, &claybot.Draft{Outgoing: o.ID, Receipt: receipt, Tried: l.current.Tried})
	case err == nil:
		l.sent, l.still.said = text, ""
		return nil
	case o.Edit == "" && !errors.As(err, &ambiguous):
		return errors.Join(err, l.save(ctx, nil)) // nothing was sent
	case errors.Is(err, connectors.ErrEditGone):
		l.stream.Off = true // no second draft: the end of the run sends the answer afresh
	}
	return err
}

// queued reports whether a destination has messages to send: the end of the run before
// may be committed and not handed over yet, and other nodes may have put some there. Not
// to know it counts as such: no draft is lost.
func (s *Worker) queued(ctx context.Context, dest string) bool {
	waiting, err := s.Outbox.Unsent(ctx, dest, 0, 1)
	return err != nil || len(waiting) > 0
}

// save records the draft with the run; nil records that there is none.
func (l *live) save(ctx context.Context, d *claybot.Draft) error {
	var v claybot.Draft
	if d != nil {
		v = *d
	}
	err := l.p.Runs.SaveDraft(ctx, l.p.box.Lease, l.p.run.ID, v)
	// A draft that was sent is there, whatever the store could be told; one
	// that was to be sent is not.
	if err == nil || d == nil || d.Receipt != "" {
		l.current = d
	}
	return err
}
