package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

const (
	// statusEvery is the minimum time between two changes of a status.
	statusEvery = time.Second
	// statusClear is how long the attempt to clear a status may take, and statusWait how
	// long the end of a run waits for it, so that a crash leaves none.
	statusClear = 5 * time.Second
	statusWait  = 500 * time.Millisecond
	statusLong  = time.Hour // nothing changes by itself
)

// A statusLine shows in words what a run does, where the platform has a place for that
// beside messages. It works beside the run, never delays its steps, and makes its calls one
// after another. It shows nothing while unfinished text grows, and is cleared at the end of
// each pass, whether this pass or an earlier one, of a process that was killed, had set it.
type statusLine struct {
	job     *job
	to      connectors.Statuser
	route   claybot.Route
	message string // the platform id of the message that is answered
	meter   Meter

	queued <-chan struct{} // closed when nothing else changes the status; nil: nothing does
	kick   chan struct{}
	done   chan struct{} // closed when the status is cleared

	mu    sync.Mutex
	tool  string    // that is running; empty for the model
	news  time.Time // when the reader last saw something new, or the run began
	grows bool      // unfinished text is visible
	none  bool      // the platform shows no status here

	// The loop's own.
	said  string        // what was shown last
	tried time.Time     // when the last call ended
	pause time.Duration // from then until the next
	until time.Time     // when it must be shown again
	maybe bool          // a status may be visible
}

// newStatusLine starts a status line, which ends with ctx. queued is closed when nothing else
// changes the status that says that the message waited; nil if none does.
func newStatusLine(ctx context.Context, j *job, to connectors.Statuser, route claybot.Route, meter Meter, queued <-chan struct{}) *statusLine {
	newest := j.work().Newest()
	s := &statusLine{
		job: j, to: to, route: route, message: newest.Context.MessageID, meter: meter, queued: queued,
		kick: make(chan struct{}, 1), done: make(chan struct{}), news: time.Now(),
		// An earlier pass may have set it, or the wait for this one, before a crash or on another member.
		maybe: queued != nil || time.Since(j.run.Started.Time()) > typingAfter || newest.Type == claybot.MessageUser && time.Since(newest.At.Time()) > typingAfter,
	}
	go s.loop(ctx)
	return s
}

// works records what the run waits for: a tool, or the model if tool is empty.
func (s *statusLine) works(tool string) {
	s.mu.Lock()
	s.tool = tool
	s.mu.Unlock()
	s.wake()
}

// grew records that the reader sees new unfinished text.
func (s *statusLine) grew() {
	s.mu.Lock()
	first := !s.grows
	s.news, s.grows = time.Now(), true
	s.mu.Unlock()
	if first {
		s.wake()
	}
}

func (s *statusLine) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// absent reports whether the platform shows no status here.
func (s *statusLine) absent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.none
}

// settle waits, for a short time, until the status is cleared. Call it only after the end of
// the line's context.
func (s *statusLine) settle(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.done:
	case <-timer.C:
	}
}

func (s *statusLine) loop(ctx context.Context) {
	defer close(s.done)
	defer func() { // the run continues without a status
		if x := recover(); x != nil {
			s.meter.Panicked("status")
			s.job.log.Error("status line panicked", "panic", fmt.Sprint(x), "stack", string(debug.Stack()))
		}
	}()
	if s.queued != nil {
		<-s.queued // soon: at most one call is on its way
	}
	for claybot.Sleep(ctx, typingAfter); ctx.Err() == nil; {
		timer := time.NewTimer(s.show(ctx))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-s.kick:
		}
		timer.Stop()
	}
	s.clear(ctx)
}

// wanted returns the present status, and how long it may stay true by itself; there is none
// while unfinished text grows.
func (s *statusLine) wanted() (status string, stays time.Duration) {
	v := s.job.voice()
	s.mu.Lock()
	defer s.mu.Unlock()
	quiet := time.Since(s.news)
	switch {
	case quiet >= signAfter:
		return v.WorkingStatus(s.tool), statusLong
	case s.grows:
		return "", signAfter - quiet
	}
	return v.In(texts.ThinkingStatus), signAfter - quiet
}

// show shows the present status, if it is not shown, and returns when to look again.
func (s *statusLine) show(ctx context.Context) (next time.Duration) {
	want, next := s.wanted()
	switch {
	case s.absent():
		return statusLong
	case want == "" && !s.maybe:
		return next
	case want == s.said && (want == "" || time.Now().Before(s.until)):
		return min(next, max(time.Until(s.until), 0))
	case time.Since(s.tried) < s.pause:
		return s.pause - time.Since(s.tried)
	}
	lasts, err := s.set(ctx, want, typingWait)
	s.tried, s.pause = time.Now(), statusEvery
	var retry *connectors.RetryError
	switch {
	case errors.As(err, &retry):
		s.pause = max(retry.After, statusEvery)
		return s.pause
	case err != nil:
		s.job.log.Debug("failed to show a status", "err", err)
		s.pause = signAfter
		return s.pause
	case lasts <= 0:
		s.mu.Lock()
		s.none = true
		s.mu.Unlock()
		s.maybe = false
		return statusLong
	}
	s.said, s.until = want, time.Now().Add(lasts)
	return min(next, lasts)
}

// set makes one call, which is completed even if the pass ends meanwhile: no later call may
// overtake it.
func (s *statusLine) set(ctx context.Context, status string, within time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	s.maybe = s.maybe || status != ""
	lasts, err := s.to.Status(ctx, s.route, s.message, status)
	if err == nil && status == "" {
		s.maybe = false
	}
	return lasts, err
}

// clear clears a status that may be visible, with one call. If the platform asks to wait, its own
// time limit does it: a later call would hold up the agent, and clear the status of its next run.
func (s *statusLine) clear(ctx context.Context) {
	if !s.maybe {
		return
	}
	if _, err := s.set(ctx, "", statusClear); err != nil {
		s.job.log.Debug("failed to clear a status", "err", err)
	}
}
