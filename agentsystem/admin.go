package agentsystem

import (
	"context"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/worker"
)

// maxCancelTries is how often CancelRun follows its run from one state to the next.
const maxCancelTries = 5

// An Admin does what operators order.
type Admin struct {
	agents      storage.Agents
	index       Index
	inbox       storage.Inbox
	runs        storage.RunReader
	inboxes     *inbox.Inboxes
	intake      *intake
	parking     *parking
	results     *results
	people      *people.Directory
	profiles    *profiles.Profiles
	subagents   *subagents.Supervisor
	faults      *worker.Faults
	overhearing *overhearing
}

// cancel posts a message that ends what an agent does.
func (a *Admin) cancel(ctx context.Context, id claybot.AgentID, prefix string, run claybot.RunID, by string) (storage.Posted, error) {
	return a.inboxes.Post(ctx, storage.Posting{To: id, By: by, Message: claybot.AgentMessage{
		ID: claybot.MessageID(prefix + runs.NewID()), Type: claybot.MessageCancel, Run: run, At: claybot.Now(),
		From: claybot.Sender{Name: by},
	}})
}

// CancelRun cancels a run and returns it as it was then. A run that waits for its turn
// ends at once, with its message; one that has ended stays as it is.
func (a *Admin) CancelRun(ctx context.Context, id claybot.RunID, by string) (claybot.Run, error) {
	for range maxCancelTries {
		run, err := a.runs.Run(ctx, id)
		if err != nil || run.State.Ended() {
			return run, err
		}
		if run.State == claybot.RunPending {
			dropped, err := a.dropWaiting(ctx, run.Agent, inbox.ErrCanceled, inbox.SkippedStopped, run.Messages...)
			if err != nil {
				return run, fmt.Errorf("cancel run %s: %w", id, err)
			}
			if slices.Contains(dropped, run.Messages[0]) {
				return run, nil
			}
			continue // it has just begun
		}
		done, err := a.cancel(ctx, run.Agent, "cancel/", run.ID, by)
		if err != nil {
			return run, fmt.Errorf("cancel run %s: %w", id, err)
		}
		if done.Canceled == run.ID {
			return run, nil
		}
	}
	return a.runs.Run(ctx, id) // it ended meanwhile
}

// Stop cancels the runs of an agent and of all below it, and returns how many were at
// work.
func (a *Admin) Stop(ctx context.Context, id claybot.AgentID) (int, error) {
	e, err := a.index.IndexedAgentByID(ctx, id)
	if err != nil {
		return 0, err
	}
	n := a.subagents.HaltBelow(ctx, id, people.Operator)
	if e.Descriptor.Child() { // its tasks, too: no person is asked
		if a.subagents.Halt(ctx, e, people.Operator) {
			n++
		}
		return n, nil
	}
	done, err := a.cancel(ctx, e.ID, "stop/", "", people.Operator)
	if err != nil {
		return n, fmt.Errorf("stop %s: %w", id, err)
	}
	if done.Canceled != "" {
		n++
	}
	return n, nil
}

// Reset starts a new conversation of an agent. Its person gets no notice.
func (a *Admin) Reset(ctx context.Context, id claybot.AgentID) error {
	if _, err := a.index.IndexedAgentByID(ctx, id); err != nil {
		return err
	}
	agent, err := a.agents.Agent(ctx, id)
	if err != nil {
		return fmt.Errorf("reset %s: %w", id, err)
	}
	_, err = a.intake.acceptFor(ctx, agent, claybot.AgentMessage{
		ID: claybot.MessageID("reset/" + runs.NewID()), Type: claybot.MessageReset, From: claybot.Sender{Name: people.Operator},
	})
	return err
}

// Delete deletes an agent: its run ends, its files move to the quarantine, its id is never
// used again. Its subagents go on, and report to the most recent agent of their owner.
func (a *Admin) Delete(ctx context.Context, id claybot.AgentID) error {
	e, err := a.index.IndexedAgentByID(ctx, id)
	if err != nil {
		return err
	}
	waited := a.subagents.Waited(ctx, e) // asked first: the wait for it ends with its run
	if _, err := a.dropWaiting(ctx, id, inbox.ErrDropped, "agent_deleted"); err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	a.inboxes.Cancel(id, "", people.Operator)
	if err := a.agents.Delete(ctx, id); err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	a.faults.Left(id)
	a.faults.Over(e.Descriptor.Key())
	a.profiles.Forget(id)
	a.inboxes.Wake() // another agent may have waited for it
	if e.Run != "" && !waited {
		a.subagents.ReportLost(ctx, e, string(e.Run), claybot.RunError{Code: "deleted", Text: "the operator deleted the agent"})
	}
	return nil
}

