package claybot

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// AgentType says what kind of source an agent serves.
type AgentType string

// The types of agents. Only user agents talk to a person of their own; all
// others work in the background.
const (
	AgentUser      AgentType = "user"
	AgentCron      AgentType = "cron"      // one for each cron task
	AgentHeartbeat AgentType = "heartbeat" // the heartbeat
	AgentSubagent  AgentType = "subagent"  // made by another agent
	AgentFlow      AgentType = "flow"      // one for each run of a flow, or for runs that have one key
)

// A Descriptor identifies the user and conversation of an agent. Descriptors with equal Keys mean one
// agent. ChannelID and UserID are the platform's stable ids, never names; of an agent that a
// group shares, UserID is Everyone.
type Descriptor struct {
	Type      AgentType `json:"type"`
	Connector string    `json:"connector,omitempty"`
	ChannelID string    `json:"channelId,omitempty"`
	UserID    string    `json:"userId,omitempty"`
	ThreadID  string    `json:"threadId,omitempty"` // user: where a thread is a conversation of its own
	UID       string    `json:"uid,omitempty"`      // cron: of the task; subagent, flow: its own
	Parent    AgentID   `json:"parent,omitempty"`   // subagent, and a flow that an agent started: who made it; none of a Thread

	// What follows is no part of the identity.

	Name string `json:"name,omitempty"` // of the task, subagent or flow, for people
	// Owner is on whose behalf a background agent works, in the form of
	// OwnerID; empty for none.
	Owner   string  `json:"owner,omitempty"`
	Root    AgentID `json:"root,omitempty"`    // subagent: where the chain of parents begins
	Depth   int     `json:"depth,omitempty"`   // subagent: how long that chain is
	Profile string  `json:"profile,omitempty"` // subagent: the profile of its root; flow: its own
}

// The words behind the name of a flow in the Name of an agent that is there for one run of it.
const (
	FlowDryRun    = "dry run"
	FlowDryReplay = "dry replay"
	FlowLive      = "replay"
)

// FlowName is the name of the flow that the agent of a flow runs.
func (d Descriptor) FlowName() string {
	name, _, _ := strings.Cut(d.Name, " (")
	return name
}

// Dry reports whether nothing acts in the runs of the agent of a flow.
func (d Descriptor) Dry() bool {
	return d.Type == AgentFlow && (strings.HasSuffix(d.Name, " ("+FlowDryRun+")") || strings.HasSuffix(d.Name, " ("+FlowDryReplay+")"))
}

// LiveReplay reports whether the runs of the agent of a flow use the results of another run again, and act.
func (d Descriptor) LiveReplay() bool {
	return d.Type == AgentFlow && strings.HasSuffix(d.Name, " ("+FlowLive+")")
}

// User describes the agent of one person in one channel of a connector.
func User(connector, channelID, userID string) Descriptor {
	return Descriptor{Type: AgentUser, Connector: connector, ChannelID: channelID, UserID: userID}
}

// Everyone is the UserID of an agent that all members of a group or channel share. No
// platform has a user with this id.
const Everyone = "*"

// Shared reports whether d is the agent that all members of a group or channel share. Each
// message to it names its sender.
func (d Descriptor) Shared() bool { return d.Foreground() && d.UserID == Everyone }

// SharedPlace returns the group or channel, as Audience.Place, whose members share the agents
// with an owner; ok is false for the owner id of a person.
func SharedPlace(owner string) (place string, ok bool) {
	return strings.CutSuffix(owner, "/"+Everyone)
}

// Key is the identity of d as one string. The parts are kept apart by JSON, so
// no separator inside an id can make two descriptors collide.
func (d Descriptor) Key() string {
	parts := []string{string(d.Type), d.Connector, d.ChannelID, d.UserID}
	switch {
	case d.UID != "" || d.Parent != "":
		parts = append(parts, d.UID, string(d.Parent))
	case d.ThreadID != "":
		parts = append(parts, d.ThreadID)
	}
	b, _ := json.Marshal(parts) // strings always marshal
	return string(b)
}

