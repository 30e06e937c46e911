package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// MaxFile is the most bytes that one file may have.
const MaxFile = 50 << 20

// MaxFiles is the most files that one message may have.
const MaxFiles = 10

// SaveFile keeps a file for an agent, which is made when it is the first that
// reaches it. storage.ErrTooMany beyond MaxFile bytes.
func (s *System) SaveFile(ctx context.Context, to Address, f claybot.File, content io.Reader) (claybot.File, error) {
	agent, err := s.addressed(ctx, to)
	if err != nil {
		return claybot.File{}, err
	}
	return s.Agents.SaveFile(ctx, agent.ID, f, content, MaxFile)
}

// OpenFile opens a file of an agent; storage.ErrNotFound.
func (s *System) OpenFile(ctx context.Context, id claybot.AgentID, file string) (claybot.File, io.ReadCloser, error) {
	if _, err := s.Index.IndexedAgentByID(ctx, id); err != nil {
		return claybot.File{}, nil, err
	}
	return s.Agents.OpenFile(ctx, id, file)
}

// Attach keeps a file for the agent of a descriptor, see SaveFile.
func (s *System) Attach(ctx context.Context, d claybot.Descriptor, f claybot.File, content io.Reader) (claybot.File, error) {
	return s.SaveFile(ctx, Address{Descriptor: &d}, f, content)
}

// Attached opens a file of the agent of a descriptor; storage.ErrNotFound.
func (s *System) Attached(ctx context.Context, d claybot.Descriptor, file string) (claybot.File, io.ReadCloser, error) {
	id, err := s.Index.IndexedAgent(ctx, d)
	if err != nil {
		return claybot.File{}, nil, err
	}
	return s.Agents.OpenFile(ctx, id, file)
}

// checkFiles refuses references to files that the agent does not have.
func (s *System) checkFiles(ctx context.Context, id claybot.AgentID, files []claybot.File) error {
	if len(files) > MaxFiles {
		return fmt.Errorf("%d files; at most %d go with one message", len(files), MaxFiles)
	}
	for i, f := range files {
		kept, r, err := s.Agents.OpenFile(ctx, id, f.ID)
		if errors.Is(err, storage.ErrNotFound) {
			return fmt.Errorf("file %.64q is not one of the agent: %w", f.ID, err)
		}
		if err != nil {
			return err
		}
		if err := r.Close(); err != nil {
			return err
		}
		files[i] = kept
	}
	return nil
}
