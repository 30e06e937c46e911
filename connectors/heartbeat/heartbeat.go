package heartbeat

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
)

// Name is what the connector is called.
const Name = "heartbeat"

const (
	poll           = 2 * time.Second
	usualBeats     = 48
	askEvery       = time.Minute      // how often it is asked what became of the message under way
	wordEvery      = 10 * time.Second // how often it is asked whether somebody wrote, while resting
	firstPause     = time.Second      // after a tick that failed, doubling
	mostPause      = time.Minute
	shutdownSaving = 5 * time.Second
)

// Config is what a Heartbeat works with. Dir, Tree, Claims, Node and Receipts are
// needed.
type Config struct {
	// Dir is where gate commands run.
	Dir string
	// Tree has the tasks' files and the memory. All members of a cluster share it; one
	// that needs to Run somebody else runs.
	Tree *storage.Mirror
	// Claims let one node at a time begin a tick, with Node as the id of this one at the
	// moment.
	Claims storage.Claims
	Node   func() string

	Settings func() Settings // asked at each tick; nil: the defaults
	// Receipts tells what became of a message; storage.Receipts has it.
	Receipts interface {
		Receipt(ctx context.Context, id claybot.MessageID) (storage.Receipt, error)
	}
	// Place is where the most recent foreground agent answers, and when its
	// person wrote last; storage.ErrNotFound: nobody has written yet. nil: nobody
	// ever does.
	Place func(ctx context.Context) (claybot.Route, claybot.Time, error)
	// Notice tells a person something, once for each key; storage.ErrNotFound:
	// there is nobody to tell. nil: only the log is told.
	Notice func(ctx context.Context, key, text string) error
	Now    func() time.Time // the wall clock, for tests of one that jumps; nil: time.Now
	Log    *slog.Logger     // nil: no log
}

// Settings may change while the heartbeat runs.
type Settings struct {
	Every         time.Duration  // between beats of a task without its own; 0: 30 min; at least 5 min
	ActiveHours   string         // of tasks without their own: "08:00-22:00", may pass midnight; empty: always
	Zone          *time.Location // of active hours; nil: UTC
	MaxUnattended int            // beats without a word of a person, then it rests; 0: 48
	Route         string         // "connector/channel" where it answers; empty: what Place says
	Gates         bool           // gate commands may run on this machine

	hours hours // what ActiveHours says
}

// A Heartbeat beats. It is safe for concurrent use.
type Heartbeat struct {
	cfg  Config
	base *schedule.Base
	now  func() time.Time

	// Of whoever holds the lock of base.

	version  int64           // of the memory as it was read or written last
	saved    memory          // that
	files    map[string]file // by name
	unsure   bool            // whether the pending message was posted
	asked    time.Time       // when the receipt of the pending message was read
	told     time.Time       // when telling of the rest was tried
	badHours string          // in the settings, that the log was told of
	badRoute string

	mu       sync.Mutex
	live     *running // nil: Run is not running
	tasks    []*task  // in their order
	mem      memory
	unsaved  bool          // mem has changed since it was saved
	ended    []claybot.Run // that the loop has not seen yet
	ticking  bool          // a tick is on its way
	failing  string        // why the last tick failed
	failures int           // in a row
	again    time.Time     // no tick before
}

var (
	_ connectors.Connector = (*Heartbeat)(nil)
	_ connectors.Follower  = (*Heartbeat)(nil)
)

// running is what exists while Run runs.
type running struct {
	ctx     context.Context
	handler connectors.Handler
	work    sync.WaitGroup // of ticks
}

// New makes a Heartbeat; nothing happens before Run.
func New(cfg Config) *Heartbeat {
	h := &Heartbeat{cfg: cfg, base: schedule.New(Name, Name, cfg.Claims, cfg.Node, cfg.Log), now: cfg.Now}
	if h.now == nil {
		h.now = time.Now
	}
	return h
}

// Name implements connectors.Connector.
func (h *Heartbeat) Name() string { return Name }

// Health implements connectors.Connector.
func (h *Heartbeat) Health() connectors.Health { return h.base.Health() }

// settings are those of this moment, made whole. It is called with edits held.
func (h *Heartbeat) settings() Settings {
	var s Settings
	if h.cfg.Settings != nil {
		s = h.cfg.Settings()
	}
	if s.Every == 0 {
		s.Every = usualEvery
	}
	s.Every = min(max(s.Every, minEvery), maxEvery)
	if s.Zone == nil {
		s.Zone = time.UTC
	}
	if s.MaxUnattended <= 0 {
		s.MaxUnattended = usualBeats
	}
	if text := strings.TrimSpace(s.ActiveHours); text != "" {
		var err error
		if s.hours, err = parseHours(text); err != nil && h.badHours != text {
			h.badHours = text
			h.base.Log.Warn("the active hours of the heartbeat cannot be read; it beats at all hours", "err", err)
		}
	}
	return s
}

