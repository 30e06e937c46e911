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

// The bounds of a profile's numbers.
const (
	maxSteps    = 1000
	maxBatch    = 1000
	maxDebounce = 24 * 60 * 60 * 1000 // milliseconds
	minWindow   = 2048                // tokens; with less, no conversation fits
	maxWindow   = 100_000_000
)

// setProfiles only remembers where the profiles are: they start from the model
// and the default profile, which may stand further down.
func setProfiles(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want profiles by name, such as default, found %s; ignored", kind(n))
		return // and the group is off, see Config.off
	}
	r.profiles = func(c *Config) { r.readProfiles(at, n, c) }
}

// finish puts the environment above the file and completes the profiles.
func (r *reader) finish(c Config) (_ Config, err error) {
	if r.environment(&c); r.rejected != nil {
		return Config{}, r.rejected
	}
	if r.mistaken(&c); c.where.directory != nil {
		return Config{}, errors.New(c.where.directory.first())
	}
	r.unsettled(&c)
	r.modelEnviron(&c.Model)
	c.Transcription.environ(c.Model.env)
	c.where.home, _ = r.lookup("HOME")
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
	r.matched(&c)
	r.addressesMatter(&c)
	c.Agents.Prompts.Env = r.shownEnv()
	c.Agents.toolNames = r.tools
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
func (r *reader) readProfiles(at place, n *yaml.Node, c *Config) {
	def := draft{Profile: c.Agents.Profiles[DefaultProfile]}
	var others []member
	for m := range r.each(at, n) {
		switch {
		case m.warned > 0:
			r.seal(c, "agents", len(r.warnings)-m.warned)
			continue
		case m.name == foregroundScope:
			r.scope(m, c)
			continue
		case m.value.Kind == yaml.ScalarNode && !empty(m.value) && nearest(m.name, []string{foregroundScope}) != "":
			r.unknown(at, m, []string{foregroundScope})
			continue
		case m.name != DefaultProfile:
			others = append(others, m)
			continue
		}
		before := len(r.warnings)
		if r.profile(m.profile(), m.value, &def); m.value.Kind != yaml.MappingNode && !empty(m.value) {
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
		r.profile(m.profile(), m.value, &p)
		c.assign(p)
		if m.value.Kind != yaml.MappingNode && !empty(m.value) {
			r.seal(c, "agents", before) // which agents it was for is not known
		} else {
			p.Match = r.route(m.at, p.Profile, c)
			c.Agents.Profiles[m.name] = p.done()
			c.Agents.keepBeats = c.Agents.keepBeats || p.remember && slices.Contains(p.Match, matchHeartbeat)
		}
	}
}

// profile reads one profile over the settings it begins with.
func (r *reader) profile(at place, n *yaml.Node, p *draft) {
	began, before := p.Model, len(r.warnings)
	group(r, at, n, p, profileKeys())
	p.Model.part(began)
	r.doubt(at, n, before, p)
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
	if p.Engine.Name == claybot.EngineExplore && !p.doubts.hosts && (p.Engine.Explore == nil || p.Engine.Explore.URL == "" && len(p.Engine.Explore.Hosts) == 0) {
		r.warn(at, "the engine %s reaches nothing without explore.url or explore.hosts", p.Engine.Name)
	}
}

// route enters the matches of p, and returns those that hold. Of two profiles
// with the same match the first in the file wins.
func (r *reader) route(at place, p Profile, c *Config) []string {
	switch {
	case len(p.Match) == 0 && namesAgents(p.Name):
		before := len(r.warnings)
		r.warn(at, "has no match, although its name says whom it is for: add match, or give it another name; ignored")
		if typo(p.Name, DefaultProfile) {
			r.warnings[before].Near = "agents." + DefaultProfile
		}
		r.seal(c, "agents", before)
	case len(p.Match) == 0:
		r.warn(at, "has no match: only API clients that name it use it; for chats, add match: [telegram] or the like")
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

func profileKeys() []key[draft] {
	return slices.Concat(noteKeys(), careKeys(), []key[draft]{
		{"match", setMatch},
		{"model", func(r *reader, at place, n *yaml.Node, p *draft) { setModel(r, at, n, &p.Model) }},
		text("system_fallback", func(r *reader, at place, v string, p *draft) { fallback(r, at, v, &p.Model) }),
		text("context_window", setWindow),
		text("prompt", func(r *reader, at place, v string, p *draft) { p.Prompt = v }),
		text("max_steps", func(r *reader, at place, v string, p *draft) {
			n, ok := r.number(at, v, 1, maxSteps)
			store(&p.MaxSteps, n, ok)
		}),
		text("debounceMs", func(r *reader, at place, v string, p *draft) {
			n, ok := r.number(at, v, 0, maxDebounce)
			store(&p.Inbox.Debounce, time.Duration(n)*time.Millisecond, ok)
		}),
		text("debounceMaxMs", func(r *reader, at place, v string, p *draft) {
			if n, ok := r.number(at, v, 0, 10*maxDebounce); ok {
				p.Inbox.DebounceMax, p.limited, p.limitAt = time.Duration(n)*time.Millisecond, true, at
			}
		}),
		text("whenBusy", func(r *reader, at place, v string, p *draft) {
			word, ok := r.word(at, v, WhenBusyWait, WhenBusyInject)
			store(&p.Inbox.WhenBusy, word, ok)
		}),
		text("processBuffer", func(r *reader, at place, v string, p *draft) {
			word, ok := r.word(at, v, BufferAllTogether, BufferOneByOne)
			store(&p.Inbox.ProcessBuffer, word, ok)
		}),
		text("maxBatch", func(r *reader, at place, v string, p *draft) {
			n, ok := r.number(at, v, 1, maxBatch)
			store(&p.Inbox.MaxBatch, n, ok)
		}),
		text("progress", func(r *reader, at place, v string, p *draft) {
			yes, ok := r.flag(at, v, "send", "off")
			store(&p.Progress, yes, ok)
		}),
		text("memory", func(r *reader, at place, v string, p *draft) {
			yes, ok := r.flag(at, v, "on", "off")
			store(&p.Memory, yes, ok)
			store(&p.remember, yes, ok)
		}),
		{"tools", func(r *reader, at place, n *yaml.Node, p *draft) {
			setTools(r, at, n, p)
			for _, name := range p.Tools {
				r.named("tools", item{at, name})
			}
		}},
		{"deep", setDeep},
		text("engine", setEngine),
		{"approve", setApprove},
		{"plan", setPlan},
		{"workspace", func(r *reader, at place, n *yaml.Node, p *draft) { setWorkspace(r, at, n, &p.Workspace) }},
		{"explore", setExplore},
	})
}

func setMatch(r *reader, at place, n *yaml.Node, p *draft) {
	items, ok := r.list(at, n)
	if !ok {
		return
	}
	p.Match = []string{}
	for _, it := range items {
		word, rest, more := strings.Cut(it.text, ":")
		if err := checkMatch(word, rest, more); err != nil {
			r.refuse(it, word, append(matchWords(), matchSubagent), err)
			if lost := meant(word); lost != "" {
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
func checkMatch(word, rest string, more bool) error {
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
	p, err := platformOf(word)
	if err != nil {
		return fmt.Errorf("%w, and not %s or %s", err, matchCron, matchHeartbeat)
	}
	if more {
		return p.checkListed(rest)
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

func setTools(r *reader, at place, n *yaml.Node, p *draft) {
	items, ok := r.list(at, n)
	p.Tools = []string{}
	if !ok {
		return
	}
	for _, it := range items {
		if it.text == "" || len(it.text) > 64 || !headerName(it.text) {
			r.warn(it.at, "%s is not the name of a tool; ignored", quote(it.text))
			continue
		}
		p.Tools = append(p.Tools, it.text)
	}
}