// DescriptorOf is the descriptor of a foreground agent that has a key; zero for any
// other key, and for one that is damaged.
func DescriptorOf(key string) Descriptor {
	var parts []string
	if err := json.Unmarshal([]byte(key), &parts); err != nil || len(parts) < 4 || len(parts) > 5 {
		return Descriptor{}
	}
	d := Descriptor{Type: AgentType(parts[0]), Connector: parts[1], ChannelID: parts[2], UserID: parts[3]}
	if len(parts) == 5 {
		d.ThreadID = parts[4]
	}
	return d
}

// Identity is d without what is no part of its identity.
func (d Descriptor) Identity() Descriptor {
	d.Name, d.Owner, d.Root, d.Depth, d.Profile = "", "", "", 0, ""
	return d
}

// threadPrefix begins the UID of a thread.
const threadPrefix = "thread:"

// Thread describes the subagent that is the memory of nodes of workflows: it outlives the runs that
// give it tasks, and works for one of them at a time. Equal keys of one owner mean one thread.
func Thread(key, owner string) Descriptor {
	return Descriptor{Type: AgentSubagent, UID: threadPrefix + key, Owner: owner, Depth: 1}
}

// IsThread reports whether d is a Thread.
func (d Descriptor) IsThread() bool {
	return d.Type == AgentSubagent && d.Parent == "" && strings.HasPrefix(d.UID, threadPrefix)
}

// threadKeys keeps the parts of the key of a thread apart, threadParts reads them.
var (
	threadKeys  = strings.NewReplacer("%", "%25", ":", "%3A")
	threadParts = strings.NewReplacer("%25", "%", "%3A", ":")
)

// ThreadKey is the key of the Thread of a person in a chat, as "connector/channelId", for what names say:
// a workflow, and a node of it. Without a chat, as at a time, its part is left out; no name has a slash.
func ThreadKey(owner, chat string, names ...string) string {
	parts := []string{owner}
	if chat != "" {
		parts = append(parts, chat)
	}
	parts = append(parts, names...)
	for i, part := range parts {
		parts[i] = threadKeys.Replace(part)
	}
	return strings.Join(parts, ":")
}

// ThreadPlace is the chat that a Thread is for, see ThreadKey; zero for none.
func (d Descriptor) ThreadPlace() Route {
	parts := strings.Split(strings.TrimPrefix(d.UID, threadPrefix), ":")
	if !d.IsThread() || len(parts) < 2 {
		return Route{}
	}
	connector, channel, found := strings.Cut(threadParts.Replace(parts[1]), "/")
	if !found {
		return Route{}
	}
	r := Route{Connector: connector, ChannelID: channel}
	if of, user, _ := strings.Cut(d.Owner, "/"); of == connector {
		r.UserID = user
	}
	return r
}

// Foreground reports whether d is the agent of a person in a chat.
func (d Descriptor) Foreground() bool { return d.Type == AgentUser }

// Child reports whether d works for other agents: a subagent, or a flow that an agent started.
func (d Descriptor) Child() bool { return d.Type == AgentSubagent || d.Parent != "" }

// Scheduled reports whether d works at times of its own, unasked: a task or the heartbeat.
func (d Descriptor) Scheduled() bool { return d.Type == AgentCron || d.Type == AgentHeartbeat }

// OwnerID names on whose behalf the agent works: "connector/userId" of a
// person, empty for none. One person may have several, see the configuration. The owner of
// a shared agent is its group or channel, "connector/channelId/*": what one of its members
// told an agent of their own is not its to read.
func (d Descriptor) OwnerID() string {
	if d.Shared() {
		return d.Connector + "/" + d.ChannelID + "/" + Everyone
	}
	if d.Foreground() {
		return d.Connector + "/" + d.UserID
	}
	return d.Owner
}

// ConnectorAPI is the connector of who talks over HTTP. Nothing is sent there:
// answers are read from runs and histories.
const ConnectorAPI = "api"

