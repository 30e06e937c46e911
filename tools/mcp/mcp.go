// Package mcp connects claybot with other programs by the Model Context
// Protocol, in both directions.
//
// As a client, a Manager keeps the servers of the configuration connected and
// offers what they list as tools, named <server>_<tool>. A server is untrusted: what
// it says is bounded in size and time, cleaned, and marked as untrusted content. A tool whose description or schema changes is off until an
// operator allows it. A server that dies or hangs never holds up an agent or the
// end of the daemon.
//
// As a server, NewServer offers the agents of the daemon to an editor or another
// agent, over stdio or HTTP.
//
// This is the only package that knows the protocol's library; it must not import
// configurations, stores or implementations of workspaces.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace"
)

// Folder is where the logins at servers are stored, below a data directory or in a shared tree.
const Folder = "mcp"

// The limits of what a server may do.
const (
	MaxMessage = 4 << 20 // bytes of one message
	MaxTools   = 200     // that one server may list

	// ConnectTime is how long a server may take until it is connected, once its program runs.
	ConnectTime = helloTimeout + listTimeout

	startTimeout  = 2 * time.Minute  // until a program runs: an image may have to be loaded
	helloTimeout  = 30 * time.Second // until a server has introduced itself
	listTimeout   = 10 * time.Second
	listPause     = time.Second // between two listings, however often a server asks
	writeTimeout  = 10 * time.Second
	closeTimeout  = 2 * time.Second
	lastWords     = time.Second // of a process that takes no more
	maxPages      = 50
	maxDescribe   = 1024     // bytes of a description
	maxSchema     = 32 << 10 // bytes of a schema
	maxSchemaText = 300      // bytes of a description within a schema
	maxPinned     = 1000     // tools of one server that are remembered
	maxOutput     = 1 << 20  // bytes of text of one result
	maxFiles      = 10       // of one result
	maxWords      = 2000     // characters of what status shows of a server's words

	backoffFirst = 2 * time.Second
	backoffMost  = time.Minute
	steady       = time.Minute // after which a connection counts as good
)

// DefaultTimeout limits a call of a tool whose server has no limit of its own.
const DefaultTimeout = tools.DefaultTimeout

// The values of Server.Where.
const (
	Workspace = "workspace" // in a container of its own
	Host      = "host"      // as a process of this machine
)

// A Server is one server of the configuration. Either Command or URL is set. Its
// values may be secrets: it is never logged.
type Server struct {
	Name string // a-z, 0-9 and -, at most 24; no two are equal
	// Command is run and spoken with over its stdin and stdout, in the place
	// that Where names; empty means Workspace. Env is all it has of variables,
	// beside what a workspace gives every command.
	Command []string
	Where   string
	Dir     string // of the command: on the host absolute, else below the workspace
	Env     []workspace.Var
	// URL is the address of a server that speaks streamable HTTP. Headers go to
	// that host alone. Token is sent as bearer token.
	URL     string
	Headers map[string]string
	Token   string
	OAuth   *OAuth
	// Allow and Deny choose among the tools of the server by its own names for
	// them, with * as in paths. Deny wins; no Allow means all.
	Allow, Deny []string
	// Effects are what interrupted calls of tools may have done, by the server's
	// own names; all others are Once, whatever the server hints.
	Effects map[string]tools.Effect
	Timeout time.Duration // of one call; 0: DefaultTimeout
	// Trusted puts the server on the operator's list of places that may be
	// reached without asking.
	Trusted bool
	// Container is the container of the server, if Where is Workspace. Another one starts it anew.
	Container workspace.Want
	// Stopped keeps the server unconnected, because an operator stopped it.
	Stopped bool
}

// An OAuth says how tokens for a server are got.
type OAuth struct {
	Grant        string // GrantCode, the default, or GrantClient
	ClientID     string // empty: the client registers itself
	ClientSecret string
	Scopes       []string // empty: those that the server names
	// Redirect is the address on this machine that Login listens on, such as
	// http://127.0.0.1:8421/callback; empty: a free port.
	Redirect string
}

