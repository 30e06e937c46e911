package configs

import "strings"

var (
	_ owner = (*Access)(nil)
	_ owner = (*Model)(nil)
	_ owner = (*Transcription)(nil)
	_ owner = (*Telegram)(nil)
	_ owner = (*Slack)(nil)
	_ owner = (*OTLP)(nil)
	_ owner = (*Subagents)(nil)
	_ owner = (*Cron)(nil)
	_ owner = (*Heartbeat)(nil)
	_ owner = (*Storage)(nil)
	_ owner = (*Node)(nil)
	_ owner = (*Deep)(nil)
	_ owner = (*CallLimits)(nil)
	_ owner = (*draft)(nil)
	_ owner = (*Config)(nil)
)

// Off says why access is closed to new people; empty when it is as configured.
// Those on the list and those who were approved stay.
func (a Access) Off() string { return a.faults.first() }

func (a *Access) off(path, why string) string {
	a.faults = a.faults.with(path, why)
	return "nobody new is let in"
}

func (a *Access) on(path string) { a.faults = a.faults.without(path) }

// Off says why this model must not be asked; empty when it may be. A Model whose
// Off is not empty reaches no host.
func (m Model) Off() string { return m.faults.first() }

func (m *Model) off(path, why string) string {
	if lastName(path) == "fallback" {
		m.Fallback = nil
		return "no fallback is asked"
	}
	m.faults = m.faults.with(lastName(path), why)
	if strings.HasPrefix(path, "model.fallback[]") {
		return "this fallback is off"
	}
	return "the model is off"
}

func (m *Model) on(path string) { m.faults = m.faults.without(lastName(path)) }

// Off says why nothing is transcribed; empty when nothing is wrong.
func (t Transcription) Off() string { return t.faults.first() }

func (t *Transcription) off(path, why string) string {
	t.faults = t.faults.with(path, why)
	return "no recording is transcribed"
}

func (t *Transcription) on(path string) { t.faults = t.faults.without(path) }

// Off says why the connector must not run; empty when it may.
func (t Telegram) Off() string { return t.faults.first() }

func (t *Telegram) off(path, why string) string {
	t.faults = t.faults.with(path, why)
	return "the connector telegram is off"
}

func (t *Telegram) on(path string) { t.faults = t.faults.without(path) }

// Off says why the connector must not run; empty when it may.
func (s Slack) Off() string { return s.faults.first() }

func (s *Slack) off(path, why string) string {
	s.faults = s.faults.with(path, why)
	return "the connector slack is off"
}

func (s *Slack) on(path string) { s.faults = s.faults.without(path) }

// Off says why no traces are sent; empty when nothing is wrong.
func (o OTLP) Off() string { return o.faults.first() }

func (o *OTLP) off(path, why string) string {
	o.faults = o.faults.with(path, why)
	return "no traces are sent"
}

func (o *OTLP) on(path string) { o.faults = o.faults.without(path) }

func (s *Subagents) off(path, why string) string {
	s.faults = s.faults.with(path, why)
	return "agents start no subagents"
}

func (s *Subagents) on(path string) { s.faults = s.faults.without(path) }

// closed is s without subagents where a limit of theirs is bad.
func (s Subagents) closed() Subagents {
	if s.faults == nil {
		return s
	}
	return Subagents{faults: s.faults}
}

func (c *Cron) off(path, why string) string {
	if lastName(path) == "gates" {
		c.Gates = false
		return "no gate command runs"
	}
	c.faults = c.faults.with(path, why)
	return "scheduled tasks are off"
}

// Off says why tasks are off by mistake; empty when nothing is wrong.
func (c Cron) Off() string { return c.faults.first() }

func (c *Cron) on(path string) { c.faults = c.faults.without(path) }

// Off says why the heartbeat is off by mistake; empty when nothing is wrong.
func (h Heartbeat) Off() string { return h.faults.first() }

func (h *Heartbeat) off(path, why string) string {
	if lastName(path) == "gates" {
		h.Gates = false
		return "no gate command runs"
	}
	h.faults = h.faults.with(path, why)
	return "the heartbeat is off"
}

func (h *Heartbeat) on(path string) { h.faults = h.faults.without(path) }

// off leaves the store named and unreadable: nothing else is used in its place.
func (s *Storage) off(path, _ string) string {
	s.URL = NewSecret(path, "")
	return "claybot does not start"
}

func (*Storage) on(string) {}

func (n *Node) off(string, string) string {
	n.MaxRuns = 1
	return "one agent at a time is at work"
}

func (*Node) on(string) {}

func (d *Deep) off(path, _ string) string {
	if lastName(path) == "subagents" {
		d.Subagents = nil
		return "there are no named subagents"
	}
	d.Files = FilesNone
	return "there are no file tools"
}

func (*Deep) on(string) {}

func (l *CallLimits) off(path, why string) string {
	l.faults = l.faults.with(path, why)
	return "the profile has no tools"
}

func (l *CallLimits) on(path string) { l.faults = l.faults.without(path) }

const defaultsOff = "the agents of the default profile are off"

// Off says why the agents of the profile must not run; empty when they may.
func (p Profile) Off() string { return p.faults.first() }

