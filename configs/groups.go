package configs

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

func rootKeys() []key[Config] {
	return append([]key[Config]{
		text("data_dir", func(r *reader, at place, v string, c *Config) {
			if v == "" {
				r.warn(at, noValue+"; ignored")
			}
			c.DataDir = v
		}),
		{"http", setHTTP},
		{"http_hosts", func(r *reader, at place, n *yaml.Node, c *Config) {
			items, ok := r.list(at, n)
			store(&c.HTTP.Hosts, r.hosts(items), ok)
		}},
		{"access", setAccess},
		text("log", func(r *reader, at place, v string, c *Config) { r.log(at, v, c) }),
		text("log_level", func(r *reader, at place, v string, c *Config) { r.level(at, v, c) }),
		{"model", func(r *reader, at place, n *yaml.Node, c *Config) { setModel(r, at, n, &c.Model) }},
		{"transcription", setTranscription},
		{"telegram", func(r *reader, at place, n *yaml.Node, c *Config) {
			group(r, at, n, &c.Connectors.Telegram, telegramKeys())
		}},
		{"slack", func(r *reader, at place, n *yaml.Node, c *Config) { group(r, at, n, &c.Connectors.Slack, slackKeys()) }},
		{"people", setPeople},
		{"operators", setOperators},
		{"subagents", func(r *reader, at place, n *yaml.Node, c *Config) {
			group(r, at, n, &c.Agents.Subagents, subagentKeys())
		}},
		{"cron", func(r *reader, at place, n *yaml.Node, c *Config) { group(r, at, n, &c.Schedule.Cron, cronKeys()) }},
		{"heartbeat", func(r *reader, at place, n *yaml.Node, c *Config) {
			group(r, at, n, &c.Schedule.Heartbeat, heartbeatKeys())
		}},
		{"agents", setProfiles},
		{"prompts", func(r *reader, at place, n *yaml.Node, c *Config) { group(r, at, n, c, promptKeys()) }},
		{"relay", setRelay},
		{"web", func(r *reader, at place, n *yaml.Node, c *Config) { group(r, at, n, c, webKeys()) }},
		{"budgets", setBudgets},
		{"mcp", setMCP},
		{"workspaces", func(r *reader, at place, n *yaml.Node, c *Config) { setWorkspace(r, at, n, &c.Tools.Workspace) }},
		{"files", setFiles},
		{"storage", setStorage},
		{"node", func(r *reader, at place, n *yaml.Node, c *Config) { group(r, at, n, &c.Node, nodeKeys()) }},
		text("skills_dir", func(r *reader, at place, v string, c *Config) { c.Agents.Skills = r.path(v) }),
	}, telemetryKeys()...)
}

// expand puts the home directory in the place of a leading ~.
func (c *Config) expand(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~")
	switch {
	case !ok || rest != "" && rest[0] != '/': // ~ may begin any name
		return path, nil
	case c.where.home == "":
		return "", fmt.Errorf("%s: nobody says where ~ is, as HOME is not set; write the whole path", quote(path))
	}
	return filepath.Join(c.where.home, rest), nil
}

func (r *reader) log(at place, v string, c *Config) {
	word, ok := r.word(at, v, "json", "text")
	store(&c.Log.Format, word, ok)
}

func (r *reader) level(at place, v string, c *Config) {
	word, ok := r.word(at, strings.ToLower(v), "debug", "info", "warn", "error")
	if !ok {
		return
	}
	if err := c.Log.Level.UnmarshalText([]byte(word)); err != nil {
		c.Log.Level = slog.LevelInfo // unreachable: the four words are slog's own
	}
}

func setHeaders(r *reader, at place, n *yaml.Node, to *map[string]Secret) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want header names with their values, found %s; ignored", kind(n))
		return
	}
	headers := make(map[string]Secret)
	for h := range r.members(at, n) {
		v, ok := r.scalar(h.at, h.value)
		switch {
		case !ok:
		case empty(h.value):
			r.warn(h.at, noValue+"; ignored")
		case !headerName(h.name):
			r.warn(h.at, "%s is not the name of a header; ignored", quote(h.name))
		case strings.HasPrefix(v, "env:") || strings.HasPrefix(v, "file:") || secretive(v) || sensitive(h.name):
			headers[h.name] = r.reference(h.at, v)
		case strings.ContainsAny(v, "\r\n\x00"):
			r.warn(h.at, "the value of a header must be one line; ignored")
		default:
			headers[h.name] = NewSecret(h.at.key, v)
		}
	}
	*to = headers
}

// headerName reports the characters that HTTP allows in a header's name.
func headerName(name string) bool {
	for _, c := range name {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return name != ""
}

// sensitive reports a header whose value is a secret by its name.
func sensitive(header string) bool {
	header = strings.ToLower(header)
	for _, word := range [...]string{"auth", "key", "token", "secret", "cookie"} {
		if strings.Contains(header, word) {
			return true
		}
	}
	return false
}

func telegramKeys() []key[Telegram] {
	return []key[Telegram]{
		text("token", func(r *reader, at place, v string, t *Telegram) { t.Token = r.reference(at, v) }),
		text("api_url", func(r *reader, at place, v string, t *Telegram) { r.telegramURL(at, v, t) }),
		text("delivery", func(r *reader, at place, v string, t *Telegram) {
			word, ok := r.word(at, v, "stream", "placeholder", "direct")
			store(&t.Delivery, word, ok)
		}),
		text("on_ambiguous", func(r *reader, at place, v string, t *Telegram) {
			word, ok := r.word(at, v, "resend", "notice")
			store(&t.OnAmbiguous, word, ok)
		}),
	}
}

func (r *reader) telegramURL(at place, v string, t *Telegram) {
	u, ok := r.url(at, v)
	store(&t.APIURL, strings.TrimRight(u, "/"), ok)
}

func slackKeys() []key[Slack] {
	return []key[Slack]{
		text("bot_token", func(r *reader, at place, v string, s *Slack) { s.BotToken = r.reference(at, v) }),
		text("app_token", func(r *reader, at place, v string, s *Slack) { s.AppToken = r.reference(at, v) }),
		text("api_url", func(r *reader, at place, v string, s *Slack) { r.slackURL(at, v, s) }),
		text("backfill", func(r *reader, at place, v string, s *Slack) {
			yes, ok := r.flag(at, v, "on", "off")
			store(&s.Backfill, yes, ok)
		}),
	}
}

func (r *reader) slackURL(at place, v string, s *Slack) {
	u, ok := r.url(at, v)
	store(&s.APIURL, strings.TrimRight(u, "/")+"/", ok)
}
