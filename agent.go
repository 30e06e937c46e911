package claybot

import "encoding/json"

// AgentType says what kind of source an agent serves.
type AgentType string

// The types of agents.
const (
	AgentUser AgentType = "user"
)

// A Descriptor says whom an agent is for. Descriptors with equal Keys mean one
// agent. ChannelID and UserID are the platform's stable ids, never names.
type Descriptor struct {
	Type      AgentType `json:"type"`
	Connector string    `json:"connector,omitempty"`
	ChannelID string    `json:"channelId,omitempty"`
	UserID    string    `json:"userId,omitempty"`
}

// User describes the agent of one person in one channel of a connector.
func User(connector, channelID, userID string) Descriptor {
	return Descriptor{Type: AgentUser, Connector: connector, ChannelID: channelID, UserID: userID}
}

// Key is the identity of d as one string. The parts are kept apart by JSON, so
// no separator inside an id can make two descriptors collide.
func (d Descriptor) Key() string {
	b, _ := json.Marshal([]string{string(d.Type), d.Connector, d.ChannelID, d.UserID}) // strings always marshal
	return string(b)
}

// Route is the place of d: where what is not a reply to one message goes.
func (d Descriptor) Route() Route {
	return Route{Connector: d.Connector, ChannelID: d.ChannelID, UserID: d.UserID}
}

// An Agent is an identity with its mutable settings. Its conversation is its
// history, which is kept apart.
type Agent struct {
	ID         AgentID
	Descriptor Descriptor
	CreatedAt  Time
	State      State
}

// State is the mutable part of an agent, the content of state.json. Losing it
// loses settings, never the conversation.
type State struct {
	Engine     string `json:"engine"`
	Routing    *Route `json:"routing"`    // of the newest user message, without its message id
	LastUserAt Time   `json:"lastUserAt"` // when the newest user message was accepted
	Usage      Usage  `json:"usage"`      // totals over all runs
	Context    int64  `json:"context"`    // tokens of the last request
	CreatedAt  Time   `json:"createdAt"`
	UpdatedAt  Time   `json:"updatedAt"`
}

// Usage counts what model calls took. Cost is in millionths of a US dollar.
type Usage struct {
	Input        int64 `json:"input"`
	Output       int64 `json:"output"`
	CachedInput  int64 `json:"cachedInput"`
	CostMicroUSD int64 `json:"costMicroUSD"`
	LLMCalls     int64 `json:"llmCalls"`
	ToolCalls    int64 `json:"toolCalls"`
	Estimated    bool  `json:"estimated,omitempty"` // the provider did not count; these are guesses
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	u.Input += v.Input
	u.Output += v.Output
	u.CachedInput += v.CachedInput
	u.CostMicroUSD += v.CostMicroUSD
	u.LLMCalls += v.LLMCalls
	u.ToolCalls += v.ToolCalls
	u.Estimated = u.Estimated || v.Estimated
	return u
}
