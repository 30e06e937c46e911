package configs

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot"
)

// The values of Inbox.WhenBusy and Inbox.ProcessBuffer.
const (
	WhenBusyWait      = "wait"
	WhenBusyInject    = "injectAfterTools"
	BufferAllTogether = "allTogether"
	BufferOneByOne    = "oneByOne"
)

// A Profile is how the agents it matches behave.
type Profile struct {
	Name          string
	Match         []string `key:"match" class:"destination" kind:"match list"` // "connector", "connector:channel", "cron", "cron:uid" or "heartbeat"
	Model         Model    `key:"model,leaf" class:"destination" kind:"model"`
	Models        []string `key:"models" class:"narrowing" kind:"model names"` // that people may choose with /model; none: operators alone may choose
	_             struct{} `key:"system_fallback" class:"harmless" kind:"system fallback"`
	ContextWindow int64    `key:"context_window" class:"harmless" kind:"window"`       // tokens; 0: that of the model
	Prompt        string   `key:"prompt" class:"harmless"`                             // the system prompt; empty: the built-in one
	PromptDir     string   `key:"prompt_dir" local:"yes" class:"harmless" kind:"path"` // of SOUL.md and USER.md; empty: none
	MaxSteps      int      `key:"max_steps" class:"narrowing" limits:"1..1000"`        // model calls in one run
	RequireTool   int      `key:"require_tool" class:"harmless" limits:"0..20"`        // replies without a call of a tool that a run pushes back
	Inbox         Inbox    `key:",inline"`
	Progress      bool     `key:"progress" class:"harmless" words:"send,off"` // send text that comes together with tool calls
	AutoSend      bool     `key:"auto_send" class:"narrowing" words:"on,off"` // the reply of a run is sent by itself
	VoiceReplies  string   `key:"voice_replies" class:"harmless" words:"off,reply,always"`
	Respond       string   `key:"respond" class:"harmless" words:"mention,thread,all,off"` // in groups
	Context       *int     `key:"context" class:"harmless" limits:"0..100"`                // earlier messages of a group that come with a message; nil: see profiles.Context
	// Group is GroupOwn or GroupShared; empty: as Sessions.Group.
	Group string `key:"group" class:"narrowing" words:"own,shared" bad:"own" off:"each person of a group has an agent of their own"`
	// Acknowledge are the emoji on messages of people.
	Acknowledge Acknowledge `key:"acknowledge" class:"harmless"`
	// Reactions are what reactions of people to messages mean.
	Reactions Reactions `key:"reactions" class:"harmless"`
	Memory    bool      `key:"memory" class:"harmless" kind:"memory"`              // false: each run begins with its own messages only
	Tools     []string  `key:"tools" class:"narrowing" kind:"profile tools"`       // that may be used; nil means all, empty none
	SendTo    []string  `key:"send_to" local:"yes" class:"narrowing" kind:"chats"` // that its agents may write into, as connector:channel
	Pin       []string  `key:"pin" class:"harmless" kind:"tool groups"`            // groups of tools that are in every request
	Engine    Engine    `key:",inline"`
	Care      Care      `key:",inline"`
	// Workspace begins with the common one. Its lists are shared; they are only
	// read.
	Workspace Workspace `key:"workspace,leaf" local:"yes" class:"narrowing" kind:"workspace"`
	_         struct{}  `key:"browser" class:"narrowing" kind:"browser"`
	Notes     Notes     `key:",inline"`

	faults // why the agents of the profile must not run
}

// Acknowledge are the emoji that tell on a message how far its answer has come; empty for
// none.
type Acknowledge struct {
	Received string `key:"received" class:"harmless"`
	Working  string `key:"working" class:"harmless"`
	Done     string `key:"done" class:"harmless"`
	Failed   string `key:"failed" class:"harmless"`
}

