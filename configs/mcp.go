package configs

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The values of MCPServer.Where.
const (
	MCPWorkspace = "workspace" // in a container of its own
	MCPHost      = "host"      // as a process of this machine
)

// The values of MCPServer.Network.
const (
	NetworkNone  = "none"
	NetworkAllow = "allow" // the hosts of MCPServer.Hosts
	NetworkFull  = "full"
)

// The values of MCPOAuth.Grant.
const (
	GrantCode   = "authorization_code" // an operator logs in
	GrantClient = "client_credentials"
)

// The values of MCPServer.Effects.
const (
	EffectOnce       = "once"
	EffectIdempotent = "idempotent"
	EffectReadOnly   = "readOnly"
)

// DefaultMCPTimeout limits a call of a tool of a server.
const DefaultMCPTimeout = time.Minute

// An MCPServer is a server that speaks the Model Context Protocol: either a process,
// whose Command is set, or one that others run, whose URL is set.
type MCPServer struct {
	Name    string // unique
	Process MCPProcess
	Remote  MCPRemote
	// Allow and Deny are patterns of the server's own names of tools; no Allow
	// means all, and Deny wins.
	Allow, Deny []string
	Effects     map[string]string // by the server's own names of tools; all others are once
	Timeout     time.Duration     // of one call
	Trusted     bool
}

// An MCPProcess is an MCP server that claybot starts.
type MCPProcess struct {
	Command []string // the program and its arguments
	Where   string   // workspace or host
	Dir     string   // in which it runs; empty: that of the workspace
	Env     map[string]string
	Secrets map[string]Secret // further variables
	// Image and Network are those of its container; an empty Image is the usual
	// one. Hosts may be reached with NetworkAllow.
	Image   string
	Network string
	Hosts   []string
}

// An MCPRemote is an MCP server at an address.
type MCPRemote struct {
	URL     string
	Headers map[string]Secret
	Token   Secret // sent as bearer token
	OAuth   *MCPOAuth
}

// An MCPOAuth says how tokens for a server are got.
type MCPOAuth struct {
	Grant        string
	ClientID     string
	ClientSecret Secret
	Scopes       []string
	Redirect     string
}

// setMCP reads servers by their names and leaves out bad ones, whole: half a
// server might do more than was meant.
func setMCP(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want names of servers with their settings, found %s; ignored", kind(n))
		return
	}
	c.Tools.MCP = nil
	for m := range r.members(at, n) {
		c.Tools.servers = append(c.Tools.servers, m.name)
		if s, ok := r.mcpServer(m); ok {
			c.Tools.MCP = append(c.Tools.MCP, s)
		}
	}
}

