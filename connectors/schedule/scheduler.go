package schedule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

const (
	usualPoll      = 2 * time.Second
	atOnce         = 32 // concurrent jobs
	maxGates       = 8  // concurrent gate commands
	lanes          = 64 // keep posts to one agent in order
	releaseTime    = 5 * time.Second
	firstPause     = time.Second // after a job that failed, doubling
	mostPause      = time.Minute
	failureExpires = mostPause + 30*time.Second // after that its task is gone or skipped
)

// NoteForbidden tells an agent that claybot did not run the gate command.
const NoteForbidden = "Gate commands may not run on this machine, so claybot did not check whether there is anything to do."

// Config configures a Scheduler.
type Config struct {
	Name   string // of the connector
	What   string // name of one of its files in texts
	Claims storage.Claims
	Node   func() string    // id of this cluster member
	Poll   time.Duration    // between two looks at the files; 0: 2 s
	Now    func() time.Time // the wall clock; nil: time.Now
	Log    *slog.Logger     // nil: no log
}

// Work is the part of a connector that a Scheduler calls. Both methods are called by
// one goroutine.
type Work interface {
	// Open reads the durable state. The caller holds the lock of the files.
	Open(ctx context.Context) error
	// Step reads changed files if look is set, and plans jobs.
	Step(ctx context.Context, look bool) error
}

// A Scheduler runs the loop of a connector: it looks at files, does jobs when they are
// due, and reports health. It is safe for concurrent use.
type Scheduler struct {
	// Mu guards the jobs and the connector's tasks in memory. It is held only
	// briefly.
	Mu    sync.Mutex
	Log   *slog.Logger
	Pulse connectors.Pulse

	cfg   Config
	kick  chan struct{}        // holds one
	edits chan struct{}        // held while files are read or written
	gates chan struct{}        // one for each gate command that runs
	slots chan struct{}        // one for each running job
	order [lanes]chan struct{} // each held while a message is posted

	handler  connectors.Handler
	live     *running // nil: Run is not running
	queue    queue
	wake     time.Time // until when the loop sleeps
	failed   failure
	problems []connectors.Problem
}

// running is the state of one Run.
type running struct {
	ctx  context.Context
	work sync.WaitGroup
	idle bool // no job starts
}

// A failure is the error of the last failed job.
type failure struct {
	text string
	at   time.Time
}

// New returns a Scheduler. It does nothing before Run.
func New(cfg Config) *Scheduler {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Poll == 0 {
		cfg.Poll = usualPoll
	}
	s := &Scheduler{
		cfg: cfg, Log: cfg.Log.With("connector", cfg.Name), kick: make(chan struct{}, 1), edits: make(chan struct{}, 1),
		gates: make(chan struct{}, maxGates), slots: make(chan struct{}, atOnce),
	}
	for i := range s.order {
		s.order[i] = make(chan struct{}, 1)
	}
	return s
}

// Now returns the wall-clock time, without a monotonic reading.
func (s *Scheduler) Now() time.Time { return s.cfg.Now().Round(0) }

// Health returns the health of the connector. It does not fail because of files with
// problems, since the other tasks continue.
func (s *Scheduler) Health() connectors.Health {
	h := s.Pulse.Health()
	files := make(map[string]bool)
	for _, p := range s.Problems() {
		files[p.File] = true
	}
	switch n := len(files); {
	case h.State != connectors.StateLive || n == 0:
	case n == 1:
		h.Err = fmt.Sprintf("1 %s file has a problem; claybot %s shows it", s.cfg.What, s.cfg.Name)
	default:
		h.Err = fmt.Sprintf("%d %s files have problems; claybot %s shows them", n, s.cfg.What, s.cfg.Name)
	}
	return h
}

// Problems returns the problems of files from SetProblems.
func (s *Scheduler) Problems() []connectors.Problem {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return slices.Clone(s.problems)
}

// SetProblems replaces the problems of files and logs new ones.
func (s *Scheduler) SetProblems(all []connectors.Problem) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, p := range all {
		if !slices.Contains(s.problems, p) {
			s.Log.Warn("a task file has a problem", "file", p.File, "line", p.Line, "problem", p.Text)
		}
	}
	s.problems = all
}

