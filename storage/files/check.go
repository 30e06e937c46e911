package files

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A Checked is the result of a check of all agents.
type Checked struct {
	Agents, Lines int
	Bytes         int64
	Damaged       []claybot.AgentID // whose history has unreadable lines
	Shorter       []claybot.AgentID // whose history is gone, or shorter than it was
	Unread        []Unread          // those that could not be checked
	Rebuilt       int               // recreated rows of the index
}

// An Unread is an agent that could not be checked.
type Unread struct {
	Agent claybot.AgentID
	Err   error
}

func (u Unread) String() string { return fmt.Sprintf("agent %s: %v", u.Agent, u.Err) }

// Check reads the histories of all agents, at most rate bytes a second, 0: as fast as the
// disk allows, and looks at the checksum of each line. It recreates missing or unreadable
// rows of the index from the agents' directories. The store may be in use. Histories are
// not changed: damaged parts are set aside when the history is opened. Check continues
// after an agent that cannot be checked, and stops at a fault of the store. What it finds is
// in the order of the ids.
func (s *Store) Check(ctx context.Context, rate int64) (Checked, error) {
	var c Checked
	began, buf := time.Now(), bufio.NewReaderSize(nil, chunk)
	err := eachEntry(s.fs, s.root, func(e fs.DirEntry) error {
		id := claybot.AgentID(e.Name())
		if id.Validate() != nil || !e.IsDir() {
			return nil
		}
		c.Agents++
		err := s.checkIndex(ctx, id, &c)
		if err == nil {
			err = s.checkHistory(ctx, id, &c, buf, began, rate)
		}
		switch {
		case err != nil && (ctx.Err() != nil || storage.ClassOf(err) == storage.ClassStore):
			return fmt.Errorf("check agent %s: %w", id, err)
		case err != nil:
			c.Unread = append(c.Unread, Unread{id, err})
		}
		return nil
	})
	slices.Sort(c.Damaged)
	slices.Sort(c.Shorter)
	slices.SortFunc(c.Unread, func(a, b Unread) int { return cmp.Compare(a.Agent, b.Agent) })
	return c, err
}

// checkIndex recreates the missing index row of an agent.
func (s *Store) checkIndex(ctx context.Context, id claybot.AgentID, c *Checked) error {
	if ok, err := s.isIndexed(ctx, id); ok || err != nil {
		return err
	}
	d, _, data, damage, err := s.parseDescriptor(id)
	if err != nil || data == nil {
		return err // nil data: it was just deleted
	}
	if damage == nil {
		leave, err := s.keys.enter(ctx, d.Descriptor)
		if err != nil {
			return err
		}
		defer leave()
		if ok, err := s.isIndexed(ctx, id); ok || err != nil {
			return err // it was being created
		}
	}
	c.Rebuilt++
	s.log.Warn("agent missing in the index; row created from its directory", "agent", id)
	return s.adopt(ctx, map[claybot.AgentID]bool{id: true})
}

// isIndexed reports whether the index has a readable row of an agent.
func (s *Store) isIndexed(ctx context.Context, id claybot.AgentID) (bool, error) {
	_, err := s.index.IndexedDescriptor(ctx, id)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) {
		return false, nil
	}
	return err == nil, err
}

