// Package configs reads claybot's settings: one optional YAML file, the
// environment above it, and flags above both.
//
// It guarantees that a mistake never sends anything elsewhere and never allows
// more. Each key has a Class: a bad value of a harmless one costs itself, a bad
// value of any other switches off what it belongs to, which the Off of its settings
// says. Either comes back as a Warning that names file, line, key, rule and the
// nearest known key. Only a file that cannot be read as YAML is an error, a data
// directory that is in doubt, and a bad value of a variable that makes a process one
// of several nodes. Secrets enter by environment or by
// reference, are of type Secret, and never print.
//
// Reading has no side effects, so a reload is a second Load. The package knows
// no connector, store or model; only cmd imports it.
package configs

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/claybot/claybot"
)

// Off is the value of Config.HTTP that closes the HTTP address.
const Off = "off"

// The defaults that other parts do not know better.
const (
	DefaultDataDir     = ".claybot"
	DefaultHTTP        = "127.0.0.1:8420"
	DefaultModel       = "gpt-5"
	DefaultTelegramURL = "https://api.telegram.org"
	DefaultSlackURL    = "https://slack.com/api/"
	DefaultProfile     = "default"
	DefaultMaxSteps    = 64
	DefaultMaxBatch    = 100
)

// Config is everything that can be set, grouped by the part that owns it. Default
// returns one without any setting; a Config never holds a value that its rules refuse.
type Config struct {
	Source        Source
	DataDir       string
	Log           Log
	HTTP          HTTP
	Access        Access
	Model         Model         // of all profiles that name no other
	Transcription Transcription // turns voice messages into text
	Connectors    Connectors
	Agents        Agents
	Schedule      Schedule
	Telemetry     Telemetry
	Tools         Tools
	Storage       Storage
	Node          Node

	where dataDir
}

// Source says where the settings come from.
type Source struct {
	File string // that was read; empty when there was none
	// Warnings are the invalid settings, where the caller of Load has put them here.
	Warnings []Warning

	keyed bool // the file has a key
}

// dataDir is what is known about the data directory besides its path.
type dataDir struct {
	home      string  // the directory that ~ means; empty when HOME is not set
	directory reasons // why the path is not valid
}

// Log are the settings of the log.
type Log struct {
	Format string // json or text; empty: text on a terminal, else json
	Level  slog.Level
}

// HTTP are the settings of the HTTP server.
type HTTP struct {
	Addr string // host:port, or Off
	// Hosts are further names by which browsers may reach the page: that of
	// a proxy, in lower case, with port when it is not the standard one.
	Hosts []string
	Guard Guard

	faults reasons
}

// Connectors are the settings of the chat platforms.
type Connectors struct {
	Telegram Telegram
	Slack    Slack
}

// Agents are the settings that all agents share, and the profiles.
type Agents struct {
	// Profiles are the settings of agents by profile name. The profile
	// "default" always exists.
	Profiles map[string]Profile
	// Scope says which agents an agent reaches: owner or all.
	Scope     string
	Subagents Subagents
	Prompts   Prompts
	Budgets   []Budget
	Skills    string // the folder of skills; empty: DefaultSkillsDir below the data directory

	routes     map[string]string // match -> profile name
	toolNames  []toolRule        // of rules of profiles, in the order of the file
	keepBeats  bool              // the profile of the heartbeat says memory: on
	budgetsOff reasons           // why nothing may be spent
	unread     reasons           // why profiles that match no other one are off
	// shutMatch has, by a match of a profile, why agents that it means are off: which
	// profile they have is not known.
	shutMatch map[string]string
}

// Schedule are the settings of what runs at set times.
type Schedule struct {
	Cron      Cron
	Heartbeat Heartbeat
}

// Telemetry are the settings of metrics, profiles, traces and the relay of events.
type Telemetry struct {
	Metrics bool // are served at /metrics
	Pprof   bool // profiles are served at /debug/pprof/
	OTLP    OTLP
	Relay   []Sink
}

