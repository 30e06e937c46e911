package storage

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// LookEvery is the maximum age of a Mirror's listing, besides the time of a
// query. A credential that was revoked on another member must stop working within
// two seconds.
const LookEvery = 1500 * time.Millisecond

// lookGap is the minimum time between the starts of looks on demand.
const lookGap = 100 * time.Millisecond

// editTries is the maximum number of attempts of EditFile. It exceeds the number
// of members that may change a file at the same moment.
const editTries = 50

// A Mirror caches the listing of a Tree for all its readers in one process, who
// share one query every LookEvery. It implements Tree, and changes made through
// it are visible at once. It is safe for concurrent use.
type Mirror struct {
	Tree
	age   time.Duration // maximum age of the listing when Entries is called
	waits bool          // looks on demand are at least lookGap apart
	turn  chan struct{} // held while the tree is asked

	mu      sync.Mutex
	lists   map[string][]TreeFile // results of Entries, by folder
	files   map[string]TreeFile
	point   int64
	looked  time.Time     // start of the last successful look; zero: never
	dirty   bool          // changed through the mirror since
	changed chan struct{} // closed with the next change
}

var _ Tree = (*Mirror)(nil)

// NewMirror returns a Mirror of a Tree. Run keeps it up to date; without Run,
// each Entries queries the tree if the listing is old.
func NewMirror(t Tree) *Mirror {
	m := MirrorFolder(t)
	m.age, m.waits = 2*LookEvery, true
	return m
}

// MirrorFolder returns a Mirror of a Tree that users also edit directly and that is
// cheap to list: each Entries does. It needs no Run.
func MirrorFolder(t Tree) *Mirror {
	return &Mirror{
		Tree: t, turn: make(chan struct{}, 1), files: make(map[string]TreeFile),
		lists: make(map[string][]TreeFile), changed: make(chan struct{}),
	}
}

// MirrorAlone returns a Mirror of a Tree that only this process changes, and only
// through the mirror. It lists the tree only after such a change, without delay,
// and needs no Run.
func MirrorAlone(t Tree) *Mirror {
	m := MirrorFolder(t)
	m.age = math.MaxInt64
	return m
}

// Run looks every LookEvery until ctx is done, and returns its cause. While the
// tree cannot be listed, the last listing stays.
func (m *Mirror) Run(ctx context.Context) error {
	tick := time.NewTicker(LookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			_ = m.refresh(ctx, 0) // Entries returns the error to its caller
		}
	}
}

// Changed returns a channel that is closed with the next change.
func (m *Mirror) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// Look updates the listing. Concurrent calls share a query.
func (m *Mirror) Look(ctx context.Context) error {
	if !m.waits {
		return m.refresh(ctx, m.age)
	}
	begun := time.Now()
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.leave()
	m.mu.Lock()
	looked, dirty := m.looked, m.dirty
	m.mu.Unlock()
	if !dirty && looked.After(begun) {
		return nil // another call has just done it
	}
	if wait := time.Until(looked.Add(lookGap)); !dirty && wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return m.ask(ctx)
}

// refresh looks if the last look is older than age, or something was changed
// through the mirror since.
func (m *Mirror) refresh(ctx context.Context, age time.Duration) error {
	if m.known(age) {
		return nil
	}
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.leave()
	if m.known(age) {
		return nil
	}
	return m.ask(ctx)
}

func (m *Mirror) known(age time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.dirty && !m.looked.IsZero() && time.Since(m.looked) < age
}

func (m *Mirror) enter(ctx context.Context) error {
	select {
	case m.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *Mirror) leave() { <-m.turn }

// ask lists the tree and updates the cache. The caller must hold the turn.
func (m *Mirror) ask(ctx context.Context) error {
	m.mu.Lock()
	begun, point := time.Now(), m.point
	wasDirty := m.dirty
	m.dirty = false // later changes may or may not be seen
	m.mu.Unlock()
	d, err := m.Changes(ctx, point)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.dirty = m.dirty || wasDirty
		return err
	}
	m.looked, m.point = begun, d.Point
	news := false
	if d.Whole {
		news = len(d.Files) != len(m.files)
		old := m.files
		m.files = make(map[string]TreeFile, len(d.Files))
		for _, f := range d.Files {
			m.files[f.Path] = f
			news = news || old[f.Path].Version != f.Version
		}
	} else {
		for _, f := range d.Files {
			news = news || m.files[f.Path].Version != f.Version
			if f.Version == 0 {
				delete(m.files, f.Path)
			} else {
				m.files[f.Path] = f
			}
		}
	}
	if news {
		clear(m.lists)
		close(m.changed)
		m.changed = make(chan struct{})
	}
	return nil
}

// Entries lists the files below a folder by path, without quarantined ones. The
// caller must not change the list. It queries the tree if the listing is older than
// twice LookEvery, which does not happen while Run works.
func (m *Mirror) Entries(ctx context.Context, folder string) ([]TreeFile, error) {
	if err := m.refresh(ctx, m.age); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if all, ok := m.lists[folder]; ok {
		return all, nil
	}
	var all []TreeFile
	for path, f := range m.files {
		if strings.HasPrefix(path, folder+"/") {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b TreeFile) int { return strings.Compare(a.Path, b.Path) })
	m.lists[folder] = all
	return all, nil
}

// Entry returns one file, as Entries does; Version is 0 if it does not exist.
func (m *Mirror) Entry(ctx context.Context, path string) (TreeFile, error) {
	if err := m.refresh(ctx, m.age); err != nil {
		return TreeFile{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[path], nil
}

// touched records a possible change.
func (m *Mirror) touched() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dirty = true
}

// Write implements Tree.
func (m *Mirror) Write(ctx context.Context, path string, body []byte, was int64) (int64, error) {
	defer m.touched()
	return m.Tree.Write(ctx, path, body, was)
}

// Remove implements Tree.
func (m *Mirror) Remove(ctx context.Context, path string, was int64) error {
	defer m.touched()
	return m.Tree.Remove(ctx, path, was)
}

// Move implements Tree.
func (m *Mirror) Move(ctx context.Context, from, to string, guard TreeFile) error {
	defer m.touched()
	return m.Tree.Move(ctx, from, to, guard)
}

// WriteAll implements BatchTree.
func (m *Mirror) WriteAll(ctx context.Context, files []TreeFile) error {
	defer m.touched()
	return WriteFiles(ctx, m.Tree, files)
}

// EditFile replaces a file of a Tree by the result of edit, and retries after a
// conflicting write. edit gets a file with Version 0 if it does not exist. An error
// of edit stops EditFile, as does a nil body, which changes nothing.
func EditFile(ctx context.Context, t Tree, path string, edit func(old TreeFile) ([]byte, error)) (TreeFile, error) {
	for try := 0; ; try++ {
		found, err := t.Read(ctx, path)
		if err != nil {
			return TreeFile{}, err
		}
		old := TreeFile{Path: path}
		if len(found) > 0 {
			old = found[0]
		}
		body, err := edit(old)
		if err != nil || body == nil {
			return old, err
		}
		version, err := t.Write(ctx, path, body, old.Version)
		if err == nil {
			return TreeFile{Path: path, Version: version, Size: len(body), At: old.At, Body: body}, nil
		}
		if try == editTries || !errors.Is(err, ErrStale) {
			return TreeFile{}, err
		}
	}
}
