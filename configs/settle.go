package configs

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
)

// profile is the place of a profile: its keys are those of every profile.
func (m member) profile() place {
	m.at.path = profilePath
	return m.at
}

// settle closes what the file and the environment have left in doubt, before
// profiles begin with it.
func settle(r *reader, c *Config) {
	c.Connectors.separate(r)
	r.mixed = c.shut.in("people") != ""
	if c.Access.Off() != "" {
		c.Access.Mode = AccessAllowlist
	}
	c.Storage.Files.Fault = cmp.Or(c.Storage.Files.Fault, c.Storage.Files.keyFault)
	if u, err := url.Parse(c.HTTP.PublicURL); err == nil && u.Host != "" {
		if host := strings.ToLower(u.Host); !slices.Contains(c.HTTP.Hosts, host) {
			c.HTTP.Hosts = append(slices.Clone(c.HTTP.Hosts), host)
		}
	}
	if c.HTTP.Off() != "" {
		c.HTTP.Addr = Off
	}
	c.Connectors.reachable(r, c.HTTP)
	c.Tools.Web.NoFetch = c.Tools.Web.NoFetch || c.Tools.Web.Off() != ""
	if c.shut.in("workspaces") != "" {
		c.Tools.Workspace = noWorkspace()
	}
	if s := &c.Agents.Subagents; s.Off() != "" {
		*s = Subagents{faults: s.faults}
	}
	c.Schedule.Cron.Enabled = c.Schedule.Cron.Enabled && c.Schedule.Cron.Off() == ""
	c.Schedule.Heartbeat.Enabled = c.Schedule.Heartbeat.Enabled && c.Schedule.Heartbeat.Off() == ""
	if c.Limits.Off() != "" {
		c.Limits.RunsPerMinute = AdvisedRunsPerMinute
		c.Limits.FilesPerOwner = DefaultFilesPerOwner
	}
	why := c.shut.in("budgets")
	for _, w := range r.warnings {
		if w.path == "budgets" && strings.HasPrefix(w.Key, "limits.") { // limits: {usd: 5}
			why = cmp.Or(why, w.String())
		}
	}
	if why != "" {
		c.Agents.Budgets = append(slices.Clone(c.Agents.Budgets), Budget{Per: BudgetAll, Every: EveryAlways, OnLimit: LimitHard, Fault: why})
	}
}

// meant is the word that an entry of a match most likely begins with; empty for
// none, as where several stand in one entry.
func (r *reader) meant(word string) string {
	if strings.ContainsAny(word, " ,;|") {
		return ""
	}
	return Nearest(word, r.matchWords())
}

// matchWords are those that an entry of a match begins with.
func (r *reader) matchWords() []string { return append(r.instances.Names(), matchCron, matchHeartbeat) }

// firstWord ends where people put something behind the word of a match.
var firstWord = lazyregexp.New(`^[^:/., ]+`)

// namesAgents reports whether the name of a profile says which agents it is for: all, or
// those of a connector. Short words are taken as they are, as slack is not black.
func (r *reader) namesAgents(name string) bool {
	word := strings.ToLower(firstWord.FindString(name))
	return slices.Contains([]string{"*", "all", "any", "every", "everyone", "everybody"}, word) || typo(word, DefaultProfile) ||
		slices.ContainsFunc(r.matchWords(), func(k string) bool {
			return word == k || len(k) > 6 && typo(word, k)
		})
}

// assign enters what is not known about the agents that a profile is for: with another
// profile they might do more, or ask another model.
func (c *Config) assign(p draft) {
	if p.unmatched != nil {
		c.shut = c.shut.with("agents", p.unmatched.first())
	}
	for word, why := range p.lost {
		if c.Agents.shutMatch == nil {
			c.Agents.shutMatch = make(map[string]string)
		}
		c.Agents.shutMatch[word] = why
	}
}

// closeProfiles switches off the agents whose profile was not read.
func (c *Config) closeProfiles() {
	if why := c.shut.in("agents"); why != "" {
		p := c.Agents.Profiles[DefaultProfile]
		p.with("agents", why)
		c.Agents.Profiles[DefaultProfile] = p
	}
}

// matchBudgets looks whether budgets are for agents that there can be. One that is for
// none is for all: it would bound nothing.
func matchBudgets(r *reader, c *Config) {
	for i, b := range c.Agents.Budgets {
		if i >= len(r.budgetAt) || b.Match == "" || r.matchable(c, b.Match) {
			continue
		}
		var names []string
		for name := range c.Agents.Profiles {
			names = append(names, name)
		}
		slices.Sort(names)
		known := append(names, r.matchWords()...)
		before := len(r.warnings)
		at := r.budgetAt[i]
		r.warn(at, "%s is neither a profile nor a connector; nothing may be spent%s", quote(b.Match), until)
		w := &r.warnings[before]
		w.Near, w.Off = Nearest(b.Match, known), true
		b.Fault, b.Match = fmt.Sprintf("%s: %s is neither a profile nor a connector", at.String(), quote(b.Match)), ""
		c.Agents.Budgets[i] = b
	}
}

// matchable reports whether a match of a budget can be that of an agent.
func (r *reader) matchable(c *Config, match string) bool {
	if _, ok := c.Agents.Profiles[match]; ok {
		return true
	}
	word, rest, more := strings.Cut(match, ":")
	if word == claybot.ConnectorAPI {
		return true
	}
	return r.checkMatch(word, rest, more) == nil || !more && word == matchSubagent
}
