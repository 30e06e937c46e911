package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
)

const (
	idPrefix     = "heartbeat/"
	manualPrefix = idPrefix + "manual/"
	// codeRefused is the code of a run whose model refused the account or the
	// request.
	codeRefused = "model_refused"
)

// tick does all that one tick is, and gives way to the next one.
func (h *Heartbeat) tick(r *running, due []*task, s Settings) {
	pause, err := h.beat(r, due, s)
	h.mu.Lock()
	h.ticking, h.again = false, time.Now().Add(pause)
	switch {
	case r.ctx.Err() != nil:
	case err != nil:
		h.again = time.Now().Add(min(firstPause<<min(h.failures, 10), mostPause))
		h.failures++
		h.failing = storage.Plain(err)
		h.base.Log.Warn("the heartbeat cannot beat", "err", err)
	default:
		h.failing, h.failures = "", 0
	}
	h.mu.Unlock()
	h.base.Kick()
}

// beat finds out who is there, asks the gates and posts what is due. It returns
// how long the next tick has to wait at least.
func (h *Heartbeat) beat(r *running, due []*task, s Settings) (pause time.Duration, err error) {
	var route *claybot.Route
	var rests bool
	err = h.base.Locked(r.ctx, func() (err error) {
		route, rests, err = h.attend(r.ctx, s)
		return err
	})
	if err != nil || rests {
		return wordEvery, err
	}
	yield, err := h.base.Claim(r.ctx, tickClaim)
	if errors.Is(err, storage.ErrHeld) {
		return gateAgain, nil
	}
	if err != nil {
		return 0, err
	}
	defer yield()
	if due, err = h.stillDue(r.ctx, due, s); err != nil || len(due) == 0 {
		return gateAgain, err
	}
	verdicts, err := h.askGates(r.ctx, due, s)
	if err != nil {
		return 0, err
	}
	return 0, h.base.Locked(r.ctx, func() error {
		items := h.judge(due, verdicts)
		if h.busy() || len(items) == 0 {
			return h.save(r.ctx)
		}
		_, err := h.send(r, "", items, route)
		return err
	})
}

// busy reports whether a message is under way.
func (h *Heartbeat) busy() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mem.Pending != nil
}

// attend finds out where to answer, and whether the heartbeat rests: nobody
// wrote for too long. What it finds is saved, and a rest is told. It is called with
// edits held.
func (h *Heartbeat) attend(ctx context.Context, s Settings) (route *claybot.Route, rests bool, err error) {
	route, word, err := h.place(ctx, s)
	if err != nil {
		return nil, false, err
	}
	now := claybot.At(h.now())
	h.mu.Lock()
	m := &h.mem
	wrote := word != m.Word
	if m.Rest != nil && !(wrote && word > m.Rest.At) {
		h.mu.Unlock()
		return nil, true, nil
	}
	if m.Rest != nil {
		h.base.Log.Info("heartbeat resumed")
		m.Rest, h.unsaved = nil, true
	}
	if wrote {
		m.Word, m.Beats, h.unsaved = word, 0, true
	}
	if m.Beats >= s.MaxUnattended {
		h.relax(now, "nobody wrote during "+count(m.Beats, "beat"))
	}
	h.mu.Unlock()
	if err := h.save(ctx); err != nil {
		return nil, false, err
	}
	h.mu.Lock()
	rests = m.Rest != nil // of this node, or of another that saved it before
	h.mu.Unlock()
	if !rests {
		return route, false, nil
	}
	h.tell(ctx)
	return route, true, h.save(ctx)
}

// place is where to answer, nil for nowhere, and when a person wrote last.
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
			h.base.Log.Warn("invalid heartbeat route, want connector/channel; using the most recent conversation", "route", text)
		}
	}
	return route, word, nil
}

// relax begins a rest. It is called with h.mu held.
func (h *Heartbeat) relax(now claybot.Time, why string) {
	h.mem.Rest, h.unsaved = &rest{At: now, Why: why}, true
	h.told = time.Time{}
	h.base.Log.Warn("heartbeat paused until the next message of a user", "why", why)
}

