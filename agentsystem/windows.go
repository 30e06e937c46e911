package agentsystem

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

const (
	// lookWindows is how often a member looks for runs of an open window that no hint
	// named; after a hint it looks soon, and not more often than windowGap.
	lookWindows = time.Second
	windowGap   = 100 * time.Millisecond
	// windowRuns is how many runs of one conversation may pass between two looks.
	windowRuns = 20
	// keptShown is how many runs are remembered of which events were shown.
	keptShown = 4096
	// openingFor is how long after it was opened a window is looked at, at the latest.
	openingFor = 10 * time.Second
)

// windows shows what runs do on other members in the conversations that users look at on
// this one.
type windows struct {
	connectors func() []connectors.Connector
	members    *cluster.Membership
	changed    *inbox.Signal // another member has written something
	index      storage.Index
	runs       Runs
	receipts   storage.Receipts
	hub        *runs.Hub
	work       *runs.AtWork
	log        *slog.Logger
	shown      shownEvents

	mu      sync.Mutex
	opening map[string]opening // by key of the descriptor, until the window is looked at
}

// An opening is a conversation that a user begins to look at.
type opening struct {
	ended map[claybot.RunID]bool // the runs that had ended by then
	typed int64                  // the position of the newest message of a person by then
	at    time.Time
}

// A window is a conversation that users look at on this member. It belongs to the
// goroutine of follow.
type window struct {
	who     claybot.Descriptor
	agent   claybot.AgentID
	last    claybot.AgentID        // that typed is a position of; empty before the first look
	before  map[claybot.RunID]bool // that had ended when it was opened; nil: all that have
	known   map[claybot.RunID]bool // that are shown, or ended before
	looked  bool
	typed   int64           // the position of the newest message of a person that is shown
	ctx     context.Context // of what is shown in it
	close   context.CancelFunc
	watcher connectors.Windowed
	queue   chan claybot.RunID // to be shown, one after another
}

// follow shows in the open windows what other members do, until ctx is done.
func (s *windows) follow(ctx context.Context) {
	open := make(map[string]*window)
	var showing sync.WaitGroup
	defer showing.Wait()
	for look := s.members.Elsewhere(0); ; look = s.members.Elsewhere(lookWindows) {
		changed := s.changed.Next()
		if len(open) == 0 {
			changed = nil // there is nothing to look for
		}
		select {
		case <-ctx.Done():
			return // so are the windows
		case <-look:
		case <-changed:
			claybot.Sleep(ctx, windowGap)
		}
		s.update(ctx, open, &showing)
		for _, w := range open {
			if err := s.look(w); err != nil && ctx.Err() == nil {
				s.log.Debug("failed to read the runs of other members, retrying", "err", err)
			}
		}
	}
}

// update brings the list of open windows up to date.
func (s *windows) update(ctx context.Context, open map[string]*window, showing *sync.WaitGroup) {
	still := make(map[string]bool)
	for _, c := range s.connectors() {
		x, ok := c.(connectors.Windowed)
		if !ok {
			continue
		}
		for _, r := range x.Windows() {
			who := claybot.User(r.Connector, r.ChannelID, r.UserID)
			key := who.Key()
			still[key] = true
			if open[key] == nil {
				o := s.takeOpening(key)
				w := &window{who: who, before: o.ended, typed: o.typed, known: make(map[claybot.RunID]bool), watcher: x, queue: make(chan claybot.RunID, windowRuns)}
				w.ctx, w.close = context.WithCancel(ctx)
				open[key] = w
				showing.Go(func() { s.showAll(w) })
			}
		}
	}
	for key, w := range open {
		if !still[key] {
			w.close()
			delete(open, key)
		}
	}
}

// look queues the runs of a window that are new and not the work of this member: those
// that had not ended when the window opened, and those that begin later.
func (s *windows) look(w *window) error {
	if w.agent == "" {
		id, err := s.index.IndexedAgent(w.ctx, w.who)
		if errors.Is(err, storage.ErrNotFound) {
			w.looked = true // its first run is new
			return nil
		}
		if err != nil {
			return err
		}
		if w.last != "" && w.last != id {
			w.typed = 0
		}
		w.agent, w.last = id, id
	}
	if err := s.showTyped(w); err != nil {
		return err
	}
	page, err := s.runs.RunPage(w.ctx, storage.RunQuery{Agent: w.agent, Limit: windowRuns})
	if err != nil {
		return err
	}
	if len(page) == 0 { // perhaps its agent was deleted, and the conversation has a new one
		w.agent = ""
	}
	current := make(map[claybot.RunID]bool, len(page))
	for _, run := range slices.Backward(page) {
		current[run.ID] = true
		_, over := s.shown.after(run.ID)
		switch {
		case w.known[run.ID] || run.State == claybot.RunPending:
		case over || run.State.Ended() && !w.looked && (w.before == nil || w.before[run.ID]):
			w.known[run.ID] = true
		case s.work.Here(run.ID): // its worker shows it
		default:
			select {
			case w.queue <- run.ID:
				w.known[run.ID] = true
			default: // the next look finds it again
			}
		}
	}
	for id := range w.known {
		if !current[id] {
			delete(w.known, id)
		}
	}
	w.looked = true
	return nil
}

