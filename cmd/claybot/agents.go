package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// resting is how long a subagent that does nothing stays in the list.
const resting = 24 * time.Hour

// An agentRow is one agent in the daemon's list.
type agentRow struct {
	ID         claybot.AgentID    `json:"id"`
	Type       claybot.AgentType  `json:"type"`
	Name       string             `json:"name,omitempty"`
	Parent     claybot.AgentID    `json:"parent,omitempty"`
	Owner      string             `json:"owner,omitempty"`
	Descriptor claybot.Descriptor `json:"descriptor"`
	CreatedAt  claybot.Time       `json:"createdAt"`
	LastUserAt claybot.Time       `json:"lastUserAt"`
	Usage      claybot.Usage      `json:"usage"`
	Waiting    int                `json:"waiting"`
	Run        claybot.RunID      `json:"run,omitempty"`
	State      string             `json:"state"` // idle, waiting, or the state of the run
}

// busy reports whether the agent has something to do.
func (a agentRow) busy() bool { return a.State != "idle" || a.Waiting > 0 }

// who names the person or the task of an agent.
func (a agentRow) who() string {
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

// doing says what the agent is at.
func (a agentRow) doing() string {
	switch {
	case a.Waiting == 0:
		return a.State
	case a.State == "waiting":
		return fmt.Sprintf("waiting %d", a.Waiting)
	}
	return fmt.Sprintf("%s, waiting %d", a.State, a.Waiting)
}

// last is when a person wrote to the agent, or when a background agent was made.
func (a agentRow) last() string {
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
	agentRow
	lines string
}

// tree puts children below their parents, oldest first; agents without a parent
// in the list stay in its order. Each agent comes once, whatever the list says.
func tree(agents []agentRow) []branch {
	known := make(map[claybot.AgentID]bool, len(agents))
	agents = slices.DeleteFunc(slices.Clone(agents), func(a agentRow) bool {
		twice := known[a.ID]
		known[a.ID] = true
		return twice
	})
	children := make(map[claybot.AgentID][]agentRow)
	var roots []agentRow
	for _, a := range agents {
		if a.Parent != "" && a.Parent != a.ID && known[a.Parent] {
			children[a.Parent] = append(children[a.Parent], a)
		} else {
			roots = append(roots, a)
		}
	}
	for _, c := range children {
		slices.SortStableFunc(c, func(a, b agentRow) int {
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
	children map[claybot.AgentID][]agentRow
	placed   map[claybot.AgentID]bool
	all      []branch
}

// plant adds a and all below it. own leads to a, below to its children.
func (g *grove) plant(a agentRow, own, below string) {
	if g.placed[a.ID] {
		return
	}
	g.placed[a.ID] = true
	g.all = append(g.all, branch{a, own})
	children := slices.DeleteFunc(slices.Clone(g.children[a.ID]), func(c agentRow) bool { return g.placed[c.ID] })
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
func awake(agents []agentRow, since claybot.Time) (stay []agentRow, left int) {
	parent := make(map[claybot.AgentID]claybot.AgentID, len(agents))
	for _, a := range agents {
		parent[a.ID] = a.Parent
	}
	keep := make(map[claybot.AgentID]bool)
	for _, a := range agents {
		if a.Type == claybot.AgentSubagent && !a.busy() && a.CreatedAt < since {
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
	List   agentsListCmd   `cmd:"" default:"withargs" help:"List the agents, children below their parents."`
	Stop   agentsStopCmd   `cmd:"" help:"Stop what an agent, and those below it, are doing."`
	Reset  agentsResetCmd  `cmd:"" help:"Make an agent forget its conversation."`
	Delete agentsDeleteCmd `cmd:"" help:"Take an agent away; its files move to the quarantine."`
}

type (
	agentsListCmd struct {
		JSON bool `name:"json" help:"Print JSON, always of all agents."`
		All  bool `help:"Show also subagents that did their work more than a day ago."`
	}
	agentsStopCmd struct {
		ID claybot.AgentID `arg:"" help:"The id of the agent, as agents shows it."`
	}
	agentsResetCmd struct {
		ID claybot.AgentID `arg:"" help:"The id of the agent, as agents shows it."`
	}
	agentsDeleteCmd struct {
		ID  claybot.AgentID `arg:"" help:"The id of the agent, as agents shows it."`
		Yes bool            `help:"Yes, delete it."`
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
		_, err := fmt.Fprintf(e.out, "%s have done their work; --all shows them.\n", count(left, "more subagent"))
		return err
	}
	return nil
}

// agents reads the daemon's list, page by page.
func (e *env) agents() ([]agentRow, error) {
	all := []agentRow{}
	for after := ""; ; {
		var page struct {
			Agents []agentRow `json:"agents"`
			Next   string     `json:"next"`
		}
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
		rows = append(rows, []string{b.lines + string(b.ID), string(b.Type), oneLine(b.who()), b.doing(), b.last()})
	}
	return rows
}

// Run stops an agent.
func (c agentsStopCmd) Run(e *env) error {
	path, err := agentPath(c.ID, "stop")
	if err != nil {
		return err
	}
	var out struct {
		Stopped int `json:"stopped"`
	}
	if err := e.ask("POST", path, nil, &out); err != nil {
		return err
	}
	if out.Stopped == 0 {
		_, err = fmt.Fprintln(e.out, "Nothing is running there.")
		return err
	}
	_, err = fmt.Fprintf(e.out, "%s asked to stop.\n", count(out.Stopped, "run"))
	return err
}

// Run resets an agent.
func (c agentsResetCmd) Run(e *env) error {
	path, err := agentPath(c.ID, "reset")
	if err != nil {
		return err
	}
	if err := e.ask("POST", path, nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.out, "The agent starts afresh; what was said before stays in its history file.")
	return err
}

// Run deletes an agent.
func (c agentsDeleteCmd) Run(e *env) error {
	path, err := agentPath(c.ID)
	if err != nil {
		return err
	}
	if !c.Yes {
		return usageError{errors.New("this takes away the agent's memory, its reminders and what waits for it; add --yes to do it")}
	}
	if err := e.ask("DELETE", path, nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintln(e.out, "The agent is deleted; its files are in the quarantine of the data directory.")
	return err
}

type remindersCmd struct {
	Agent claybot.AgentID `arg:"" help:"The id of the agent, as agents shows it."`
	JSON  bool            `name:"json" help:"Print JSON."`
}

// Run lists the reminders of an agent.
func (c remindersCmd) Run(e *env) error {
	path, err := agentPath(c.Agent, "reminders")
	if err != nil {
		return err
	}
	var out struct {
		Reminders []storage.Reminder `json:"reminders"`
	}
	if err := e.ask("GET", path, nil, &out); err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(out.Reminders)
	}
	if len(out.Reminders) == 0 {
		_, err := fmt.Fprintln(e.out, "This agent has no reminders.")
		return err
	}
	rows := [][]string{{"AT", "MADE", "REMINDER", "NOTE"}}
	for _, r := range out.Reminders {
		rows = append(rows, []string{moment(r.Due.Time()), moment(r.Made.Time()), r.ID, oneLine(r.Note)})
	}
	return e.table(rows)
}
