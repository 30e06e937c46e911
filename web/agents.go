package web

import (
	"cmp"
	"context"
	"errors"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
)

// Agents lists agents and their histories.
type Agents interface {
	AgentPage(ctx context.Context, q storage.AgentQuery) ([]storage.IndexEntry, error)
	// Agent returns the entry of one agent, Children those of its subagents.
	Agent(ctx context.Context, id claybot.AgentID) (storage.IndexEntry, error)
	Children(ctx context.Context, id claybot.AgentID) ([]storage.IndexEntry, error)
	// AgentOf returns the id of the agent of a descriptor.
	AgentOf(ctx context.Context, d claybot.Descriptor) (claybot.AgentID, error)
	// Remembered returns the records of an agent since its last reset.
	Remembered(ctx context.Context, id claybot.AgentID) ([]claybot.Record, error)
	// Conversations lists the agents of one person at one connector, the most
	// recent first.
	Conversations(ctx context.Context, connector, user string) ([]storage.IndexEntry, error)
}

// AgentControl stops, resets and deletes agents.
type AgentControl interface {
	// StopAgent cancels the runs of an agent and of its subagents, and returns
	// how many it canceled.
	StopAgent(ctx context.Context, id claybot.AgentID) (int, error)
	// ResetAgent starts a new conversation.
	ResetAgent(ctx context.Context, id claybot.AgentID) error
	// DeleteAgent deletes an agent; its files move to the quarantine.
	DeleteAgent(ctx context.Context, id claybot.AgentID) error
}

// Privacy says what agents can read of their people.
type Privacy interface {
	// Privacy returns who reads the conversation of an agent, and what it can read there.
	Privacy(ctx context.Context, id claybot.AgentID) (overview.Privacy, error)
}

// Reminders lists reminders.
type Reminders interface {
	// AgentReminders lists the reminders of an agent, the next one first.
	AgentReminders(ctx context.Context, id claybot.AgentID) ([]storage.Reminder, error)
	// NextReminders lists those of all agents, the next one first, at most limit.
	NextReminders(ctx context.Context, limit int) ([]storage.Reminder, error)
}

// An AgentView is one agent in a list.
type AgentView struct {
	ID         claybot.AgentID    `json:"id"`
	Type       claybot.AgentType  `json:"type"`
	Name       string             `json:"name,omitempty"`
	Parent     claybot.AgentID    `json:"parent,omitempty"`
	Owner      string             `json:"owner,omitempty" doc:"The user it works for: connector/user."`
	Descriptor claybot.Descriptor `json:"descriptor"`
	PlaceName  string             `json:"placeName,omitempty" doc:"What the platform calls the group or channel of a user agent; unverified."`
	PersonName string             `json:"personName,omitempty" doc:"What the platform calls the person of a user agent; unverified."`
	CreatedAt  claybot.Time       `json:"createdAt"`
	LastUserAt claybot.Time       `json:"lastUserAt" doc:"When a person last wrote; 0 for never."`
	Usage      claybot.Usage      `json:"usage"`
	Waiting    int                `json:"waiting" doc:"Number of messages that no run has taken yet."`
	Run        claybot.RunID      `json:"run,omitempty" doc:"The unfinished run."`
	State      string             `json:"state" doc:"idle, waiting, or the state of the unfinished run."`
	Stopped    string             `json:"stopped,omitempty" doc:"What an operator has stopped that the agent needs, by whom, and how it is started. Its messages wait until then."`
	Off        string             `json:"off,omitempty" doc:"Why each of its runs fails, and what to do: a setting of its profile, its model or a budget is not valid."`
}

// Condition is the State of the agent; that of its node while it is stopped or off and does not work.
func (v AgentView) Condition() string {
	switch {
	case v.State != "idle" && v.State != "waiting":
	case v.Stopped != "":
		return nodes.Stopped
	case v.Off != "":
		return nodes.Off
	}
	return v.State
}

// Hindrance is why the agent is stopped or off; empty if it is not.
func (v AgentView) Hindrance() string { return cmp.Or(v.Stopped, v.Off) }

// An AgentList is one page of agents.
type AgentList struct {
	Agents []AgentView `json:"agents"`
	Next   string      `json:"next,omitempty" doc:"Pass it as after to get the next page."`
}

// An AgentTree is an agent with its subagents.
type AgentTree struct {
	AgentView
	Children []AgentTree `json:"children"`
	More     bool        `json:"more,omitempty" doc:"The tree is truncated: this agent has more subagents."`
}

// A ConversationList lists a person's conversations of the web chat.
type ConversationList struct {
	Conversations []Conversation `json:"conversations"`
}

// A Conversation is one conversation of the web chat.
type Conversation struct {
	ID string       `json:"id"`
	At claybot.Time `json:"at"`
}

// A HistoryPage is a part of an agent's history.
type HistoryPage struct {
	Records []claybot.Record `json:"records"`
	Next    string           `json:"next,omitempty" doc:"Pass it as after to get the next page."`
}

// A Stopped answers a request to stop an agent.
type Stopped struct {
	Stopped int `json:"stopped" doc:"Number of runs that were asked to end."`
}

// A ResetDone answers a reset.
type ResetDone struct {
	Reset claybot.AgentID `json:"reset"`
}

// A ReminderList is the reminders of an agent, the next one first.
type ReminderList struct {
	Reminders []storage.Reminder `json:"reminders"`
}

// ViewAgent describes an agent of the index. It loads the run only if there is one, since
// few agents work at a time; a run that has ended meanwhile counts as none.
func ViewAgent(ctx context.Context, from Runs, e storage.IndexEntry) (AgentView, error) {
	d := e.Descriptor
	v := AgentView{
		ID: e.ID, Type: d.Type, Name: d.Name, Parent: d.Parent, Owner: d.OwnerID(), Descriptor: d, PlaceName: e.PlaceName, PersonName: e.PersonName,
		CreatedAt: e.CreatedAt, LastUserAt: e.LastUserAt, Usage: e.Usage, Waiting: e.Waiting, Run: e.Run, State: "idle", Stopped: e.Stopped, Off: e.Off,
	}
	if e.Waiting > 0 {
		v.State = "waiting"
	}
	if e.Run == "" {
		return v, nil
	}
	run, err := from.Run(ctx, e.Run)
	switch {
	case errors.Is(err, storage.ErrNotFound):
	case err != nil:
		return v, err
	case !run.State.Ended():
		v.State = string(run.State)
	}
	return v, nil
}
