package agentsystem

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/worker"
)

// A Control is what the API, the pages and the command line do with agents.
type Control struct {
	*Starter
	*Undo
	*Attachments
	*Admin
	*Deliveries
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

// A SentFile is a file that a person sends with a message.
type SentFile struct {
	Name, MIMEType string
	Content        []byte
}

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
	var room people.Room
	if f.Sent {
		if room, err = a.quota.Room(ctx, agent.Descriptor); err != nil {
			return claybot.FileReference{}, err
		}
	}
	return room.Save(content, inbox.MaxFile, func(content io.Reader, limit int64) (claybot.FileReference, error) {
		return a.files.SaveFile(ctx, agent.ID, f, content, limit)
	})
}

// SaveFiles stores the files that a person sends with one message, all or, if they exceed the
// quota of the agent's owner, none: it then returns storage.ErrQuota. An agent keeps files with
// the same name, type and content once, so a retry stores nothing more.
func (a *Attachments) SaveFiles(ctx context.Context, to Address, files []SentFile) ([]claybot.FileReference, error) {
	if len(files) == 0 {
		return nil, nil
	}
	agent, err := a.addressed(ctx, to)
	if err != nil {
		return nil, err
	}
	room, err := a.quota.Room(ctx, agent.Descriptor)
	if err != nil {
		return nil, err
	}
	kept := make([]claybot.FileReference, len(files))
	var more int64
	for i, f := range files {
		sum := sha256.Sum256(f.Content)
		kind := f.MIMEType
		if kind == "application/octet-stream" { // nothing is said
			kind = worker.TypeOf(kind, f.Content)
		}
		kept[i] = claybot.FileReference{ID: connectors.FileID("message", string(agent.ID), f.Name, f.MIMEType, hex.EncodeToString(sum[:])), Name: f.Name, MIMEType: kind, Sent: true}
		_, r, err := a.files.OpenFile(ctx, agent.ID, kept[i].ID)
		switch {
		case err == nil:
			err = r.Close()
		case errors.Is(err, storage.ErrNotFound):
			more, err = more+int64(len(f.Content)), nil
		}
		if err != nil {
			return nil, err
		}
	}
	if err := room.Exceeded(more); err != nil {
		return nil, err
	}
	for i, f := range files {
		kept[i], err = room.Save(bytes.NewReader(f.Content), inbox.MaxFile, func(content io.Reader, limit int64) (claybot.FileReference, error) {
			return a.files.SaveFile(ctx, agent.ID, kept[i], content, limit)
		})
		if err != nil {
			return nil, err
		}
	}
	return kept, nil
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