// Reactions are what emoji reactions of people to messages mean.
type Reactions struct {
	Feedback bool     `key:"feedback" class:"harmless" words:"on,off"` // 👍 and 👎 are feedback
	Stop     []string `key:"stop" class:"harmless" kind:"emoji list"`
	Approve  []string `key:"approve" class:"harmless" kind:"emoji list"`
}

// An Inbox says when an agent reads its messages, and how many at once.
type Inbox struct {
	Debounce      time.Duration `key:"debounceMs" class:"harmless" kind:"milliseconds" limits:"0..86400000"`
	DebounceMax   time.Duration `key:"debounceMaxMs" class:"harmless" kind:"longest debounce" limits:"0..864000000"`
	WhenBusy      string        `key:"whenBusy" class:"harmless" words:"wait,injectAfterTools"`
	ProcessBuffer string        `key:"processBuffer" class:"harmless" words:"allTogether,oneByOne"`
	MaxBatch      int           `key:"maxBatch" class:"harmless" limits:"1..1000"`
}

// An Engine says how an agent works. Profiles may share what the pointers point to;
// it is only read.
type Engine struct {
	Deep    *Deep    `key:"deep" class:"narrowing" kind:"deep" bad:"zero" off:"its agents are ordinary ones"` // nil for ordinary agents
	Name    string   `key:"engine" class:"narrowing" words:"react,plan,explore"`
	Plan    *Plan    `key:"plan" class:"narrowing" kind:"plan"`                     // nil where nothing was set
	Explore *Explore `key:"explore" local:"yes" class:"destination" kind:"explore"` // nil where nothing was set
}

// A profileGroup declares the keys of the group agents.
type profileGroup struct {
	_       struct{} `key:"foreground_scope" local:"yes" class:"narrowing" kind:"scope" off:"agents reach those of their own person only"`
	Default draft    `key:"default" class:"destination" kind:"profile" off:"the agents of the profile are off"`
}

// foregroundScope is the one key of the group agents that is no profile.
const foregroundScope = "foreground_scope"

// The values of Agents.Scope.
const (
	ScopeOwner = "owner" // agents reach those of their own person
	ScopeAll   = "all"   // agents reach those of everybody
)

// Subagents limits the agents that agents start. 0 means that there are none.
type Subagents struct {
	MaxDepth         int `key:"max_depth" limits:"0..100"`               // of a chain of them below the agent at its top
	MaxChildren      int `key:"max_children" limits:"0..10000"`          // of one parent that are at work at the same time
	MaxStartsPerHour int `key:"max_starts_per_hour" limits:"0..1000000"` // below one agent at the top

	faults // why agents start none
}

// setProfiles only remembers where the profiles are: they start from the model
// and the default profile, which may stand further down.
func setProfiles(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want profiles by name, such as default, found %s; ignored", kindOf(n))
		return // and the group is off, see Config.off
	}
	r.profiles = func(c *Config) { readProfiles(r, at, n, c) }
}

// finish puts the environment above the file and completes the profiles.
func (r *reader) finish(c Config) (_ Config, err error) {
	if r.environment(&c); r.rejected != nil {
		return Config{}, r.rejected
	}
	if r.mistaken(&c); c.shut.in("data_dir") != "" {
		return Config{}, errors.New(c.shut.in("data_dir"))
	}
	settle(r, &c)
	r.modelEnviron(&c.Model)
	c.Source.set = c.Source.ofModel(c.Model)
	c.Transcription.environ(c.Model.env)
	c.Speech.environ(c.Model.env)
	c.home, _ = r.lookup("HOME")
	if c.DataDir, err = c.expand(c.DataDir); err != nil {
		return Config{}, fmt.Errorf("data_dir: %w", err)
	}
	if c.Schedule.Heartbeat.Zone == nil {
		c.Schedule.Heartbeat.Zone = c.Schedule.Cron.Zone
	}
	def := c.Agents.Profiles[DefaultProfile]
	def.Model = c.Model
	def.Workspace = c.Tools.Workspace
	c.Agents.Profiles[DefaultProfile] = def
	c.Agents.routes = make(map[string]string)
	r.person = func(id string) string { return c.Identities(id)[0] }
	if r.profiles != nil {
		r.profiles(&c)
	}
	c.closeProfiles()
	matchBudgets(r, &c)
	r.addressesMatter(&c)
	c.Agents.Prompts.Env = shownEnv(r)
	c.Agents.toolNames, c.Texts.written = r.tools, r.texts
	slices.SortStableFunc(r.warnings, func(a, b Warning) int { return a.Line - b.Line })
	return c, nil
}

