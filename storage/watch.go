package storage

import (
	"context"

	"github.com/claybot/claybot"
)

// A Commit is what a transaction changed, for those who watch runs. A store
// tells it after the transaction is durable, in the order of the commits, to
// the function it was opened with. That function must be quick and must not
// use the store.
type Commit struct {
	Events []claybot.Event // with their seq
	// Joined are ids that were reserved for runs and whose messages went to
	// other runs.
	Joined []claybot.RunID
}

// Relays keeps how far the sinks outside have been told of events.
type Relays interface {
	// Sinks names the sinks that are to be told from now on. A sink that is new
	// hears of what commits after this; one that is not named any more is
	// forgotten.
	Sinks(ctx context.Context, names ...string) error
	// Backlog lists up to limit runs with events that a sink was not told of,
	// the longest waiting first.
	Backlog(ctx context.Context, sink string, limit int) ([]Unpublished, error)
	// Published records that a sink was told of all events of a run up to seq.
	// A seq that is not above the recorded one changes nothing.
	Published(ctx context.Context, sink string, run claybot.RunID, seq int64) error
}

// Unpublished is a run of which a sink knows the events up to After only.
type Unpublished struct {
	Run   claybot.RunID
	After int64
	Since claybot.Time // of the oldest event that it does not know
}

// Usages keeps what models took, by day.
type Usages interface {
	// Spent sums up what models took, by the columns that the query names, in
	// the order of these columns. ErrTooMany when the query has no Limit and that
	// are more than SpentRows rows.
	Spent(ctx context.Context, q SpentQuery) ([]Spent, error)
	// Latencies tells how long things took, by day and thing.
	Latencies(ctx context.Context, from, to string) ([]Latency, error)
}

// The columns of Spent.
const (
	ByDay   = "day"
	ByAgent = "agent"
	ByOwner = "owner"
	ByModel = "model"
	ByType  = "type" // of agents
	// Where the agent speaks, or the root of a subagent; empty for nowhere.
	ByConnector = "connector"
	ByChannel   = "channel" // as connector:channelId
)

// A SpentQuery says which days to sum up, both included, as YYYY-MM-DD in UTC;
// empty for no bound.
type SpentQuery struct {
	From, To string
	By       []string // ByDay and the like; none for one sum over all
	Agent    claybot.AgentID
	Limit    int // the first so many rows, the others are left out; 0: all or ErrTooMany
}

// SpentRows is how many rows Spent returns at most when nobody says.
const SpentRows = 10_000

// A Spent is one row of sums. Only the columns that were asked for are set.
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

// What Latency tells of.
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

// Questions finds what persons are asked.
type Questions interface {
	// OpenQuestions lists the questions that paused runs wait for and that have
	// no answer yet, the oldest first; those of one agent, or of all when none
	// is named. At most limit.
	OpenQuestions(ctx context.Context, agent claybot.AgentID, limit int) ([]OpenQuestion, error)
	// Question finds one, open or answered; ErrNotFound.
	Question(ctx context.Context, id string) (OpenQuestion, error)
}

// An OpenQuestion is a question with the run that asks it.
type OpenQuestion struct {
	claybot.Question
	Run    claybot.RunID   `json:"runId"`
	Agent  claybot.AgentID `json:"agentId"`
	Asked  claybot.Time    `json:"askedAt"`
	Answer *claybot.Answer `json:"answer,omitempty"` // once there is one
}