// Run runs the jobs of w until ctx is done, and returns its cause once all
// goroutines have ended. It may then be called again.
func (s *Scheduler) Run(ctx context.Context, h connectors.Handler, w Work) error {
	return s.run(ctx, h, w, false)
}

// Idle is Run without jobs: it reads the files of w and allows to edit them. It starts nothing.
func (s *Scheduler) Idle(ctx context.Context, w Work) error { return s.run(ctx, nil, w, true) }

func (s *Scheduler) run(ctx context.Context, h connectors.Handler, w Work, idle bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.Mu.Lock()
	s.handler, s.queue, s.failed, s.problems = h, nil, failure{}, nil
	s.Mu.Unlock()
	r := &running{ctx: ctx, idle: idle}
	if err := s.Locked(ctx, func() error { return w.Open(ctx) }); err != nil {
		if context.Cause(ctx) == nil || !errors.Is(err, context.Cause(ctx)) {
			s.Pulse.Fail("the tasks cannot be read: " + storage.Plain(err))
		}
		return fmt.Errorf("start %s: %w", s.cfg.Name, err)
	}
	s.setLive(r)
	s.Pulse.OK()
	err := s.loop(r, w)
	s.setLive(nil)
	cancel()
	r.work.Wait()
	return err
}

func (s *Scheduler) setLive(r *running) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.live = r
}

func (s *Scheduler) loop(r *running, w Work) error {
	var looked time.Time // by the monotonic clock, so that a clock change does not delay looks
	logged := ""
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case <-timer.C:
		case <-s.kick:
		}
		look := looked.IsZero() || time.Since(looked) >= s.cfg.Poll
		if look {
			looked = time.Now()
		}
		if err := w.Step(r.ctx, look); look || err != nil {
			logged = s.report(r.ctx, err, logged)
		}
		if !r.idle {
			if err := s.handOut(r); err != nil {
				return err
			}
		}
		timer.Reset(s.pause(looked, r.idle))
	}
}

// report updates the health after a step. It logs an error that differs from the
// last one, and returns it.
func (s *Scheduler) report(ctx context.Context, err error, logged string) string {
	s.Mu.Lock()
	failed := s.failed
	s.Mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case err != nil:
		text := storage.Plain(err)
		s.Pulse.Fail("the tasks cannot be read: " + text)
		if text != logged {
			s.Log.Warn("failed to read tasks", "err", err)
		}
		return text
	case failed.text != "" && time.Since(failed.at) < failureExpires:
		s.Pulse.OK() // the look completed: a task alone does not make the member unready
		s.Pulse.Fail("a task cannot be started: " + failed.text)
	default:
		s.Pulse.OK()
	}
	return ""
}