// A draft is a profile while it is read.
type draft struct {
	Profile
	limited  bool  // debounceMaxMs was set, here or in the default profile
	limitAt  place // where, when it was here
	windowed bool  // context_window was set here
	remember bool  // memory: on was set here
	// unmatched says why it is not known which agents the profile is for, lost why
	// those of a word of match are not.
	unmatched reasons
	lost      map[string]string
	doubts    doubts
}

// readProfiles reads the default profile first, because the others begin with
// its settings.
func readProfiles(r *reader, at place, n *yaml.Node, c *Config) {
	def := draft{Profile: c.Agents.Profiles[DefaultProfile]}
	var others []member
	for m := range r.each(at, n) {
		switch {
		case m.warned > 0:
			r.seal(c, "agents", len(r.warnings)-m.warned)
			continue
		case m.name == foregroundScope:
			readScope(r, m, c)
			continue
		case m.value.Kind == yaml.ScalarNode && !empty(m.value) && Nearest(m.name, []string{foregroundScope}) != "":
			r.unknown(at, m, []string{foregroundScope})
			continue
		case m.name != DefaultProfile:
			others = append(others, m)
			continue
		}
		before := len(r.warnings)
		if readProfile(r, m.profile(), m.value, &def); m.value.Kind != yaml.MappingNode && !empty(m.value) {
			r.seal(&def, profilePath, before) // and those that begin with it
		}
		c.assign(def)
		if def.Match != nil {
			r.warn(m.at, "the default profile takes what no other matches; match is ignored")
			def.Match = nil
		}
		c.Agents.Profiles[DefaultProfile] = def.done()
	}
	for _, m := range others {
		p := def
		p.Name, p.limitAt, p.windowed, p.remember, p.unmatched, p.lost = m.name, place{}, false, false, nil, nil
		before := len(r.warnings)
		readProfile(r, m.profile(), m.value, &p)
		c.assign(p)
		if m.value.Kind != yaml.MappingNode && !empty(m.value) {
			r.seal(c, "agents", before) // which agents it was for is not known
		} else {
			p.Match = routeProfile(r, m.at, p.Profile, c)
			c.Agents.Profiles[m.name] = p.done()
			c.Agents.keepHeartbeats = c.Agents.keepHeartbeats || p.remember && slices.Contains(p.Match, matchHeartbeat)
		}
	}
}

// sendMessage is the tool with which agents send without a reply.
const sendMessage = "send_message"

// readProfile reads one profile over the settings it begins with.
func readProfile(r *reader, at place, n *yaml.Node, p *draft) {
	began, before := p.Model, len(r.warnings)
	r.group(at, n, p)
	p.Model.part(began)
	findDoubts(r, at, n, before, p)
	if p.Model.Name != began.Name && !p.windowed {
		p.ContextWindow = 0 // the one inherited is of another model
	}
	if p.limited && p.Inbox.DebounceMax < p.Inbox.Debounce {
		p.limited = false
		if p.limitAt.key != "" {
			r.warn(p.limitAt, "%d is less than debounceMs, which is %d; using ten times debounceMs",
				p.Inbox.DebounceMax.Milliseconds(), p.Inbox.Debounce.Milliseconds())
		}
	}
	if !p.limited {
		p.Inbox.DebounceMax = 10 * p.Inbox.Debounce
	}
	if !p.AutoSend && p.Tools != nil && !slices.Contains(p.Tools, sendMessage) {
		r.warn(at, "auto_send is off and tools does not name %s, so its agents send no texts", sendMessage)
	}
	if p.Engine.Name == claybot.EngineExplore && !p.doubts.hosts && (p.Engine.Explore == nil || p.Engine.Explore.URL == "" && len(p.Engine.Explore.Hosts) == 0) {
		r.warn(at, "the engine %s reaches nothing without explore.url or explore.hosts", p.Engine.Name)
	}
}

