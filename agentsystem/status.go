package agentsystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/people"

	"github.com/claybot/claybot/texts"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// Status is how the daemon is doing, as `claybot status --json` prints it.
type Status struct {
	Version    string                    `json:"version"`
	Uptime     string                    `json:"uptime"`
	Agents     int                       `json:"agents"`
	Inbox      InboxStatus               `json:"inbox"`
	Runs       map[claybot.RunState]int  `json:"runs"`
	Outbox     map[claybot.SendState]int `json:"outbox"`
	Connectors []ConnectorStatus         `json:"connectors"`
	Model      ModelStatus               `json:"model"`
	Access     AccessStatus              `json:"access"`
	Duplicates int64                     `json:"duplicates"` // repeats that were dropped since the start
	Ambiguous  int64                     `json:"ambiguous"`  // sends whose fate was unknown at first
	Disk       *DiskStatus               `json:"disk,omitempty"`
	Start      *StartStatus              `json:"start,omitempty"` // while claybot comes back after it died
	Limits     LimitStatus               `json:"limits"`
	Node       *NodeStatus               `json:"node,omitempty"`  // that says all this
	Sinks      []runs.SinkHealth         `json:"sinks,omitempty"` // outside, see runs.Relay
	// Checks are the results of the newest checks of the data directory, by name:
	// database, histories, copy.
	Checks map[string]CheckStatus `json:"checks,omitempty"`
	// Settings are those that were not understood.
	Settings []SettingStatus `json:"settings,omitempty"`
	// Servers are the MCP servers whose tools agents may use.
	Servers []ServerStatus `json:"mcpServers,omitempty"`
	// Unwell is why this member takes less work and is not ready: descriptors, memory
	// or I/O. Empty when it is well.
	Unwell string `json:"unwell,omitempty"`
	// Faulty is how many agents this member cannot use at present. Parked are the
	// messages that wait for such agents, of all members.
	Faulty int           `json:"faultyAgents,omitempty"`
	Faults []AgentFault  `json:"faults,omitempty"` // of those agents, the first few
	Parked *ParkedStatus `json:"parked,omitempty"`
	// AsOf is when the figures of the store were read: set when they are not of this
	// moment, because it does not answer.
	AsOf claybot.Time `json:"figuresAsOf,omitempty"`
	// Unknown says that they were never read: agents, inbox, runs, outbox, duplicates
	// and ambiguous are zero then and mean nothing.
	Unknown bool `json:"figuresUnknown,omitempty"`
}

// CheckStatus is the result of a check of the data directory.
type CheckStatus struct {
	At      claybot.Time `json:"at"`                // when it ended
	Text    string       `json:"text"`              // what it found, in a sentence
	Problem bool         `json:"problem,omitempty"` // an operator needs to look at it
}

// ServerStatus is how one MCP server is doing.
type ServerStatus struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"` // connected: agents have its tools
	State string `json:"state"`
	Err   string `json:"error,omitempty"`
}

// DiskStatus is the space of the file system with the data directory, in bytes.
type DiskStatus struct {
	Free  int64 `json:"free"`
	Total int64 `json:"total"`
}

// NodeStatus is the node that says all this, among those that share the store.
// What is counted since the start is of this node alone. While Err is set, the
// figures of the store are the last that were read (Status.AsOf), or not known.
type NodeStatus struct {
	ID    string `json:"id,omitempty"` // empty while it is none
	Name  string `json:"name"`
	Nodes int    `json:"nodes"` // that are there, this one included
	OK    bool   `json:"ok"`    // the store answers
	Err   string `json:"error,omitempty"`
}

// InboxStatus counts the messages that no run has taken yet.
type InboxStatus struct {
	Waiting int          `json:"waiting"`
	Oldest  claybot.Time `json:"oldest,omitempty"` // arrival of the one that waits longest
}

// ConnectorStatus is the health of one connector.
type ConnectorStatus struct {
	Name string `json:"name"`
	connectors.Health
	// Held is why nothing comes in through it, whatever its state, and what becomes
	// of that meanwhile; empty when nothing keeps it.
	Held string `json:"held,omitempty"`
}

// ModelStatus is how the model answers: when it last did, and what went wrong
// since, in a sentence with the next step.
type ModelStatus struct {
	Name   string    `json:"name"`
	LastOK time.Time `json:"lastOk,omitzero"`
	Err    string    `json:"error,omitempty"`
}