// Drop drops waiting messages of an agent, all when none is named, and returns those that
// it dropped; storage.ErrNotFound when there is no such agent.
func (a *Admin) Drop(ctx context.Context, agent claybot.AgentID, ids ...claybot.MessageID) ([]claybot.MessageID, error) {
	if _, err := a.index.IndexedAgentByID(ctx, agent); err != nil {
		return nil, err
	}
	dropped, err := a.dropWaiting(ctx, agent, inbox.ErrDropped, people.Operator, ids...)
	if err != nil {
		return nil, fmt.Errorf("drop messages of %s: %w", agent, err)
	}
	return dropped, nil
}

// dropWaiting drops waiting messages for a reason, and rejects their waiters with why.
func (a *Admin) dropWaiting(ctx context.Context, agent claybot.AgentID, why error, reason string, ids ...claybot.MessageID) ([]claybot.MessageID, error) {
	dropped, err := a.inbox.Drop(ctx, agent, reason, ids...)
	if err == nil {
		a.results.reject(agent, why, dropped...)
	}
	return dropped, err
}

// DropParked drops all parked messages of the agent with a name of
// overview.Monitor.ParkedAgents, and returns them; storage.ErrNotFound when it has none.
func (a *Admin) DropParked(ctx context.Context, agent string) ([]claybot.MessageID, error) {
	agents, err := a.parking.store.ParkedAgents(ctx, storage.MaxParked)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(agents, func(x storage.ParkedAgent) bool { return overview.ParkedName(x.Key) == agent })
	if i < 0 {
		return nil, fmt.Errorf("parked messages of %s: %w", agent, storage.ErrNotFound)
	}
	dropped, err := a.parking.drop(ctx, agents[i].Key, people.Operator, func(storage.Parked) bool { return true })
	if err == nil {
		_, err = a.parking.counts.Count(ctx)
	}
	return dropped, err
}

// Revoke revokes a grant: waiting messages are dropped, the runs of the person and of
// their subagents end, their tasks do not run, and nothing more is sent there. Of a person whom a
// setting gives access, without a grant, only the role ends.
func (a *Admin) Revoke(ctx context.Context, connector, id string) error {
	granted := a.people.Granted(connector, id)
	if err := a.people.Revoke(ctx, connector, id); err != nil {
		return err
	}
	if !granted && a.people.Knows(connector, id) {
		return nil
	}
	if err := a.parking.dropRevoked(ctx, connector); err != nil {
		return err
	}
	entries, err := a.agentsOf(ctx, connector, id)
	if err != nil {
		return fmt.Errorf("list agents of %s of %s: %w", id, connector, err)
	}
	for _, e := range entries {
		d, by := e.Descriptor, people.Operator
		switch {
		case d.Type == claybot.AgentCron && d.Owner == connector+"/"+id:
			by = "owner"
		case d.Connector != connector || d.UserID != id && d.ChannelID != id:
			continue
		case d.ChannelID != id && a.people.Allowed(d, true):
			// They write there as a member of a group with access, unless they need their own as well.
			if err := a.dropBarredBelow(ctx, e); err != nil {
				return fmt.Errorf("drop messages of %s: %w", e.ID, err)
			}
			continue
		default:
			if _, err := a.dropWaiting(ctx, e.ID, inbox.ErrDropped, inbox.SkippedRevoked); err != nil {
				return fmt.Errorf("drop messages of %s: %w", e.ID, err)
			}
		}
		a.subagents.Halt(ctx, e, by)
		a.subagents.HaltBelow(ctx, e.ID, subagents.ByParent)
	}
	if err := a.revokeShared(ctx, connector); err != nil {
		return err
	}
	return a.overhearing.sweep(ctx) // last: work must end even if this fails, which is tried again later
}

// agentsOf lists the agents that work for a person, or that are in a channel.
func (a *Admin) agentsOf(ctx context.Context, connector, id string) ([]storage.IndexEntry, error) {
	entries, err := a.index.OwnedAgents(ctx, connector+"/"+id)
	if err != nil {
		return nil, err
	}
	inside, err := a.index.ChannelAgents(ctx, connector, id)
	for _, e := range inside {
		if e.Descriptor.UserID != id { // else it is among the first ones
			entries = append(entries, e)
		}
	}
	return entries, err
}