// showAll shows the queued runs of a window until it is closed.
func (s *windows) showAll(w *window) {
	for {
		select {
		case <-w.ctx.Done():
			return
		case run := <-w.queue:
			for !s.show(w, run) && w.ctx.Err() == nil {
				claybot.Sleep(w.ctx, lookWindows)
			}
		}
	}
}

// show shows a run in a window, from what was not shown of it, until it ends or the window
// is closed. It returns false when the rest is to be tried again.
func (s *windows) show(w *window, run claybot.RunID) bool {
	after, over := s.shown.after(run)
	if over {
		return true
	}
	route := w.who.Route()
	observer, _ := w.watcher.(connectors.Observer)
	previewer, _ := w.watcher.(connectors.Previewer)
	texts := make(map[int]string) // by step
	for u, err := range runs.Watch(w.ctx, s.runs, s.hub, run, after) {
		switch {
		case err != nil:
			if w.ctx.Err() == nil {
				s.log.Debug("failed to read a run of another member", "run", run, "err", err)
			}
			return errors.Is(err, storage.ErrNotFound) // it is gone for good
		case u.Event != nil:
			if observer != nil && s.shown.first(*u.Event) {
				s.showMessages(w, *u.Event)
				observer.Observe(route, *u.Event)
			}
		case previewer != nil && !s.work.Here(run):
			d := u.Delta
			texts[d.Step] = texts[d.Step][:min(d.Offset, len(texts[d.Step]))] + d.Text
			previewer.Preview(route, run, d.Step, texts[d.Step])
		}
	}
	return true
}

// showMessages shows the messages that a run takes, which another member may have
// accepted. A window knows those that it has by their ids.
func (s *windows) showMessages(w *window, e claybot.Event) {
	a, ok := w.watcher.(connectors.Accepter)
	if !ok || e.Type != claybot.EventRunStarted && e.Type != claybot.EventMessagesInjected {
		return
	}
	for _, id := range runs.DataOf[runs.MessagesTaken](e).Messages {
		r, err := s.receipts.Receipt(w.ctx, id)
		if err == nil && r.Message.Type == claybot.MessageUser {
			a.Accepted(w.who, r.Message)
		}
	}
}

// showTyped shows what people have written in a window since the last look, perhaps on another
// member: messages, edits and deletions. A window knows those that it has by their ids.
func (s *windows) showTyped(w *window) error {
	ids, last, err := s.receipts.Typed(w.ctx, w.agent, w.typed, windowRuns)
	if err != nil {
		return err
	}
	if w.before == nil && !w.looked { // of a window that was open already, all is shown
		ids = nil
	}
	accepter, _ := w.watcher.(connectors.Accepter)
	for _, id := range ids {
		r, err := s.receipts.Receipt(w.ctx, id)
		switch {
		case errors.Is(err, storage.ErrNotFound):
		case err != nil:
			return err
		case r.Message.Amends != "":
			w.watcher.Changed(w.who, r.Message)
		case accepter != nil:
			accepter.Accepted(w.who, r.Message)
		}
	}
	w.typed = last
	return nil
}

// opened notes which runs of d's conversation have ended before a user looks at it. The
// others are shown, even if they end before the window is looked at.
func (s *windows) opened(ctx context.Context, d claybot.Descriptor) error {
	ended, typed := make(map[claybot.RunID]bool), int64(0)
	id, err := s.index.IndexedAgent(ctx, d)
	if err == nil {
		_, typed, err = s.receipts.Typed(ctx, id, 0, 1)
	}
	if err == nil {
		var page []claybot.Run
		page, err = s.runs.RunPage(ctx, storage.RunQuery{Agent: id, Limit: windowRuns})
		for _, run := range page {
			ended[run.ID] = run.State.Ended()
		}
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) { // of none, all runs are new
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, o := range s.opening {
		if time.Since(o.at) > openingFor {
			delete(s.opening, k)
		}
	}
	key := d.Key()
	if _, known := s.opening[key]; !known { // the earlier one has less that had ended
		s.opening[key] = opening{ended, typed, time.Now()}
	}
	return nil
}

// takeOpening returns what was noted when a conversation was opened; the zero opening when that
// is not known.
func (s *windows) takeOpening(key string) opening {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.opening[key]
	delete(s.opening, key)
	return o
}

// shownEvents knows up to where events of runs were shown on this member. A worker here
// and a window that reads the store have the same events: the first of them shows one. The
// zero value is ready.
type shownEvents struct {
	mu    sync.Mutex
	seq   map[claybot.RunID]int64
	order []claybot.RunID // of seq, oldest first
}

// first reports whether an event was not shown yet, and takes it as shown.
func (x *shownEvents) first(e claybot.Event) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	last, known := x.seq[e.Run]
	if known && e.Seq <= last {
		return false
	}
	if !known {
		if x.seq == nil {
			x.seq = make(map[claybot.RunID]int64)
		}
		if x.order = append(x.order, e.Run); len(x.order) > keptShown {
			delete(x.seq, x.order[0])
			x.order = x.order[1:]
		}
	}
	x.seq[e.Run] = e.Seq
	if e.Type.Ends() {
		x.seq[e.Run] = math.MaxInt64
	}
	return true
}

// after returns the seq of the newest event of a run that was shown; over says that all
// were.
func (x *shownEvents) after(run claybot.RunID) (seq int64, over bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	seq = x.seq[run]
	return seq, seq == math.MaxInt64
}