// tell makes a rest known to a person, once. It is called with edits held, and with
// the rest saved: nodes that begin to rest together then know it by one time, which
// is the key of what is told.
func (h *Heartbeat) tell(ctx context.Context) {
	h.mu.Lock()
	due := h.mem.Rest != nil && !h.mem.Rest.Told && (h.told.IsZero() || time.Since(h.told) >= wordEvery)
	var x rest
	if due {
		x = *h.mem.Rest
	}
	h.mu.Unlock()
	if !due {
		return
	}
	h.told = time.Now()
	var err error
	if h.cfg.Notice != nil {
		err = h.cfg.Notice(ctx, idPrefix+"rest/"+strconv.FormatInt(int64(x.At), 10), restText(x.Why))
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) { // with nobody to tell, the log must do
		if ctx.Err() == nil {
			h.base.Log.Warn("cannot tell that the heartbeat rests", "err", err)
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mem.Rest != nil {
		h.mem.Rest.Told, h.unsaved = true, true
	}
}

// judge notes what the gates said and leaves out what is not to be done, or is
// not the same any more: that is due again at once. It is called with edits held.
func (h *Heartbeat) judge(due []*task, verdicts []schedule.Verdict) []item {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := claybot.At(h.now())
	var items []item
	for i, t := range due {
		switch {
		case !slices.ContainsFunc(h.tasks, func(x *task) bool { return x.id == t.id && x.text == t.text }):
		case verdicts[i].Stop:
			p := h.mem.Tasks[t.id]
			p.Asked = now
			h.mem.Tasks[t.id], h.unsaved = p, true
			h.base.Log.Debug("a gate keeps a task of the heartbeat from running", "task", t.id)
		default:
			items = append(items, item{t, verdicts[i]})
		}
	}
	return items
}

// send posts one message for all items that fit; the others are due again when
// its run has ended. It returns how many fit. key is that of a manual tick. It is
// called with edits held, and with no message under way.
func (h *Heartbeat) send(r *running, key string, items []item, route *claybot.Route) (int, error) {
	items, text := compose(items)
	now := claybot.At(h.now())
	p := &pending{At: now}
	for _, x := range items {
		p.Tasks = append(p.Tasks, x.task.id)
	}
	h.mu.Lock()
	if key == "" {
		h.mem.Tick = max(now, h.mem.Tick+1) // an id of its own, also when the clock was set back
		p.ID = claybot.MessageID(idPrefix + strconv.FormatInt(int64(h.mem.Tick), 10))
	} else {
		p.ID = claybot.MessageID(manualPrefix + key)
	}
	h.mem.Pending, h.unsaved = p, true
	h.mu.Unlock()
	if err := h.save(r.ctx); err != nil {
		h.drop(p)
		return 0, err
	}
	h.mu.Lock()
	first := h.mem.pendingID() == p.ID
	h.mu.Unlock()
	if !first { // another node was
		return 0, nil
	}
	h.asked = time.Now()
	m := claybot.AgentMessage{
		ID: p.ID, Type: claybot.MessageSystem, Kind: claybot.KindHeartbeat, From: claybot.Sender{Name: Name},
		Text: text, At: now, Route: route,
	}
	if err := r.handler.Post(r.ctx, claybot.Descriptor{Type: claybot.AgentHeartbeat}, m); err != nil {
		h.unsure = true // the loop asks
		return 0, fmt.Errorf("post %s: %w", p.ID, err)
	}
	h.base.Log.Info("the heartbeat beats", "message", p.ID, "tasks", len(items))
	return len(items), nil
}

// drop forgets a message that was not posted.
func (h *Heartbeat) drop(p *pending) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mem.pendingID() == p.ID {
		h.mem.Pending, h.unsaved = nil, true
	}
}

// Ended implements connectors.Follower.
func (h *Heartbeat) Ended(_ claybot.Descriptor, run claybot.Run) {
	ours := func(id claybot.MessageID) bool { return strings.HasPrefix(string(id), idPrefix) }
	h.mu.Lock()
	told := h.live != nil && slices.ContainsFunc(run.Messages, ours)
	if told {
		h.ended = append(h.ended, run)
	}
	h.mu.Unlock()
	if told {
		h.base.Kick()
	}
}

// settle notes the ends that were told. It is called with edits held.
func (h *Heartbeat) settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, run := range h.ended {
		if p := h.mem.Pending; p != nil && slices.Contains(run.Messages, p.ID) {
			h.conclude(run)
		}
	}
	h.ended = nil
}

// follow asks what became of the message under way, in case nobody told: the
// process died, or the agent was deleted. It is called with edits held.
func (h *Heartbeat) follow(ctx context.Context) {
	h.mu.Lock()
	p := h.mem.Pending
	h.mu.Unlock()
	if p == nil {
		h.unsure = false
	}
	if p == nil || !h.unsure && time.Since(h.asked) < askEvery {
		return
	}
	// Asked first: a node that has just posted it may not have it any more afterwards.
	claimed, unknown := h.base.Elsewhere(ctx, tickClaim)
	rec, err := h.cfg.Receipts.Receipt(ctx, p.ID)
	if unknown != nil && errors.Is(err, storage.ErrNotFound) {
		err = unknown
	}
	if ctx.Err() != nil {
		return
	}
	h.asked, h.unsure = time.Now(), false
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case errors.Is(err, storage.ErrNotFound) && claimed: // and is about to be posted
	case errors.Is(err, storage.ErrNotFound): // died before it was posted
		h.mem.Pending, h.unsaved = nil, true
	case errors.Is(err, storage.ErrDamaged), err == nil && rec.Skipped != "": // no run will end
		h.conclude(claybot.Run{})
	case err != nil:
		h.base.Log.Warn("cannot find out what became of a beat", "message", p.ID, "err", err)
	case rec.Run != nil && (rec.Run.State.Ended() || rec.Run.State == ""): // of a run that ended long ago nothing is known
		h.conclude(*rec.Run)
	}
}

// conclude notes that the message under way has come to its end. It is called
// with h.mu held.
func (h *Heartbeat) conclude(run claybot.Run) {
	m, now := &h.mem, claybot.At(h.now())
	ended := run.Ended
	if ended == 0 {
		ended = now
	}
	for _, id := range m.Pending.Tasks {
		m.Tasks[id] = past{Last: m.Pending.At, Ended: ended}
	}
	m.Pending, h.unsaved = nil, true
	m.Beats++
	m.forget(h.tasks, now)
	if run.State == claybot.RunFailed && run.Error != nil && run.Error.Code == codeRefused && m.Rest == nil {
		h.relax(now, "the model refused to work, which is mostly about the account or its bill (run "+string(run.ID)+")")
	}
}