// routeProfile enters the matches of p, and returns those that hold. Of two profiles
// with the same match the first in the file wins.
func routeProfile(r *reader, at place, p Profile, c *Config) []string {
	switch {
	case len(p.Match) == 0 && r.namesAgents(p.Name):
		before := len(r.warnings)
		r.warn(at, "has no match, although its name says whom it is for: add match, or give it another name; ignored")
		if typo(p.Name, DefaultProfile) {
			r.warnings[before].Near = "agents." + DefaultProfile
		}
		r.seal(c, "agents", before)
	case len(p.Match) == 0:
		r.warn(at, "has no match: only API clients that name it use it; for chats, add match: [telegram] or the like")
		r.warnings[len(r.warnings)-1].advice = true
	}
	return slices.DeleteFunc(p.Match, func(match string) bool {
		owner, taken := c.Agents.routes[match]
		if taken && owner != p.Name {
			r.warn(at, "match %s belongs to the profile %s already; ignored", quote(match), quote(owner))
			return true
		}
		c.Agents.routes[match] = p.Name
		return false
	})
}

// readScope sets which agents an agent reaches. A word that is not known means the narrow one.
func readScope(r *reader, m member, c *Config) {
	c.Agents.Scope = ScopeOwner
	before := len(r.warnings)
	v, ok := r.scalar(m.at, m.value)
	if !ok {
	} else if empty(m.value) {
		r.warn(m.at, noValue+"; ignored")
	} else if word, err := oneOf(v, ScopeOwner, ScopeAll); err != nil {
		r.refuse(m.at, err)
	} else {
		c.Agents.Scope = word
	}
	instead(r, before, "using "+ScopeOwner)
}

func setMatch(r *reader, at place, n *yaml.Node, p *draft) {
	items, ok := r.list(at, n)
	if !ok {
		return
	}
	p.Match = []string{}
	for _, it := range items {
		word, rest, more := strings.Cut(it.text, ":")
		if err := r.checkMatch(word, rest, more); err != nil {
			r.refuse(it.at, &wordError{err, word, append(r.matchWords(), matchSubagent)})
			if lost := r.meant(word); lost != "" {
				p.lose(lost, &r.warnings[len(r.warnings)-1])
			}
			continue
		}
		p.Match = append(p.Match, it.text)
	}
}

// lose switches off the agents of a word of match that a refused entry was about. Of
// one that is about others, see off.
func (p *draft) lose(word string, w *Warning) {
	if p.lost == nil {
		p.lost = make(map[string]string)
	}
	text, _ := ignored(*w)
	w.Text = text
	p.lost[word] = w.String()
	w.Text, w.Off = text+"; agents of "+word+" that no other entry names are off"+until, true
}

// The words of match for agents in the background. The last one is known to be
// refused in words that help.
const (
	matchCron      = string(claybot.AgentCron)
	matchHeartbeat = string(claybot.AgentHeartbeat)
	matchSubagent  = string(claybot.AgentSubagent)
)

// checkMatch checks an entry of a match: a word, and with more, what follows it.
func (r *reader) checkMatch(word, rest string, more bool) error {
	switch word {
	case matchCron:
		if more && claybot.AgentID(rest).Validate() != nil {
			return fmt.Errorf("%s is not the uid of a task, which has 24 to 32 of a-z and 0-9 and begins with a letter", quote(rest))
		}
		return nil
	case matchHeartbeat:
		if more {
			return fmt.Errorf("there is one %s only; write that word alone", matchHeartbeat)
		}
		return nil
	case matchSubagent:
		return errors.New("a subagent has the profile of the agent that its chain begins with")
	}
	p, err := platformOf(r.instances, word)
	if err != nil {
		return fmt.Errorf("%w, and not %s or %s", err, matchCron, matchHeartbeat)
	}
	if more {
		return checkListed(p, rest)
	}
	return nil
}

