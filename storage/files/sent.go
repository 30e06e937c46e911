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

// SentBytes implements storage.Files. It reads the references of an agent once in the life
// of the process; a damaged one does not count.
func (s *Store) SentBytes(ctx context.Context, id claybot.AgentID) (n int64, err error) {
	err = s.with(ctx, id, func(*resident) error {
		var known bool
		if n, known = s.sent.get(id); known {
			return nil
		}
		if n, err = s.countSent(id); err != nil {
			return err
		}
		s.sent.set(id, n)
		return nil
	})
	if errors.Is(err, storage.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count the files sent to agent %s: %w", id, err)
	}
	return n, nil
}

func (s *Store) countSent(id claybot.AgentID) (n int64, err error) {
	dir := s.dir(id) + "/attachments"
	entries, err := s.fs.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		reference, err := read(s.fs, dir+"/"+e.Name(), referenceLimit)
		if err != nil {
			return 0, err
		}
		var f claybot.FileReference
		if json.Unmarshal(reference, &f) == nil && f.Sent && f.Size > 0 {
			n += f.Size
		}
	}
	return n, nil
}
