package files

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var _ storage.DeletedAgents = (*Store)(nil)

// DeletedAgents implements storage.DeletedAgents. It reads the descriptor of every deleted
// agent.
func (s *Store) DeletedAgents(ctx context.Context, owners []string) (map[claybot.AgentID]claybot.Descriptor, error) {
	entries, err := s.fs.ReadDir(s.quarantine.dir)
	if err != nil {
		return nil, failed("list the deleted agents", err)
	}
	all := make(map[claybot.AgentID]claybot.Descriptor)
	for _, e := range entries {
		id, _, ok := strings.Cut(e.Name(), "-")
		if !ok || !e.IsDir() || claybot.AgentID(id).Validate() != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		data, err := read(s.fs, s.quarantine.dir+"/"+e.Name()+"/descriptor.json", documentLimit)
		if err != nil {
			continue // it says nothing about a person
		}
		var d descriptorFile
		if _, err := decodeDocument("descriptor.json", data, &d); err == nil && slices.Contains(owners, d.Descriptor.OwnerID()) {
			all[claybot.AgentID(id)] = d.Descriptor
		}
	}
	return all, nil
}

// EraseDeleted implements storage.DeletedAgents. It also removes the damaged parts of the
// agent's files that were set aside. The descriptor goes last, so that a call that was cut
// short can be repeated.
func (s *Store) EraseDeleted(_ context.Context, id claybot.AgentID) error {
	if err := id.Validate(); err != nil { // it is part of a path
		return fmt.Errorf("erase deleted agent: %w", err)
	}
	s.quarantine.mu.Lock()
	defer s.quarantine.mu.Unlock()
	entries, err := s.fs.ReadDir(s.quarantine.dir)
	if err != nil {
		return failed(fmt.Sprintf("erase deleted agent %s", id), err)
	}
	var folders []string
	for _, e := range entries {
		path := s.quarantine.dir + "/" + e.Name()
		switch {
		case e.IsDir() && strings.HasPrefix(e.Name(), string(id)+"-"):
			folders = append(folders, path)
		case !e.IsDir() && strings.HasPrefix(e.Name(), string(id)+"."):
			err = errors.Join(err, s.fs.Remove(path))
		}
	}
	for _, folder := range folders {
		inside, rerr := s.fs.ReadDir(folder)
		err = errors.Join(err, rerr)
		for _, e := range inside {
			if e.Name() != "descriptor.json" && err == nil {
				err = s.fs.Remove(folder + "/" + e.Name())
			}
		}
		if err == nil {
			err = s.fs.Remove(folder)
		}
	}
	if err == nil {
		err = s.fs.SyncDir(s.quarantine.dir)
	}
	if err != nil {
		return failed(fmt.Sprintf("erase deleted agent %s", id), err)
	}
	return nil
}
