package storage

import (
	"context"

	"github.com/claybot/claybot"
)

// A Person is whose data an Eraser removes: all identities of a person, and the agents that
// work, or worked, for them.
type Person struct {
	Owners []string // as OwnerID
	Agents map[claybot.AgentID]claybot.Descriptor
}

// An Eraser removes what the store keeps of one person.
type Eraser interface {
	// Unfinished counts the open deliveries and the parked messages of a person.
	Unfinished(ctx context.Context, p Person) (Unfinished, error)
	// Erase removes what has ended of a person, and counts it; dry only counts. It works in
	// small transactions and may be cut short at any time: the next call goes on. Runs that
	// have not ended, messages that wait, and what is not sent stay. Of messages, and of
	// notices that are sent once, the ids and keys stay until Prune removes them, without
	// their texts: so nothing that comes again runs or is sent twice.
	Erase(ctx context.Context, p Person, dry bool) (Erased, error)
}

// Unfinished counts the work of a person that has not ended.
type Unfinished struct {
	Runs     int `json:"runs"`
	Waiting  int `json:"waiting" doc:"Messages that no run has taken yet."`
	Parked   int `json:"parked" doc:"Messages that wait for a faulty agent."`
	Outgoing int `json:"outgoing" doc:"Messages that are not sent."`
}

// Erased counts what was removed of a person, or would be.
type Erased struct {
	Runs      int `json:"runs"`
	Events    int `json:"events"`
	Questions int `json:"questions"`
	Messages  int `json:"messages"`
	Outgoing  int `json:"outgoing"`
	Notes     int `json:"notes" doc:"With their versions."`
	Documents int `json:"documents" doc:"Files of agents that the database keeps."`
	Reminders int `json:"reminders"`
	Overheard int `json:"overheard" doc:"Messages in groups that are kept as context."`
	Settings  int `json:"settings" doc:"Language, zone, and requests for access."`
}

// DeletedAgents are the files of agents that were deleted, which stay for a while.
type DeletedAgents interface {
	// DeletedAgents lists the deleted agents of owners (OwnerID) whose files are kept. It
	// omits those whose descriptor is damaged.
	DeletedAgents(ctx context.Context, owners []string) (map[claybot.AgentID]claybot.Descriptor, error)
	// EraseDeleted removes the history and the files of a deleted agent. An agent without
	// any changes nothing.
	EraseDeleted(ctx context.Context, id claybot.AgentID) error
}
