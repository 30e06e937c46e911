package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// errOneAddress: a message needs to know for whom it is.
var errOneAddress = errors.New("give an agent or a descriptor, and not both")

// ErrUsed: a message id was given before, to another agent or to a message that
// says something else.
var ErrUsed = errors.New("the message id was used for another message")

// StartRun gives an agent a message and reserves the id of the run that will
// take it. The same message under the same id gives the same ids again and
// nothing new; another one is refused with ErrUsed, and nothing changes. Access
// is not checked: it is for callers who have done so. A message to a background
// agent becomes a system message.
func (s *AgentSystem) StartRun(ctx context.Context, to Address, m claybot.AgentMessage) (Accepted, error) {
	agent, err := s.addressed(ctx, to)
	if err != nil {
		return Accepted{}, err
	}
	if !agent.Descriptor.Foreground() {
		m.Type, m.Kind = claybot.MessageSystem, claybot.KindMessage
	}
	m.Run, m.Text = claybot.RunID(runs.NewID()), claybot.Clean(m.Text)
	if err := checkMessage(agent.Descriptor, m); err != nil {
		return Accepted{}, err
	}
	if err := s.checkFiles(ctx, agent.ID, m.Files); err != nil {
		return Accepted{}, err
	}
	if err := s.unparkFirst(ctx, agent.Descriptor); err != nil {
		return Accepted{}, fmt.Errorf("take in earlier messages: %w", err)
	}
	done, err := s.acceptFor(ctx, agent, m)
	if err != nil {
		return Accepted{}, err
	}
	if !done.Added {
		r, err := s.Inbox.Receipt(ctx, m.ID)
		if err != nil {
			return Accepted{}, fmt.Errorf("read the receipt of %s: %w", m.ID, err)
		}
		return s.acceptedBefore(ctx, r, agent.ID, m)
	}
	a := Accepted{Run: m.Run, Agent: agent.ID, Message: m.ID, State: claybot.RunPending}
	if done.Skipped != "" {
		a.State = claybot.RunCanceled
	}
	return a, nil
}

func (s *AgentSystem) addressed(ctx context.Context, to Address) (claybot.Agent, error) {
	switch {
	case (to.Agent == "") == (to.Descriptor == nil):
		return claybot.Agent{}, errOneAddress
	case to.Agent == "":
		return s.lookup.AgentFor(ctx, *to.Descriptor)
	}
	if _, err := s.Index.IndexedAgentByID(ctx, to.Agent); err != nil {
		return claybot.Agent{}, err
	}
	return s.lookup.Agent(ctx, to.Agent)
}

// Known tells what became of a message that was posted before; known is false
// when none was under that id. It needs the id of m, its text, and of each file
// the id or the SHA256: a message that says something else, or is for another
// agent, is refused with ErrUsed. No agent is made for to.
func (s *AgentSystem) Known(ctx context.Context, to Address, m claybot.AgentMessage) (a Accepted, known bool, err error) {
	r, err := s.Inbox.Receipt(ctx, m.ID)
	if errors.Is(err, storage.ErrNotFound) {
		return Accepted{}, false, nil
	}
	if err != nil {
		return Accepted{}, false, fmt.Errorf("read the receipt of %s: %w", m.ID, err)
	}
	id := to.Agent
	if to.Descriptor != nil {
		id, err = s.Index.IndexedAgent(ctx, *to.Descriptor)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return Accepted{}, false, err
		}
	}
	a, err = s.acceptedBefore(ctx, r, id, m)
	return a, err == nil, err
}

