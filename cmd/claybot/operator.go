package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// An operator implements the contracts of package web with the parts of the system.
type operator struct {
	*agentsystem.AgentSystem
	*agentsystem.Control
	*overview.Listings
	*overview.Monitor
	*overview.Stories
	*people.Directory
	config  func() configs.Config
	removed func(context.Context, claybot.AgentID) // called with each deleted agent
	mixed   func() bool                            // whether members of different versions run
	erasing
}

// backend returns o as the contracts of package web.
func (o operator) backend() web.Backend {
	return web.Backend{
		Agents: o, Control: o, Settings: o.Profiles, Privacy: o.Overview.Answers, Inboxes: o, Reminders: o.Subagents.Reminders, Runs: o, Starter: o, RunControl: o,
		Outbox: o, Questions: o.AgentSystem.Questions.Answers, Files: o, Pairing: o, Grants: o, People: o, Directory: o, System: o,
	}
}

// Run loads a run.
func (o operator) Run(ctx context.Context, id claybot.RunID) (claybot.Run, error) {
	return o.Overview.RunByID(ctx, id)
}

// UndoRun undoes the side effects of a run.
func (o operator) UndoRun(ctx context.Context, id claybot.RunID, by string) (agentsystem.Accepted, error) {
	a, err := o.Control.UndoRun(ctx, id, by)
	var no agentsystem.NoUndoError
	if errors.As(err, &no) {
		return a, web.Refusal(no)
	}
	return a, err
}

// StopAgent stops the runs of an agent and its subagents.
func (o operator) StopAgent(ctx context.Context, id claybot.AgentID) (int, error) {
	return o.Stop(ctx, id)
}

// ResetAgent resets the conversation of an agent.
func (o operator) ResetAgent(ctx context.Context, id claybot.AgentID) error {
	return o.Reset(ctx, id)
}

// removeTime bounds the cleanup after a deleted agent. The rest is removed later.
const removeTime = 2 * time.Minute

// DeleteAgent deletes an agent with all its data, even if the caller disconnects.
func (o operator) DeleteAgent(ctx context.Context, id claybot.AgentID) error {
	if err := o.Delete(ctx, id); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer cancel()
	o.removed(ctx, id)
	return nil
}

// Inbox lists the waiting messages of an agent.
func (o operator) Inbox(ctx context.Context, id claybot.AgentID) (overview.InboxView, error) {
	return o.Overview.InboxOf(ctx, id)
}

// Allow grants access by ID, by the same rules as the configured list.
func (o operator) Allow(ctx context.Context, connector, subject string) error {
	a, err := o.config().ParseAllowed(connector + ":" + subject)
	if err != nil {
		return web.Refusal(err.Error())
	}
	return o.Directory.Allow(ctx, a.Connector, a.Subject)
}

// Invite makes a link or a code that gives one person access. Nothing is stored for a connector in
// which no person can send one, nor beside members of other versions: older ones take an invitation
// for a request.
func (o operator) Invite(ctx context.Context, connector string) (web.Invitation, error) {
	var bot connectors.Inviter
	found, links := false, false
	for _, c := range o.Monitor.Connectors.All() {
		if c.Name() == connector {
			found = true
			bot, links = c.(connectors.Inviter)
		}
	}
	of := o.config().Connectors.Platforms().Type(connector)
	switch {
	case !found || !links && of != platforms.Slack && of != platforms.Discord:
		return web.Invitation{}, web.Refusal(connector + " has no pairing links: only Telegram, Slack and Discord bots that are configured have them")
	case o.mixed():
		return web.Invitation{}, web.Refusal("cannot make a pairing link while cluster members of different versions run; see claybot members, and try again after the upgrade")
	case links && bot.Invitation("") == "":
		return web.Invitation{}, web.Refusal(connector + " does not know the bot's name, because this member is not connected to Telegram; see claybot status")
	}
	p, err := o.Directory.Invite(ctx, connector)
	made := web.Invitation{Connector: connector, Code: p.Code, Expires: p.Expires}
	if links {
		made.URL = bot.Invitation(p.Code)
	}
	return made, err
}