// Tools are the settings of tools that reach beyond claybot.
type Tools struct {
	Web Web
	MCP []MCPServer
	// Workspace is where commands run, in profiles that do not name another.
	Workspace Workspace

	servers []string // all names of the group mcp, also of those that were left out
	noFetch reasons  // why no web page is fetched
	noPlace reasons  // why there is no workspace
}

// Keyed reports whether the file that was read has a key. One that is missing, or
// holds only comments, has none.
func (c Config) Keyed() bool { return c.Source.keyed }

// A Guard says how the page is protected where other machines reach it.
type Guard struct {
	// TLSCert and TLSKey are the paths of PEM files; empty: no TLS.
	TLSCert, TLSKey string
	// Insecure allows an address beyond this machine without TLS.
	Insecure bool
	// Proxies are the addresses of proxies that are believed when they say who
	// asks.
	Proxies []netip.Prefix
}

// The modes of access.
const (
	AccessPairing   = "pairing"   // strangers get a code that an operator approves
	AccessAllowlist = "allowlist" // only who is listed
	AccessOpen      = "open"      // everybody
)

// Access says who may speak.
type Access struct {
	Mode string
	// Allow lists who has access besides those that were paired.
	Allow []Allowed
	// People are the ids of one person, as "connector/userId", by a name for
	// people. No id has two names.
	People map[string][]string
	// Operators may decide for the operator in their chats, as "connector/userId".
	Operators []string

	mixed  bool // which ids belong to one person is not known
	faults reasons
}

// Allowed is one person or one channel of a connector, by the platform's
// stable id.
type Allowed struct {
	Connector string
	Subject   string
}

// Telegram are the settings of the Telegram connector.
type Telegram struct {
	Token       Secret
	APIURL      string // without a slash at the end
	Delivery    string // stream, placeholder or direct
	OnAmbiguous string // resend or notice
	faults      reasons
}

// Wanted reports whether the connector is to run. A token that was named but
// could not be read counts, so that the connector can say so, and so does a setting
// that switches it off.
func (t Telegram) Wanted() bool { return t.Token.Named() || t.faults != nil }

// Slack are the settings of the Slack connector.
type Slack struct {
	BotToken Secret
	AppToken Secret
	APIURL   string // with a slash at the end
	Backfill bool   // read what was missed
	faults   reasons
}

// Wanted reports whether the connector is to run. One of two tokens is enough,
// so that the connector can say which is missing.
func (s Slack) Wanted() bool { return s.BotToken.Named() || s.AppToken.Named() || s.faults != nil }

// The values of Profile.WhenBusy and Profile.ProcessBuffer.
const (
	WhenBusyWait      = "wait"
	WhenBusyInject    = "injectAfterTools"
	BufferAllTogether = "allTogether"
	BufferOneByOne    = "oneByOne"
)

// A Profile is how the agents it matches behave.
type Profile struct {
	Name          string
	Match         []string // "connector", "connector:channel", "cron", "cron:uid" or "heartbeat"
	Model         Model
	ContextWindow int64  // tokens; 0: that of the model
	Prompt        string // the system prompt; empty: the built-in one
	MaxSteps      int    // model calls in one run
	Inbox         Inbox
	Progress      bool     // send text that comes together with tool calls
	Memory        bool     // false: each run begins with its own messages only
	Tools         []string // that may be used; nil means all, empty none
	Engine        Engine
	Care          Care
	// Workspace begins with the common one. Its lists are shared; they are only
	// read.
	Workspace Workspace
	Notes     Notes
	faults    reasons
}

// An Inbox says when an agent reads its messages, and how many at once.
type Inbox struct {
	Debounce      time.Duration
	DebounceMax   time.Duration
	WhenBusy      string
	ProcessBuffer string
	MaxBatch      int
}

// An Engine says how an agent works. Profiles may share what the pointers point to;
// it is only read.
type Engine struct {
	Name    string   // react, plan or explore
	Deep    *Deep    // nil for ordinary agents
	Plan    *Plan    // nil where nothing was set
	Explore *Explore // nil where nothing was set
}

