// Package configs reads claybot's settings: one optional YAML file, the
// environment above it, and flags above both.
//
// It guarantees that a mistake never sends anything elsewhere and never allows
// more. The tags of a field declare a key, see key in declare.go, and one walker reads
// all of them; only rules that cross keys are code. Each key has a Class: a bad value of
// a harmless key costs itself, a bad value of any other switches off what it belongs to,
// which the Off of its settings says. Either comes back as a Warning that names file,
// line, key, rule and the nearest known key. Load fails only if the file is not YAML, the
// data directory is in doubt, or a variable that makes a process a member of a cluster
// is not valid. Secrets enter by environment or by reference, are of type Secret, and
// never print.
//
// Reading has no side effects, so a reload is a second Load. The package knows
// no connector, store or model.
package configs

import (
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot"
)

// Off is the value of Config.HTTP that closes the HTTP address.
const Off = "off"

// Default values of settings.
const (
	DefaultDataDir     = ".claybot"
	DefaultHTTP        = "127.0.0.1:8420"
	DefaultModel       = "gpt-5"
	DefaultTelegramURL = "https://api.telegram.org"
	DefaultSlackURL    = "https://slack.com/api/"
	DefaultDiscordURL  = "https://discord.com/api/v10"
	DefaultProfile     = "default"
	DefaultMaxSteps    = 64
	DefaultMaxBatch    = 100
)

// Config is everything that can be set, grouped by the part that owns it. Default
// returns one without any setting; a Config never holds a value that its rules refuse.
type Config struct {
	Source  Source
	DataDir string `key:"data_dir" local:"yes" class:"destination" kind:"directory" env:"CLAYBOT_DATA_DIR" off:"claybot does not start"`
	Log     Log    `key:",inline"`
	HTTP    HTTP   `key:"http" local:"yes" class:"narrowing" kind:"http" off:"the web page is off"`
	Access  Access `key:"access" class:"narrowing" kind:"access" off:"new users are not admitted"`
	// Model is that of all profiles that name no other.
	Model         Model         `key:"model" class:"destination" kind:"model"`
	Transcription Transcription `key:"transcription" class:"destination" kind:"transcription" off:"no recording is transcribed"`
	Speech        Speech        `key:"speech" class:"destination" kind:"speech" off:"no reply is spoken"`
	Connectors    Connectors    `key:",inline"`
	Agents        Agents        `key:",inline"`
	Schedule      Schedule      `key:",inline"`
	Telemetry     Telemetry     `key:",inline"`
	Tools         Tools         `key:",inline"`
	Storage       Storage       `key:"storage" local:"yes" class:"destination" kind:"storage" off:"claybot does not start"`
	Node          Node          `key:"node" class:"harmless"`
	Privacy       Privacy       `key:"privacy" class:"harmless"`
	Sessions      Sessions      `key:"sessions" class:"harmless"`
	// Language is the language of people whose own one is unknown, a texts.Language; empty: English.
	Language  string    `key:"language" class:"harmless" words:"en,de" default:"en"`
	Texts     Texts     `key:"texts" class:"harmless"`
	Retention Retention `key:"retention" class:"harmless"`
	Limits    Limits    `key:"limits" class:"narrowing" off:"a person may send 20 messages a minute"`

	moves Moves // see Follow; nil: no chat has a new id

	home string  // the directory that ~ means; empty when HOME is not set
	shut reasons // why parts that have no faults of their own are off
}

// Source says where the settings come from.
type Source struct {
	File string // that was read; empty when there was none
	// Version is that of the text of the file, see VersionOf; empty when there was none.
	Version string
	// Warnings are the invalid settings, where the caller of Load has put them here.
	Warnings []Warning

	keyed bool              // the file has a key
	root  *yaml.Node        // of the file; nil for none. It is only read
	set   map[string]origin // by flags and variables, by path
}

// Log are the settings of the log.
type Log struct {
	// Format is json or text; empty: text on a terminal, else json.
	Format string     `key:"log" class:"harmless" words:"json,text" env:"CLAYBOT_LOG"`
	Level  slog.Level `key:"log_level" class:"harmless" kind:"level" env:"CLAYBOT_LOG_LEVEL"`
}

