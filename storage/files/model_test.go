package files

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// A modelFS is a file system in memory that knows what a power cut leaves:
// contents up to the last sync of the file, names as of the last sync of the
// directory, and of everything later any part. Its operations can be made to
// fail.
type modelFS struct {
	mu   sync.Mutex
	root *node
	now  time.Time
	ops  int                // operations so far
	fail func(op int) error // asked before each operation
}

// A node is a file or, with names, a directory.
type node struct {
	data, synced       []byte
	names, syncedNames map[string]*node
	mod                time.Time
}

var errCut = errors.New("power cut")

func newModelFS() *modelFS { return &modelFS{root: newDir(), now: time.Unix(1, 0)} }

func newDir() *node { return &node{names: map[string]*node{}, syncedNames: map[string]*node{}} }

// op counts an operation and fails it if that is wanted. It needs mu.
func (m *modelFS) op(name string, err *error) bool {
	m.ops++
	m.now = m.now.Add(time.Millisecond)
	if m.fail != nil {
		if e := m.fail(m.ops); e != nil {
			*err = &fs.PathError{Op: "model", Path: name, Err: e}
		}
	}
	return *err == nil
}

// find returns the directory of name and the node there, nil if there is none.
func (m *modelFS) find(name string) (dir *node, base string, n *node) {
	dir, n = m.root, m.root
	for _, base = range strings.Split(strings.Trim(path.Clean("/"+name), "/"), "/") {
		if base == "" {
			return m.root, "", m.root
		}
		if dir = n; dir == nil || dir.names == nil {
			return nil, base, nil
		}
		n = dir.names[base]
	}
	return dir, base, n
}

func (m *modelFS) Open(name string, flag int) (f File, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.op(name, &err) {
		return nil, err
	}
	dir, base, n := m.find(name)
	if n == nil {
		if dir == nil || flag&os.O_CREATE == 0 {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		n = &node{mod: m.now}
		dir.names[base] = n
	}
	if flag&os.O_TRUNC != 0 {
		n.data, n.mod = nil, m.now
	}
	return &modelFile{m: m, name: name, n: n}, nil
}

func (m *modelFS) Mkdir(name string) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.op(name, &err) {
		return err
	}
	dir, base, n := m.find(name)
	if n != nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrExist}
	}
	dir.names[base] = newDir()
	return nil
}

func (m *modelFS) Rename(from, to string) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.op(from, &err) {
		return err
	}
	fromDir, fromBase, n := m.find(from)
	toDir, toBase, _ := m.find(to)
	delete(fromDir.names, fromBase)
	toDir.names[toBase] = n
	return nil
}

func (m *modelFS) Remove(name string) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.op(name, &err) {
		return err
	}
	if dir, base, n := m.find(name); n != nil {
		delete(dir.names, base)
	}
	return nil
}

func (m *modelFS) SyncDir(name string) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.op(name, &err) {
		return err
	}
	_, _, n := m.find(name)
	n.syncedNames = make(map[string]*node, len(n.names))
	for base, child := range n.names {
		n.syncedNames[base] = child
	}
	return nil
}

func (m *modelFS) ReadDir(name string) (entries []fs.DirEntry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.op(name, &err) {
		return nil, err
	}
	_, _, n := m.find(name)
	if n == nil {
		return nil, &fs.PathError{Op: "model", Path: name, Err: fs.ErrNotExist}
	}
	for base, child := range n.names {
		entries = append(entries, fs.FileInfoToDirEntry(modelInfo{base, int64(len(child.data)), child.mod, child.names != nil}))
	}
	return entries, nil
}

// write and content are the test's own access, without counting.
func (m *modelFS) write(name string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(time.Millisecond)
	dir, base, _ := m.find(name)
	dir.names[base] = &node{data: append([]byte(nil), data...), mod: m.now}
}

func (m *modelFS) content(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, _, n := m.find(name); n != nil {
		return append([]byte(nil), n.data...)
	}
	return nil
}

// quarantined returns the contents of the quarantine.
func (m *modelFS) quarantined() (out []string) {
	for _, name := range m.list("d/quarantine") {
		out = append(out, string(m.content("d/quarantine/"+name)))
	}
	return out
}

