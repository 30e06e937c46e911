package subagents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// The limits of messages between agents.
const (
	maxHops        = 20 // ten exchanges of two agents without a message from a person
	maxPerMinute   = 20 // messages of one sender
	maxHistoryRead = 200
)

// A speech counts the messages between agents. The zero value is ready; its counts need
// not survive a restart.
type speech struct {
	mu   sync.Mutex
	said map[claybot.AgentID][]time.Time
}

// allow counts one message of the caller, or refuses it.
func (x *speech) allow(env tools.Env) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.said == nil {
		x.said = make(map[claybot.AgentID][]time.Time)
	}
	now := time.Now()
	recent := slices.DeleteFunc(x.said[env.Agent.ID], func(t time.Time) bool { return now.Sub(t) > time.Minute })
	if len(recent) >= maxPerMinute {
		x.said[env.Agent.ID] = recent
		return fmt.Errorf("you have sent %d messages within a minute; wait before you send more", len(recent))
	}
	if len(x.said) > 10_000 { // bounded; the worst is that some may say more
		clear(x.said)
	}
	x.said[env.Agent.ID] = append(recent, now)
	return nil
}

// maySpeak counts one message of the caller, or refuses it.
func (s *Subagents) maySpeak(ctx context.Context, env tools.Env, hops int) error {
	if err := s.far(ctx, env, hops); err != nil {
		return err
	}
	return s.speech.allow(env)
}

// far refuses a message beyond the hop limit, and notifies the owner.
func (s *Subagents) far(ctx context.Context, env tools.Env, hops int) error {
	if hops <= maxHops {
		return nil
	}
	s.People.TellOwner(ctx, env.Agent, fmt.Sprintf("exchange/%s/%s", root(env.Agent), s.Work.Of(env.Run).Newest().ID), texts.Exchange(maxHops, speaker(env.Agent)))
	return fmt.Errorf("agents have kept each other at work %d times without a word of a person; stop here and answer", maxHops)
}

// SendAgentMessage implements tools.Agents.
func (s *Subagents) SendAgentMessage(ctx context.Context, env tools.Env, to, text string, silent bool) (claybot.AgentID, error) {
	text = strings.TrimSpace(claybot.Clean(text))
	switch {
	case text == "":
		return "", errors.New("text must not be empty")
	case len(text) > inbox.MaxText:
		return "", fmt.Errorf("text has %d bytes; at most %d are taken", len(text), inbox.MaxText)
	}
	target, err := s.target(ctx, env.Agent, to)
	if err != nil {
		return "", err
	}
	m := claybot.AgentMessage{
		ID: claybot.MessageID("agent/" + env.UID(0)), Type: claybot.MessageSystem, Kind: claybot.KindMessage,
		From: claybot.Sender{Agent: env.Agent.ID, Name: speaker(env.Agent)},
		Text: text, Silent: silent, At: claybot.Now(), Hops: s.Work.Of(env.Run).Hops() + 1, Tainted: env.Tainted,
	}
	m.Root = s.paysFor(env, target)
	if _, err := s.Inbox.Receipt(ctx, m.ID); err == nil {
		return target.ID, nil // said before a crash
	}
	if err := s.maySpeak(ctx, env, m.Hops); err != nil {
		return "", err
	}
	return target.ID, s.deliver(ctx, target, m)
}

// paysFor returns the run whose budget pays for the work of a message's receiver: a
// descendant of the sender. It is empty for all others.
func (s *Subagents) paysFor(env tools.Env, to claybot.Agent) claybot.RunID {
	if to.Descriptor.Root == "" || to.Descriptor.Root != root(env.Agent) {
		return ""
	}
	return s.Work.Of(env.Run).Root(env.Run)
}

// deliver posts a message from one agent to another. It returns an error when the receiver
// will not read it.
func (s *Subagents) deliver(ctx context.Context, to claybot.Agent, m claybot.AgentMessage) error {
	done, err := s.Intake.Accept(ctx, to, m)
	switch {
	case err != nil:
		return err
	case done.Skipped == "inbox_full":
		return fmt.Errorf("too many messages wait for agent %s; it did not get yours", to.ID)
	case done.Skipped != "":
		return fmt.Errorf("agent %s did not get your message: %s", to.ID, done.Skipped)
	}
	return nil
}

// speaker returns the name of an agent as other agents see it.
func speaker(a claybot.Agent) string {
	if a.Descriptor.Name != "" {
		return a.Descriptor.Name
	}
	return string(a.Descriptor.Type)
}