func (p *draft) off(path, why string) string {
	if strings.HasPrefix(path, profilePath+".plan") || strings.HasPrefix(path, profilePath+".explore") {
		return "" // see doubt
	}
	switch lastName(path) {
	case "engine": // see doubt
		return ""
	case "match":
		p.unmatched = p.unmatched.with(path, why)
		return defaultsOff
	case "max_steps":
		p.faults = p.faults.with(path, why)
		return "the agents of the profile are off"
	case "tools", "limits", "tool_time", "tool_output", "step_calls", "run_calls":
		p.Care.Limits.faults = p.Care.Limits.faults.with(path, why)
		return "the profile has no tools"
	case "deep":
		p.Engine.Deep = nil
		return "its agents are ordinary ones"
	case "approve", "confirm":
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
	case "dry_run":
		p.Care.DryRun = true
		return "nothing is done, as with true"
	case "browser":
		p.Workspace.Browser = false
		return "there is no browser"
	case "notes":
		p.Notes.Off = true
		return "there are no notes"
	case "global_notes":
		p.Notes.Global = false
		return "notes of all people are read only"
	case "skills":
		p.Notes.Skills = []string{}
		return "there are no skills"
	case "workspace":
		p.Workspace = plainWorkspace()
		p.Workspace.Provider = Off
		return "there is no workspace"
	}
	if path == profilePath+".model" || strings.HasPrefix(path, "model.") || strings.HasPrefix(path, profilePath+".model.") {
		return p.Model.off(path, why)
	}
	if path == profilePath { // match may be a part of it
		p.unmatched = p.unmatched.with(path, why)
	}
	p.faults = p.faults.with(path, why)
	return "the agents of the profile are off"
}

func (p *draft) on(path string) {
	p.faults = p.faults.without(path)
	p.Care.Limits.faults = p.Care.Limits.faults.without(path)
}

// off switches off the part of the configuration that the key with a path belongs
// to.
func (c *Config) off(path, why string) string {
	group, _, _ := strings.Cut(path, ".")
	group = strings.TrimSuffix(group, "[]")
	switch group {
	case "access":
		return c.Access.off(path, why)
	case "model":
		return c.Model.off(path, why)
	case "transcription":
		return c.Transcription.off(path, why)
	case "telegram":
		return c.Connectors.Telegram.off(path, why)
	case "slack":
		return c.Connectors.Slack.off(path, why)
	case "otlp":
		return c.Telemetry.OTLP.off(path, why)
	case "subagents":
		return c.Agents.Subagents.off(path, why)
	case "cron":
		return c.Schedule.Cron.off(path, why)
	case "heartbeat":
		return c.Schedule.Heartbeat.off(path, why)
	case "storage":
		return c.Storage.off(path, why)
	case "node":
		return c.Node.off(path, why)
	case "agents":
		if lastName(path) == foregroundScope {
			c.Agents.Scope = ScopeOwner
			return "agents reach those of their own person only"
		}
		c.Agents.unread = c.Agents.unread.with(path, why)
		return defaultsOff
	}
	return c.shut(group, path, why)
}

// shut is off for what has no settings of its own type.
func (c *Config) shut(group, path, why string) string {
	switch group {
	case "data_dir":
		c.where.directory = c.where.directory.with(path, why)
		return "claybot does not start"
	case "http":
		if path == "http.trusted_proxies" {
			return "" // the bad ones are not trusted
		}
		c.HTTP.faults = c.HTTP.faults.with(path, why)
		return "the web page is off"
	case "metrics":
		c.Telemetry.Metrics = false
		return "no metrics are served"
	case "pprof":
		c.Telemetry.Pprof = false
		return "no profiles are served"
	case "budgets":
		c.Agents.budgetsOff = c.Agents.budgetsOff.with(path, why)
		return "nothing may be spent"
	case "people":
		c.Access.mixed = true
		return "no approval of several people holds"
	case "web":
		switch {
		case path == "web.private":
			return ""
		case strings.HasPrefix(path, "web.search"):
			c.Tools.Web.Search = nil
			return "nothing is searched for"
		}
		c.Tools.noFetch = c.Tools.noFetch.with(path, why)
		return "nothing is fetched"
	case "workspaces":
		c.Tools.noPlace = c.Tools.noPlace.with(path, why)
		return "there is no workspace"
	case "files":
		c.Storage.Files.Fault = why
		return "no file can be kept"
	case "relay":
		c.Telemetry.Relay = nil
		return "no event is sent out"
	case "mcp":
		c.Tools.MCP = nil
		return "no MCP server is used"
	}
	return ""
}

func (c *Config) on(path string) {
	c.HTTP.faults, c.where.directory, c.Agents.unread = c.HTTP.faults.without(path), c.where.directory.without(path), c.Agents.unread.without(path)
	c.Agents.budgetsOff, c.Tools.noFetch, c.Tools.noPlace = c.Agents.budgetsOff.without(path), c.Tools.noFetch.without(path), c.Tools.noPlace.without(path)
}

// ownerOf is what the key with a path belongs to.
func (c *Config) ownerOf(path string) owner {
	group, _, _ := strings.Cut(path, ".")
	switch group {
	case "access":
		return &c.Access
	case "model":
		return &c.Model
	case "telegram":
		return &c.Connectors.Telegram
	case "slack":
		return &c.Connectors.Slack
	case "otlp":
		return &c.Telemetry.OTLP
	}
	return c
}