// list returns the names in a directory.
func (m *modelFS) list(name string) (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _, n := m.find(name)
	for base := range n.names {
		names = append(names, base)
	}
	return names
}

// cut returns what a power cut may leave.
func (m *modelFS) cut(r *rand.Rand) *modelFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	done := make(map[*node]*node)
	var left func(n *node) *node
	left = func(n *node) *node {
		if copied := done[n]; copied != nil {
			return copied
		}
		c := &node{mod: n.mod}
		done[n] = c
		if n.names == nil {
			c.data = append([]byte(nil), n.synced...)
			if common := len(n.synced); strings.HasPrefix(string(n.data), string(n.synced)) && len(n.data) > common {
				c.data = append(c.data, n.data[common:common+r.IntN(len(n.data)-common+1)]...)
			} else if r.IntN(2) == 0 {
				c.data = append([]byte(nil), n.data...) // rewritten or cut shorter, or not
			}
			c.synced = append([]byte(nil), c.data...)
			return c
		}
		*c = *newDir()
		for _, base := range slices.Sorted(maps.Keys(n.syncedNames)) {
			child := n.syncedNames[base]
			if r.IntN(2) == 0 {
				child = n.names[base] // a rename is done or not: a name is never lost to it
			}
			if child != nil {
				c.names[base] = left(child)
			}
		}
		for _, base := range slices.Sorted(maps.Keys(n.names)) {
			if n.syncedNames[base] == nil && r.IntN(2) == 0 {
				c.names[base] = left(n.names[base])
			}
		}
		for base, child := range c.names {
			c.syncedNames[base] = child
		}
		return c
	}
	return &modelFS{root: left(m.root), now: m.now}
}

// copy returns the same file system again, provided that all is synced.
func (m *modelFS) copy() *modelFS { return m.cut(rand.New(rand.NewPCG(0, 0))) }

type modelFile struct {
	m    *modelFS
	name string
	n    *node
}

func (f *modelFile) ReadAt(p []byte, off int64) (n int, err error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if !f.m.op(f.name, &err) {
		return 0, err
	}
	if off < int64(len(f.n.data)) {
		n = copy(p, f.n.data[off:])
	}
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}

// Write appends. When it fails, a part may be written all the same.
func (f *modelFile) Write(p []byte) (n int, err error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	n = len(p)
	if !f.m.op(f.name, &err) {
		n = len(p) * (f.m.ops % 4) / 4
	}
	f.n.data = append(f.n.data[:len(f.n.data):len(f.n.data)], p[:n]...)
	f.n.mod = f.m.now
	return n, err
}

// Sync makes the content durable. When it fails, what was not durable may be
// gone for good, as on Linux.
func (f *modelFile) Sync() (err error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.m.op(f.name, &err) {
		f.n.synced = append([]byte(nil), f.n.data...)
	} else if f.m.ops%2 == 0 && strings.HasPrefix(string(f.n.data), string(f.n.synced)) {
		f.n.data = append([]byte(nil), f.n.synced...)
	}
	return err
}

func (f *modelFile) Truncate(size int64) (err error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.m.op(f.name, &err) {
		f.n.data, f.n.mod = f.n.data[:size:size], f.m.now
	}
	return err
}

func (f *modelFile) Stat() (_ fs.FileInfo, err error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if !f.m.op(f.name, &err) {
		return nil, err
	}
	return modelInfo{path.Base(f.name), int64(len(f.n.data)), f.n.mod, f.n.names != nil}, nil
}

func (f *modelFile) Close() error { return nil }

type modelInfo struct {
	name string
	size int64
	mod  time.Time
	dir  bool
}

func (i modelInfo) Name() string       { return i.name }
func (i modelInfo) Size() int64        { return i.size }
func (i modelInfo) ModTime() time.Time { return i.mod }
func (i modelInfo) IsDir() bool        { return i.dir }
func (i modelInfo) Sys() any           { return nil }
func (i modelInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o700
	}
	return 0o600
}

var _ FS = (*modelFS)(nil)
