package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

const (
	idPrefix     = "heartbeat/"
	manualPrefix = idPrefix + "manual/"
	// tickClaim is the claim of the member that runs gates and starts a tick.
	tickClaim = "heartbeat/tick"
	// codeRefused is the error code of a run whose provider refused the account
	// or the request.
	codeRefused = "model_refused"
	gateTime    = time.Minute
	tickAgain   = 2 * time.Second  // while another member starts a tick
	askEvery    = time.Minute      // between two reads of the receipt of the pending message
	wordEvery   = 10 * time.Second // between two checks for a new user message, while paused
)

// do runs one tick and plans the next one.
func (h *Heartbeat) do(ctx context.Context) {
	pause, err := h.start(ctx)
	h.sched.Mu.Lock()
	h.sched.Done(ctx, &h.tick, err)
	if err == nil && pause > 0 {
		h.tick.Pause(pause)
	}
	h.sched.Mu.Unlock()
	h.sched.Kick()
}

// start determines the route, runs the gates and posts the due tasks. It returns
// the minimum wait before the next tick.
func (h *Heartbeat) start(ctx context.Context) (pause time.Duration, err error) {
	var s Settings
	var route *claybot.Route
	var pauses bool
	err = h.sched.Locked(ctx, func() (err error) {
		s = h.settings()
		route, pauses, err = h.attend(ctx, s)
		return err
	})
	if err != nil || pauses {
		return wordEvery, err
	}
	release, err := h.sched.Claim(ctx, tickClaim)
	if errors.Is(err, storage.ErrHeld) {
		return tickAgain, nil
	}
	if err != nil {
		return 0, err
	}
	defer release()
	due, err := h.due(ctx, s)
	if err != nil || len(due) == 0 {
		return tickAgain, err
	}
	verdicts, err := askGates(ctx, h.sched, h.cfg.Dir, due, s)
	if err != nil {
		return 0, err
	}
	return 0, h.sched.Locked(ctx, func() error {
		items, err := h.judge(ctx, due, verdicts)
		if err == nil && len(items) > 0 && h.memory.state.Pending == nil {
			_, err = h.send(ctx, "", items, route)
		}
		return err
	})
}

// attend determines the route, and whether the heartbeat pauses because no user
// wrote for too long. The caller holds the lock of the files.
func (h *Heartbeat) attend(ctx context.Context, s Settings) (route *claybot.Route, pauses bool, err error) {
	route, word, err := h.place(ctx, s)
	if err != nil {
		return nil, false, err
	}
	resumed := false
	err = h.change(ctx, func(m *state) {
		wrote := word != m.Word
		resumed = m.Paused != nil && wrote && word > m.Paused.At
		if m.Paused != nil && !resumed {
			return
		}
		m.Paused = nil
		if wrote {
			m.Word, m.Unattended = word, 0
		}
		if m.Unattended >= s.MaxUnattended {
			m.Paused = &paused{At: claybot.At(h.sched.Now()), Why: "no user wrote during " + count(m.Unattended, "tick"), Ticks: m.Unattended}
		}
	})
	if err != nil {
		return nil, false, err
	}
	if resumed {
		h.sched.Log.Info("heartbeat resumed")
	}
	return route, h.memory.state.Paused != nil, h.notify(ctx)
}

// change edits the state and logs a new pause.
func (h *Heartbeat) change(ctx context.Context, change func(*state)) error {
	begins := false
	err := h.memory.edit(ctx, func(m *state) {
		before := m.Paused
		change(m)
		begins = m.Paused != nil && before != m.Paused
	})
	if err == nil && begins {
		h.notified = time.Time{}
		h.sched.Log.Warn("heartbeat paused until the next message of a user", "why", h.memory.state.Paused.Why)
	}
	return err
}