// Run implements connectors.Connector. It may be called again after it has
// returned.
func (h *Heartbeat) Run(ctx context.Context, handler connectors.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &running{ctx: ctx, handler: handler}
	if err := h.start(r); err != nil {
		if ctx.Err() == nil {
			h.base.Pulse.Fail("the heartbeat cannot start: " + storage.Plain(err))
		}
		return fmt.Errorf("start the heartbeat: %w", err)
	}
	h.loop(r)
	h.mu.Lock()
	h.live = nil
	h.mu.Unlock()
	r.work.Wait()
	h.finish(context.WithoutCancel(ctx))
	return context.Cause(ctx)
}

// start reads what survived.
func (h *Heartbeat) start(r *running) error {
	return h.base.Locked(r.ctx, func() error {
		h.mu.Lock()
		h.mem, h.saved = memory{}.clone(), memory{}
		h.mu.Unlock()
		if err := h.recall(r.ctx); err != nil {
			return err
		}
		h.base.SetProblems(nil)
		h.files, h.unsure = nil, true
		h.asked, h.told = time.Time{}, time.Time{}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.unsaved, h.ended, h.ticking, h.failures, h.again = false, nil, false, 0, time.Time{}
		h.tasks, h.failing, h.live = nil, "", r
		return nil
	})
}

// finish notes what ended while the loop was leaving, so that the next start
// need not ask.
func (h *Heartbeat) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownSaving)
	defer cancel()
	err := h.base.Locked(ctx, func() error {
		h.settle()
		return h.save(ctx)
	})
	if err != nil {
		h.base.Log.Warn("cannot save what the heartbeat remembers", "err", err)
	}
}

// loop works until ctx is done.
func (h *Heartbeat) loop(r *running) {
	told := ""            // the error that the log was told of
	var scanned time.Time // by the monotonic clock: one that is set must not keep files from being seen
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-timer.C:
		case <-h.base.Kicked():
		}
		looks := scanned.IsZero() || time.Since(scanned) >= poll
		if looks {
			scanned = time.Now()
		}
		wait := poll - time.Since(scanned)
		err := h.base.Locked(r.ctx, func() error {
			due, err := h.step(r, looks)
			if !due.IsZero() {
				wait = min(wait, due.Sub(h.now()))
			}
			return err
		})
		if looks || err != nil {
			told = h.report(r, err, told)
		}
		timer.Reset(max(wait, 0))
	}
}

// report brings the health up to date, and tells the log of an error that is
// another than the last one. It returns that error.
func (h *Heartbeat) report(r *running, err error, told string) string {
	h.mu.Lock()
	failing := h.failing
	h.mu.Unlock()
	switch {
	case r.ctx.Err() != nil:
	case err != nil:
		h.base.Pulse.Fail("the heartbeat does not work: " + storage.Plain(err))
		if storage.Plain(err) != told {
			h.base.Log.Warn("the heartbeat does not work", "err", err)
		}
		return storage.Plain(err)
	case failing != "":
		h.base.Pulse.Fail("the heartbeat cannot beat: " + failing)
	default:
		h.base.Pulse.OK()
	}
	return ""
}

// step does what there is to do, and returns when the next task is due, zero for
// nothing to wait for. It is called with edits held.
func (h *Heartbeat) step(r *running, looks bool) (due time.Time, err error) {
	if looks {
		if err := h.pull(r.ctx, false); err != nil {
			return due, err
		}
	}
	h.settle()
	h.follow(r.ctx)
	if err := h.save(r.ctx); err != nil {
		return due, err
	}
	h.tell(r.ctx)
	if err := h.save(r.ctx); err != nil {
		return due, err
	}
	if looks {
		if err := h.scan(r.ctx); err != nil {
			return due, fmt.Errorf("read the tasks: %w", err)
		}
	}
	return h.begin(r), nil
}

// begin starts a tick when a task is due and nothing is in the way; else it
// returns when the next one is due. It is called with edits held.
func (h *Heartbeat) begin(r *running) time.Time {
	s, now := h.settings(), h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mem.turnBack(claybot.At(now))
	if h.ticking || h.mem.Pending != nil || time.Now().Before(h.again) {
		return time.Time{}
	}
	var due []*task
	var first time.Time
	for _, t := range h.tasks {
		switch at := h.mem.next(t, s, now); {
		case at.IsZero():
		case !at.After(now):
			due = append(due, t)
		case first.IsZero() || at.Before(first):
			first = at
		}
	}
	if len(due) == 0 {
		h.failing = ""
		return first
	}
	h.ticking = true
	r.work.Go(func() { h.tick(r, due, s) })
	return time.Time{}
}