// Privacy are the settings of what is kept of people's messages.
type Privacy struct {
	// UserSecrets says what happens to tokens, keys and passwords that people paste:
	// mask, keep or refuse; empty: mask.
	UserSecrets string `key:"user_secrets" words:"mask,keep,refuse" default:"mask"`
}

// Whether the threads of a channel are conversations of their own.
const (
	ThreadsOwn    = "own"
	ThreadsShared = "shared"
)

// Whether each person of a group or channel has an agent of their own.
const (
	GroupOwn    = "own"
	GroupShared = "shared"
)

// Whether agents are told when a person edits a message that they have read.
const (
	EditsNote   = "note"
	EditsIgnore = "ignore"
)

// Sessions are the settings of what a conversation is.
type Sessions struct {
	// Threads is ThreadsOwn or ThreadsShared; empty: as the data directory began.
	Threads string `key:"threads" words:"own,shared"`
	// Group is GroupOwn or GroupShared; empty: own. Profile.Group comes before it.
	Group string `key:"group" words:"own,shared" default:"own"`
	// Edits is EditsNote or EditsIgnore; empty: ignore.
	Edits string `key:"edits" words:"note,ignore" default:"ignore"`
}

// Limits bound what people may send.
type Limits struct {
	// RunsPerMinute is how many messages a person may write within a minute to start runs;
	// 0: any number.
	RunsPerMinute int `key:"runs_per_minute" limits:"0..100000"`
	// FilesPerOwner is how many bytes of files a person may have sent, to all their agents
	// together; 0: any number.
	FilesPerOwner int64 `key:"files_per_owner" kind:"size" limits:"1k..1024t" words:"0"`

	faults // why the limit is unknown
}

// AdvisedRunsPerMinute is the limit advised where access is open, and in force while the
// configured one is unknown.
const AdvisedRunsPerMinute = 20

// DefaultFilesPerOwner is the default of Limits.FilesPerOwner, in bytes.
const DefaultFilesPerOwner = 1 << 30

// HTTP are the settings of the HTTP server.
type HTTP struct {
	Addr  string `key:"addr" kind:"listen" env:"CLAYBOT_HTTP_ADDR"` // host:port, or Off
	Guard Guard  `key:",inline"`
	// Hosts are further names by which browsers may reach the page: that of
	// a proxy, in lower case, with port when it is not the standard one.
	Hosts []string `key:"^http_hosts" local:"yes" class:"narrowing" kind:"hosts" env:"CLAYBOT_HTTP_HOSTS" off:"-"`
	// PublicURL is the address behind which a proxy has the server; empty: none. Its host is
	// one of Hosts.
	PublicURL string `key:"public_url" class:"harmless" kind:"url without slash"`

	faults // why the page is off
}

// Agents are the settings that all agents share, and the profiles.
type Agents struct {
	Subagents Subagents `key:"subagents" class:"narrowing" off:"agents start no subagents"`
	// Profiles are the settings of agents by profile name. The profile
	// "default" always exists.
	Profiles map[string]Profile `key:"agents" class:"destination" kind:"profiles" off:"the agents of the default profile are off"`
	Scope    string             // which agents an agent reaches: ScopeOwner or ScopeAll
	Prompts  Prompts            `key:"prompts" class:"harmless"`
	Budgets  []Budget           `key:"budgets" class:"narrowing" kind:"budgets" off:"nothing may be spent"`
	// Skills is the folder of skills; empty: DefaultSkillsDir below the data directory.
	Skills string `key:"skills_dir" class:"harmless" kind:"path"`

	routes         map[string]string // match -> profile name
	toolNames      []toolRule        // of rules of profiles, in the order of the file
	keepHeartbeats bool              // the profile of the heartbeat says memory: on
	// shutMatch has, by a match of a profile, why agents that it means are off: which
	// profile they have is not known.
	shutMatch map[string]string
}

// Schedule are the settings of what runs at set times.
type Schedule struct {
	Cron      Cron      `key:"cron" class:"narrowing" off:"scheduled tasks are off"`
	Heartbeat Heartbeat `key:"heartbeat" class:"narrowing" off:"the heartbeat is off"`
}