// Route is the place of d: where what is not a reply to one message goes. It is
// zero where there is no such place.
func (d Descriptor) Route() Route {
	if d.Connector == ConnectorAPI {
		return Route{}
	}
	return Route{Connector: d.Connector, ChannelID: d.ChannelID, UserID: d.UserID, ThreadID: d.ThreadID, Group: d.Shared()}
}

// An Agent is an identity with its mutable settings. Its conversation is its
// history, which is kept apart.
type Agent struct {
	ID         AgentID
	Descriptor Descriptor
	CreatedAt  Time
	State      AgentState
}

// AgentState is the mutable part of an agent, the content of state.json. Losing it
// loses settings, never the conversation. Engine, Provider, Permissions and Memory are
// what was in force when it was written.
type AgentState struct {
	Engine      string       `json:"engine"`
	Provider    *Provider    `json:"provider"`         // nil until an AgentSystem has written the state
	Permissions *Permissions `json:"permissions"`      // as Provider
	Memory      string       `json:"memory,omitempty"` // MemoryOn or MemoryOff

	Routing    *Route `json:"routing"`    // of the newest user message, without its message id
	LastUserAt Time   `json:"lastUserAt"` // when the newest user message was accepted
	Usage      Usage  `json:"usage"`      // totals over all runs
	Context    int64  `json:"context"`    // tokens of the last request
	// Background are the settings of a subagent; nil for all others. Of a thread, they are those of
	// its newest run.
	Background *Background `json:"background,omitempty"`
	CreatedAt  Time        `json:"createdAt"`
	UpdatedAt  Time        `json:"updatedAt"`
}

// Whether a run of an agent sees the runs before it.
const (
	MemoryOn  = "on"
	MemoryOff = "off"
)

// A Provider is the model that an agent uses, and the profile that gives it.
type Provider struct {
	Profile string `json:"profile"`
	Model   string `json:"model"`
}

// Settings are what an operator has changed for one agent. What is nil or empty
// stays as the profile of the agent says.
type Settings struct {
	Model         string   `json:"model,omitempty"`
	Prompt        string   `json:"prompt,omitempty"`
	MaxSteps      int      `json:"maxSteps,omitempty"`
	DebounceMS    *int64   `json:"debounceMs,omitempty"`
	WhenBusy      string   `json:"whenBusy,omitempty"`
	ProcessBuffer string   `json:"processBuffer,omitempty"`
	Tools         []string `json:"tools,omitzero"` // that the agent may use, none when empty; nil for those of the profile
	Engine        string   `json:"engine,omitempty"`
	Approved      []string `json:"approved,omitempty"` // rules: a tool, or tool(subject), that needs no approval any more
	// ApprovedBy tells of those rules that a person made by approving something
	// for good; the daemon keeps it.
	ApprovedBy map[string]Approving `json:"approvedBy,omitempty"`
	// ModelChoice tells of a Model that was chosen with /model; the daemon keeps it.
	ModelChoice *ModelChoice `json:"modelChoice,omitempty"`
	// Permissions narrow what the agent may do; nil: as the profile says. In stored
	// settings the allowed tools are in Tools.
	Permissions *Permissions `json:"permissions,omitempty"`
}

// Clone returns a copy that shares nothing with s: decoding JSON into it leaves s as it is.
func (s Settings) Clone() Settings {
	if s.DebounceMS != nil {
		s.DebounceMS = new(*s.DebounceMS)
	}
	if s.ModelChoice != nil {
		s.ModelChoice = new(*s.ModelChoice)
		s.ModelChoice.Before = slices.Clone(s.ModelChoice.Before)
	}
	if s.Permissions != nil {
		s.Permissions = new(s.Permissions.Clone())
	}
	s.Tools, s.Approved, s.ApprovedBy = slices.Clone(s.Tools), slices.Clone(s.Approved), maps.Clone(s.ApprovedBy)
	return s
}

