package subagents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// maxHistoryRead is how many records one call returns.
const maxHistoryRead = 200

// A Directory finds the agents that an agent can reach: those of its owner.
type Directory struct {
	agents     Agents
	index      Index
	inbox      Inbox
	runs       Runs
	people     People
	audiences  Audiences
	supervisor *Supervisor
	// permissions are what an agent may do now.
	permissions func(ctx context.Context, a claybot.Agent) (claybot.Permissions, error)
}

var _ tools.Directory = (*Directory)(nil)

// maxListed is how many agents of each owner one list has, and how many of them that are
// at work.
const maxListed = 200

// ListAgents implements tools.Directory. It lists the agents that are at work, and those
// that heard from a user last.
func (d *Directory) ListAgents(ctx context.Context, env tools.Env) ([]tools.AgentInfo, error) {
	var list []tools.AgentInfo
	mine := d.Readers(ctx, env)
	entries, err := d.within(ctx, env.Agent)
	if err != nil {
		return nil, fmt.Errorf("list agents: %w", err)
	}
	for _, e := range entries {
		info, err := d.Info(ctx, e)
		if err != nil {
			return nil, err
		}
		info.Self = e.ID == env.Agent.ID
		if !info.Self && d.audiences.Discloses(d.source(ctx, e), mine) {
			info.Name, info.LastText = "", "" // read_agent_history asks
		}
		list = append(list, info)
	}
	return list, nil
}

// within returns the agents that an agent reaches, itself among them.
func (d *Directory) within(ctx context.Context, a claybot.Agent) (all []storage.IndexEntry, err error) {
	owners := d.people.Reach(a.Descriptor)
	if owners == nil {
		owners = []string{""} // all
	}
	for _, owner := range owners {
		for _, busy := range []bool{true, false} { // those at work stand first
			page, err := d.index.AgentPage(ctx, storage.AgentQuery{Owner: owner, Busy: busy, Limit: maxListed})
			if err != nil {
				return nil, err
			}
			for _, e := range page {
				if !slices.ContainsFunc(all, func(o storage.IndexEntry) bool { return o.ID == e.ID }) {
					all = append(all, e)
				}
			}
		}
	}
	if slices.ContainsFunc(all, func(e storage.IndexEntry) bool { return e.ID == a.ID }) {
		return all, nil
	}
	self, err := d.index.IndexedAgentByID(ctx, a.ID)
	if err == nil {
		all = append(all, self)
	}
	return all, storage.Ignore(err, storage.ErrNotFound)
}

// Info returns what other agents may see of an agent.
func (d *Directory) Info(ctx context.Context, e storage.IndexEntry) (tools.AgentInfo, error) {
	of := e.Descriptor
	info := tools.AgentInfo{ID: e.ID, Type: string(of.Type), Name: of.Name, Parent: of.Parent, State: "idle"}
	if of.Foreground() {
		info.Place = of.Connector + "/" + of.ChannelID
		if of.ChannelID != of.UserID {
			info.Channel = d.people.NameOf(ctx, info.Place)
		}
		if of.ThreadID != "" {
			info.Place += "/" + of.ThreadID
		}
	}
	run, err := d.runs.LastRun(ctx, e.ID)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return info, err
	}
	if err == nil {
		info.State, info.LastRun = string(run.State), run.ID
		if !of.Foreground() {
			info.LastText = connectors.OneLine(run.Output, 200)
		}
	}
	if e.Busy && e.Run == "" {
		info.State = "waiting"
	}
	return info, nil
}

// ReadAgentHistory implements tools.Directory.
func (d *Directory) ReadAgentHistory(ctx context.Context, env tools.Env, id string, last int) ([]claybot.Record, error) {
	if last < 1 || last > maxHistoryRead {
		return nil, fmt.Errorf("last is %d; want 1 to %d", last, maxHistoryRead)
	}
	e, err := d.known(ctx, env.Agent, claybot.AgentID(id))
	if err != nil {
		return nil, err
	}
	records, err := d.agents.Records(ctx, e.ID)
	if err != nil {
		return nil, fmt.Errorf("the history of agent %s cannot be read", e.ID)
	}
	return records[max(0, len(records)-last):], nil
}

// A noAgentError says, in words for the model, that there is no agent as a tool named it.
type noAgentError string

func (e noAgentError) Error() string { return string(e) }

// addressed finds the agent that a tool's "to" means: an id, "parent", or nothing for the
// most recent foreground agent. It returns a noAgentError where there is none.
func (d *Directory) addressed(ctx context.Context, from claybot.Agent, to string) (storage.IndexEntry, error) {
	id := claybot.AgentID(strings.TrimSpace(to))
	switch {
	case id == "":
		e, err := d.people.Recent(ctx, from.Descriptor, from.ID)
		if errors.Is(err, storage.ErrNotFound) {
			return e, noAgentError("there is no other agent of a person to write to")
		}
		return e, err
	case id == "parent":
		if id = from.Descriptor.Parent; id == "" {
			return storage.IndexEntry{}, noAgentError("you have no parent; name an agent's id, or leave to out for the most recent one of a person")
		}
	}
	return d.known(ctx, from, id)
}

// target returns the agent that a tool's "to" means, if it can be written to.
func (d *Directory) target(ctx context.Context, from claybot.Agent, to string) (claybot.Agent, error) {
	var none claybot.Agent
	e, err := d.addressed(ctx, from, to)
	id := e.ID
	switch {
	case err != nil:
		return none, err
	case id == from.ID:
		return none, errors.New("that agent is you")
	}
	old, err := d.supervisor.archived(ctx, e)
	switch {
	case err != nil:
		return none, err
	case old:
		return none, fmt.Errorf("agent %s is archived: it has been quiet for more than 7 days", id)
	case e.Descriptor.Foreground() && !d.people.MayWrite(e.Descriptor):
		return none, fmt.Errorf("the person of agent %s has no access any more", id)
	}
	a, err := d.agents.Agent(ctx, e.ID)
	if err != nil {
		return none, fmt.Errorf("agent %s cannot be read", id)
	}
	return a, d.permits(ctx, from, a)
}

// permits returns an error when an agent has no permission to send to another one. Its
// parent and its own subagents are always permitted: they may do no more than it may, or
// started it.
func (d *Directory) permits(ctx context.Context, from, to claybot.Agent) error {
	if to.ID == from.Descriptor.Parent || to.Descriptor.Parent == from.ID {
		return nil
	}
	p, err := d.permissions(ctx, from)
	if err != nil {
		return err
	}
	if !p.Reaches(to.ID, to.Descriptor) {
		return fmt.Errorf("you are not permitted to send to agent %s; permitted besides your parent and your subagents: %s", to.ID, cmp.Or(strings.Join(p.Routes, ", "), "none"))
	}
	return nil
}

// known finds an agent within reach; those of other owners do not exist.
func (d *Directory) known(ctx context.Context, from claybot.Agent, id claybot.AgentID) (storage.IndexEntry, error) {
	e, err := d.index.IndexedAgentByID(ctx, id)
	if errors.Is(err, storage.ErrNotFound) || err == nil && !d.people.Reaches(from.Descriptor, e.Descriptor) {
		return e, noAgentError(fmt.Sprintf("there is no agent %.40q; list_agents shows those you can reach", string(id)))
	}
	return e, err
}
