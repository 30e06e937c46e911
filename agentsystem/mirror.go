package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

const (
	// lookWindows is how often a node looks for runs of an open window that no hint
	// has told of; after a hint it looks soon, and not more often than windowGap.
	lookWindows = time.Second
	windowGap   = 100 * time.Millisecond
	// windowRuns is how many runs of one conversation may pass between two looks.
	windowRuns = 20
	// keptShown is how many runs are remembered of which events were shown.
	keptShown = 4096
)

// shown knows up to where events of runs were shown on this node. What a worker
// here shows itself and what is read from the store are the same events: whoever
// comes first shows one. The zero value is ready.
type shown struct {
	mu    sync.Mutex
	seq   map[claybot.RunID]int64
	order []claybot.RunID // of seq, oldest first
}

// first reports whether an event was not shown yet, and takes it as shown.
func (x *shown) first(e claybot.Event) bool {
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

// after is the seq of the newest event of a run that was shown; over says that all
// were.
func (x *shown) after(run claybot.RunID) (seq int64, over bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	seq = x.seq[run]
	return seq, seq == math.MaxInt64
}

// A window is a conversation that somebody looks at on this node. It is used by
// the goroutine of mirrorAll.
type window struct {
	who     claybot.Descriptor
	agent   claybot.AgentID
	before  map[claybot.RunID]bool // that had ended when it was opened; nil: all that have
	known   map[claybot.RunID]bool // that are shown, or ended before
	looked  bool
	ctx     context.Context // of what is followed for it
	close   context.CancelFunc
	watcher connectors.Connector
	queue   chan claybot.RunID // to be followed, one after another
}

// mirrorAll shows in the open windows of this node what other nodes do, until ctx
// is done.
func (s *AgentSystem) mirrorAll(ctx context.Context) {
	open := make(map[string]*window)
	var following sync.WaitGroup
	defer following.Wait()
	for ctx.Err() == nil {
		heard := s.elsewhere.next()
		s.windows(ctx, open, &following)
		for _, w := range open {
			if err := s.mirror(w); err != nil && ctx.Err() == nil {
				s.Log.Debug("cannot look for what other nodes do; trying again", "err", err)
			}
		}
		look := time.NewTimer(lookWindows)
		if len(open) == 0 {
			heard = nil // there is nothing to look for
		}
		select {
		case <-ctx.Done():
		case <-look.C:
		case <-heard:
			pause(ctx, windowGap)
		}
		look.Stop()
	}
	for _, w := range open {
		w.close()
	}
}

// windows brings what is known of open windows up to date.
func (s *AgentSystem) windows(ctx context.Context, open map[string]*window, following *sync.WaitGroup) {
	still := make(map[string]bool)
	for _, c := range s.windowed() {
		for _, r := range c.(connectors.Windowed).Windows() {
			who := claybot.User(r.Connector, r.ChannelID, r.UserID)
			key := who.Key()
			still[key] = true
			if open[key] == nil {
				w := &window{who: who, before: s.openings.take(key), known: make(map[claybot.RunID]bool), watcher: c, queue: make(chan claybot.RunID, windowRuns)}
				w.ctx, w.close = context.WithCancel(ctx)
				open[key] = w
				following.Go(func() { s.followAll(w) })
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

// windowed are the connectors that have windows.
func (s *AgentSystem) windowed() (all []connectors.Connector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.connectors {
		if _, ok := c.(connectors.Windowed); ok {
			all = append(all, c)
		}
	}
	return all
}

// mirror begins to show what is new in a window and not the work of this node: the
// runs that are not at their end when the window opens, and those that begin later.
func (s *AgentSystem) mirror(w *window) error {
	if w.agent == "" {
		id, err := s.Index.IndexedAgent(w.ctx, w.who)
		if errors.Is(err, storage.ErrNotFound) {
			w.looked = true // its first run is new
			return nil
		}
		if err != nil {
			return err
		}
		w.agent = id
	}
	page, err := s.Runs.RunPage(w.ctx, storage.RunQuery{Agent: w.agent, Limit: windowRuns})
	if err != nil {
		return err
	}
	if len(page) == 0 { // of an agent that was deleted, perhaps: its place has a new one
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
		case s.turns.Here(run.ID): // it is shown as it works here
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

// followAll shows the runs of a window until it is closed. An agent has one at a
// time, so they come one after another.
func (s *AgentSystem) followAll(w *window) {
	for {
		select {
		case <-w.ctx.Done():
			return
		case run := <-w.queue:
			for !s.follow(w, run) && w.ctx.Err() == nil {
				pause(w.ctx, lookWindows)
			}
		}
	}
}

// follow shows a run in a window, from what was not shown of it, until it ends or the
// window is closed. It says false when the rest is to be tried again.
func (s *AgentSystem) follow(w *window, run claybot.RunID) bool {
	after, over := s.shown.after(run)
	if over {
		return true
	}
	route := w.who.Route()
	observer, _ := w.watcher.(connectors.Observer)
	previewer, _ := w.watcher.(connectors.Previewer)
	texts := make(map[int]string) // by step
	for u, err := range runs.Watch(w.ctx, s.Runs, s.Hub, run, after) {
		switch {
		case err != nil:
			if w.ctx.Err() == nil {
				s.Log.Debug("a run of another node cannot be read", "run", run, "err", err)
			}
			return errors.Is(err, storage.ErrNotFound) // it is gone for good
		case u.Event != nil:
			if observer != nil && s.shown.first(*u.Event) {
				s.tellOther(w, *u.Event)
				observer.Observe(route, *u.Event)
			}
		case previewer != nil && !s.turns.Here(run):
			d := u.Delta
			texts[d.Step] = texts[d.Step][:min(d.Offset, len(texts[d.Step]))] + d.Text
			previewer.Preview(route, run, d.Step, texts[d.Step])
		}
	}
	return true
}

// openings are the conversations that somebody has begun to look at and whose window
// was not looked at yet. The zero value is ready.
type openings struct {
	mu  sync.Mutex
	all map[string]opening
}

type opening struct {
	ended map[claybot.RunID]bool
	at    time.Time
}

// openingFor is how long after it was opened a window is looked at, at the latest.
const openingFor = 10 * time.Second

// note keeps what had ended when a conversation was opened. One that was opened
// shortly before, and not looked at yet, has less that had ended.
func (o *openings) note(key string, ended map[claybot.RunID]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, old := range o.all {
		if time.Since(old.at) > openingFor {
			delete(o.all, k)
		}
	}
	if _, known := o.all[key]; known {
		return
	}
	if o.all == nil {
		o.all = make(map[string]opening)
	}
	o.all[key] = opening{ended: ended, at: time.Now()}
}

func (o *openings) take(key string) map[claybot.RunID]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	ended := o.all[key].ended
	delete(o.all, key)
	return ended
}

// Opened is called before somebody begins to look at d's conversation on this node.
// What its runs do from now on is shown there, on whatever node they work, also those
// that have ended again before anybody looked.
func (s *AgentSystem) Opened(ctx context.Context, d claybot.Descriptor) error {
	if s.Shared == nil {
		return nil
	}
	ended := make(map[claybot.RunID]bool)
	id, err := s.Index.IndexedAgent(ctx, d)
	switch {
	case errors.Is(err, storage.ErrNotFound): // all its runs are new
	case err != nil:
		return fmt.Errorf("open the conversation: %w", err)
	default:
		page, err := s.Runs.RunPage(ctx, storage.RunQuery{Agent: id, Limit: windowRuns})
		if err != nil {
			return fmt.Errorf("open the conversation: %w", err)
		}
		for _, run := range page {
			ended[run.ID] = run.State.Ended()
		}
	}
	s.openings.note(d.Key(), ended)
	return nil
}

// tellOther shows the messages that a run takes, which may have been accepted on
// another node. A window knows those that it has by their ids.
func (s *AgentSystem) tellOther(w *window, e claybot.Event) {
	a, ok := w.watcher.(connectors.Accepter)
	if !ok || e.Type != claybot.EventRunStarted && e.Type != claybot.EventMessagesInjected {
		return
	}
	for _, id := range runs.DataOf[runs.MessagesTaken](e).Messages {
		r, err := s.Inbox.Receipt(w.ctx, id)
		if err == nil && r.Message.Type == claybot.MessageUser {
			a.Accepted(w.who, r.Message)
		}
	}
}