// handOut starts the due jobs.
func (s *Scheduler) handOut(r *running) error {
	for now := s.Now(); ; {
		s.Mu.Lock()
		j := s.queue.pop(now)
		s.Mu.Unlock()
		if j == nil {
			return nil
		}
		select {
		case s.slots <- struct{}{}:
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
		r.work.Go(func() {
			defer func() { <-s.slots }()
			j.Do(r.ctx)
		})
	}
}

// pause returns how long the loop may sleep, and records until when; an idle one sleeps until the next
// look.
func (s *Scheduler) pause(looked time.Time, idle bool) time.Duration {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	now := s.Now()
	wait := time.Until(looked.Add(s.cfg.Poll))
	if len(s.queue) > 0 && !idle {
		wait = min(wait, s.queue[0].due.Sub(now))
	}
	wait = max(wait, 0)
	s.wake = now.Add(wait)
	return wait
}

// Plan sets when a job is due; the zero time for never. A job that is running or
// paused after a failure is not started before that ends. The caller holds Mu.
func (s *Scheduler) Plan(j *Job, due time.Time) {
	if wait := time.Until(j.again); !due.IsZero() && wait > 0 {
		due = Later(due, s.Now().Add(wait))
	}
	j.due = due
	s.queue.put(j)
	if j.at > 0 && due.Before(s.wake) {
		s.Kick()
	}
}

// Done records the end of a job; the caller plans it again. An error means that the
// job had no effect, and pauses it. The caller holds Mu.
func (s *Scheduler) Done(ctx context.Context, j *Job, err error, attrs ...any) {
	j.Busy = false
	switch {
	case err == nil:
		s.failed = failure{}
		j.Retry()
	case ctx.Err() == nil:
		s.Log.Warn("failed to start task", append(attrs, "err", err)...)
		s.failed = failure{storage.Plain(err), time.Now()}
		j.Pause(min(firstPause<<min(j.failures, 10), mostPause))
		j.failures++
	}
}

// Recovered clears the last failure, because the failed work is no longer needed.
// The caller holds Mu.
func (s *Scheduler) Recovered() { s.failed = failure{} }

// Kick wakes the loop.
func (s *Scheduler) Kick() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// Enter keeps Run or Idle from returning until leave is called. run is the context of Run.
// It returns an error if neither is running.
func (s *Scheduler) Enter() (run context.Context, leave func(), err error) { return s.enter(false) }

// EnterJob is Enter for what starts a job: it returns an error if Run is not running.
func (s *Scheduler) EnterJob() (run context.Context, leave func(), err error) { return s.enter(true) }

func (s *Scheduler) enter(job bool) (run context.Context, leave func(), err error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.live == nil || job && s.live.idle {
		return nil, nil, fmt.Errorf("%s %w", s.cfg.Name, connectors.ErrNotRunning)
	}
	s.live.work.Add(1)
	return s.live.ctx, s.live.work.Done, nil
}

// Locked calls do with the lock of the files, which keeps files and tasks in
// memory consistent. The error is the cause of ctx, or that of do.
func (s *Scheduler) Locked(ctx context.Context, do func() error) error {
	select {
	case s.edits <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.edits }()
	return do()
}

// Edit is like Locked, but fails while neither Run nor Idle is running; do gets the context
// of Run.
func (s *Scheduler) Edit(ctx context.Context, do func(run context.Context) error) error {
	run, leave, err := s.Enter()
	if err != nil {
		return err
	}
	defer leave()
	return s.Locked(ctx, func() error { return do(run) })
}

// Post posts a message. Messages to one agent are posted in sequence.
func (s *Scheduler) Post(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) error {
	s.Mu.Lock()
	handler := s.handler
	s.Mu.Unlock()
	h := uint32(2166136261) // FNV-1a
	for _, part := range [...]string{d.UID, d.Connector, d.ChannelID, d.UserID} {
		for i := range len(part) {
			h = (h ^ uint32(part[i])) * 16777619
		}
	}
	lane := s.order[h%lanes]
	select {
	case lane <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-lane }()
	return handler.Post(ctx, d, m)
}

// Claim acquires the claim with a name for this member; storage.ErrHeld if
// another one has it.
func (s *Scheduler) Claim(ctx context.Context, name string) (release func(), err error) {
	claim, err := s.cfg.Claims.Claim(ctx, s.cfg.Node(), name)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", name, err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		if err := s.cfg.Claims.Yield(ctx, claim); err != nil {
			s.Log.Warn("failed to release a claim; it expires with the lease", "claim", name, "err", err)
		}
	}, nil
}

// Elsewhere reports whether another member has a claim.
func (s *Scheduler) Elsewhere(ctx context.Context, name string) (bool, error) {
	holder, err := s.cfg.Claims.Holder(ctx, name)
	return holder != "" && holder != s.cfg.Node(), err
}

// Ask runs a gate command, at most maxGates at a time. The error is the cause of ctx.
func (s *Scheduler) Ask(ctx context.Context, g Gate) (Verdict, error) {
	select {
	case s.gates <- struct{}{}:
		defer func() { <-s.gates }()
		return g.Ask(ctx)
	case <-ctx.Done():
		return Verdict{}, context.Cause(ctx)
	}
}

// Reason returns the text of an error of a file.
func Reason(err error) string {
	var p *fs.PathError
	switch {
	case errors.Is(err, storage.ErrStale):
		return "another change is in progress; try again"
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	case errors.Is(err, fs.ErrPermission):
		return "it must not be read"
	case errors.As(err, &p):
		return p.Err.Error()
	}
	return storage.Plain(err)
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