// Revoke revokes a grant, takes the role, and names a setting that still allows the user.
func (o operator) Revoke(ctx context.Context, connector, subject string) (web.Revoked, error) {
	if err := o.onlyHere(ctx, connector+"/"+subject); err != nil {
		return web.Revoked{}, err
	}
	approved := o.Granted(connector, subject)
	err := o.Control.Revoke(ctx, connector, subject)
	still := allowedBy(o.config(), connector, subject)
	switch {
	case errors.Is(err, storage.ErrNotFound) && still != "":
		return web.Revoked{}, web.Refusal(connector + ":" + subject + " was not approved by pair: " + still)
	case err != nil:
		return web.Revoked{}, err
	}
	role := still != "" && !approved
	if owner := connector + "/" + subject; slices.Contains(o.config().Access.Operators, owner) {
		still = strings.TrimPrefix(still+"; ", "; ") + "the configuration still names " + connector + ":" + subject + " as an operator; remove the entry there: " + withoutOperator(o.config(), owner)
	}
	return web.Revoked{Still: still, Role: role}, nil
}

// onlyHere refuses to take a role over the network, as a change of roles is refused there.
func (o operator) onlyHere(ctx context.Context, owners ...string) error {
	if web.Local(ctx) || !slices.ContainsFunc(owners, o.Holds) {
		return nil
	}
	return &web.Problem{
		Status: http.StatusForbidden, Code: "local", Message: "The person has a role, which cannot be taken over the network.",
		Fix: "Run on the machine of claybot: claybot pair revoke, or claybot people role PERSON user.",
	}
}

// SetRole gives a person a role. A Refusal says why it cannot, and what to do.
func (o operator) SetRole(ctx context.Context, owner string, role storage.Role, by string) (storage.RoleChange, error) {
	done, err := o.Directory.SetRole(ctx, owner, role, by)
	who := strings.Replace(owner, "/", ":", 1)
	for why, text := range map[error]string{
		people.ErrLastOwner:      who + " is the last owner; make another person an owner first: claybot people role PERSON owner",
		people.ErrRoleConfigured: who + " is an operator by operators in the configuration; remove the entry there: " + withoutOperator(o.config(), owner),
		people.ErrRoleOfConsole:  "the page and the terminal always belong to an owner",
		people.ErrNoAccess:       who + " has no access; give it first: claybot pair allow " + who,
		people.ErrMayBeChannel:   who + " may be a channel: no person with this id has written to claybot; ask them to write to the bot first",
		people.ErrNoPerson:       who + " is not the id of a person; claybot people lists all",
	} {
		if errors.Is(err, why) {
			return done, web.Refusal(text)
		}
	}
	return done, err
}

// withoutOperator is the command that takes a person out of the operators of the configuration.
func withoutOperator(c configs.Config, owner string) string {
	rest := slices.DeleteFunc(slices.Clone(c.Access.Operators), func(x string) bool { return x == owner })
	switch len(rest) {
	case len(c.Access.Operators): // by another notation
		return "claybot config edit"
	case 0:
		return "claybot config unset operators"
	}
	return "claybot config set operators '[" + strings.Join(rest, ", ") + "]'"
}

// allowedBy returns the setting that grants access, empty for none. The list may name a Slack
// channel without its team.
func allowedBy(c configs.Config, connector, subject string) string {
	_, short, _ := strings.Cut(subject, "/")
	switch a := c.Access; {
	case a.Mode == configs.AccessOpen:
		return "access is open, so anyone has access; to restrict it, " + restrictsAccess(c)
	case a.Allows(connector, subject), short != "" && a.Allows(connector, short):
		return "the configuration allows " + connector + ":" + subject + "; remove it from CLAYBOT_ALLOW or access.allow"
	}
	return ""
}

// Shapes returns the engines that are graphs.
func (o operator) Shapes() map[string]runs.Shape { return o.Worker.Shapes() }
