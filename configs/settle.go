package configs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
)

// profile is the place of a profile: its keys are those of every profile.
func (m member) profile() place {
	m.at.path = profilePath
	return m.at
}

// unsettled closes what the file and the environment have left in doubt, before
// profiles begin with it.
func (r *reader) unsettled(c *Config) {
	r.mixed = c.mixed
	if c.Access.faults != nil {
		c.Access.Mode = AccessAllowlist
	}
	if c.Files.Fault == "" {
		c.Files.Fault = c.Files.keyFault
	}
	if c.page != nil {
		c.HTTP = Off
	}
	if c.noFetch != nil {
		c.Web.NoFetch = true
	}
	if c.noPlace != nil {
		c.Workspace = plainWorkspace()
		c.Workspace.Provider = Off
	}
	c.Subagents = c.Subagents.closed()
	c.Cron.Enabled = c.Cron.Enabled && c.Cron.faults == nil
	c.Heartbeat.Enabled = c.Heartbeat.Enabled && c.Heartbeat.faults == nil
	if c.budgetsOff != nil {
		c.Budgets = append(slices.Clone(c.Budgets), Budget{Per: BudgetAll, Every: EveryAlways, OnLimit: LimitHard, Fault: c.budgetsOff.first()})
	}
}

// meant is the word that an entry of a match most likely begins with; empty for
// none.
func meant(word string) string {
	known := append(connectorNames(), matchCron, matchHeartbeat)
	if slices.Contains(known, word) {
		return word
	}
	return nearest(word, known)
}

// shutMatches switches off the agents that bad entries of a profile's match were
// about: with another profile they might do more, or ask another model.
func (r *reader) shutMatches(c *Config, p draft, key string, before int) {
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		text, open := ignored(*w)
		if open && w.Key == key && text == noValue {
			w.shut(c, "agents", text) // which agents it was for is not known
			continue
		}
		if !open || w.Key != p.matchAt.key || p.matchAt.key == "" {
			continue
		}
		w.Text = text
		why := w.String()
		shut := slices.DeleteFunc(slices.Clone(p.lost), func(word string) bool { return word == "" })
		if len(shut) == 0 {
			w.Text = text + "; ignored"
			continue
		}
		for _, word := range shut {
			if c.shutMatch == nil {
				c.shutMatch = make(map[string]string)
			}
			c.shutMatch[word] = why
		}
		w.Text, w.Off = text+"; agents of "+strings.Join(slices.Compact(shut), ", ")+" that no other entry names are off"+until, true
	}
}

// closeProfiles switches off the agents whose profile was not read.
func (c *Config) closeProfiles() {
	if c.unread != nil {
		p := c.Profiles[DefaultProfile]
		p.faults = p.faults.with("agents", c.unread.first())
		c.Profiles[DefaultProfile] = p
	}
}

// matched looks whether budgets are for agents that there can be. One that is for
// none is for all: it would bound nothing.
func (r *reader) matched(c *Config) {
	for i, b := range c.Budgets {
		if i >= len(r.budgetAt) || b.Match == "" || c.matchable(b.Match) {
			continue
		}
		var names []string
		for name := range c.Profiles {
			names = append(names, name)
		}
		slices.Sort(names)
		known := append(append(names, connectorNames()...), matchCron, matchHeartbeat)
		before := len(r.warnings)
		at := r.budgetAt[i]
		r.warn(at, "%s is neither a profile nor a connector; nothing may be spent%s", quote(b.Match), until)
		w := &r.warnings[before]
		w.Near, w.Off = nearest(b.Match, known), true
		b.Fault, b.Match = fmt.Sprintf("%s: %s is neither a profile nor a connector", at.String(), quote(b.Match)), ""
		c.Budgets[i] = b
	}
}

// matchable reports whether a match of a budget can be that of an agent.
func (c *Config) matchable(match string) bool {
	if _, ok := c.Profiles[match]; ok {
		return true
	}
	word, rest, more := strings.Cut(match, ":")
	if word == claybot.ConnectorAPI {
		return true
	}
	return checkMatch(word, rest, more) == nil || !more && word == matchSubagent
}

// String is the place as a sentence begins with it.
func (p place) String() string {
	if p.file == "" {
		return p.key
	}
	return fmt.Sprintf("%s:%d: %s", p.file, p.line, p.key)
}