// A SettingStatus is a setting that was not understood: what is wrong with it and
// what holds instead, and the next step. It holds no secret.
type SettingStatus struct {
	Text string `json:"text"`
	Next string `json:"next,omitempty"`
	Off  bool   `json:"off"` // something is switched off until it is corrected
}

// AccessStatus says how strangers are met.
type AccessStatus struct {
	Mode    people.AccessMode `json:"mode"`
	Granted int               `json:"granted"`
	Refused int64             `json:"refused"` // messages of strangers since the start
}

// Status reads how the daemon is doing.
func (s *AgentSystem) Status(ctx context.Context) (Status, error) {
	counts, err := s.figures(ctx)
	if err != nil {
		return Status{}, fmt.Errorf("read figures: %w", err)
	}
	if !counts.old && !counts.unknown {
		if _, err := s.countParked(ctx); err != nil {
			s.Log.Debug("failed to count parked messages, showing the last count", "err", err)
		}
	}
	st := Status{
		Version:    s.Version,
		Uptime:     time.Since(s.began).Round(time.Second).String(),
		Agents:     counts.Agents,
		Inbox:      InboxStatus{Waiting: counts.Waiting, Oldest: counts.OldestWaiting},
		Runs:       counts.Runs,
		Outbox:     counts.Outbox,
		Connectors: s.health(),
		Duplicates: counts.Duplicates,
		Ambiguous:  counts.Ambiguous,
		Node:       s.nodeStatus(),
		Start:      s.comingBack(),
		Limits:     s.Limits,
		Unknown:    counts.unknown,
	}
	s.faultStatus(&st)
	if counts.old {
		st.AsOf = counts.at
	}
	switch {
	case st.Node.Err != "":
		held(st.Connectors)
	case counts.unknown:
		st.Node.OK, st.Node.Err = false, noneRead
	case counts.old:
		st.Node.OK, st.Node.Err = false, oldFigures
	}
	if s.Sinks != nil {
		st.Sinks = s.Sinks()
	}
	if s.Servers != nil {
		st.Servers = s.Servers()
	}
	if s.Disk != nil {
		if disk, err := s.Disk(); err == nil { // else it is not known
			st.Disk = &disk
		}
	}
	if s.Checks != nil {
		st.Checks = s.Checks()
	}
	if s.BadSettings != nil {
		st.Settings = s.BadSettings()
	}
	if s.ModelHealth != nil {
		st.Model = s.ModelHealth()
	}
	st.Access = s.accessStatus()
	return st, nil
}

func (s *AgentSystem) accessStatus() AccessStatus {
	granted, refused := s.People.Counts()
	return AccessStatus{Mode: s.Admission().Mode, Granted: granted, Refused: refused}
}

