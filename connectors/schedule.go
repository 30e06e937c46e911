package connectors

import (
	"time"

	"github.com/claybot/claybot"
)

// A Follower is notified when a run of its agents has ended, after the end is
// durable. A crash in between loses the notification, so a Follower reads what
// it missed when it starts. Optional; must not block.
type Follower interface {
	Ended(d claybot.Descriptor, r claybot.Run)
}

// A TaskSpec defines a task. Exactly one of Schedule, Every and At is set.
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
	Agent       string `json:"agent,omitempty"` // id of the agent that runs it; empty: its own agent
	// Flow is the workflow that the task starts, as flow/trigger, in place of its own agent; empty: none.
	Flow string `json:"flow,omitempty"`
	// Limited: an agent creates the task, so the limits of its owner apply.
	Limited bool `json:"-"`
}

// A TaskChange is a change of a task; nil fields are left unchanged.
type TaskChange struct {
	Name, Description, Schedule, Every, At, Timezone, Prompt, Misfire, Route *string
	Enabled, Once                                                            *bool
	Retries                                                                  *int
}

// A Task is the current state of one task.
type Task struct {
	TaskSpec
	Slug    string      `json:"slug"`
	UID     string      `json:"uid"`
	Enabled bool        `json:"enabled"`
	Paused  string      `json:"paused,omitempty"` // why an enabled task is paused
	Gate    string      `json:"gate,omitempty"`
	Next    []time.Time `json:"next"` // the next five runs, in its time zone
	Last    *Firing     `json:"last,omitempty"`
}

// A Firing is one entry in the run history of a task.
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

// A Problem is a file that could not be read, with the line if known.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

// A HeartbeatTask is a task of the heartbeat.
type HeartbeatTask struct {
	ID          string    `json:"id"`
	Title       string    `json:"title"`
	Every       string    `json:"every,omitempty"` // a duration; empty: that of the configuration
	ActiveHours string    `json:"activeHours,omitempty"`
	Enabled     bool      `json:"enabled"`
	Prompt      string    `json:"prompt"`
	Gate        string    `json:"gate,omitempty"`
	LastRun     time.Time `json:"lastRun,omitzero"`
	Next        time.Time `json:"next,omitzero"`
	Stopped     string    `json:"stopped,omitempty"` // why the heartbeat is paused
}
