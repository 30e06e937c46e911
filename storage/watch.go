package storage

import (
	"context"

	"github.com/claybot/claybot"
)

// A Commit is the changes of a transaction, for watchers of runs. The store
// passes it to the function it was opened with, after the transaction is
// durable and in the order of the commits. That function must be quick and must
// not use the store.
type Commit struct {
	Events []claybot.Event // with their seq
	// Joined are ids that were reserved for runs and whose messages went to
	// other runs.
	Joined []claybot.RunID
}

// Relays stores which events were published to each sink.
type Relays interface {
	// Sinks sets the configured sinks. A new sink receives events that commit
	// after this call. With forget, the state of all others is deleted; without it,
	// events are kept for them as before.
	Sinks(ctx context.Context, forget bool, names ...string) error
	// Backlog lists up to limit runs with unpublished events of a sink, the
	// longest waiting first.
	Backlog(ctx context.Context, sink string, limit int) ([]Unpublished, error)
	// Published records that a sink received all events of a run up to seq. A
	// seq not above the recorded one changes nothing.
	Published(ctx context.Context, sink string, run claybot.RunID, seq int64) error
}

// Unpublished is a run whose events after After were not published to a sink.
type Unpublished struct {
	Run   claybot.RunID
	After int64
	Since claybot.Time // of the oldest unpublished event
}

// Usages stores the usage and cost of models, by day.
type Usages interface {
	// Spent sums usage and cost by the columns of the query, in the order of
	// these columns. ErrTooMany if the query has no Limit and the result exceeds
	// SpentRows rows.
	Spent(ctx context.Context, q SpentQuery) ([]Spent, error)
	// Latencies returns durations by day and operation.
	Latencies(ctx context.Context, from, to string) ([]Latency, error)
}

// The columns of Spent.
const (
	ByDay   = "day"
	ByAgent = "agent"
	ByOwner = "owner"
	ByModel = "model"
	ByType  = "type" // of agents
	// The connector of the agent, or of the root of a subagent; empty for none.
	ByConnector = "connector"
	ByChannel   = "channel" // as connector:channelId
)

// A SpentQuery selects the days to sum up, both included, as YYYY-MM-DD in UTC;
// empty for no bound.
type SpentQuery struct {
	From, To string
	By       []string // ByDay and the like; none for one sum over all
	Agent    claybot.AgentID
	Owners   []string // of the agents, as "connector/userId"; empty: all
	Limit    int      // the first so many rows, the others are left out; 0: all or ErrTooMany
}

// SpentRows is the maximum number of rows of Spent without a Limit.
const SpentRows = 10_000

// A Spent is one row of sums. Only the columns of the query are set.
type Spent struct {
	Day       string            `json:"day,omitempty"`
	Agent     claybot.AgentID   `json:"agent,omitempty"`
	Owner     string            `json:"owner,omitempty"`
	Model     string            `json:"model,omitempty"`
	Type      claybot.AgentType `json:"type,omitempty"`
	Connector string            `json:"connector,omitempty"`
	Channel   string            `json:"channel,omitempty"`
	Usage     claybot.Usage     `json:"usage"`
	Runs      int64             `json:"runs"` // that ended; 0 when summed by model
}

// Operations that Latency measures.
const (
	LatencyRun   = "run"    // from the first pass to the end
	LatencyModel = "model:" // one call of the model named behind it
)

// A Latency is the spread of a duration on one day, in milliseconds. Values are
// off by at most 10 %.
type Latency struct {
	Day  string `json:"day"`
	What string `json:"what"`
	N    int64  `json:"n"`
	P50  int64  `json:"p50"`
	P90  int64  `json:"p90"`
	P99  int64  `json:"p99"`
	Max  int64  `json:"max"`
}

// Questions reads questions to users.
type Questions interface {
	// OpenQuestions lists at most limit unanswered questions of paused runs,
	// oldest first; those of one agent or, if agent is empty, of all.
	OpenQuestions(ctx context.Context, agent claybot.AgentID, limit int) ([]OpenQuestion, error)
	// OpenQuestionsFor lists those that have one of these people among their approvers, by their
	// owner ids.
	OpenQuestionsFor(ctx context.Context, people []string, limit int) ([]OpenQuestion, error)
	// Question finds one, open or answered; ErrNotFound.
	Question(ctx context.Context, id string) (OpenQuestion, error)
}

// An OpenQuestion is a question with the run that asks it.
type OpenQuestion struct {
	claybot.Question
	Run    claybot.RunID   `json:"runId"`
	Agent  claybot.AgentID `json:"agentId"`
	Asked  claybot.Time    `json:"askedAt"`
	Answer *claybot.Answer `json:"answer,omitempty"` // if answered
}