// The values of OAuth.Grant.
const (
	GrantCode   = "authorization_code"
	GrantClient = "client_credentials"
)

// Pins remembers texts by key, empty for what was never set. It keeps what an
// operator has accepted of the tools of each server; storage.Checkpoints is one.
type Pins interface {
	Checkpoint(ctx context.Context, key string) (string, error)
	SetCheckpoint(ctx context.Context, key, value string) error
}

// Config is what a Manager needs. Zero fields have a meaning of their own.
type Config struct {
	Servers []Server
	// Pipe starts the command of a server in a container of its own; nil: there
	// are no workspaces.
	Pipe func(ctx context.Context, server Server, c workspace.Command) (workspace.Process, error)
	// HTTP is the client for a server, whose transport decides what may be
	// reached; nil: no server may be reached by HTTP.
	HTTP func(server string) *http.Client
	Pins Pins // nil: for this process alone
	// Tokens keeps what Login got; nil: nothing is kept.
	Tokens storage.Secrets
	// SaveFile keeps a picture or file of a result for the agent of the call;
	// nil: a line in the text tells of it.
	SaveFile func(ctx context.Context, env tools.Env, name, mime string, data []byte) (claybot.FileReference, error)
	// Questions asks the person of a run what a trusted server wants to know; nil: no server may ask.
	Questions func() tools.Questions
	// Reserved reports names that other tools have; nil: none.
	Reserved func(name string) bool
	// Changed is called after each change of the list of tools, by one of the
	// goroutines of Run; it must not wait for the Manager.
	Changed func()
	Version string
	Log     *slog.Logger // nil discards
}

var serverName = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$`)

// Check returns what is wrong with the settings of a server, in words for the
// operator and without any of its values that may be secret.
func (s Server) Check() error {
	switch {
	case !serverName.MatchString(s.Name):
		return fmt.Errorf("the name %.40q is not 1 to 24 of a-z, 0-9 and -", s.Name)
	case (len(s.Command) == 0) == (s.URL == ""):
		return fmt.Errorf("server %s: set either command or url", s.Name)
	case s.Where != "" && s.Where != Workspace && s.Where != Host:
		return fmt.Errorf("server %s: where is %s or %s", s.Name, Workspace, Host)
	case s.Token != "" && s.OAuth != nil:
		return fmt.Errorf("server %s: set either token or oauth", s.Name)
	case s.OAuth != nil && s.OAuth.Grant == GrantClient && (s.OAuth.ClientID == "" || s.OAuth.ClientSecret == ""):
		return fmt.Errorf("server %s: the grant %s needs an id and a secret of the client", s.Name, GrantClient)
	}
	if s.URL == "" {
		return nil
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fmt.Errorf("server %s: the url is not an http or https address without a password", s.Name)
	}
	return nil
}

func (s Server) timeout() time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return DefaultTimeout
}

func (s Server) transport() string {
	switch {
	case s.URL != "":
		return "http"
	case s.Where == Host:
		return "stdio on the host"
	}
	return "stdio in the workspace"
}

// target names what is reached, for status: never arguments, which may be secret.
func (s Server) target() string {
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		if err != nil {
			return ""
		}
		return u.Scheme + "://" + u.Host
	}
	return plain(s.Command[0], 200)
}

func (s Server) secrets() []string {
	all := []string{s.Token}
	for _, v := range s.Env {
		all = append(all, v.Value)
	}
	for _, v := range s.Headers {
		all = append(all, v, strings.TrimPrefix(v, "Bearer "))
	}
	if s.OAuth != nil {
		all = append(all, s.OAuth.ClientSecret)
	}
	return all
}

// ErrUnknown says that there is no server of a name.
var ErrUnknown = errors.New("there is no such MCP server; claybot mcp list shows them")
