package heartbeat

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Name is the name of the connector.
const Name = "heartbeat"

const (
	usualUnattended = 48
	closeTime       = 5 * time.Second
)

// Config configures a Heartbeat. Dir, Tree, Claims, Node and Receipts are
// required.
type Config struct {
	// Dir is the working directory of gate commands.
	Dir string
	// Tree has the tasks' files and the state. All members of a cluster share it. If
	// it needs Run, the caller must run it.
	Tree *storage.Mirror
	// Claims let one member at a time start a tick. Node returns the current id of
	// this member.
	Claims storage.Claims
	Node   func() string

	Settings func() Settings // read at each tick; nil: the defaults
	// Receipts returns the state of a message; see storage.Receipts.
	Receipts interface {
		Receipt(ctx context.Context, id claybot.MessageID) (storage.Receipt, error)
	}
	// Place returns the route of the most recent foreground agent, and when its
	// user wrote last; storage.ErrNotFound if no user has written yet. nil: no
	// user ever does.
	Place func(ctx context.Context) (claybot.Route, claybot.Time, error)
	// Notice notifies a user, once for each key; storage.ErrNotFound if there is no
	// user to notify. nil: it is only logged.
	Notice func(ctx context.Context, key string, say func(texts.Voice) string) error
	Now    func() time.Time // the wall clock, for tests of one that jumps; nil: time.Now
	Log    *slog.Logger     // nil: no log
	Gate   connectors.Gate  // while a setting switches the heartbeat off
}

// Settings may change while the heartbeat runs.
type Settings struct {
	Every         time.Duration  // between ticks of a task without its own; 0: 30 min; at least 5 min
	ActiveHours   string         // of tasks without their own: "08:00-22:00", may pass midnight; empty: always
	Zone          *time.Location // of active hours; nil: UTC
	MaxUnattended int            // ticks without a message of a user before it pauses; 0: 48
	Route         string         // "connector/channel" where it answers; empty: what Place says
	Gates         bool           // gate commands may run on this machine

	hours hours // parsed ActiveHours
}

// A Heartbeat wakes its agent at each tick. It is safe for concurrent use.
type Heartbeat struct {
	cfg   Config
	sched *schedule.Scheduler

	// Guarded by the lock of the files; the lock of the scheduler guards tasks and
	// ended too.
	memory   *memory
	files    map[string]file // by name
	tasks    []*task         // in their order
	ended    []claybot.Run   // not concluded yet
	tick     schedule.Job
	unsure   bool      // whether the pending message was posted
	asked    time.Time // when the receipt of the pending message was read
	notified time.Time // last attempt to send the notice of the pause
	badHours string    // invalid ActiveHours that were logged
	badRoute string
}

var (
	_ connectors.Connector = (*Heartbeat)(nil)
	_ connectors.Follower  = (*Heartbeat)(nil)
)

// New returns a Heartbeat. It does nothing before Run.
func New(cfg Config) *Heartbeat {
	s := schedule.New(schedule.Config{Name: Name, What: Name, Claims: cfg.Claims, Node: cfg.Node, Now: cfg.Now, Log: cfg.Log})
	h := &Heartbeat{cfg: cfg, sched: s, memory: &memory{tree: cfg.Tree, sched: s}}
	h.tick.Do = h.do
	return h
}

// Name implements connectors.Connector.
func (h *Heartbeat) Name() string { return Name }

// Health implements connectors.Connector.
func (h *Heartbeat) Health() connectors.Health { return h.cfg.Gate.Health(h.sched.Health()) }

// Run implements connectors.Connector. It may be called again after it has
// returned.
func (h *Heartbeat) Run(ctx context.Context, handler connectors.Handler) error {
	return h.cfg.Gate.Run(ctx, func(ctx context.Context) error { return h.attempt(ctx, handler) })
}

func (h *Heartbeat) attempt(ctx context.Context, handler connectors.Handler) error {
	err := h.sched.Run(ctx, handler, loop{h})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	// Record what ended while the loop was stopping, so that the next start need not look
	// it up.
	if err := h.sched.Locked(ctx, func() error { return h.settle(ctx) }); err != nil {
		h.sched.Log.Warn("failed to save heartbeat state", "err", err)
	}
	return err
}

// Ended implements connectors.Follower.
func (h *Heartbeat) Ended(_ claybot.Descriptor, run claybot.Run) {
	ours := func(id claybot.MessageID) bool { return strings.HasPrefix(string(id), idPrefix) }
	if !slices.ContainsFunc(run.Messages, ours) {
		return
	}
	h.sched.Mu.Lock()
	h.ended = append(h.ended, run)
	h.sched.Mu.Unlock()
	h.sched.Kick()
}

// settings returns the current settings with defaults. The caller holds the lock of
// the files.
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
		s.MaxUnattended = usualUnattended
	}
	if text := strings.TrimSpace(s.ActiveHours); text != "" {
		var err error
		if s.hours, err = parseHours(text); err != nil && h.badHours != text {
			h.badHours = text
			h.sched.Log.Warn("invalid heartbeat active hours; ticking at all hours", "err", err)
		}
	}
	return s
}

// A loop implements schedule.Work.
type loop struct{ h *Heartbeat }

var _ schedule.Work = loop{}

// Open implements schedule.Work: it reads the state.
func (l loop) Open(ctx context.Context) error {
	h := l.h
	h.sched.Mu.Lock()
	h.files, h.tasks, h.ended = nil, nil, nil
	h.tick.Busy = false
	h.tick.Retry()
	h.sched.Mu.Unlock()
	h.unsure, h.asked, h.notified = true, time.Time{}, time.Time{}
	return h.memory.read(ctx)
}

// Step implements schedule.Work.
func (l loop) Step(ctx context.Context, look bool) error {
	h := l.h
	return h.sched.Locked(ctx, func() error {
		var listing []storage.TreeFile // of one look, for the state and the tasks
		if look {
			var err error
			if listing, err = h.cfg.Tree.Entries(ctx, folder); err != nil {
				return fmt.Errorf("read the state of the heartbeat: %w", err)
			}
			if err := h.memory.update(ctx, listing); err != nil {
				return err
			}
		}
		if err := h.settle(ctx); err != nil {
			return err
		}
		if err := h.follow(ctx); err != nil {
			return err
		}
		if err := h.notify(ctx); err != nil {
			return err
		}
		if look {
			if err := h.reread(ctx, listing); err != nil {
				return err
			}
		}
		return h.plan(ctx)
	})
}

// plan schedules the next tick; none while a message is pending. The caller holds
// the lock of the files.
func (h *Heartbeat) plan(ctx context.Context) error {
	s, now := h.settings(), h.sched.Now()
	err := h.memory.edit(ctx, func(m *state) { m.turnBack(claybot.At(now)) })
	h.sched.Mu.Lock()
	defer h.sched.Mu.Unlock()
	var first time.Time
	for _, t := range h.tasks {
		if at := h.memory.state.next(t, s, now); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() || first.After(now) {
		h.sched.Recovered()
	}
	if h.memory.state.Pending != nil {
		first = time.Time{}
	}
	h.sched.Plan(&h.tick, first)
	return err
}