// place returns the route, nil for none, and when a user wrote last.
func (h *Heartbeat) place(ctx context.Context, s Settings) (*claybot.Route, claybot.Time, error) {
	var route *claybot.Route
	var word claybot.Time
	if h.cfg.Place != nil {
		r, at, err := h.cfg.Place(ctx)
		switch {
		case err == nil:
			route, word = &r, at
		case !errors.Is(err, storage.ErrNotFound):
			return nil, 0, fmt.Errorf("find out who wrote last: %w", err)
		}
	}
	if text := strings.TrimSpace(s.Route); text != "" {
		connector, channel, ok := strings.Cut(text, "/")
		if ok && connector != "" && channel != "" {
			return &claybot.Route{Connector: connector, ChannelID: channel}, word, nil
		}
		if h.badRoute != text {
			h.badRoute = text
			h.sched.Log.Warn("invalid heartbeat route, want connector/channel; using the most recent conversation", "route", text)
		}
	}
	return route, word, nil
}

// notify sends the notice of a pause to a user, once. The caller holds the lock of
// the files and has saved the pause: its time is the key of the notice, so
// concurrent members send one.
func (h *Heartbeat) notify(ctx context.Context) error {
	p := h.memory.state.Paused
	if p == nil || p.Notified || !h.notified.IsZero() && time.Since(h.notified) < wordEvery {
		return nil
	}
	h.notified = time.Now()
	if h.cfg.Notice != nil {
		err := h.cfg.Notice(ctx, idPrefix+"rest/"+strconv.FormatInt(int64(p.At), 10), func(v texts.Voice) string { return v.HeartbeatPaused(p.Ticks) })
		if err != nil && !errors.Is(err, storage.ErrNotFound) { // without a user, the log has to suffice
			if ctx.Err() == nil {
				h.sched.Log.Warn("failed to notify the user that the heartbeat is paused", "err", err)
			}
			return nil
		}
	}
	return h.memory.edit(ctx, func(m *state) {
		if m.Paused != nil && m.Paused.At == p.At {
			m.Paused.Notified = true
		}
	})
}

// due returns the due tasks; none if another member has just started a tick.
func (h *Heartbeat) due(ctx context.Context, s Settings) (due []*task, err error) {
	if err := h.sched.Locked(ctx, func() error { return h.memory.pull(ctx) }); err != nil {
		return nil, err
	}
	h.sched.Mu.Lock()
	defer h.sched.Mu.Unlock()
	m, now := &h.memory.state, h.sched.Now()
	for _, t := range h.tasks {
		if at := m.next(t, s, now); m.Pending == nil && m.Paused == nil && !at.IsZero() && !at.After(now) {
			due = append(due, t)
		}
	}
	return due, nil
}

// askGates runs the gates of tasks concurrently and returns one verdict for each task.
// The error is that of ctx.
func askGates(ctx context.Context, sched *schedule.Scheduler, dir string, tasks []*task, s Settings) ([]schedule.Verdict, error) {
	verdicts := make([]schedule.Verdict, len(tasks))
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the folder of the heartbeat: %w", err)
	}
	var work sync.WaitGroup
	defer work.Wait()
	for i, t := range tasks {
		if t.gate == "" {
			continue
		}
		if !s.Gates {
			verdicts[i].Note = schedule.NoteForbidden
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		work.Go(func() {
			g := schedule.Gate{Command: t.gate, Timeout: gateTime, Dir: dir, Task: t.id, Zone: s.Zone}
			verdicts[i], _ = sched.Ask(ctx, g) // its error is that of ctx, which is checked below
		})
	}
	work.Wait()
	return verdicts, context.Cause(ctx)
}

// judge records the verdicts and drops tasks that a gate stopped, or that have changed,
// which are due again at once. The caller holds the lock of the files.
func (h *Heartbeat) judge(ctx context.Context, due []*task, verdicts []schedule.Verdict) ([]item, error) {
	now := claybot.At(h.sched.Now())
	var items []item
	var stopped []string
	for i, t := range due {
		switch {
		case !slices.ContainsFunc(h.tasks, func(x *task) bool { return x.id == t.id && x.text == t.text }):
		case verdicts[i].Stop:
			stopped = append(stopped, t.id)
			h.sched.Log.Debug("heartbeat task skipped by its gate", "task", t.id)
		default:
			items = append(items, item{t, verdicts[i]})
		}
	}
	return items, h.memory.edit(ctx, func(m *state) {
		for _, id := range stopped {
			p := m.Tasks[id]
			p.Asked = now
			m.Tasks[id] = p
		}
	})
}