// target finds the agent that a tool's "to" means: an id, "parent", or nothing
// for the most recent foreground agent.
func (s *Subagents) target(ctx context.Context, from claybot.Agent, to string) (claybot.Agent, error) {
	var none claybot.Agent
	id := claybot.AgentID(strings.TrimSpace(to))
	switch {
	case id == "":
		e, err := s.People.Recent(ctx, from.Descriptor, from.ID)
		if errors.Is(err, storage.ErrNotFound) {
			return none, errors.New("there is no other agent of a person to write to")
		}
		if err != nil {
			return none, err
		}
		id = e.ID
	case id == "parent":
		if id = from.Descriptor.Parent; id == "" {
			return none, errors.New("you have no parent; name an agent's id, or leave to out for the most recent one of a person")
		}
	}
	if id == from.ID {
		return none, errors.New("that agent is you")
	}
	e, err := s.known(ctx, from, id)
	if err != nil {
		return none, err
	}
	old, err := s.archived(ctx, e)
	switch {
	case err != nil:
		return none, err
	case old:
		return none, fmt.Errorf("agent %s is archived: it has been quiet for more than 7 days", id)
	case e.Descriptor.Foreground() && !s.People.MayWrite(e.Descriptor):
		return none, fmt.Errorf("the person of agent %s has no access any more", id)
	}
	a, err := s.Agents.Agent(ctx, e.ID)
	if err != nil {
		return none, fmt.Errorf("agent %s cannot be read", id)
	}
	return a, nil
}

// known finds an agent within reach; those of other owners do not exist.
func (s *Subagents) known(ctx context.Context, from claybot.Agent, id claybot.AgentID) (storage.IndexEntry, error) {
	e, err := s.Index.IndexedAgentByID(ctx, id)
	if errors.Is(err, storage.ErrNotFound) || err == nil && !s.People.Reaches(from.Descriptor, e.Descriptor) {
		return e, fmt.Errorf("there is no agent %.40q; list_agents shows those you can reach", string(id))
	}
	return e, err
}

// ListAgents implements tools.Directory.
func (s *Subagents) ListAgents(ctx context.Context, env tools.Env) ([]tools.AgentInfo, error) {
	var list []tools.AgentInfo
	for e, err := range s.Index.IndexedAgents(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list agents: %w", err)
		}
		if !s.People.Reaches(env.Agent.Descriptor, e.Descriptor) {
			continue
		}
		info, err := s.Info(ctx, e)
		if err != nil {
			return nil, err
		}
		info.Self = e.ID == env.Agent.ID
		list = append(list, info)
	}
	return list, nil
}

// Info returns what other agents may see of an agent.
func (s *Subagents) Info(ctx context.Context, e storage.IndexEntry) (tools.AgentInfo, error) {
	d := e.Descriptor
	info := tools.AgentInfo{ID: e.ID, Type: string(d.Type), Name: d.Name, Parent: d.Parent, State: "idle"}
	if d.Foreground() {
		info.Place = d.Connector + "/" + d.ChannelID
	}
	run, err := s.Runs.LastRun(ctx, e.ID)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return info, err
	}
	if err == nil {
		info.State, info.LastRun = string(run.State), run.ID
		if !d.Foreground() {
			info.LastText = connectors.OneLine(run.Output, 200)
		}
	}
	if e.Busy && e.Run == "" {
		info.State = "waiting"
	}
	return info, nil
}

// ReadAgentHistory implements tools.Directory.
func (s *Subagents) ReadAgentHistory(ctx context.Context, env tools.Env, id string, last int) ([]claybot.Record, error) {
	if last < 1 || last > maxHistoryRead {
		return nil, fmt.Errorf("last is %d; want 1 to %d", last, maxHistoryRead)
	}
	e, err := s.known(ctx, env.Agent, claybot.AgentID(id))
	if err != nil {
		return nil, err
	}
	records, err := s.Agents.Records(ctx, e.ID)
	if err != nil {
		return nil, fmt.Errorf("the history of agent %s cannot be read", e.ID)
	}
	return records[max(0, len(records)-last):], nil
}

// StopAgent implements tools.Agents.
func (s *Subagents) StopAgent(ctx context.Context, env tools.Env, id string) (int, error) {
	e, err := s.known(ctx, env.Agent, claybot.AgentID(id))
	if err != nil {
		return 0, err
	}
	below, err := s.descends(ctx, e.Descriptor, env.Agent.ID)
	if err != nil {
		return 0, err
	}
	if !below {
		return 0, fmt.Errorf("agent %s is not one of yours; only the agents that you or your subagents started can be stopped", e.ID)
	}
	n := s.HaltBelow(ctx, e.ID, "parent")
	if s.Halt(ctx, e, "parent") {
		n++
	}
	return n, nil
}

// descends reports whether an agent is a descendant of ancestor.
func (s *Subagents) descends(ctx context.Context, d claybot.Descriptor, ancestor claybot.AgentID) (bool, error) {
	for d.Parent != "" {
		if d.Parent == ancestor {
			return true, nil
		}
		var err error
		if d, err = s.Index.IndexedDescriptor(ctx, d.Parent); err != nil {
			return false, storage.Ignore(err, storage.ErrNotFound)
		}
	}
	return false, nil
}
