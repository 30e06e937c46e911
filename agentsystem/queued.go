package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

const (
	queuedAfter  = 500 * time.Millisecond // until a message that no run has taken counts as waiting
	queuedLook   = time.Second            // between two looks at it
	queuedTyping = 4 * time.Second        // between two typing indicators
	queuedCall   = 5 * time.Second        // of one call
	queuedPause  = 15 * time.Second       // after a failed one
	queuedFor    = time.Hour              // at most so long, a sign is shown
	queuedMost   = 64                     // so many agents at once: the calls of signs must not hold up answers
)

// A queue shows people that their message waits for others, because all workers of this member
// are taken: as a status, where the platform has one, else by the typing indicator. It works
// beside the intake, which it never delays. The run that takes the message takes the status over,
// and clears it; where none does, the queue clears it.
type queue struct {
	receipts storage.Receipts
	active   func(name string) connectors.Connector
	dead     func(claybot.Route) bool
	full     func() bool
	log      *slog.Logger

	signs sync.WaitGroup
	mu    sync.Mutex
	open  bool
	waits map[claybot.AgentID]*wait
	taken map[claybot.AgentID]*wait // by a worker whose run has not begun to show itself
}

// A wait is one message that waits.
type wait struct {
	agent   claybot.AgentID
	message claybot.AgentMessage
	route   claybot.Route
	voice   texts.Voice
	status  connectors.Statuser
	typer   connectors.Typer
	cancel  context.CancelFunc
	done    chan struct{} // closed when no more call is made

	keeps bool // what is visible is the worker's to clear; of the queue's mu

	// The loop's own until done is closed.
	shown bool      // a status may be visible
	next  time.Time // when it must be shown again
}

// works says whether signs may be shown. Those that are shown end then, for which it does not wait: the
// platform may hang.
func (q *queue) works(open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = open
	if !open {
		for _, w := range q.waits {
			w.cancel()
		}
	}
}

// enter notes a message that no run has taken yet. A later message of its agent takes its place.
func (q *queue) enter(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) {
	if !agent.Descriptor.Foreground() || m.Type != claybot.MessageUser || m.Silent || m.From.Program {
		return
	}
	w := &wait{agent: agent.ID, message: m, route: m.ReplyRoute(agent.Descriptor), voice: texts.Of(ctx), done: make(chan struct{})}
	c := q.active(w.route.Connector)
	w.status, _ = c.(connectors.Statuser)
	if w.typer, _ = c.(connectors.Typer); w.typer == nil && w.status == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	old := q.waits[agent.ID]
	if !q.open || old == nil && len(q.waits) >= queuedMost {
		return
	}
	var before <-chan struct{}
	if old != nil {
		before = old.done
		old.cancel()
	}
	if q.waits == nil {
		q.waits, q.taken = make(map[claybot.AgentID]*wait), make(map[claybot.AgentID]*wait)
	}
	q.waits[agent.ID] = w
	ctx, w.cancel = context.WithTimeout(context.WithoutCancel(ctx), queuedFor)
	q.signs.Go(func() { q.loop(ctx, w, before) })
}

// leave ends the sign of an agent that a worker has taken. What is visible stays until the run
// takes it over, or the worker is done; see over.
func (q *queue) leave(agent claybot.AgentID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w := q.waits[agent]; w != nil {
		w.keeps = true
		q.taken[agent] = w
		w.cancel()
	}
}

// Over gives the sign of an agent to its run, which clears it: at the earliest when the returned
// channel is closed. nil: there is none.
func (q *queue) Over(agent claybot.AgentID) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.taken[agent]
	if w == nil {
		return nil
	}
	delete(q.taken, agent)
	return w.done
}

// end clears the sign of an agent whose worker is done, unless its run took it over. It does not wait for
// the platform, so that one that hangs holds no worker.
func (q *queue) end(agent claybot.AgentID) {
	q.mu.Lock()
	w := q.taken[agent]
	delete(q.taken, agent)
	q.mu.Unlock()
	if w == nil {
		return
	}
	q.signs.Go(func() {
		defer q.survive()
		<-w.done
		q.clear(w)
	})
}

// survive, deferred, logs the panic of a connector: the message goes on without its sign.
func (q *queue) survive() {
	if x := recover(); x != nil {
		q.log.Error("sign of a waiting message panicked", "panic", fmt.Sprint(x), "stack", string(debug.Stack()))
	}
}

// drop forgets a wait whose sign ends. keeps reports whether a worker has it.
func (q *queue) drop(w *wait) (keeps bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waits[w.agent] == w {
		delete(q.waits, w.agent)
	}
	return w.keeps
}

func (q *queue) loop(ctx context.Context, w *wait, before <-chan struct{}) {
	defer close(w.done)
	defer w.cancel()
	defer q.drop(w)
	defer q.survive()
	if before != nil {
		<-before
	}
	keeps := false
	for claybot.Sleep(ctx, queuedAfter); ctx.Err() == nil; claybot.Sleep(ctx, queuedLook) {
		var waits bool
		if waits, keeps = q.look(ctx, w); !waits {
			break
		}
		if q.full() && !time.Now().Before(w.next) {
			q.show(ctx, w)
		}
	}
	if q.drop(w) || keeps {
		return
	}
	q.clear(w)
}

// look reports whether a message waits for a worker, and otherwise whether a run, of this or of
// another member, has it and clears its status.
func (q *queue) look(ctx context.Context, w *wait) (waits, run bool) {
	r, err := q.receipts.Receipt(ctx, w.message.ID)
	switch {
	case ctx.Err() != nil:
		return false, false
	case errors.Is(err, storage.ErrNotFound):
		return false, false
	case err != nil:
		return true, false
	}
	pending := r.Run == nil && r.Skipped == ""
	return pending && r.Busy == "" && r.Paused == nil && r.Parked == "", r.Run != nil
}

// show shows the sign, and notes when to show it again.
func (q *queue) show(ctx context.Context, w *wait) {
	if q.dead(w.route) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queuedCall)
	defer cancel()
	if w.status == nil {
		w.next = time.Now().Add(queuedTyping)
		if err := w.typer.Typing(ctx, w.route); err != nil {
			q.log.Debug("failed to show the typing indicator", "message", w.message.ID, "err", err)
			w.next = time.Now().Add(queuedPause)
		}
		return
	}
	w.shown = true
	lasts, err := w.status.Status(ctx, w.route, w.message.Context.MessageID, w.voice.In(texts.QueuedStatus))
	var retry *connectors.RetryError
	switch {
	case errors.As(err, &retry):
		w.next = time.Now().Add(max(retry.After, queuedLook))
	case err != nil:
		q.log.Debug("failed to show a status", "message", w.message.ID, "err", err)
		w.next = time.Now().Add(queuedPause)
	case lasts <= 0: // the platform shows none here
		w.shown, w.next = false, time.Now().Add(queuedFor)
	default:
		w.next = time.Now().Add(max(lasts-queuedLook, queuedLook))
	}
}

// clear clears a status that may be visible.
func (q *queue) clear(w *wait) {
	if !w.shown {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), queuedCall)
	defer cancel()
	if _, err := w.status.Status(ctx, w.route, w.message.Context.MessageID, ""); err != nil {
		q.log.Debug("failed to clear a status", "message", w.message.ID, "err", err)
	}
	w.shown = false
}
