package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

// resting is how long a subagent that does nothing stays in the list.
const resting = 24 * time.Hour

// works reports whether the agent has something to do.
func works(a web.AgentView) bool { return a.State != "idle" || a.Waiting > 0 }

// whose names the person or the task of an agent.
func whose(a web.AgentView) string {
	d := a.Descriptor
	switch a.Type {
	case claybot.AgentUser:
	case claybot.AgentSubagent: // its uid looks like an id of an agent, and is none
		return cmp.Or(a.Name, "-")
	default:
		return cmp.Or(a.Name, d.UID, "-")
	}
	place := d.Connector + ":" + d.ChannelID
	if d.UserID == d.ChannelID {
		return place
	}
	return place + " " + d.UserID
}

// activity says what the agent is at.
func activity(a web.AgentView) string {
	switch {
	case a.Waiting == 0:
		return a.State
	case a.State == "waiting":
		return fmt.Sprintf("waiting %d", a.Waiting)
	}
	return fmt.Sprintf("%s, waiting %d", a.State, a.Waiting)
}

// lastMessage is when a person wrote to the agent, or when a background agent was made.
func lastMessage(a web.AgentView) string {
	switch {
	case a.LastUserAt != 0:
		return moment(a.LastUserAt.Time())
	case a.Type != claybot.AgentUser && a.CreatedAt != 0:
		return "made " + moment(a.CreatedAt.Time())
	}
	return "never"
}

// A branch is an agent in its place below its parent. Lines leads to it.
type branch struct {
	web.AgentView
	lines string
}

// tree puts children below their parents, oldest first; agents without a parent
// in the list stay in its order. Each agent comes once, whatever the list says.
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
	for _, c := range children {
		slices.SortStableFunc(c, func(a, b web.AgentView) int {
			return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
		})
	}
	g := grove{children: children, placed: make(map[claybot.AgentID]bool)}
	for _, a := range roots {
		g.plant(a, "", "")
	}
	for _, a := range agents { // parents in a circle have no root
		g.plant(a, "", "")
	}
	return g.all
}

// A grove is a tree while it is put together.
type grove struct {
	children map[claybot.AgentID][]web.AgentView
	placed   map[claybot.AgentID]bool
	all      []branch
}

// plant adds a and all below it. own leads to a, below to its children.
func (g *grove) plant(a web.AgentView, own, below string) {
	if g.placed[a.ID] {
		return
	}
	g.placed[a.ID] = true
	g.all = append(g.all, branch{a, own})
	children := slices.DeleteFunc(slices.Clone(g.children[a.ID]), func(c web.AgentView) bool { return g.placed[c.ID] })
	for i, c := range children {
		if i == len(children)-1 {
			g.plant(c, below+"└ ", below+"  ")
		} else {
			g.plant(c, below+"├ ", below+"│ ")
		}
	}
}

// awake leaves out the subagents that have nothing to do, were made before
// since, and have nobody below them who stays. It returns how many it left out.
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
	List   agentsListCmd   `cmd:"" default:"withargs" help:"List the agents as a tree, subagents below their parents."`
	Stop   agentsStopCmd   `cmd:"" help:"Stop the runs of an agent and its subagents."`
	Reset  agentsResetCmd  `cmd:"" help:"Reset the conversation of an agent."`
	Delete agentsDeleteCmd `cmd:"" help:"Delete an agent; its files move to the quarantine."`
}

type (
	agentsListCmd struct {
		JSON bool `name:"json" help:"Print JSON; includes all agents."`
		All  bool `help:"Include subagents that finished more than a day ago."`
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
	stay, left := all, 0
	if !c.All {
		stay, left = awake(stay, claybot.At(time.Now().Add(-resting)))
	}
	if err := e.table(agentTable(tree(stay))); err != nil {
		return err
	}
	if left > 0 {
		return e.text(fmt.Sprintf("%s have done their work; --all shows them.\n", count(left, "more subagent")))
	}
	return nil
}

// agents reads the daemon's list, page by page.
func (e *env) agents() ([]web.AgentView, error) {
	all := []web.AgentView{}
	for after := ""; ; {
		var page web.AgentList
		path := "/agents?" + url.Values{"limit": {"500"}, "after": {after}}.Encode()
		if err := e.ask("GET", path, nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Agents...)
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

func agentTable(all []branch) [][]string {
	rows := [][]string{{"AGENT", "KIND", "WHO/NAME", "STATE", "LAST MESSAGE"}}
	for _, b := range all {
		rows = append(rows, []string{b.lines + string(b.ID), string(b.Type), oneLine(whose(b.AgentView)), activity(b.AgentView), lastMessage(b.AgentView)})
	}
	return rows
}

// Run stops an agent.
func (c agentsStopCmd) Run(e *env) error {
	out, err := ask[web.Stopped](e, "POST", at(agentPath(c.ID, "stop")), nil)
	if err != nil {
		return err
	}
	if out.Stopped == 0 {
		return e.text("Nothing is running there.\n")
	}
	return e.text(fmt.Sprintf("%s asked to stop.\n", count(out.Stopped, "run")))
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
	rows := [][]string{{"AT", "MADE", "REMINDER", "NOTE"}}
	for _, r := range out.Reminders {
		rows = append(rows, []string{moment(r.Due.Time()), moment(r.Made.Time()), r.ID, oneLine(r.Note)})
	}
	return e.list(rows, "This agent has no reminders.\n")
}