// Telemetry are the settings of metrics, profiles, traces and the relays of events.
type Telemetry struct {
	Relay   []Relay `key:"relay" local:"yes" class:"destination" kind:"relay" bad:"zero" off:"no event is sent out"`
	Metrics bool    `key:"metrics" class:"narrowing" bad:"false" off:"no metrics are served"` // at /metrics
	// MetricsListen is host:port of a listener for metrics alone, without a token, or Off.
	MetricsListen string `key:"metrics_listen" class:"narrowing" kind:"listen" env:"CLAYBOT_METRICS_LISTEN" bad:"off" off:"the metrics listener is off"`
	Pprof         bool   `key:"pprof" local:"yes" class:"narrowing" kind:"pprof" env:"CLAYBOT_PPROF" bad:"false" off:"no profiles are served"`
	OTLP          OTLP   `key:"otlp" local:"yes" class:"destination" off:"no traces are sent"`
}

// Tools are the settings of tools that reach beyond claybot.
type Tools struct {
	Web Web         `key:"web" class:"narrowing" off:"nothing is fetched"`
	MCP []MCPServer `key:"mcp,leaf" local:"yes" class:"destination" kind:"mcp" bad:"zero" off:"no MCP server is used"`
	// Workspace is where commands run, in profiles that do not name another.
	Workspace Workspace `key:"workspaces" local:"yes" class:"narrowing" kind:"workspace" off:"there is no workspace"`

	servers []string // all names of the group mcp, also of those that were left out
}

// Keyed reports whether the file that was read has a key. One that is missing, or
// holds only comments, has none.
func (c Config) Keyed() bool { return c.Source.keyed }

// A Guard says how the page is protected where other machines reach it.
type Guard struct {
	// TLSCert and TLSKey are the paths of PEM files; empty: no TLS.
	TLSCert string `key:"tls_cert" kind:"path"`
	TLSKey  string `key:"tls_key" kind:"path"`
	// Proxies are the addresses of proxies that are believed when they say who
	// asks.
	Proxies []netip.Prefix `key:"trusted_proxies" kind:"networks" env:"CLAYBOT_HTTP_PROXIES" off:"-"`
	// Insecure allows an address beyond this machine without TLS.
	Insecure bool `key:"insecure"`
}

// The modes of access.
const (
	AccessPairing   = "pairing"   // strangers get a code that an operator approves
	AccessAllowlist = "allowlist" // only who is listed
	AccessOpen      = "open"      // everybody
)

// Access says who may speak.
type Access struct {
	Mode string `key:"mode" words:"pairing,allowlist,open" env:"CLAYBOT_ACCESS"`
	// Allow lists who has access besides those that were paired.
	Allow []Allowed `key:"allow" kind:"allowed" env:"CLAYBOT_ALLOW"`
	// People are the ids of one person, as "connector/userId", by a name for
	// people. No id has two names.
	People map[string][]string `key:"^people" local:"yes" class:"narrowing" kind:"people by name" off:"no approval of several people holds"`
	// Operators may decide for the operator in their chats, as "connector/userId".
	Operators []string `key:"^operators" local:"yes" class:"narrowing" kind:"people" off:"-"`

	faults // why access is closed to new people
}

// Allowed is one person or one channel of a connector, by the platform's
// stable id.
type Allowed struct {
	Connector string
	Subject   string
}

// Default is the configuration in which nothing was set.
func Default() Config {
	c := Config{
		DataDir:    DefaultDataDir,
		HTTP:       HTTP{Addr: DefaultHTTP},
		Access:     Access{Mode: AccessPairing},
		Log:        Log{Level: slog.LevelInfo},
		Model:      Model{SystemFallback: "auto"},
		Connectors: Connectors{Telegram: plainTelegram(), Slack: plainSlack(), Discord: plainDiscord()},
		Agents:     Agents{Scope: ScopeOwner, Subagents: Subagents{MaxDepth: 3, MaxChildren: 8, MaxStartsPerHour: 30}},
		Schedule: Schedule{
			Cron{Enabled: true, Gates: true, Zone: time.UTC, MaxTasks: DefaultTasks, MaxNewPerHour: DefaultHourlyTasks},
			Heartbeat{Enabled: true, Gates: true, Every: 30 * time.Minute, Zone: time.UTC, MaxUnattended: 48},
		},
		Telemetry: Telemetry{Metrics: true, MetricsListen: Off, OTLP: OTLP{Interval: DefaultExport}},
		Tools:     Tools{Workspace: plainWorkspace()},
		Storage:   Storage{Listen: true, Connections: DefaultConnections, CheckAt: DefaultCheckAt, Copies: DefaultCopies, Files: Files{MaxInline: DefaultInline}},
		Node:      defaultNode(),
		Retention: defaultRetention(),
		Limits:    Limits{FilesPerOwner: DefaultFilesPerOwner},
	}
	c.Agents.Profiles = map[string]Profile{DefaultProfile: plainProfile(c.Model)}
	return c
}