func (s *AgentSystem) health() []ConnectorStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]ConnectorStatus, 0, len(s.connectors))
	for name, c := range s.connectors {
		health := c.Health()
		if stuck := s.intake.stuck(name); stuck != "" {
			health.State, health.Err = connectors.StateFailing, stuck
		}
		all = append(all, ConnectorStatus{Name: name, Health: health, Held: s.holding.held(name)})
	}
	slices.SortFunc(all, func(a, b ConnectorStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Ready reports whether every connector has had its first success or stands by, and
// none waits long for a message to be stored, the store answers, this member is well
// and the parking table has room; if not, what is missing. Before Run nothing is ready.
// One agent that cannot be used does not count, whatever the class of its fault: the
// others are served, and Status tells of it.
func (s *AgentSystem) Ready() (bool, string) {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	switch {
	case !running: // no connector is known yet, and none is missing
		return false, "the start is under way"
	case !s.Members.IsAlone() && s.Members.Answering() != nil:
		return false, noDatabase
	case s.Worker.Unwell.Spread():
		return false, s.Worker.Unwell.Says()
	case s.parking.full.Load():
		return false, texts.ParkingFull
	}
	for _, c := range s.health() {
		if c.Held != "" {
			return false, "connector " + c.Name + " is " + c.Held
		}
		if stuck := s.intake.stuck(c.Name); stuck != "" {
			return false, "connector " + c.Name + ": " + stuck
		}
		if c.LastOK.IsZero() && c.State != connectors.StateStandby {
			return false, strings.TrimSpace(fmt.Sprintf("connector %s is %s %s", c.Name, c.State, c.Err))
		}
	}
	return true, ""
}

// Tell sends a notice to the place of an agent. The same text is told once a
// day.
func (s *AgentSystem) Tell(ctx context.Context, id claybot.AgentID, text string) error {
	to, err := s.Index.IndexedDescriptor(ctx, id) // the files of the agent may be unusable
	if err != nil {
		return fmt.Errorf("tell %s: %w", id, err)
	}
	out := s.deliverer.Compose(claybot.Outgoing{Kind: claybot.OutgoingNotice, Agent: id, Route: to.Route()}, text)
	day := time.Now().Unix() / 86400
	for i := range out {
		out[i].ID = fmt.Sprintf("tell/%s/%d/%08x/%d", id, day, crc32.ChecksumIEEE([]byte(text)), i)
	}
	if _, err := s.deliverer.Send(ctx, out...); err != nil {
		return fmt.Errorf("tell %s: %w", id, err)
	}
	return nil
}

// answer is the text that answers a chat command.
func (s *AgentSystem) answer(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (string, error) {
	switch m.Command {
	case "start":
		return texts.Greeting(), nil
	case "status":
		return s.agentStatus(ctx, agent, m), nil
	case "why":
		r, err := s.lastReceipt(ctx, agent)
		if errors.Is(err, storage.ErrNotFound) {
			return "There is no message of yours yet.", nil
		}
		if err != nil {
			return "", fmt.Errorf("read the last receipt: %w", err)
		}
		_, faulty := s.Worker.Faults.At(agent.Descriptor.Key())
		text := textWhy(r, faulty, s.zone())
		if r.Run != nil && r.Run.Error != nil && s.People.ReadsCauses(agent, m) {
			if cause := s.Worker.AdviceOn(agent, &runs.Error{Code: r.Run.Error.Code, Text: r.Run.Error.Text}); cause != "" {
				text += "\n\n" + cause
			}
		}
		return text, nil
	case "context":
		return s.Worker.ContextSize(ctx, agent)
	case "tasks":
		return s.tasks(ctx, agent)
	case "plan":
		return texts.PlanWhat, nil
	}
	return texts.Help(), nil // asked for, or the best answer to a command that is none
}

// agentStatus is what the person who wrote m may know: their own agent and whether things
// work.
func (s *AgentSystem) agentStatus(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) string {
	doing, model := s.doing(ctx, agent), s.Profiles.Of(agent.ID, agent.Descriptor).Model
	if off := s.switchedOff(ctx, agent); off != nil {
		why := cmp.Or(off.Say, texts.SentenceFailed(off.Code))
		if off.Say == "" && s.People.ReadsCauses(agent, m) {
			why += "\n\n" + s.Worker.AdviceOn(agent, off)
		}
		if doing = why + "\n\n" + doing; strings.HasSuffix(doing, texts.Idle) { // nothing that is written is worked on
			doing = why
		}
		if off.Code == runs.CodeOff {
			model += ", switched off"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n- model: %s\n", doing, model)
	for _, c := range s.health() {
		if c.Name == agent.Descriptor.Connector {
			fmt.Fprintf(&b, "- %s: %s\n", c.Name, c.State)
		}
	}
	fmt.Fprintf(&b, "- agent: `%s`", agent.ID)
	return b.String()
}

func (s *AgentSystem) switchedOff(ctx context.Context, agent claybot.Agent) *runs.Error {
	if s.SwitchedOff == nil {
		return nil
	}
	return s.SwitchedOff(ctx, agent)
}

// tasks answers /tasks: what else is at work or planned for the person.
func (s *AgentSystem) tasks(ctx context.Context, agent claybot.Agent) (string, error) {
	var lines []string
	children, err := s.Index.Children(ctx, agent.ID)
	if err != nil {
		return "", fmt.Errorf("list helpers: %w", err)
	}
	for _, c := range children {
		if !c.Busy {
			continue
		}
		info, err := s.Subagents.Info(ctx, c)
		if err != nil {
			return "", err
		}
		lines = append(lines, fmt.Sprintf("- helper %s (`%s`): %s", connectors.OneLine(info.Name, 80), c.ID, info.State))
	}
	reminders, err := s.Later.Reminders(ctx, agent.ID)
	if err != nil {
		return "", fmt.Errorf("list reminders: %w", err)
	}
	for _, r := range reminders[:min(len(reminders), 20)] {
		lines = append(lines, fmt.Sprintf("- reminder at %s: %s", r.Due.Time().UTC().Format("2006-01-02 15:04 MST"), connectors.OneLine(r.Note, 80)))
	}
	if c, ok := s.connector(string(claybot.AgentCron)).(interface {
		Tasks(ctx context.Context) ([]connectors.Task, []connectors.Problem, error)
	}); ok {
		tasks, _, err := c.Tasks(ctx)
		if err != nil {
			return "", fmt.Errorf("list tasks: %w", err)
		}
		for _, t := range tasks {
			if slices.Contains(s.People.Identities(agent.Descriptor.OwnerID()), t.Owner) {
				lines = append(lines, taskLine(t))
			}
		}
	}
	if len(lines) == 0 {
		return "No helper is at work, and nothing is planned.", nil
	}
	return strings.Join(lines, "\n"), nil
}

func taskLine(t connectors.Task) string {
	next := "does not run"
	if len(t.Next) > 0 {
		next = "next at " + t.Next[0].Format("2006-01-02 15:04 MST")
	}
	return fmt.Sprintf("- task %s (`%s`): %s", connectors.OneLine(t.Name, 80), t.Slug, next)
}

// Transcript is what a chat window shows of the conversation of d: its newest
// limit messages and replies, oldest first.
func (s *AgentSystem) Transcript(ctx context.Context, d claybot.Descriptor, limit int) ([]storage.Entry, error) {
	id, err := s.Index.IndexedAgent(ctx, d)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find agent: %w", err)
	}
	return s.Outbox.Transcript(ctx, id, d.Route().Dest(), limit)
}

// SentAfter is what was said to d after position n of the outbox.
func (s *AgentSystem) SentAfter(ctx context.Context, d claybot.Descriptor, n int64, limit int) ([]claybot.Outgoing, error) {
	return s.Outbox.SentAfter(ctx, d.Route().Dest(), n, limit)
}

// LastN is the position of the newest message for d in the outbox, 0 for none.
func (s *AgentSystem) LastN(ctx context.Context, d claybot.Descriptor) (int64, error) {
	return s.Outbox.LastN(ctx, d.Route().Dest())
}

// Reschedule computes the due times of waiting messages anew. Call it after
// the profiles changed.
func (s *AgentSystem) Reschedule(ctx context.Context) error {
	err := s.Inbox.Reschedule(ctx, "", s.Profiles.WaitOf)
	if err != nil {
		return fmt.Errorf("reschedule: %w", err)
	}
	s.boxes.Wake()
	return nil
}

// zone is where the people are.
func (s *AgentSystem) zone() *time.Location {
	if s.Zone != nil {
		if z := s.Zone(); z != nil {
			return z
		}
	}
	return time.UTC
}

// doing says what an agent does now, and what its person can do about it.
func (s *AgentSystem) doing(ctx context.Context, agent claybot.Agent) string {
	if since, ok := s.unusableSince(ctx, agent.Descriptor); ok {
		return texts.Unusable(since, s.zone())
	}
	run, q, asks, err := s.Questions.PausedRun(ctx, agent.ID)
	switch {
	case s.boxes.Busy(agent.ID), err == nil && run.State == claybot.RunRunning:
		return "I am at work on something; /stop ends it."
	case err != nil:
		return "I cannot look at what I am doing right now."
	case asks && s.Questions.MayAnswer(q, agent.Descriptor, agent.Descriptor.OwnerID()) && !q.Explicit:
		return "I am waiting for your answer to: " + texts.Headline(q) + "\n/stop ends it."
	case asks && s.Questions.MayAnswer(q, agent.Descriptor, agent.Descriptor.OwnerID()):
		return "I am waiting for your decision: " + texts.Headline(q) + "\n" + texts.HowToAnswer(q, agent.Descriptor.Connector) + " /stop ends it."
	case run.State == claybot.RunAwaiting && run.Awaiting != nil:
		return "I am waiting for " + texts.WaitsFor(run, s.zone()) + ".\n/stop ends it."
	}
	waiting, err := s.Inbox.Waiting(ctx, agent.ID, maxInboxView)
	switch {
	case err != nil || len(waiting) == 0:
		return texts.Idle
	case len(waiting) == 1:
		return "I am about to take up your message."
	}
	return fmt.Sprintf("I am about to take up %d messages.", len(waiting))
}

// rescheduled lets the changed settings of an agent count for what waits for it.
func (s *AgentSystem) rescheduled(ctx context.Context, id claybot.AgentID) error {
	if err := s.Inbox.Reschedule(ctx, id, s.Profiles.WaitOf); err != nil {
		return fmt.Errorf("reschedule %s: %w", id, err)
	}
	s.boxes.Wake()
	return nil
}