var mcpName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$`)

// mcpServer reads one server, and returns false after a warning about it.
func (r *reader) mcpServer(m member) (MCPServer, bool) {
	s := MCPServer{Name: m.name, Process: MCPProcess{Where: MCPWorkspace, Network: NetworkNone}, Timeout: DefaultMCPTimeout}
	if m.value.Kind != yaml.MappingNode {
		r.warn(m.at, "want a group of keys (%s), found %s; ignored", strings.Join(names(mcpKeys()), ", "), kind(m.value))
		instead(r, len(r.warnings)-1, "the server is left out")
		return s, false
	}
	before := len(r.warnings)
	group(r, m.at, m.value, &s, mcpKeys())
	if len(r.warnings) == before {
		why := s.fault()
		if why == "" {
			return s, true
		}
		r.warn(m.at, "%s; ignored", why)
	}
	instead(r, before, "the server is left out")
	return s, false
}

// fault says what is wrong with the settings of a server together; empty for
// nothing.
func (s MCPServer) fault() string {
	local := len(s.Process.Command) > 0
	switch {
	case !mcpName.MatchString(s.Name):
		return "a server's name has 1 to 24 of a-z, 0-9 and -"
	case local == (s.Remote.URL != ""):
		return "wants either command or url"
	case local && (s.Remote.Headers != nil || s.Remote.Token.Named() || s.Remote.OAuth != nil):
		return "headers, token and oauth are for a server with a url"
	case !local && (s.Process.Env != nil || s.Process.Secrets != nil || s.Process.Image != "" || s.Process.Dir != "" || s.Process.Where != MCPWorkspace || s.Process.Network != NetworkNone):
		return "where, dir, env, secrets, image and network are for a server with a command"
	case s.Process.Where == MCPHost && (s.Process.Image != "" || s.Process.Network != NetworkNone):
		return "image and network are for a server in the workspace"
	case s.Process.Where == MCPHost && !filepath.IsAbs(s.Process.Command[0]):
		return "on the host, the command is the whole path of a program"
	case s.Process.Where == MCPHost && s.Process.Dir != "" && !filepath.IsAbs(s.Process.Dir):
		return "on the host, dir is a whole path"
	case (s.Process.Network == NetworkAllow) != (len(s.Process.Hosts) > 0):
		return "network: allow and hosts belong together"
	case s.Remote.Token.Named() && s.Remote.OAuth != nil:
		return "wants either token or oauth"
	case s.Remote.Token.Named() && hasHeader(s.Remote.Headers, "Authorization"):
		return "wants either token or the header Authorization"
	case s.Remote.OAuth != nil && s.Remote.OAuth.Grant == GrantClient && (s.Remote.OAuth.ClientID == "" || s.Remote.OAuth.ClientSecret.Value() == ""):
		return "the grant client_credentials needs client_id and client_secret"
	}
	for name := range s.Process.Secrets {
		if _, twice := s.Process.Env[name]; twice {
			return fmt.Sprintf("%s is in env and in secrets", quote(name))
		}
	}
	return ""
}

func hasHeader(headers map[string]Secret, name string) bool {
	for h := range headers {
		if strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

func mcpKeys() []key[MCPServer] {
	return []key[MCPServer]{
		{"command", func(r *reader, at place, n *yaml.Node, s *MCPServer) { s.Process.Command = r.words(at, n) }},
		text("where", func(r *reader, at place, v string, s *MCPServer) {
			word, ok := r.word(at, v, MCPWorkspace, MCPHost)
			store(&s.Process.Where, word, ok)
		}),
		text("dir", func(_ *reader, _ place, v string, s *MCPServer) { s.Process.Dir = v }),
		{"env", func(r *reader, at place, n *yaml.Node, s *MCPServer) { s.Process.Env = r.plainEnv(at, n) }},
		{"secrets", func(r *reader, at place, n *yaml.Node, s *MCPServer) { s.Process.Secrets = r.secretEnv(at, n) }},
		text("image", func(r *reader, at place, v string, s *MCPServer) {
			if v == "" || len(v) > 300 || strings.ContainsAny(v, " \t\r\n\x00") {
				r.warn(at, "%s is not the name of an image; ignored", quote(v))
				return
			}
			s.Process.Image = v
		}),
		text("network", func(r *reader, at place, v string, s *MCPServer) {
			word, ok := r.word(at, v, NetworkNone, NetworkAllow, NetworkFull)
			store(&s.Process.Network, word, ok)
		}),
		{"hosts", func(r *reader, at place, n *yaml.Node, s *MCPServer) { s.Process.Hosts = r.mcpHosts(at, n) }},
		text("url", func(r *reader, at place, v string, s *MCPServer) {
			u, ok := r.url(at, v)
			store(&s.Remote.URL, u, ok)
		}),
		{"headers", func(r *reader, at place, n *yaml.Node, s *MCPServer) { setHeaders(r, at, n, &s.Remote.Headers) }},
		text("token", func(r *reader, at place, v string, s *MCPServer) { s.Remote.Token = r.reference(at, v) }),
		{"oauth", func(r *reader, at place, n *yaml.Node, s *MCPServer) { setOAuth(r, at, n, s) }},
		{"tools", func(r *reader, at place, n *yaml.Node, s *MCPServer) { group(r, at, n, s, mcpToolKeys()) }},
		{"effects", func(r *reader, at place, n *yaml.Node, s *MCPServer) { s.Effects = r.effects(at, n) }},
		text("timeout", func(r *reader, at place, v string, s *MCPServer) {
			d, err := time.ParseDuration(v)
			if err != nil || d < time.Second || d > time.Hour {
				r.warn(at, "%s is not a duration such as 30s or 5m, from 1s to 1h; ignored", quote(v))
				return
			}
			s.Timeout = d
		}),
		text("trusted", func(r *reader, at place, v string, s *MCPServer) { r.truth(at, v, &s.Trusted) }),
	}
}

func mcpToolKeys() []key[MCPServer] {
	return []key[MCPServer]{
		{"allow", func(r *reader, at place, n *yaml.Node, s *MCPServer) {
			if s.Allow = r.toolPatterns(at, n); n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
				r.warn(at, "names no tool, while no list allows all; remove the server instead; ignored")
			}
		}},
		{"deny", func(r *reader, at place, n *yaml.Node, s *MCPServer) { s.Deny = r.toolPatterns(at, n) }},
	}
}

// setOAuth reads a group, or true for one in which nothing is set.
func setOAuth(r *reader, at place, n *yaml.Node, s *MCPServer) {
	o := MCPOAuth{Grant: GrantCode}
	if n.Kind == yaml.ScalarNode {
		yes := false
		if r.truth(at, strings.TrimSpace(n.Value), &yes); yes {
			s.Remote.OAuth = &o
		}
		return
	}
	group(r, at, n, &o, oauthKeys())
	s.Remote.OAuth = &o
}

func oauthKeys() []key[MCPOAuth] {
	return []key[MCPOAuth]{
		text("grant", func(r *reader, at place, v string, o *MCPOAuth) {
			word, ok := r.word(at, v, GrantCode, GrantClient)
			store(&o.Grant, word, ok)
		}),
		text("client_id", func(_ *reader, _ place, v string, o *MCPOAuth) { o.ClientID = v }),
		text("client_secret", func(r *reader, at place, v string, o *MCPOAuth) { o.ClientSecret = r.reference(at, v) }),
		{"scopes", func(r *reader, at place, n *yaml.Node, o *MCPOAuth) { o.Scopes = r.words(at, n) }},
		text("redirect", func(r *reader, at place, v string, o *MCPOAuth) {
			u, ok := r.url(at, v)
			store(&o.Redirect, u, ok)
		}),
	}
}

// words are the values of a list that are not empty and have no control
// characters.
func (r *reader) words(at place, n *yaml.Node) (words []string) {
	items, _ := r.list(at, n)
	for _, it := range items {
		switch {
		case it.text == "" || strings.ContainsAny(it.text, "\r\n\x00"):
			r.warn(it.at, "a value is empty or has several lines; ignored")
		case secretive(it.text):
			r.warn(it.at, "a secret must not stand in the file; put it into secrets; ignored")
		default:
			words = append(words, it.text)
		}
	}
	return words
}

// plainEnv reads variables with values that everybody may see.
func (r *reader) plainEnv(at place, n *yaml.Node) map[string]string {
	return variablesOf(r, at, n, func(where place, name, v string) (string, bool) {
		if secretive(v) || secretVariable(name) || strings.HasPrefix(v, "env:") || strings.HasPrefix(v, "file:") {
			r.warn(where, "the value is a secret, or its name says so; put it into secrets, as env:NAME or file:path; ignored")
			return "", false
		}
		return v, true
	})
}

func (r *reader) secretEnv(at place, n *yaml.Node) map[string]Secret {
	return variablesOf(r, at, n, func(where place, _, v string) (Secret, bool) { return r.reference(where, v), true })
}

// variablesOf reads names of variables with their values.
func variablesOf[T any](r *reader, at place, n *yaml.Node, value func(where place, name, v string) (T, bool)) map[string]T {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want names of variables with their values, found %s; ignored", kind(n))
		return nil
	}
	all := make(map[string]T)
	for m := range r.members(at, n) {
		v, ok := r.scalar(m.at, m.value)
		switch {
		case !ok:
		case len(m.name) > 128 || !variableForm.MatchString(m.name):
			r.warn(m.at, "%s is not the name of a variable; ignored", quote(m.name))
		case strings.ContainsRune(v, 0):
			r.warn(m.at, "the value has a character that no variable can have; ignored")
		default:
			if x, ok := value(m.at, m.name, v); ok {
				all[m.name] = x
			}
		}
	}
	return all
}

// reachable reads hosts that a container may reach: host, *.host or host:port.
func (r *reader) mcpHosts(at place, n *yaml.Node) (hosts []string) {
	items, _ := r.list(at, n)
	for _, it := range items {
		name := strings.ToLower(it.text)
		if !host.MatchString(strings.TrimPrefix(name, "*.")) {
			r.warn(it.at, "%s is not a host such as api.example.org, *.example.org or api.example.org:8443; ignored", quote(it.text))
			continue
		}
		hosts = appendNew(hosts, name)
	}
	return hosts
}

// toolPatterns reads patterns of names of tools, with * and ? as in paths. What looks
// like several patterns in one is refused: it would fit no tool.
func (r *reader) toolPatterns(at place, n *yaml.Node) (patterns []string) {
	items, _ := r.list(at, n)
	for _, it := range items {
		if _, err := path.Match(it.text, ""); err != nil || it.text == "" || strings.ContainsAny(it.text, " \t\r\n,;|{}") {
			r.warn(it.at, "%s is not a pattern such as get_*, one for each entry; ignored", quote(it.text))
			continue
		}
		patterns = appendNew(patterns, it.text)
	}
	return patterns
}

// effects reads what interrupted calls of tools may have done.
func (r *reader) effects(at place, n *yaml.Node) map[string]string {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want names of tools with their effects, found %s; ignored", kind(n))
		return nil
	}
	all := make(map[string]string)
	for m := range r.members(at, n) {
		if v, ok := r.scalar(m.at, m.value); ok {
			if word, ok := r.word(m.at, v, EffectOnce, EffectIdempotent, EffectReadOnly); ok {
				all[m.name] = word
			}
		}
	}
	return all
}

// MCPNames are the names of the servers, in the order of the file.
func (c Config) MCPNames() []string {
	all := make([]string, len(c.Tools.MCP))
	for i, s := range c.Tools.MCP {
		all[i] = s.Name
	}
	return slices.Clip(all)
}
