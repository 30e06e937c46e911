package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// A Control is what the API, the pages and the command line do with agents.
type Control struct {
	*Starter
	*Undo
	*Attachments
	*Admin
	budgets budgets.Config // of NewLimiter
}

// An Address says whom a message is for: an agent, or a descriptor whose agent is found
// or created. Exactly one of the two is set.
type Address struct {
	Agent      claybot.AgentID
	Descriptor *claybot.Descriptor
}

// errOneAddress is returned for an Address with none or both.
var errOneAddress = errors.New("give an agent or a descriptor, and not both")

// Attachments store and open the files of agents.
type Attachments struct {
	agents *storage.Bounded
	index  storage.Index
	files  storage.Files
	quota  *people.Quota
}

// addressed finds or creates the agent of an address.
func (a *Attachments) addressed(ctx context.Context, to Address) (claybot.Agent, error) {
	switch {
	case (to.Agent == "") == (to.Descriptor == nil):
		return claybot.Agent{}, errOneAddress
	case to.Agent == "":
		return a.agents.AgentFor(ctx, *to.Descriptor)
	}
	if _, err := a.index.IndexedAgentByID(ctx, to.Agent); err != nil {
		return claybot.Agent{}, err
	}
	return a.agents.Agent(ctx, to.Agent)
}

// SaveFile stores a file for an agent. It returns storage.ErrTooMany beyond
// inbox.MaxFile bytes, and storage.ErrQuota if f is Sent and exceeds the quota of the
// agent's owner.
func (a *Attachments) SaveFile(ctx context.Context, to Address, f claybot.FileReference, content io.Reader) (claybot.FileReference, error) {
	agent, err := a.addressed(ctx, to)
	if err != nil {
		return claybot.FileReference{}, err
	}
	room, limit := int64(inbox.MaxFile), int64(0)
	if f.Sent {
		if room, limit, err = a.quota.Room(ctx, agent.Descriptor, inbox.MaxFile); err != nil {
			return claybot.FileReference{}, err
		}
	}
	f, err = a.files.SaveFile(ctx, agent.ID, f, content, room)
	if limit > 0 && errors.Is(err, storage.ErrTooMany) {
		err = fmt.Errorf("%w: limits.files_per_owner is %s", storage.ErrQuota, connectors.FileSize(limit))
	}
	return f, err
}

// OpenFile opens a file of an agent, or returns storage.ErrNotFound.
func (a *Attachments) OpenFile(ctx context.Context, id claybot.AgentID, file string) (claybot.FileReference, io.ReadCloser, error) {
	if _, err := a.index.IndexedAgentByID(ctx, id); err != nil {
		return claybot.FileReference{}, nil, err
	}
	return a.files.OpenFile(ctx, id, file)
}

// Attach is SaveFile for a file that a person sends to the agent of a descriptor.
func (a *Attachments) Attach(ctx context.Context, d claybot.Descriptor, f claybot.FileReference, content io.Reader) (claybot.FileReference, error) {
	f.Sent = true
	return a.SaveFile(ctx, Address{Descriptor: &d}, f, content)
}

// Attached is OpenFile for the agent of a descriptor.
func (a *Attachments) Attached(ctx context.Context, d claybot.Descriptor, file string) (claybot.FileReference, io.ReadCloser, error) {
	id, err := a.index.IndexedAgent(ctx, d)
	if err != nil {
		return claybot.FileReference{}, nil, err
	}
	return a.files.OpenFile(ctx, id, file)
}

// check completes references to files, and refuses those that the agent does not have.
func (a *Attachments) check(ctx context.Context, id claybot.AgentID, files []claybot.FileReference) error {
	if len(files) > inbox.MaxFiles {
		return fmt.Errorf("%d files; at most %d go with one message", len(files), inbox.MaxFiles)
	}
	for i, f := range files {
		kept, r, err := a.files.OpenFile(ctx, id, f.ID)
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
