package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/web"
)

type mcpCmd struct {
	Serve mcpServeCmd `cmd:"" default:"1" eg:"mcp serve" help:"Serve the agents of the running daemon over standard input and output, for an editor or another agent."`
	List  mcpListCmd  `cmd:"" eg:"mcp list" help:"List MCP servers and their status."`
	Allow mcpAllowCmd `cmd:"" eg:"mcp allow github" help:"Allow changed tools of an MCP server."`
	Login mcpLoginCmd `cmd:"" eg:"mcp login github" help:"Log in to an MCP server."`
}

type (
	mcpServeCmd struct{}
	mcpListCmd  struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	mcpAllowCmd struct {
		Server string `arg:"" help:"Name of the server, as listed by mcp list."`
		Tool   string `arg:"" optional:"" help:"Name of the tool. Default: all that await approval."`
		Hash   string `name:"hash" help:"Hash printed by mcp list. Default: show the changed tools and allow them."`
	}
	mcpLoginCmd struct {
		Server string `arg:"" help:"Name of the server in the configuration."`
	}
)

// Run serves the protocol until the client disconnects. Standard output belongs to the
// client.
func (mcpServeCmd) Run(e *env) error {
	cl, err := e.connect()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	server := mcp.NewServer(mcpAgents{client: cl, who: "stdio"}.offer(), mcp.ServerConfig{Version: version})
	return mcp.ServeStdio(ctx, server)
}

// Run lists servers.
func (c mcpListCmd) Run(e *env) error {
	out, err := ask[web.ServerList](e, "GET", to("/servers"), nil)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(out.Servers)
	}
	empty := "No MCP server is configured; see docs/mcp.md.\n"
	err = e.list("SERVER,BY,STATE,TOOLS,OFF,RESTARTS,PROBLEM", empty, each(out.Servers, func(s web.ServerView) []string {
		return []string{
			oneLine(s.Name), s.Transport, s.State, strconv.Itoa(len(s.Tools)), strconv.Itoa(len(s.Off)), strconv.Itoa(s.Restarts), oneLine(s.Problem),
		}
	}))
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, s := range out.Servers {
		for _, tool := range slices.Sorted(maps.Keys(s.Off)) {
			fmt.Fprintf(&b, "%s: %s is off: %s\n  If you trust that: claybot mcp allow %s %s --hash %s\n", s.Name, oneLine(tool), oneLine(s.Off[tool]), s.Name, oneLine(tool), s.OffHash)
		}
	}
	return e.text(b.String())
}

// Run allows tools.
func (c mcpAllowCmd) Run(e *env) error {
	if err := (mcp.Server{Name: c.Server, Command: []string{"-"}}).Check(); err != nil { // the name becomes part of a path
		return usageError{err}
	}
	if c.Hash == "" {
		if err := c.show(e); err != nil {
			return err
		}
	}
	return e.does("POST", to("/servers/"+c.Server+"/allow"), web.ServerAllow{Tool: c.Tool, Hash: c.Hash}, "Tool allowed in its present version.\n")
}

// show prints the changed tools and limits the approval to them.
func (c *mcpAllowCmd) show(e *env) error {
	out, err := ask[web.ServerList](e, "GET", to("/servers"), nil)
	if err != nil {
		return err
	}
	c.Hash = "none" // the daemon refuses it with its own words
	var b strings.Builder
	for _, s := range out.Servers {
		if s.Name != c.Server || s.OffHash == "" {
			continue
		}
		c.Hash = s.OffHash
		for _, tool := range slices.Sorted(maps.Keys(s.Off)) {
			if c.Tool == "" || c.Tool == tool || c.Tool == mcp.FullName(c.Server, tool) {
				fmt.Fprintf(&b, "%s: %s\n", oneLine(tool), oneLine(s.Off[tool]))
			}
		}
	}
	return e.text(b.String())
}

// Run logs in to a server. The daemon need not run.
func (c mcpLoginCmd) Run(e *env) error {
	cfg, _, err := e.load()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(cfg.Tools.MCP, func(s configs.MCPServer) bool { return s.Name == c.Server })
	if i < 0 {
		return usageError{fmt.Errorf("no MCP server %q in the configuration; configured servers: %s", c.Server, strings.Join(cfg.MCPNames(), ", "))}
	}
	ctx, stop := interruptible()
	defer stop()
	tokens, release, err := secretsOutside(ctx, cfg, mcp.Folder)
	if err != nil {
		return err
	}
	defer release()
	err = mcp.Login(ctx, mcp.Visit{
		// The operator chose this server, so no egress policy applies.
		Server: mcpServer(cfg.Tools.MCP[i], cfg.Tools.Workspace), HTTP: http.DefaultClient, Tokens: tokens, Version: version,
		Show: func(link string) {
			_ = e.text("Open this link in a browser and log in:\n\n  " + link + "\n\n" +
				"If the browser runs on another machine, paste the address of the last page here and press Enter.\n") // without it, Ctrl-C ends the login
		},
		Pasted: pasted(e.in),
	})
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("the login was canceled; no token was stored")
		}
		return err
	}
	return e.text("Logged in to " + c.Server + ". The daemon uses the login within a minute.\n")
}

// pasted sends the lines of r. Its goroutine ends with the input or the process: a read from
// a terminal cannot be interrupted.
func pasted(r io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(r)
		for s.Scan() {
			lines <- s.Text()
		}
	}()
	return lines
}

// secretsOutside are the secrets of a folder for commands, outside the daemon.
func secretsOutside(ctx context.Context, c configs.Config, folder string) (_ storage.Secrets, release func(), err error) {
	if !c.Storage.Shared() {
		return fileSecrets(c.DataDir, folder), func() {}, nil
	}
	db, err := postgres.Open(ctx, postgres.Config{URL: c.Storage.URL.Value(), NoListen: true, Conns: 2})
	if err != nil {
		return nil, nil, databaseError(err)
	}
	return storage.NewTreeSecrets(db.Tree(), folder), func() { _ = db.Close() }, nil // every write has committed
}