// send posts one message for all items that fit; the others are due again after its run.
// It returns how many fit, 0 if another member was faster. key is that of a manual tick.
// The caller holds the lock of the files, and no message is pending.
func (h *Heartbeat) send(ctx context.Context, key string, items []item, route *claybot.Route) (int, error) {
	items, text := compose(items)
	now := claybot.At(h.sched.Now())
	ids := make([]string, len(items))
	for i, x := range items {
		ids[i] = x.task.id
	}
	var mine *pending
	err := h.memory.edit(ctx, func(m *state) {
		mine = nil
		if m.Pending != nil {
			return
		}
		mine = &pending{ID: claybot.MessageID(manualPrefix + key), At: now, Tasks: ids}
		if key == "" {
			m.Tick = max(now, m.Tick+1) // unique even after the clock was set back
			mine.ID = claybot.MessageID(idPrefix + strconv.FormatInt(int64(m.Tick), 10))
		}
		m.Pending = mine
	})
	if err != nil || mine == nil {
		return 0, err
	}
	h.asked = time.Now()
	m := claybot.AgentMessage{
		ID: mine.ID, Type: claybot.MessageSystem, Kind: claybot.KindHeartbeat, From: claybot.Sender{Name: Name},
		Text: text, At: now, Route: route,
	}
	if err := h.sched.Post(ctx, claybot.Descriptor{Type: claybot.AgentHeartbeat}, m); err != nil {
		h.unsure = true // the loop checks
		return 0, fmt.Errorf("post %s: %w", mine.ID, err)
	}
	h.sched.Log.Info("heartbeat tick", "message", mine.ID, "tasks", len(items))
	return len(items), nil
}

// settle records the runs that have ended, and retries those that cannot be saved.
// The caller holds the lock of the files.
func (h *Heartbeat) settle(ctx context.Context) error {
	h.sched.Mu.Lock()
	ended := slices.Clone(h.ended)
	h.sched.Mu.Unlock()
	for _, run := range ended {
		err := h.conclude(ctx, run, func(p *pending) bool { return slices.Contains(run.Messages, p.ID) })
		if err != nil {
			return err
		}
	}
	h.sched.Mu.Lock()
	defer h.sched.Mu.Unlock()
	h.ended = h.ended[len(ended):]
	return nil
}

// conclude records the end of the pending message if is reports that run belongs to
// it.
func (h *Heartbeat) conclude(ctx context.Context, run claybot.Run, is func(*pending) bool) error {
	now := claybot.At(h.sched.Now())
	return h.change(ctx, func(m *state) {
		if m.Pending != nil && is(m.Pending) {
			m.conclude(run, h.tasks, now)
		}
	})
}

// follow reads the receipt of the pending message, in case a notification was lost
// in a crash or the agent was deleted. The caller holds the lock of the files.
func (h *Heartbeat) follow(ctx context.Context) error {
	p := h.memory.state.Pending
	if p == nil {
		h.unsure = false
	}
	if p == nil || !h.unsure && time.Since(h.asked) < askEvery {
		return nil
	}
	// Check the claim first: a member that has just posted the message may release it
	// afterwards.
	claimed, unknown := h.sched.Elsewhere(ctx, tickClaim)
	rec, err := h.cfg.Receipts.Receipt(ctx, p.ID)
	if unknown != nil && errors.Is(err, storage.ErrNotFound) {
		err = unknown
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	h.asked, h.unsure = time.Now(), false
	same := func(q *pending) bool { return q.ID == p.ID }
	switch {
	case errors.Is(err, storage.ErrNotFound) && claimed: // and is about to be posted
	case errors.Is(err, storage.ErrNotFound): // crashed before the post
		return h.memory.edit(ctx, func(m *state) {
			if m.Pending != nil && same(m.Pending) {
				m.Pending = nil
			}
		})
	case errors.Is(err, storage.ErrDamaged), err == nil && rec.Skipped != "": // no run will end
		return h.conclude(ctx, claybot.Run{}, same)
	case err != nil:
		h.sched.Log.Warn("failed to look up the outcome of a tick", "message", p.ID, "err", err)
	case rec.Run != nil && (rec.Run.State.Ended() || rec.Run.State == ""): // a run that ended long ago is pruned
		return h.conclude(ctx, *rec.Run, same)
	}
	return nil
}