// Default is the configuration in which nothing was set.
func Default() Config {
	c := Config{
		DataDir:    DefaultDataDir,
		HTTP:       HTTP{Addr: DefaultHTTP},
		Access:     Access{Mode: AccessPairing},
		Log:        Log{Level: slog.LevelInfo},
		Model:      Model{SystemFallback: "auto"},
		Connectors: Connectors{Telegram{APIURL: DefaultTelegramURL, Delivery: "stream", OnAmbiguous: "resend"}, Slack{APIURL: DefaultSlackURL, Backfill: true}},
		Agents:     Agents{Scope: ScopeOwner, Subagents: Subagents{MaxDepth: 3, MaxChildren: 8, MaxStartsPerHour: 30}},
		Schedule: Schedule{
			Cron{Enabled: true, Gates: true, Zone: time.UTC},
			Heartbeat{Enabled: true, Gates: true, Every: 30 * time.Minute, Zone: time.UTC, MaxUnattended: 48},
		},
		Telemetry: Telemetry{Metrics: true, OTLP: OTLP{Interval: DefaultExport}},
		Tools:     Tools{Workspace: plainWorkspace()},
		Storage:   Storage{Listen: true, Connections: DefaultConnections, CheckAt: DefaultCheckAt, Copies: DefaultCopies, Files: Files{MaxInline: DefaultInline}},
		Node:      defaultNode(),
	}
	c.Agents.Profiles = map[string]Profile{DefaultProfile: plainProfile(c.Model)}
	return c
}

func plainProfile(m Model) Profile {
	return Profile{
		Name:      DefaultProfile,
		Model:     m,
		MaxSteps:  DefaultMaxSteps,
		Inbox:     Inbox{WhenBusy: WhenBusyWait, ProcessBuffer: BufferAllTogether, MaxBatch: DefaultMaxBatch},
		Memory:    true,
		Engine:    Engine{Name: claybot.EngineReact},
		Workspace: plainWorkspace(),
	}
}

// Profile returns the settings of the agent that d describes. For an agent of a
// person, a match on connector and channel wins over one on the connector,
// which wins over the default; for one of a task, its uid wins over cron. A
// subagent has the profile that d names, as long as there is one.
//
// The heartbeat has no memory unless the profile that matches it says
// memory: on by itself.
func (c Config) Profile(d claybot.Descriptor) Profile {
	p := c.find(d)
	if d.Type == claybot.AgentHeartbeat && !c.Agents.keepBeats {
		p.Memory = false
	}
	return p
}

func (c Config) find(d claybot.Descriptor) Profile {
	for _, match := range matches(d) {
		if why, shut := c.Agents.shutMatch[match]; shut {
			p := c.Agents.Profiles[DefaultProfile]
			p.faults = p.faults.with(match, why)
			return p
		}
		if name, ok := c.Agents.routes[match]; ok {
			return c.Agents.Profiles[name]
		}
	}
	// Subagents have the profile of their root; who talks over HTTP names one.
	if p, ok := c.Agents.Profiles[d.Profile]; ok && (d.Type == claybot.AgentSubagent || d.Connector == claybot.ConnectorAPI) {
		return p
	}
	if p, ok := c.Agents.Profiles[DefaultProfile]; ok {
		return p
	}
	return plainProfile(c.Model)
}

// matches are the entries of a profile's match that mean d, the closest first.
func matches(d claybot.Descriptor) []string {
	switch d.Type {
	case claybot.AgentSubagent:
		return nil
	case claybot.AgentCron:
		return []string{matchCron + ":" + d.UID, matchCron}
	case claybot.AgentHeartbeat:
		return []string{matchHeartbeat}
	default:
		return []string{d.Connector + ":" + d.ChannelID, d.Connector}
	}
}

// Allows reports whether subject of connector is on the list.
func (a Access) Allows(connector, subject string) bool {
	return slices.Contains(a.Allow, Allowed{Connector: connector, Subject: subject})
}
