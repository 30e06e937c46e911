package heartbeat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// The files of a Tree that nodes share are those of the directory, and the memory
// is beside them.
const (
	treeFolder  = "heartbeat"
	stateFile   = treeFolder + "/state.json"
	fetchAtOnce = 100
)

// tickClaim is what the node has that asks gates and begins a tick.
const tickClaim = "heartbeat/tick"

// gateAgain is how soon a node looks again while another one begins a tick.
const gateAgain = 2 * time.Second

// shared is what a Heartbeat knows of the memory that other nodes change, too. It
// belongs to whoever holds edits.
type shared struct {
	version int64
	base    memory            // as it was read or written last
	pending claybot.MessageID // that is under way, here or elsewhere
	seen    time.Time         // since when it is known here
	own     claybot.MessageID // the newest one that this node has begun
}

func treePath(name string) string { return treeFolder + "/" + name }

// scanTree reads the shared files that have changed. It is called with edits held.
func (h *Heartbeat) scanTree(ctx context.Context) error {
	all, err := h.cfg.Tree.Entries(ctx, treeFolder)
	if err != nil {
		return err
	}
	files := make(map[string]file)
	var want []string
	for _, e := range all {
		name := strings.TrimPrefix(e.Path, treeFolder+"/")
		if strings.Contains(name, "/") || filepath.Ext(name) != extension {
			continue
		}
		if old, known := h.files[name]; known && old.version == e.Version {
			files[name] = old
			continue
		}
		want = append(want, e.Path)
	}
	if len(want) == 0 && len(files) == len(h.files) {
		return nil
	}
	for part := range slices.Chunk(want, fetchAtOnce) {
		found, err := h.cfg.Tree.Read(ctx, part...)
		if err != nil {
			return err
		}
		for _, x := range found {
			name := strings.TrimPrefix(x.Path, treeFolder+"/")
			f := file{version: x.Version}
			err := checkID(strings.TrimSuffix(name, extension))
			switch {
			case err != nil:
				err = fmt.Errorf("the name: %w", err)
			case len(x.Body) > maxFile:
				err = errTooLong
			}
			f.parse(name, string(x.Body), err)
			files[name] = f
		}
	}
	h.adopt(files)
	return nil
}

// store makes or replaces the file of a task; storage.ErrStale when it is another
// one meanwhile.
func (h *Heartbeat) store(ctx context.Context, name, text string) error {
	if h.cfg.Tree == nil {
		return writeFile(h.cfg.Dir, name, text)
	}
	_, err := h.cfg.Tree.Write(ctx, treePath(name), []byte(text), h.files[name].version)
	return err
}

// remove removes the file of a task; fs.ErrNotExist.
func (h *Heartbeat) remove(ctx context.Context, name string) error {
	if h.cfg.Tree == nil {
		return removeFile(h.cfg.Dir, name)
	}
	if _, there := h.files[name]; !there {
		return fs.ErrNotExist
	}
	return h.cfg.Tree.Remove(ctx, treePath(name), 0)
}