func plainProfile(m Model) Profile {
	return Profile{
		Name:     DefaultProfile,
		Model:    m,
		MaxSteps: DefaultMaxSteps,
		Inbox:    Inbox{WhenBusy: WhenBusyWait, ProcessBuffer: BufferAllTogether, MaxBatch: DefaultMaxBatch},
		Respond:  "mention", VoiceReplies: Off, AutoSend: true,
		Reactions: Reactions{Feedback: true, Stop: []string{}, Approve: []string{}},
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
func (c *Config) Profile(d claybot.Descriptor) Profile {
	name, shut := c.find(d)
	p, ok := c.Agents.Profiles[name]
	if !ok {
		p = plainProfile(c.Model)
	}
	if shut != "" {
		p.with(shut, c.Agents.shutMatch[shut])
	}
	if d.Type == claybot.AgentHeartbeat && !c.Agents.keepHeartbeats {
		p.Memory = false
	}
	return p
}

// find returns the name of the profile of an agent, and the match that is switched off, if
// one is.
func (c *Config) find(d claybot.Descriptor) (name, shut string) {
	var by []string
	if len(c.Agents.routes) > 0 || len(c.Agents.shutMatch) > 0 {
		by = c.matches(d)
	}
	for _, match := range by {
		if _, off := c.Agents.shutMatch[match]; off {
			return DefaultProfile, match
		}
		if name, ok := c.Agents.routes[match]; ok {
			return name, ""
		}
	}
	// Subagents have the profile of their root; flows, and who talks over HTTP, name one.
	if _, ok := c.Agents.Profiles[d.Profile]; ok && (d.Type == claybot.AgentSubagent || d.Type == claybot.AgentFlow || d.Connector == claybot.ConnectorAPI) {
		return d.Profile, ""
	}
	return DefaultProfile, ""
}

// matches are the entries of a profile's match that mean d, the closest first.
func (c *Config) matches(d claybot.Descriptor) []string {
	switch d.Type {
	case claybot.AgentSubagent, claybot.AgentFlow:
		return nil
	case claybot.AgentCron:
		return []string{matchCron + ":" + d.UID, matchCron}
	case claybot.AgentHeartbeat:
		return []string{matchHeartbeat}
	default:
		channel := d.ChannelID
		var former []string
		if c.moves != nil { // an agent may be left at a former id
			channel = c.moves.Current(d.Connector, channel)
			former = c.moves.Former(d.Connector, channel)
		}
		all := []string{d.Connector + ":" + channel}
		for _, id := range former {
			all = append(all, d.Connector+":"+id)
		}
		return append(all, d.Connector)
	}
}

// Allows reports whether subject of connector is on the list.
func (a Access) Allows(connector, subject string) bool {
	return slices.Contains(a.Allow, Allowed{Connector: connector, Subject: subject})
}

// setHTTP reads an address alone, or the group of keys.
func setHTTP(r *reader, at place, n *yaml.Node, h *HTTP) {
	if n.Kind != yaml.ScalarNode {
		r.group(at, n, h)
		return
	}
	if addr, err := listen(strings.TrimSpace(n.Value)); err != nil {
		r.refuse(at, err)
	} else {
		h.Addr = addr
	}
}

// NamelessProxy reports whether there is a proxy before the web page, and no name by
// which people may come: names that are not listed are turned away.
func (c Config) NamelessProxy() bool {
	return c.HTTP.Addr != Off && len(c.HTTP.Guard.Proxies) > 0 && len(c.HTTP.Hosts) == 0
}

// expand puts the home directory in the place of a leading ~.
func (c *Config) expand(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~")
	switch {
	case !ok || rest != "" && rest[0] != '/': // ~ may begin any name
		return path, nil
	case c.home == "":
		return "", fmt.Errorf("%s: ~ cannot be expanded because HOME is not set; write the whole path", quote(path))
	}
	return filepath.Join(c.home, rest), nil
}
