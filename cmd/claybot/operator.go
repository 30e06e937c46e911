package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// An operator is the system as the web server sees it.
type operator struct {
	*agentsystem.AgentSystem
	*overview.Listings
	*overview.Monitor
	*overview.Stories
	*people.Directory
	access  func() configs.Access
	removed func(context.Context, claybot.AgentID) // is told which agent is gone
}

// backend returns o as the contracts of package web.
func (o operator) backend() web.Backend {
	return web.Backend{
		Agents: o, Control: o, Settings: o.Profiles, Inboxes: o, Reminders: o.Subagents, Runs: o, Starter: o, Undos: o,
		Outbox: o, Questions: o.AgentSystem.Questions, Files: o, Access: o, System: o,
	}
}

// Run loads a run.
func (o operator) Run(ctx context.Context, id claybot.RunID) (claybot.Run, error) {
	return o.Overview.RunByID(ctx, id)
}

// UndoRun takes back what a run did.
func (o operator) UndoRun(ctx context.Context, id claybot.RunID, by string) (agentsystem.Accepted, error) {
	a, err := o.AgentSystem.UndoRun(ctx, id, by)
	var no agentsystem.NoUndoError
	if errors.As(err, &no) {
		return a, web.Refusal(no)
	}
	return a, err
}

// StopAgent ends what an agent and those below it do.
func (o operator) StopAgent(ctx context.Context, id claybot.AgentID) (int, error) {
	return o.Stop(ctx, id)
}

// ResetAgent begins a new context for an agent.
func (o operator) ResetAgent(ctx context.Context, id claybot.AgentID) error {
	return o.Reset(ctx, id)
}

// removeTime is how long the rest of a deleted agent may take to remove. What is
// left then is removed later.
const removeTime = 2 * time.Minute

// DeleteAgent deletes an agent with all its data; the caller need
// not wait for the end.
func (o operator) DeleteAgent(ctx context.Context, id claybot.AgentID) error {
	if err := o.Delete(ctx, id); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer cancel()
	o.removed(ctx, id)
	return nil
}

// Inbox shows what waits for an agent.
func (o operator) Inbox(ctx context.Context, id claybot.AgentID) (overview.InboxView, error) {
	return o.Overview.InboxOf(ctx, id)
}

// Allow grants access by id, by the same rules as the configured list.
func (o operator) Allow(ctx context.Context, connector, subject string) error {
	a, err := configs.ParseAllowed(connector + ":" + subject)
	if err != nil {
		return web.Refusal(err.Error())
	}
	return o.Directory.Allow(ctx, a.Connector, a.Subject)
}

// Revoke takes a grant back and says what lets the person in all the same.
func (o operator) Revoke(ctx context.Context, connector, subject string) (still string, err error) {
	err = o.AgentSystem.Revoke(ctx, connector, subject)
	still = letIn(o.access(), connector, subject)
	switch {
	case errors.Is(err, storage.ErrNotFound) && still != "":
		return "", web.Refusal(connector + ":" + subject + " was not let in by pair: " + still)
	case err != nil:
		return "", err
	}
	return still, nil
}

// letIn returns the setting that grants access, empty for none. The list may name
// a channel of Slack without its team.
func letIn(a configs.Access, connector, subject string) string {
	_, short, _ := strings.Cut(subject, "/")
	switch {
	case a.Mode == configs.AccessOpen:
		return "access is open, so everybody is let in; set CLAYBOT_ACCESS=pairing to change that"
	case a.Allows(connector, subject), short != "" && a.Allows(connector, short):
		return "the list of the configuration lets " + connector + ":" + subject + " in; remove that from CLAYBOT_ALLOW or access.allow"
	}
	return ""
}

// Shapes are the engines that are graphs, to be drawn.
func (o operator) Shapes() map[string]runs.Shape { return o.Worker.Shapes() }
