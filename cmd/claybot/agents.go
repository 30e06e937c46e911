package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/web"
)

// listedIdle is how long an idle subagent stays in the list.
const listedIdle = 24 * time.Hour

// works reports whether the agent has work to do.
func works(a web.AgentView) bool { return a.State != "idle" || a.Waiting > 0 }

// whose names the user or the task of an agent.
func whose(a web.AgentView) string {
	d := a.Descriptor
	switch a.Type {
	case claybot.AgentUser:
	case claybot.AgentSubagent: // its UID looks like an agent ID but is none
		return cmp.Or(a.Name, "-")
	default:
		return cmp.Or(a.Name, d.UID, "-")
	}
	place := d.Connector + ":" + d.ChannelID
	if d.ThreadID != "" {
		place += ":" + d.ThreadID
	}
	switch {
	case d.UserID == d.ChannelID:
	case d.Shared():
		place += " everyone"
	default:
		place += " " + d.UserID
	}
	if names := joined(", ", a.PersonName, a.PlaceName); names != "" {
		place += " (" + names + ")"
	}
	return place
}

// joined joins what is not empty.
func joined(by string, all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), by)
}

// activity says what the agent is doing.
func activity(a web.AgentView) string {
	state := a.Condition()
	switch {
	case a.Waiting == 0:
		return state
	case state == "waiting":
		return fmt.Sprintf("waiting %d", a.Waiting)
	}
	return fmt.Sprintf("%s, waiting %d", state, a.Waiting)
}

// lastMessage is when a user wrote to the agent, or when a subagent was created.
func lastMessage(a web.AgentView) string {
	switch {
	case a.LastUserAt != 0:
		return moment(a.LastUserAt.Time())
	case a.Type != claybot.AgentUser && a.CreatedAt != 0:
		return "created " + moment(a.CreatedAt.Time())
	}
	return "never"
}

// A branch is an agent at its place in the tree. Lines leads to it.
type branch struct {
	web.AgentView
	lines string
}

// tree puts children below their parents, oldest first; agents without a parent in the list
// stay in its order. Each agent appears once, whatever the list says.
func tree(agents []web.AgentView) []branch {
	known := make(map[claybot.AgentID]bool, len(agents))
	agents = slices.DeleteFunc(slices.Clone(agents), func(a web.AgentView) bool {
		twice := known[a.ID]
		known[a.ID] = true
		return twice
	})
	children := make(map[claybot.AgentID][]web.AgentView)
	var roots []web.AgentView
	for _, a := range agents {
		if a.Parent != "" && a.Parent != a.ID && known[a.Parent] {
			children[a.Parent] = append(children[a.Parent], a)
		} else {
			roots = append(roots, a)
		}
	}
	var all []branch
	placed := make(map[claybot.AgentID]bool)
	var place func(a web.AgentView, own, below string) // own leads to a, below to its children
	place = func(a web.AgentView, own, below string) {
		if placed[a.ID] {
			return
		}
		placed[a.ID] = true
		all = append(all, branch{a, own})
		of := slices.DeleteFunc(children[a.ID], func(c web.AgentView) bool { return placed[c.ID] })
		slices.SortStableFunc(of, func(a, b web.AgentView) int {
			return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
		})
		for i, c := range of {
			if i == len(of)-1 {
				place(c, below+"└ ", below+"  ")
			} else {
				place(c, below+"├ ", below+"│ ")
			}
		}
	}
	for _, a := range append(roots, agents...) { // agents: parents in a circle have no root
		place(a, "", "")
	}
	return all
}

// awake leaves out the idle subagents that were created before since and have no active
// subagents below them. It returns how many it left out.
func awake(agents []web.AgentView, since claybot.Time) (stay []web.AgentView, left int) {
	parent := make(map[claybot.AgentID]claybot.AgentID, len(agents))
	for _, a := range agents {
		parent[a.ID] = a.Parent
	}
	keep := make(map[claybot.AgentID]bool)
	for _, a := range agents {
		if a.Type == claybot.AgentSubagent && !works(a) && a.CreatedAt < since {
			continue
		}
		for id := a.ID; id != "" && !keep[id]; id = parent[id] {
			keep[id] = true
		}
	}
	for _, a := range agents {
		if keep[a.ID] {
			stay = append(stay, a)
		}
	}
	return stay, len(agents) - len(stay)
}

type agentsCmd struct {
	List   agentsListCmd   `cmd:"" default:"withargs" eg:"agents" help:"List the agents as a tree, subagents below their parents."`
	Show   agentsShowCmd   `cmd:"" eg:"agents show AGENT" help:"Show an agent with its settings and permissions."`
	Set    agentsSetCmd    `cmd:"" eg:"agents set AGENT maxSteps 20" help:"Change a setting of one agent."`
	Unset  agentsUnsetCmd  `cmd:"" eg:"agents unset AGENT maxSteps" help:"Reset a setting of one agent to that of its profile."`
	Stop   agentsStopCmd   `cmd:"" eg:"agents stop AGENT" help:"Stop the runs of an agent and its subagents."`
	Reset  agentsResetCmd  `cmd:"" eg:"agents reset AGENT" help:"Reset the conversation of an agent."`
	Delete agentsDeleteCmd `cmd:"" eg:"agents delete AGENT --yes" help:"Delete an agent; its files move to the quarantine."`
}