// acceptedBefore is what became of the message of a receipt, which is given
// again as m, for an agent; ErrUsed when it is another one. What was said to an
// agent that was deleted since stays what it was: its place may have a new one.
func (s *AgentSystem) acceptedBefore(ctx context.Context, r storage.Receipt, agent claybot.AgentID, m claybot.AgentMessage) (Accepted, error) {
	other := claybot.Clean(m.Text) != r.Message.Text || m.Engine != r.Message.Engine || !slices.EqualFunc(m.Files, r.Message.Files, sameFile)
	if r.Agent != agent && !other {
		_, err := s.Index.IndexedAgentByID(ctx, r.Agent)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return Accepted{}, err
		}
		other = err == nil
	}
	if other {
		return Accepted{}, fmt.Errorf("message %s: %w", m.ID, ErrUsed)
	}
	if said := r.Message.Answer; r.Message.Type == claybot.MessageUser && said != nil && said.OK {
		run, answered, err := s.Questions.SaidAgain(ctx, r)
		if err != nil {
			return Accepted{}, err
		}
		return Accepted{Run: run.ID, Agent: r.Agent, Message: m.ID, State: run.State, Answers: answered}, nil
	}
	a := Accepted{Run: r.Message.Run, Agent: r.Agent, Message: m.ID, State: claybot.RunPending}
	if r.Run != nil {
		a.Run, a.State = r.Run.ID, r.Run.State
	} else if r.Skipped != "" {
		a.State = claybot.RunCanceled
	}
	return a, nil
}

// sameFile reports whether two references are of one content.
func sameFile(a, b claybot.FileReference) bool {
	return a.ID != "" && a.ID == b.ID || a.SHA256 != "" && a.SHA256 == b.SHA256
}

// maxCancelTries is how often a cancel follows its run from one state to the
// next.
const maxCancelTries = 5

// CancelRun asks for the end of a run, and returns it as it was then. A run
// that waits for its turn is over at once, with its message; one that has ended
// stays as it is.
func (s *AgentSystem) CancelRun(ctx context.Context, id claybot.RunID, by string) (claybot.Run, error) {
	for range maxCancelTries {
		run, err := s.Runs.Run(ctx, id)
		if err != nil || run.State.Ended() {
			return run, err
		}
		if run.State == claybot.RunPending {
			dropped, err := s.Inbox.Drop(ctx, run.Agent, "canceled", run.Messages...)
			if err != nil {
				return run, fmt.Errorf("cancel run %s: %w", id, err)
			}
			s.reject(run.Agent, inbox.ErrCanceled, dropped...)
			if slices.Contains(dropped, run.Messages[0]) {
				return run, nil
			}
			continue // it has just begun
		}
		done, err := s.boxes.Post(ctx, storage.Posting{To: run.Agent, By: by, Message: claybot.AgentMessage{
			ID: claybot.MessageID("cancel/" + runs.NewID()), Type: claybot.MessageCancel, Run: run.ID, At: claybot.Now(),
			From: claybot.Sender{Name: by},
		}})
		if err != nil {
			return run, fmt.Errorf("cancel run %s: %w", id, err)
		}
		if done.Canceled == run.ID {
			return run, nil
		}
	}
	return s.Runs.Run(ctx, id) // it ended while it was asked
}

// RetryOutgoing sends a failed message again, or a waiting one at once;
// storage.ErrNotFound, storage.ErrState.
func (s *AgentSystem) RetryOutgoing(ctx context.Context, id string) (claybot.Outgoing, error) {
	o, err := s.Outbox.Retry(ctx, id)
	if err != nil {
		return o, err
	}
	s.Log.Info("an outgoing message is tried again", "outgoing", id)
	s.deliverer.Refresh(o)
	return o, nil
}

// DropOutgoing gives up a message that was not sent; storage.ErrNotFound,
// storage.ErrState.
func (s *AgentSystem) DropOutgoing(ctx context.Context, id string) (claybot.Outgoing, error) {
	o, err := s.Outbox.Discard(ctx, id, "dropped by an operator")
	if err == nil {
		s.Log.Info("an outgoing message was dropped", "outgoing", id)
		s.deliverer.Refresh(o)
	}
	return o, err
}

// An Address says whom a message is for: an agent, or a descriptor whose agent
// is found or made. One of the two is set.
type Address struct {
	Agent      claybot.AgentID
	Descriptor *claybot.Descriptor
}

// Accepted is what became of a message that starts a run.
type Accepted struct {
	Run     claybot.RunID     `json:"runId"` // the one that was reserved, or that the message joined
	Agent   claybot.AgentID   `json:"agentId"`
	Message claybot.MessageID `json:"messageId"`
	State   claybot.RunState  `json:"state"`
	// Answers are the questions of Run that the message answered, where it
	// started no run.
	Answers []string `json:"-"`
}
