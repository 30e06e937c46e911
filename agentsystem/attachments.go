package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

// SaveFile keeps a file for an agent, which is made when it is the first that
// reaches it. storage.ErrTooMany beyond MaxFile bytes.
func (s *AgentSystem) SaveFile(ctx context.Context, to Address, f claybot.FileReference, content io.Reader) (claybot.FileReference, error) {
	agent, err := s.addressed(ctx, to)
	if err != nil {
		return claybot.FileReference{}, err
	}
	return s.Agents.SaveFile(ctx, agent.ID, f, content, inbox.MaxFile)
}

// OpenFile opens a file of an agent; storage.ErrNotFound.
func (s *AgentSystem) OpenFile(ctx context.Context, id claybot.AgentID, file string) (claybot.FileReference, io.ReadCloser, error) {
	if _, err := s.Index.IndexedAgentByID(ctx, id); err != nil {
		return claybot.FileReference{}, nil, err
	}
	return s.Agents.OpenFile(ctx, id, file)
}

// Attach keeps a file for the agent of a descriptor, see SaveFile.
func (s *AgentSystem) Attach(ctx context.Context, d claybot.Descriptor, f claybot.FileReference, content io.Reader) (claybot.FileReference, error) {
	return s.SaveFile(ctx, Address{Descriptor: &d}, f, content)
}

// Attached opens a file of the agent of a descriptor; storage.ErrNotFound.
func (s *AgentSystem) Attached(ctx context.Context, d claybot.Descriptor, file string) (claybot.FileReference, io.ReadCloser, error) {
	id, err := s.Index.IndexedAgent(ctx, d)
	if err != nil {
		return claybot.FileReference{}, nil, err
	}
	return s.Agents.OpenFile(ctx, id, file)
}

// checkFiles refuses references to files that the agent does not have.
func (s *AgentSystem) checkFiles(ctx context.Context, id claybot.AgentID, files []claybot.FileReference) error {
	if len(files) > inbox.MaxFiles {
		return fmt.Errorf("%d files; at most %d go with one message", len(files), inbox.MaxFiles)
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