// textOf is the text of the file of a task.
func (h *Heartbeat) textOf(ctx context.Context, name string) (string, error) {
	if h.cfg.Tree != nil {
		found, err := h.cfg.Tree.Read(ctx, treePath(name))
		if err == nil && len(found) == 0 {
			err = fs.ErrNotExist
		}
		if err != nil {
			return "", err
		}
		return string(found[0].Body), nil
	}
	root, err := os.OpenRoot(h.cfg.Dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	return readText(root, name)
}

// gateDir is where gates run.
func (h *Heartbeat) gateDir() (string, error) {
	if h.cfg.Tree == nil {
		return h.cfg.Dir, nil
	}
	return h.cfg.Dir, os.MkdirAll(h.cfg.Dir, 0o700)
}

// clone shares nothing with m.
func (m memory) clone() memory {
	m.Tasks = maps.Clone(m.Tasks)
	if m.Tasks == nil {
		m.Tasks = make(map[string]past)
	}
	if m.Pending != nil {
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
		if base.Tasks[id] != p {
			q := out.Tasks[id]
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
func readState(f storage.TreeFile) memory {
	var m memory
	if json.Unmarshal(f.Body, &m) != nil {
		m = memory{}
	}
	return m.clone()
}

// pull takes over what other nodes have written into the memory; now: all of it
// up to this moment. It is called with edits held.
func (h *Heartbeat) pull(ctx context.Context, now bool) error {
	if h.cfg.Tree == nil {
		return nil
	}
	if now {
		if err := h.cfg.Tree.Look(ctx); err != nil {
			return fmt.Errorf("read what the heartbeat remembers: %w", err)
		}
	}
	e, err := h.cfg.Tree.Entry(ctx, stateFile)
	if err != nil || e.Version == h.shared.version {
		h.notePending()
		return err
	}
	found, err := h.cfg.Tree.Read(ctx, stateFile)
	if err != nil {
		return fmt.Errorf("read what the heartbeat remembers: %w", err)
	}
	f := storage.TreeFile{}
	if len(found) > 0 {
		f = found[0]
	}
	theirs := readState(f)
	h.mu.Lock()
	h.mem = merge(h.shared.base, h.mem, theirs)
	h.mu.Unlock()
	h.shared.version, h.shared.base = f.Version, theirs.clone()
	h.notePending()
	return nil
}

// notePending notes since when a message is known to be under way.
func (h *Heartbeat) notePending() {
	h.mu.Lock()
	id := h.mem.pendingID()
	h.mu.Unlock()
	if id != h.shared.pending {
		h.shared.pending, h.shared.seen = id, time.Now()
	}
}

// mayBePosted reports whether a message that is not stored may still come:
// another node has just written it down and is about to post it.
func (h *Heartbeat) mayBePosted(id claybot.MessageID) bool {
	return h.cfg.Tree != nil && id != h.shared.own && (id != h.shared.pending || time.Since(h.shared.seen) < askEvery)
}

// push writes the memory, with what others have changed meanwhile. It is called
// with edits held.
func (h *Heartbeat) push(ctx context.Context) error {
	h.mu.Lock()
	mine := h.mem.clone()
	h.mu.Unlock()
	var merged memory
	f, err := storage.EditFile(ctx, h.cfg.Tree, stateFile, func(old storage.TreeFile) ([]byte, error) {
		theirs := readState(old)
		merged = merge(h.shared.base, mine, theirs)
		b, err := json.Marshal(merged)
		if err == nil && string(b) == string(old.Body) {
			return nil, nil
		}
		return b, err
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.mem = merge(mine, h.mem, merged)
	h.mu.Unlock()
	h.shared.version, h.shared.base = f.Version, merged.clone()
	h.notePending()
	return nil
}

// claimTick makes this node the one that begins a tick, and finds out anew what
// is due then; none when another node is at it, or has just done it.
func (h *Heartbeat) claimTick(ctx context.Context, due []*task, s Settings) (still []*task, yield func(), err error) {
	yield = func() {}
	if h.cfg.Tree == nil {
		return due, yield, nil
	}
	if h.cfg.Claims != nil {
		claim, err := h.cfg.Claims.Claim(ctx, h.cfg.Node(), tickClaim)
		if errors.Is(err, storage.ErrHeld) {
			return nil, yield, nil
		}
		if err != nil {
			return nil, yield, fmt.Errorf("begin a tick: %w", err)
		}
		yield = func() { h.yield(ctx, claim) }
	}
	err = h.locked(ctx, func() error { return h.pull(ctx, true) })
	if err != nil {
		yield()
		return nil, func() {}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mem.Pending != nil || h.mem.Rest != nil {
		return nil, yield, nil // of another node
	}
	now := h.now()
	for _, t := range due {
		if at := h.mem.next(t, s, now); !at.IsZero() && !at.After(now) {
			still = append(still, t)
		}
	}
	return still, yield, nil
}

func (h *Heartbeat) yield(ctx context.Context, claim storage.Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownSaving)
	defer cancel()
	if err := h.cfg.Claims.Yield(ctx, claim); err != nil {
		h.log.Warn("the right to begin a tick is not given back; no other node beats until this one ends", "err", err)
	}
}

// reasonOf is why a file could not be changed, in words.
func reasonOf(err error) string {
	return cmp.Or(map[bool]string{true: "somebody else is changing it just now; try again"}[errors.Is(err, storage.ErrStale)], reason(err))
}
