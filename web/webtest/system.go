package webtest

import (
	"context"
	"errors"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

// A System is the agent system as operators see it. It refuses to allow a subject of
// the connector nowhere and to revoke the subject listed.
type System struct {
	*agentsystem.AgentSystem
	*agentsystem.Control
	*overview.Listings
	*overview.Monitor
	*overview.Stories
	*people.Directory
}

// NewSystem returns s as operators see it.
func NewSystem(s *agentsystem.AgentSystem) System {
	return System{s, s.Control, s.Overview.Listings, s.Overview.Monitor, s.Overview.Stories, s.People}
}

// Backend returns s as the contracts of package web.
func (s System) Backend() web.Backend {
	return web.Backend{
		Agents: s, Control: s, Settings: s.Profiles, Privacy: s.Overview.Answers, Inboxes: s, Reminders: s.Subagents.Reminders, Runs: s, Starter: s, RunControl: s,
		Outbox: s, Questions: s.AgentSystem.Questions.Answers, Files: s, Pairing: s, Grants: s, Directory: s, System: s,
	}
}

// Run implements web.Runs.
func (s System) Run(ctx context.Context, id claybot.RunID) (claybot.Run, error) {
	return s.Listings.RunByID(ctx, id)
}

// UndoRun implements web.RunControl.
func (s System) UndoRun(ctx context.Context, id claybot.RunID, by string) (agentsystem.Accepted, error) {
	a, err := s.Control.UndoRun(ctx, id, by)
	if no, ok := errors.AsType[agentsystem.NoUndoError](err); ok {
		return a, web.Refusal(no)
	}
	return a, err
}

// StopAgent implements web.AgentControl.
func (s System) StopAgent(ctx context.Context, id claybot.AgentID) (int, error) {
	return s.Stop(ctx, id)
}

// ResetAgent implements web.AgentControl.
func (s System) ResetAgent(ctx context.Context, id claybot.AgentID) error { return s.Reset(ctx, id) }

// DeleteAgent implements web.AgentControl.
func (s System) DeleteAgent(ctx context.Context, id claybot.AgentID) error { return s.Delete(ctx, id) }

// Inbox implements web.Inboxes.
func (s System) Inbox(ctx context.Context, id claybot.AgentID) (overview.InboxView, error) {
	return s.Listings.InboxOf(ctx, id)
}

// Allow implements web.Grants.
func (s System) Allow(ctx context.Context, connector, subject string) error {
	if connector == "nowhere" {
		return web.Refusal("there is no connector nowhere")
	}
	return s.Directory.Allow(ctx, connector, subject)
}

// Invite implements web.Pairing.
func (s System) Invite(ctx context.Context, connector string) (web.Invitation, error) {
	if connector == "nowhere" {
		return web.Invitation{}, web.Refusal("nowhere has no pairing links")
	}
	p, err := s.Gate.Invite(ctx, connector)
	return web.Invitation{Connector: connector, URL: "https://chat.test/?start=" + p.Code, Code: p.Code, Expires: p.Expires}, err
}

// Revoke implements web.Grants.
func (s System) Revoke(ctx context.Context, connector, subject string) (web.Revoked, error) {
	if subject == "listed" {
		return web.Revoked{}, web.Refusal("the list of the configuration lets it in")
	}
	return web.Revoked{}, s.Control.Revoke(ctx, connector, subject)
}

// Shapes implements web.System.
func (s System) Shapes() map[string]runs.Shape { return s.Worker.Shapes() }