// Permitted returns the permissions that s sets, with the tools of s.
func (s Settings) Permitted() Permissions {
	var p Permissions
	if s.Permissions != nil {
		p = *s.Permissions
	}
	return p.Narrow(Permissions{Tools: ToolPermissions{Allow: s.Tools}})
}

// An Approving is by whom, as in Answer.By, and when a rule was made.
type Approving struct {
	By string `json:"by,omitempty"`
	At Time   `json:"at"`
}

// A ModelChoice is the last command that chose the model of an agent.
type ModelChoice struct {
	Message MessageID `json:"message"`
	By      string    `json:"by,omitempty"` // "connector/userId"; empty once an operator has changed the model since
	At      Time      `json:"at"`
	// Before are the commands that the choice followed at the same instant of its platform, which
	// counts whole seconds: they do nothing if they are redelivered.
	Before []MessageID `json:"before,omitempty"`
	// Listed says that the choice counts only while the profile lists the model.
	Listed bool `json:"listed,omitempty"`
	// During is the run that had begun before the choice, and Was the model that it keeps;
	// empty for that of the profile.
	During RunID  `json:"during,omitempty"`
	Was    string `json:"was,omitempty"`
}

// Background are the settings that a subagent was started with.
type Background struct {
	Model  string   `json:"model,omitempty"`  // empty: that of its profile
	Prompt string   `json:"prompt,omitempty"` // the system prompt; empty: the usual one
	Tools  []string `json:"tools"`            // that it may use; nil: those of its profile
	// Deep makes it a deep agent, as a node of a workflow says; nil: as its profile says.
	Deep *Deep `json:"deep,omitempty"`
	// Permissions are those of its creator at the start, narrowed by what the creator
	// asked for; nil: no limits.
	Permissions *Permissions `json:"permissions,omitempty"`
}

// Deep are the tools of an agent that plans, besides the others.
type Deep struct {
	Todos     bool     `json:"todos,omitempty"`
	ShowTodos bool     `json:"showTodos,omitempty"` // at the place where the agent answers
	Files     string   `json:"files,omitempty"`     // where it has files, see package configs
	Subagents []Helper `json:"subagents,omitempty"`
}

// A Helper is a subagent that a deep agent starts by its name.
type Helper struct {
	Name         string   `json:"name"`
	Description  string   `json:"description"` // for the model that chooses among them
	SystemPrompt string   `json:"systemPrompt"`
	Model        string   `json:"model,omitempty"` // empty: that of the agent
	Tools        []string `json:"tools"`           // that it may use; nil: those of the agent
}

// Usage counts what model calls took. Cost is in millionths of a US dollar.
type Usage struct {
	Input        int64 `json:"input"`
	Output       int64 `json:"output"`
	CachedInput  int64 `json:"cachedInput"`          // of Input: read from the provider's cache
	CacheWrite   int64 `json:"cacheWrite,omitempty"` // of Input: written to the provider's cache
	Reasoning    int64 `json:"reasoning,omitempty"`  // of Output: hidden thoughts
	CostMicroUSD int64 `json:"costMicroUSD"`         // of the calls whose price is known
	LLMCalls     int64 `json:"llmCalls"`
	ToolCalls    int64 `json:"toolCalls"`
	// Unpriced counts the calls of models that no price is known of: what they
	// cost is unknown, never nothing.
	Unpriced  int64 `json:"unpriced,omitempty"`
	Estimated bool  `json:"estimated,omitempty"` // the provider did not count; these are guesses
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	u.Input += v.Input
	u.Output += v.Output
	u.CachedInput += v.CachedInput
	u.CacheWrite += v.CacheWrite
	u.Reasoning += v.Reasoning
	u.CostMicroUSD += v.CostMicroUSD
	u.LLMCalls += v.LLMCalls
	u.ToolCalls += v.ToolCalls
	u.Unpriced += v.Unpriced
	u.Estimated = u.Estimated || v.Estimated
	return u
}