// checkHistory reads one history as far as it went when it was opened.
func (s *Store) checkHistory(ctx context.Context, id claybot.AgentID, c *Checked, r *bufio.Reader, began time.Time, rate int64) error {
	end, err := s.endings.of(ctx, id)
	if err != nil {
		return err
	}
	f, err := s.fs.Open(s.dir(id)+"/history.jsonl", os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		if there, err := exists(s.fs, s.dir(id)+"/descriptor.json"); err == nil && there {
			c.Shorter = append(c.Shorter, id)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < end.Size {
		if st, err := s.peekState(id); err == nil && st.Marker != nil {
			end = end.with(*st.Marker)
		}
	}
	if info.Size() < end.Size {
		c.Shorter = append(c.Shorter, id)
	}
	r.Reset(io.NewSectionReader(f, 0, info.Size()))
	bad, err := c.read(ctx, r, began, rate)
	if err != nil {
		return err
	}
	if bad > 0 {
		c.Damaged = append(c.Damaged, id)
	}
	return nil
}

// read reads the lines of a history, and returns how many are damaged.
func (c *Checked) read(ctx context.Context, r *bufio.Reader, began time.Time, rate int64) (bad int, err error) {
	for {
		line, err := r.ReadBytes('\n')
		c.Bytes += int64(len(line))
		if errors.Is(err, io.EOF) { // the last line may be incomplete
			return bad, nil
		}
		if err != nil {
			return bad, err
		}
		c.Lines++
		if line = bytes.TrimSuffix(line, []byte("\n")); len(bytes.TrimSpace(line)) > 0 {
			if _, err := decodeLine(line); err != nil {
				bad++
			}
		}
		if err := paced(ctx, began, c.Bytes, rate); err != nil {
			return bad, err
		}
	}
}

// LookHistories reads the histories of the agents in the data directory dir as Check does, without the
// index, and changes nothing. It finds neither lost ends nor lost histories. A process may use the
// directory.
func LookHistories(ctx context.Context, dir string) (c Checked, err error) {
	root := filepath.Join(dir, "agents")
	buf := bufio.NewReaderSize(nil, chunk)
	err = eachEntry(osFS{}, root, func(e fs.DirEntry) error {
		id := claybot.AgentID(e.Name())
		if id.Validate() != nil || !e.IsDir() {
			return nil
		}
		c.Agents++
		switch bad, err := c.look(ctx, filepath.Join(root, e.Name(), "history.jsonl"), buf); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			c.Unread = append(c.Unread, Unread{id, err})
		case bad > 0:
			c.Damaged = append(c.Damaged, id)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) { // there are no agents yet
		err = nil
	}
	slices.Sort(c.Damaged)
	slices.SortFunc(c.Unread, func(a, b Unread) int { return cmp.Compare(a.Agent, b.Agent) })
	return c, err
}

// look reads a history; one that does not exist has no damage.
func (c *Checked) look(ctx context.Context, path string, r *bufio.Reader) (bad int, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return 0, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	r.Reset(io.NewSectionReader(f, 0, info.Size()))
	return c.read(ctx, r, time.Time{}, 0)
}

// paced waits until n bytes may have been read since began.
func paced(ctx context.Context, began time.Time, n, rate int64) error {
	if err := context.Cause(ctx); err != nil || rate <= 0 {
		return err
	}
	wait := time.Duration(float64(n)/float64(rate)*float64(time.Second)) - time.Since(began)
	if wait <= 0 {
		return nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Look predicts the result of Lock for the data directory dir and changes nothing.
// It returns whether dir exists, which process holds it, empty for none, and an
// error with the next step if Lock would refuse it.
func Look(dir string) (there bool, holder string, err error) {
	dir = filepath.Clean(dir)
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, "", nil
	}
	if err != nil {
		return false, "", fmt.Errorf("data directory: %w", err)
	}
	if err := refuse(dir, info); err != nil {
		return true, "", err
	}
	if err := checkFinished(dir); err != nil {
		return true, "", err
	}
	f, err := os.OpenFile(filepath.Join(dir, "claybot.lock"), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true, lookDir(dir), nil
	}
	if err != nil {
		return true, "", fmt.Errorf("lock of the data directory: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	if err := flock(f, syscall.LOCK_SH); errors.Is(err, syscall.EWOULDBLOCK) {
		return true, holderOf(f), nil
	}
	return true, lookDir(dir), nil
}

// lookDir names the process that has the directory itself; empty for none.
func lookDir(dir string) string {
	d, err := os.Open(dir)
	if err != nil {
		return ""
	}
	defer func() { _ = d.Close() }() // nothing was written
	if errors.Is(flock(d, syscall.LOCK_SH), syscall.EWOULDBLOCK) {
		return holderOfDir(d)
	}
	return ""
}
