package heartbeat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// tickClaim is what the node has that asks gates and begins a tick.
const tickClaim = "heartbeat/tick"

// gateAgain is how soon a node looks again while another one begins a tick.
const gateAgain = 2 * time.Second

// clone shares nothing with m.
func (m memory) clone() memory {
	m.Tasks = maps.Clone(m.Tasks)
	if m.Tasks == nil {
		m.Tasks = make(map[string]past)
	}
	if m.pendingID() == "" {
		m.Pending = nil
	} else {
		p := *m.Pending
		p.Tasks = slices.Clone(p.Tasks)
		m.Pending = &p
	}
	if m.Rest != nil {
		r := *m.Rest
		m.Rest = &r
	}
	return m
}

func (m memory) pendingID() claybot.MessageID {
	if m.Pending == nil {
		return ""
	}
	return m.Pending.ID
}

// merge is theirs with the changes that made ours of base. Of two messages that
// began at the same time the one that was written first is the tick; a beat that
// two nodes have seen end is one.
func merge(base, ours, theirs memory) memory {
	out := theirs.clone()
	for id, p := range ours.Tasks {
		switch q := out.Tasks[id]; {
		case base.Tasks[id] == p:
		case base.Tasks[id] == q: // also when a clock was set back
			out.Tasks[id] = p
		default:
			out.Tasks[id] = past{max(p.Last, q.Last), max(p.Ended, q.Ended), max(p.Asked, q.Asked)}
		}
	}
	for id, p := range base.Tasks {
		if _, here := ours.Tasks[id]; !here && out.Tasks[id] == p {
			delete(out.Tasks, id)
		}
	}
	switch {
	case ours.pendingID() != base.pendingID() && theirs.pendingID() == base.pendingID():
		out.Pending = ours.clone().Pending
	case ours.Pending != nil && base.Pending != nil && out.Pending != nil && ours.Pending.ID == base.Pending.ID && out.Pending.ID == base.Pending.ID &&
		!slices.Equal(ours.Pending.Tasks, base.Pending.Tasks): // a task was removed
		out.Pending.Tasks = slices.Clone(ours.Pending.Tasks)
	}
	out.Tick = max(ours.Tick, theirs.Tick)
	switch {
	case theirs.Word != base.Word: // they have noticed it
	case ours.Word != base.Word:
		out.Word, out.Beats = ours.Word, ours.Beats
	default:
		out.Beats = max(ours.Beats, theirs.Beats)
	}
	if !sameRest(ours.Rest, base.Rest) {
		switch {
		case sameRest(theirs.Rest, base.Rest):
			out.Rest = ours.clone().Rest
		case ours.Rest != nil && out.Rest != nil:
			out.Rest.Told = out.Rest.Told || ours.Rest.Told
		}
	}
	return out
}

func sameRest(a, b *rest) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// readState is what a file of the Tree says; one that cannot be understood begins
// anew.
func (h *Heartbeat) readState(f storage.TreeFile) memory {
	var m memory
	if err := json.Unmarshal(f.Body, &m); err != nil {
		if len(f.Body) > 0 {
			h.base.Log.Warn("what the heartbeat remembers cannot be read; it begins anew", "err", err)
		}
		m = memory{}
	}
	return m.clone()
}

// pull takes over what other nodes have written into the memory; now: all of it
// up to this moment. It is called with edits held.
func (h *Heartbeat) pull(ctx context.Context, now bool) error {
	var err error
	if now {
		err = h.cfg.Tree.Look(ctx)
	}
	var e storage.TreeFile
	if err == nil {
		e, err = h.cfg.Tree.Entry(ctx, stateFile)
	}
	if err != nil {
		return fmt.Errorf("read what the heartbeat remembers: %w", err)
	}
	if e.Version == h.version {
		return nil
	}
	return h.recall(ctx)
}

// recall reads the memory.
func (h *Heartbeat) recall(ctx context.Context) error {
	f, err := storage.ReadFile(ctx, h.cfg.Tree, stateFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read what the heartbeat remembers: %w", err)
	}
	theirs := h.readState(f)
	h.mu.Lock()
	h.mem = merge(h.saved, h.mem, theirs)
	h.mu.Unlock()
	h.version, h.saved = f.Version, theirs.clone()
	return nil
}

// save makes the memory durable if it has changed, with what others have changed
// meanwhile. It is called with edits held. What cannot be saved is tried again with
// the next look at the files.
func (h *Heartbeat) save(ctx context.Context) error {
	h.mu.Lock()
	if !h.unsaved {
		h.mu.Unlock()
		return nil
	}
	h.unsaved = false
	mine := h.mem.clone()
	h.mu.Unlock()
	var merged memory
	f, err := storage.EditFile(ctx, h.cfg.Tree, stateFile, func(old storage.TreeFile) ([]byte, error) {
		merged = merge(h.saved, mine, h.readState(old))
		b, err := json.Marshal(merged)
		if err == nil && string(b) == string(old.Body) {
			return nil, nil
		}
		return b, err
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.unsaved = true
		return fmt.Errorf("write what the heartbeat remembers: %w", err)
	}
	h.mem = merge(mine, h.mem, merged)
	h.version, h.saved = f.Version, merged.clone()
	return nil
}

// stillDue finds out anew what is due; none when another node has just done it.
func (h *Heartbeat) stillDue(ctx context.Context, due []*task, s Settings) (still []*task, err error) {
	if err := h.base.Locked(ctx, func() error { return h.pull(ctx, true) }); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mem.Pending != nil || h.mem.Rest != nil {
		return nil, nil
	}
	now := h.now()
	for _, t := range due {
		if at := h.mem.next(t, s, now); !at.IsZero() && !at.After(now) {
			still = append(still, t)
		}
	}
	return still, nil
}
