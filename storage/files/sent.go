package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// sentSizes are the sizes of the files that people sent to agents, as far as they were
// counted since the start. A count is of the stored files and changes with them, under
// the gate of the agent.
type sentSizes struct {
	mu sync.Mutex
	of map[claybot.AgentID]int64
}

func (s *sentSizes) get(id claybot.AgentID) (n int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok = s.of[id]
	return n, ok
}

func (s *sentSizes) set(id claybot.AgentID, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[claybot.AgentID]int64)
	}
	s.of[id] = n
}

// add counts a file whose storing ended with err. After an error the files are counted
// anew, as the file may be there.
func (s *sentSizes) add(id claybot.AgentID, f claybot.FileReference, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.of[id]; ok && err == nil && f.Sent {
		s.of[id] = n + f.Size
	} else if err != nil {
		delete(s.of, id)
	}
}

// forget removes the count of an agent that was deleted.
func (s *sentSizes) forget(id claybot.AgentID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, id)
}

// SentBytes implements storage.Files. It reads the references of an agent once in the life
// of the process; a damaged one does not count. Of an agent that was counted it loads nothing.
func (s *Store) SentBytes(ctx context.Context, ids ...claybot.AgentID) (total int64, err error) {
	for _, id := range ids {
		n, known := s.sent.get(id)
		if !known {
			if n, err = s.count(ctx, id); err != nil {
				return 0, fmt.Errorf("count the files sent to agent %s: %w", id, err)
			}
		}
		total += n
	}
	return total, nil
}

// count counts the files sent to an agent. The error is one that other agents would have as
// well; what else fails is logged, as one agent must not hold up the others of its owner.
func (s *Store) count(ctx context.Context, id claybot.AgentID) (n int64, err error) {
	err = s.with(ctx, id, func(*resident) error {
		var known bool
		if n, known = s.sent.get(id); known {
			return nil
		}
		var whole bool
		if n, whole, err = s.countSent(id); err == nil && whole {
			s.sent.set(id, n)
		}
		return err
	})
	switch {
	case err == nil:
		return n, nil
	case ctx.Err() != nil, storage.Unavailable(err):
		return 0, err
	case !errors.Is(err, storage.ErrNotFound):
		s.log.Warn("failed to count the files sent to an agent", "agent", id, "err", err)
	}
	return 0, nil
}

// countSent counts the files of an agent; whole is false if not all references could be read.
func (s *Store) countSent(id claybot.AgentID) (n int64, whole bool, err error) {
	dir := s.dir(id) + "/attachments"
	entries, err := s.fs.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, false, err
	}
	whole = true
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		reference, err := read(s.fs, dir+"/"+e.Name(), referenceLimit)
		if storage.Unavailable(err) {
			return 0, false, err
		}
		if err != nil {
			whole = false
			s.log.Warn("failed to read the reference of a file", "agent", id, "err", err)
			continue
		}
		var f claybot.FileReference
		if json.Unmarshal(reference, &f) == nil && f.Sent && f.Size > 0 {
			n += f.Size
		}
	}
	return n, whole, nil
}
