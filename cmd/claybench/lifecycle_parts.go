package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/tools/mcp"
)

// A part is a node that the calls of the rig are about, and the key of the file that makes it.
type part struct {
	key    nodes.Key
	config string   // key; empty for a node that is always there
	forms  []string // values of the key, the one of the beginning first
	broken string   // a value that switches it off, which only an edit of the file can set; empty for none
	door   *doorway // where its connections arrive; nil for none

	stopped register[bool]
	value   register[string] // of the key; empty: not set
}

// state is the state that the node must have; empty where there is none.
func (p *part) state(text []byte, stopped bool) string {
	value, set := "", p.config == ""
	if !set {
		value, set = configs.Written(text, p.config)
	}
	switch {
	case stopped:
		return nodes.Stopped // also where the file has none any more
	case !set:
		return ""
	case value == p.broken && p.broken != "":
		return nodes.Off
	}
	return nodes.Running
}

// A doorway serves a handler and counts the connections that are open.
type doorway struct {
	url  string
	stop func()

	mu   sync.Mutex
	open map[*visit]bool
}

type visit struct {
	net.Conn
	through *doorway
}

// Close takes the connection out of the count.
func (v *visit) Close() error {
	v.through.mu.Lock()
	delete(v.through.open, v)
	v.through.mu.Unlock()
	return v.Conn.Close()
}

type counted struct {
	net.Listener
	into *doorway
}

// Accept counts the next connection.
func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &visit{conn, c.into}
	c.into.mu.Lock()
	c.into.open[v] = true
	c.into.mu.Unlock()
	return v, nil
}

func (d *doorway) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

// openDoorway serves h on a free port of the loopback address.
func openDoorway(h http.Handler) (*doorway, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &doorway{url: "http://" + l.Addr().String(), open: make(map[*visit]bool)}
	srv := &http.Server{Handler: h} //nolint:gosec // only the daemon calls it
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(counted{l, d}) // ends with Close
	}()
	d.stop = func() { _ = srv.Close(); <-ended }
	return d, nil
}

// childMark is the variable by which a process that the daemon started is recognised.
const childMark = "CLAYBENCH_CHILD"

// newParts returns all parts and opens their doorways. The webhook comes from the clients.
func newParts(w *lifeWorld, bin, dir string) ([]*part, error) {
	telegram := func(name string, d *doorway) *part {
		form := func(more, url string) string {
			return fmt.Sprintf("{type: telegram, token: env:%s_TOKEN, rate: {chat: 1000, all: 100000}, %sapi_url: %q}", strings.ToUpper(name), more, url)
		}
		return &part{
			key: nodes.Key{Kind: nodes.Connector, Name: name}, config: "connectors." + name, door: d,
			forms: []string{form("", d.url), form("delivery: direct, ", d.url), form("delivery: placeholder, ", d.url)}, broken: form("", "nowhere"),
		}
	}
	near, err := openDoorway(mcp.Handler(func(*http.Request) mcp.Offer { return mcp.Offer{Caller: "rig"} }, mcp.ServerConfig{Version: "1"}))
	if err != nil {
		return nil, err
	}
	w.doors = append(w.doors, near)
	slack := func(more, url string) string {
		return fmt.Sprintf("{type: slack, bot_token: env:WORK_BOT_TOKEN, app_token: env:WORK_APP_TOKEN, %sapi_url: %q}", more, url)
	}
	child := func(more string) string {
		return fmt.Sprintf("{command: [%q, mcp], where: host, trusted: true, %senv: {CLAYBOT_DATA_DIR: %q, HOME: %q, %s: %q}}", bin, more, dir+"/data", dir, childMark, dir)
	}
	remote := func(more, url string) string { return fmt.Sprintf("{url: %q, %strusted: true}", url, more) }
	parts := []*part{
		telegram("alpha", w.alphaDoor),
		telegram("beta", w.betaDoor),
		{
			key: nodes.Key{Kind: nodes.Connector, Name: "work"}, config: "connectors.work", door: w.workDoor,
			forms: []string{slack("", w.workDoor.url+"/api/"), slack("feedback: true, ", w.workDoor.url+"/api/")}, broken: slack("", "nowhere"),
		},
		{
			key: nodes.Key{Kind: nodes.Connector, Name: hookName}, config: "connectors." + hookName,
			forms: []string{w.hook(""), w.hook("max_body: 2m, ")}, broken: w.hook("max_body: 99g, "),
		},
		{
			key: nodes.Key{Kind: nodes.MCP, Name: "near"}, config: "mcp.near", door: near,
			forms: []string{remote("", near.url+"/mcp"), remote("timeout: 30s, ", near.url+"/mcp")}, broken: remote("", "nowhere"),
		},
		{
			key: nodes.Key{Kind: nodes.MCP, Name: "child"}, config: "mcp.child",
			forms: []string{child(""), child("tools: {deny: [list_agents]}, ")},
		},
		{
			key: nodes.Key{Kind: nodes.Profile, Name: "second"}, config: "agents.second",
			forms: []string{"{match: [web], memory: off, model: m2}", "{match: [terminal], memory: off, model: m2}", "{match: [web], memory: off}"},
		},
		{key: nodes.Key{Kind: nodes.Schedule, Name: "cron"}},
		{key: nodes.Key{Kind: nodes.Profile, Name: "default"}},
		{key: nodes.Key{Kind: nodes.Tools, Name: "web"}},
		{key: nodes.Key{Kind: nodes.Model, Name: configs.Default().Model.ID()}},
		{key: nodes.Key{Kind: nodes.Relay, Name: "log"}},
	}
	for _, p := range parts {
		if p.broken != "" {
			p.broken = normal(p.config, p.broken)
		}
		for i, form := range p.forms {
			p.forms[i] = normal(p.config, form)
		}
	}
	return parts, nil
}

// sets returns the text of a file with all parts in their first form.
func sets(text []byte, parts []*part) ([]byte, error) {
	for _, p := range parts {
		p.stopped.is(false)
		if p.config == "" {
			continue
		}
		var err error
		text, err = configs.Unset(text, p.config) // what is there may be a group of lines
		if err == nil {
			text, err = configs.Set(text, p.config, p.forms[0])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.config, err)
		}
		value, _ := configs.Written(text, p.config)
		p.value.is(value)
	}
	return text, nil
}

// normal returns a value as Written says it.
func normal(key, value string) string {
	text, err := configs.Set([]byte("log_level: info\n"), key, value)
	if err != nil {
		return "cannot be set: " + err.Error()
	}
	value, _ = configs.Written(text, key)
	return value
}

// named returns the part of a key of the file; nil for none.
func named(parts []*part, config string) *part {
	if i := slices.IndexFunc(parts, func(p *part) bool { return p.config == config }); i >= 0 && config != "" {
		return parts[i]
	}
	return nil
}
