package connectors

import (
	"time"

	"github.com/claybot/claybot"
)

// A Follower is told when a run of its agents has ended, after that is durable.
// A process that dies in between tells nothing: a Follower reads what it missed
// when it starts. Optional; must not block.
type Follower interface {
	Ended(d claybot.Descriptor, r claybot.Run)
}

// A TaskSpec is what makes a task. One of Schedule, Every and At is set.
type TaskSpec struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Schedule    string `json:"schedule,omitempty"` // five fields or @daily and the like
	Every       string `json:"every,omitempty"`    // a duration
	At          string `json:"at,omitempty"`       // RFC 3339, once
	Timezone    string `json:"timezone,omitempty"` // IANA; empty: that of the configuration
	Prompt      string `json:"prompt"`
	Misfire     string `json:"misfire,omitempty"`
	Once        bool   `json:"once,omitempty"`
	Retries     int    `json:"retries,omitempty"`
	Owner       string `json:"owner,omitempty"`
	Route       string `json:"route,omitempty"` // connector/channel, agent:<id>, or none
	Agent       string `json:"agent,omitempty"` // id of the agent that does it; empty: one of its own
}

// A TaskChange is a change of a task; nil fields stay as they are.
type TaskChange struct {
	Name, Description, Schedule, Every, At, Timezone, Prompt, Misfire, Route *string
	Enabled, Once                                                            *bool
	Retries                                                                  *int
}

// A Task is one task as it stands.
type Task struct {
	TaskSpec
	Slug    string      `json:"slug"`
	UID     string      `json:"uid"`
	Enabled bool        `json:"enabled"`
	Paused  string      `json:"paused,omitempty"` // why it does not fire although it is enabled
	Gate    string      `json:"gate,omitempty"`
	Next    []time.Time `json:"next"` // the next five, in its zone
	Last    *Firing     `json:"last,omitempty"`
}

// A Firing is one row of a task's ledger.
type Firing struct {
	Planned time.Time     `json:"planned"`
	Started time.Time     `json:"started,omitzero"`
	Ended   time.Time     `json:"ended,omitzero"`
	Instant string        `json:"instant"`
	Attempt int           `json:"attempt,omitempty"`
	State   string        `json:"state"` // waiting, skipped, RUNNING, SUCCEEDED, FAILED, …
	Reason  string        `json:"reason,omitempty"`
	Run     claybot.RunID `json:"run,omitempty"`
	Cost    int64         `json:"costMicroUSD,omitempty"`
}

// A Problem is a file that could not be read, with the line where that is
// known.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

// A Beat is one task of the heartbeat.
type Beat struct {
	ID          string    `json:"id"`
	Title       string    `json:"title"`
	Every       string    `json:"every,omitempty"` // a duration; empty: that of the configuration
	ActiveHours string    `json:"activeHours,omitempty"`
	Enabled     bool      `json:"enabled"`
	Prompt      string    `json:"prompt"`
	Gate        string    `json:"gate,omitempty"`
	LastRun     time.Time `json:"lastRun,omitzero"`
	Next        time.Time `json:"next,omitzero"`
	Stopped     string    `json:"stopped,omitempty"` // why the heartbeat rests
}