type (
	agentsListCmd struct {
		JSON bool `name:"json" help:"Print JSON; includes all agents."`
		All  bool `help:"Include subagents that finished more than a day ago."`
	}
	agentsShowCmd struct {
		ID   claybot.AgentID `arg:"" help:"ID of the agent, as listed by agents."`
		JSON bool            `name:"json" help:"Print JSON."`
	}
	agentsStopCmd struct {
		ID claybot.AgentID `arg:"" help:"ID of the agent, as listed by agents."`
	}
	agentsResetCmd struct {
		ID claybot.AgentID `arg:"" help:"ID of the agent, as listed by agents."`
	}
	agentsDeleteCmd struct {
		ID  claybot.AgentID `arg:"" help:"ID of the agent, as listed by agents."`
		Yes bool            `help:"Skip confirmation."`
	}
)

// Run lists the agents.
func (c agentsListCmd) Run(e *env) error {
	all, err := e.agents()
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(all)
	}
	left := 0
	if !c.All {
		all, left = awake(all, claybot.At(time.Now().Add(-listedIdle)))
	}
	if err := e.table(agentTable(tree(all))); err != nil || left == 0 {
		return err
	}
	return e.text(fmt.Sprintf("%s finished more than a day ago; --all shows them.\n", count(left, "more subagent")))
}

// agents reads the daemon's list, page by page.
func (e *env) agents() ([]web.AgentView, error) {
	return pages(func(path string, out any) error { return e.call("GET", path, nil, out) }, "/agents",
		func(p web.AgentList) ([]web.AgentView, string) { return p.Agents, p.Next })
}

func agentTable(all []branch) [][]string {
	head := []string{"AGENT", "KIND", "WHO/NAME", "STATE", "LAST MESSAGE"}
	if slices.ContainsFunc(all, func(b branch) bool { return b.Hindrance() != "" }) {
		head = append(head, "NOTE")
	}
	return slices.Insert(each(all, func(b branch) []string {
		return []string{b.lines + string(b.ID), string(b.Type), oneLine(whose(b.AgentView)), activity(b.AgentView), lastMessage(b.AgentView), connectors.OneLine(b.Hindrance(), 600)}[:len(head)]
	}), 0, head)
}

// A shownAgent is an agent with its settings.
type shownAgent struct {
	Agent    web.AgentView    `json:"agent"`
	Settings web.SettingsView `json:"settings"`
}

// Run shows an agent.
func (c agentsShowCmd) Run(e *env) error {
	var v shownAgent
	var err error
	if v.Agent, err = ask[web.AgentView](e, "GET", at(agentPath(c.ID)), nil); err != nil {
		return err
	}
	if v.Settings, err = ask[web.SettingsView](e, "GET", at(agentPath(c.ID, "settings")), nil); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(v)
	}
	a, now := v.Agent, v.Settings.Now
	rows := [][]string{
		{"agent", string(a.ID)},
		{"kind", string(a.Type)},
		{"who/name", oneLine(whose(a))},
		{"state", activity(a)},
		{"created", moment(a.CreatedAt.Time())},
		{"last message", lastMessage(a)},
	}
	rows = append(rows, append(field("stopped", a.Stopped), field("off", connectors.OneLine(a.Off, 600))...)...)
	if a.Parent != "" {
		rows = append(rows, []string{"parent", string(a.Parent)})
	}
	rows = append(rows, [][]string{
		{"profile", oneLine(v.Settings.Profile)},
		{"model", oneLine(now.Model)},
		{"engine", now.Engine},
		{"tools", fmt.Sprintf("%d of %d; claybot tools --agent %s lists them", len(now.Tools), len(v.Settings.Tools), a.ID)},
	}...)
	rows = append(rows, ownRows(v.Settings.Own)...)
	var limits []string
	if now.Permissions != nil {
		limits = texts.Voice{}.Limits(*now.Permissions)
	}
	if len(limits) == 0 {
		limits = []string{"as its profile says"}
	}
	for i, line := range limits {
		rows = append(rows, []string{[]string{"permissions", ""}[min(i, 1)], oneLine(line)})
	}
	return e.table(rows)
}

// Run stops an agent.
func (c agentsStopCmd) Run(e *env) error {
	return reply(e, "POST", at(agentPath(c.ID, "stop")), nil, func(out web.Stopped) string {
		if out.Stopped == 0 {
			return "No runs to stop.\n"
		}
		return fmt.Sprintf("Stopping %s.\n", count(out.Stopped, "run"))
	})
}

// Run resets an agent.
func (c agentsResetCmd) Run(e *env) error {
	return e.does("POST", at(agentPath(c.ID, "reset")), nil, "Started a new conversation; the old one stays in the agent's history file.\n")
}

// Run deletes an agent.
func (c agentsDeleteCmd) Run(e *env) error {
	path, err := agentPath(c.ID)
	if err != nil {
		return err
	}
	if !c.Yes {
		return usageError{errors.New("this deletes the agent's memory, reminders and waiting messages; add --yes to confirm")}
	}
	return e.does("DELETE", to(path), nil, "Agent deleted; its files are in the quarantine of the data directory.\n")
}

type remindersCmd struct {
	Agent claybot.AgentID `arg:"" help:"ID of the agent, as listed by agents."`
	JSON  bool            `name:"json" help:"Print JSON."`
}

// Run lists the reminders of an agent.
func (c remindersCmd) Run(e *env) error {
	out, err := ask[web.ReminderList](e, "GET", at(agentPath(c.Agent, "reminders")), nil)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(out.Reminders)
	}
	return e.list("AT,CREATED,REMINDER,NOTE", "This agent has no reminders.\n", each(out.Reminders, func(r storage.Reminder) []string {
		return []string{moment(r.Due.Time()), moment(r.Made.Time()), r.ID, oneLine(r.Note)}
	}))
}
