package configs

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot/lazyregexp"
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
	// NetworkHostUnsafe is not limited by claybot.
	NetworkHostUnsafe = "host-unsafe"
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
	Name    string     // unique
	Process MCPProcess `key:",inline"`
	Remote  MCPRemote  `key:",inline"`
	// Allow and Deny are patterns of the server's own names of tools; no Allow
	// means all, and Deny wins.
	Allow, Deny []string
	_           struct{}          `key:"tools" kind:"MCP tools"`
	Effects     map[string]string `key:"effects" kind:"effects"`  // by the server's own names of tools; all others are once
	Timeout     time.Duration     `key:"timeout" limits:"1s..1h"` // of one call
	Trusted     bool              `key:"trusted"`
}

// An MCPProcess is an MCP server that claybot starts.
type MCPProcess struct {
	Command []string          `key:"command" kind:"words"` // the program and its arguments
	Where   string            `key:"where" words:"workspace,host"`
	Dir     string            `key:"dir"` // in which it runs; empty: that of the workspace
	Env     map[string]string `key:"env" kind:"variables"`
	Secrets map[string]Secret `key:"secrets" kind:"secret variables"` // further variables
	// Image and Network are those of its container; an empty Image is the usual
	// one. Hosts may be reached with NetworkAllow.
	Image   string   `key:"image" kind:"any image"`
	Network string   `key:"network" words:"none,allow,full,host-unsafe"`
	Hosts   []string `key:"hosts" kind:"MCP hosts"`
}

// An MCPRemote is an MCP server at an address.
type MCPRemote struct {
	URL     string            `key:"url" kind:"url"`
	Headers map[string]Secret `key:"headers" kind:"headers"`
	Token   Secret            `key:"token"` // sent as bearer token
	OAuth   *MCPOAuth         `key:"oauth" kind:"OAuth"`
}

// An MCPOAuth says how tokens for a server are got.
type MCPOAuth struct {
	Grant        string   `key:"grant" words:"authorization_code,client_credentials"`
	ClientID     string   `key:"client_id"`
	ClientSecret Secret   `key:"client_secret"`
	Scopes       []string `key:"scopes" kind:"words"`
	Redirect     string   `key:"redirect" kind:"url"`
}

// setMCP reads servers by their names and leaves out bad ones, whole: half a
// server might do more than was meant.
func setMCP(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want names of servers with their settings, found %s; ignored", kindOf(n))
		return
	}
	c.Tools.MCP = nil
	for m := range r.members(at, n) {
		c.Tools.servers = append(c.Tools.servers, m.name)
		if s, ok := readMCPServer(r, m); ok {
			c.Tools.MCP = append(c.Tools.MCP, s)
		}
	}
}

var mcpName = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$`)

// readMCPServer reads one server, and returns false after a warning about it.
func readMCPServer(r *reader, m member) (MCPServer, bool) {
	s := plainServer(m.name)
	before := len(r.warnings)
	if isGroup[MCPServer](r, m.at, m.value) {
		r.group(m.at, m.value, &s)
	}
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

// setMCPTools reads which tools of a server agents may use.
func setMCPTools(r *reader, at place, n *yaml.Node, s *MCPServer) {
	var tools struct {
		Allow []string `key:"allow" kind:"MCP tool patterns"`
		Deny  []string `key:"deny" kind:"MCP tool patterns"`
	}
	before := len(r.warnings)
	r.group(at, n, &tools)
	if s.Allow, s.Deny = tools.Allow, tools.Deny; tools.Allow != nil && len(tools.Allow) == 0 && len(r.warnings) == before {
		r.warn(at.sub("allow", n.Line), "names no tool, while no list allows all; remove the server instead; ignored")
	}
}

// setOAuth reads a group, or true for one in which nothing is set.
func setOAuth(r *reader, at place, n *yaml.Node, oauth **MCPOAuth) {
	o := MCPOAuth{Grant: GrantCode}
	if n.Kind != yaml.ScalarNode {
		r.group(at, n, &o)
		*oauth = &o
	} else if yes, err := (key{}).truth(strings.TrimSpace(n.Value)); err != nil {
		r.refuse(at, err)
	} else if yes {
		*oauth = &o
	}
}

// argument accepts a value that is not empty, has no control characters and is no secret.
func argument(v string) (string, error) {
	switch {
	case v == "" || strings.ContainsAny(v, "\r\n\x00"):
		return "", errors.New("a value is empty or has several lines")
	case secretive(v):
		return "", errors.New("a secret must not stand in the file; put it into secrets")
	}
	return v, nil
}

// setVariables reads variables whose values are not secret.
func setVariables(r *reader, at place, n *yaml.Node, env *map[string]string) {
	*env = variablesOf(r, at, n, func(where place, name, v string) (string, bool) {
		if secretive(v) || secretVariable(name) || strings.HasPrefix(v, "env:") || strings.HasPrefix(v, "file:") {
			r.warn(where, "the value is a secret, or its name says so; put it into secrets, as env:NAME or file:path; ignored")
			return "", false
		}
		return v, true
	})
}

func setSecretVariables(r *reader, at place, n *yaml.Node, secrets *map[string]Secret) {
	*secrets = variablesOf(r, at, n, func(where place, _, v string) (Secret, bool) { return r.reference(where, v), true })
}

// variablesOf reads names of variables with their values.
func variablesOf[T any](r *reader, at place, n *yaml.Node, value func(where place, name, v string) (T, bool)) map[string]T {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want names of variables with their values, found %s; ignored", kindOf(n))
		return nil
	}
	all := make(map[string]T)
	for m := range r.members(at, n) {
		v, ok := r.scalar(m.at, m.value)
		_, err := forms["variable"].parse(m.name)
		switch {
		case !ok:
		case err != nil:
			r.refuse(m.at, err)
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

// mcpPattern reads a pattern of names of tools, with * and ? as in paths. What looks
// like several patterns in one is not valid: it would fit no tool.
func mcpPattern(v string) (string, error) {
	if _, err := path.Match(v, ""); err != nil || v == "" || strings.ContainsAny(v, " \t\r\n,;|{}") {
		return "", fmt.Errorf("%s is not a pattern such as get_*, one for each entry", quote(v))
	}
	return v, nil
}

// setEffects reads what interrupted calls of tools may have done.
func setEffects(r *reader, at place, n *yaml.Node, effects *map[string]string) {
	*effects = textsByName(r, at, n, "tools with their effects", form{lazyregexp.New(``), 1000, ""}, func(v string) (string, error) {
		return oneOf(v, EffectOnce, EffectIdempotent, EffectReadOnly)
	})
}

// MCPNames are the names of the servers, in the order of the file.
func (c Config) MCPNames() []string {
	all := make([]string, len(c.Tools.MCP))
	for i, s := range c.Tools.MCP {
		all[i] = s.Name
	}
	return slices.Clip(all)
}