// setWindow sets how many tokens the model takes; 0 goes by its name.
func setWindow(r *reader, at place, v string, p *draft) {
	n, err := strconv.Atoi(v)
	if err != nil || n != 0 && n < minWindow || n > maxWindow {
		r.warn(at, "%s is not 0, nor a whole number from %d to %d; ignored", quote(v), minWindow, maxWindow)
		return
	}
	p.ContextWindow, p.windowed = int64(n), true
}

// The bounds of Profile.ContextWindow, in tokens; with less, no conversation fits.
const (
	minWindow = 2048
	maxWindow = 100_000_000
)

func setLongestDebounce(r *reader, at place, v string, p *draft) {
	n, err := (key{limits: "0..864000000"}).number(v)
	if err != nil {
		r.refuse(at, err)
		return
	}
	p.Inbox.DebounceMax, p.limited, p.limitAt = time.Duration(n)*time.Millisecond, true, at
}

func setMemory(r *reader, at place, v string, p *draft) {
	yes, err := (key{words: "on,off"}).truth(v)
	if err != nil {
		r.refuse(at, err)
		return
	}
	p.Memory, p.remember = yes, yes
}

// setTools reads names of tools. None is left of what is not a list.
func setTools(r *reader, at place, n *yaml.Node, tools *[]string) {
	items, _ := r.list(at, n)
	*tools = valid(r, items, forms["tool"].parse)
}

func setProfileTools(r *reader, at place, n *yaml.Node, p *draft) {
	setTools(r, at, n, &p.Tools)
	for _, name := range p.Tools {
		r.named("tools", item{at, name})
	}
}

// setGroups reads groups of tools.
func setGroups(r *reader, at place, n *yaml.Node, p *draft) {
	items, _ := r.list(at, n)
	p.Pin = valid(r, items, forms["tool group"].parse)
	for _, it := range items {
		if slices.Contains(p.Pin, it.text) {
			r.named("pin", it)
		}
	}
}

const defaultsOff = "the agents of the default profile are off"

func (p *draft) off(path, why string) string {
	if strings.HasPrefix(path, profilePath+".plan") || strings.HasPrefix(path, profilePath+".explore") {
		return "" // see findDoubts
	}
	switch lastName(path) {
	case "engine": // see findDoubts
		return ""
	case "match":
		p.unmatched = p.unmatched.with(path, why)
		return defaultsOff
	case "tools", "limits", "tool_time", "tool_output", "step_calls", "run_calls":
		p.Care.Limits.with(path, why)
		return "the profile has no tools"
	case "confirm":
		p.Care.Approve = []string{"*"}
		return "all tools ask"
	case "allow":
		if !strings.Contains(why, noValue) {
			return "" // the bad ones are left out
		}
		p.Care.Allow = []string{}
		return "nothing is allowed unasked"
	case "approvals", "quorum", "approvers":
		p.Care.NoApproval = true
		return noApproval
	case "send_to":
		p.SendTo = nil
		return "its agents write into no other chats"
	case "models":
		p.Models = nil
		return "only operators choose a model"
	case "browser":
		p.Workspace.Browser = false
		return "there is no browser"
	case "notes":
		p.Notes.Off = true
		return "there are no notes"
	case "workspace":
		p.Workspace = noWorkspace()
		return "there is no workspace"
	}
	if path == profilePath+".model" || strings.HasPrefix(path, "model.") || strings.HasPrefix(path, profilePath+".model.") {
		return p.Model.off(path, why)
	}
	if path == profilePath { // match may be a part of it
		p.unmatched = p.unmatched.with(path, why)
	}
	p.with(path, why)
	return "the agents of the profile are off"
}

func (p *draft) on(path string) {
	p.faults.on(path)
	p.Care.Limits.on(path)
}
