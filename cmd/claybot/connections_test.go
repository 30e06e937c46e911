package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/discord/discordtest"
	slackconnector "github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/tools/mcp"
)

// soonClosed is less than connections stay that are kept for later calls, which is a minute or more.
const soonClosed = 40 * time.Second

// An entrance is an HTTP server that knows its open connections.
type entrance struct {
	*httptest.Server
	mu   sync.Mutex
	open map[net.Conn]bool
	ever int
}

func openEntrance(t *testing.T, h http.Handler) *entrance {
	e := &entrance{Server: httptest.NewUnstartedServer(h), open: make(map[net.Conn]bool)}
	e.Config.ConnState = func(c net.Conn, s http.ConnState) {
		e.mu.Lock()
		defer e.mu.Unlock()
		switch s {
		case http.StateNew:
			e.open[c], e.ever = true, e.ever+1
		case http.StateClosed, http.StateHijacked:
			delete(e.open, c)
		}
	}
	e.Start()
	t.Cleanup(e.Close)
	return e
}

func (e *entrance) counts() (open, ever int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.open), e.ever
}

// What an operator stops, and what is removed from the file, keeps no connection to its platform, which
// lasted for 90 seconds.
func TestStoppedNodesKeepNoConnections(t *testing.T) {
	telegram, slack, discord := telegramtest.New(telegramtest.Config{}), slacktest.New(slacktest.Config{Manifest: slackconnector.Manifest}), discordtest.New(discordtest.Config{})
	t.Cleanup(telegram.Close)
	t.Cleanup(slack.Close)
	t.Cleanup(discord.Close)
	server := mcp.Handler(func(*http.Request) mcp.Offer { return mcp.Offer{Caller: "test"} }, mcp.ServerConfig{Version: "1"})
	all := map[nodes.Key]*entrance{
		{Kind: nodes.Connector, Name: "tg"}: openEntrance(t, telegram), {Kind: nodes.Connector, Name: "sl"}: openEntrance(t, slack),
		{Kind: nodes.Connector, Name: "dc"}: openEntrance(t, discord), {Kind: nodes.MCP, Name: "srv"}: openEntrance(t, server),
	}
	url := func(kind, name string) string { return all[nodes.Key{Kind: kind, Name: name}].URL }
	file := "model: demo\nmcp: {srv: {url: '" + url(nodes.MCP, "srv") + "/mcp', trusted: true}}\nconnectors:\n" +
		"  tg: {type: telegram, token: env:TG, api_url: '" + url(nodes.Connector, "tg") + "'}\n" +
		"  sl: {type: slack, bot_token: env:SL, app_token: env:SA, api_url: '" + url(nodes.Connector, "sl") + "/api/'}\n" +
		"  dc: {type: discord, token: env:DC, api_url: '" + url(nodes.Connector, "dc") + "/api/v10'}\n"
	vars := map[string]string{"TG": telegramtest.Token, "SL": "xoxb-test", "SA": "xapp-test", "DC": discordtest.Token}
	h := startDaemon(t, file, vars)
	desk := nodeDesk{h.daemon}
	until := func(what string, is func() bool) {
		t.Helper()
		for !is() {
			if !connectors.Sleep(h.ctx, 20*time.Millisecond) {
				t.Fatalf("it never comes that %s: %s", what, h.log.String())
			}
		}
	}
	states := func(want string) bool {
		list, err := desk.Nodes(h.ctx)
		if err != nil {
			t.Fatal(err, h.log.String())
		}
		n := 0
		for _, x := range list {
			if all[x.Key] != nil && x.State == want {
				n++
			}
		}
		return n == len(all)
	}
	until("all run", func() bool { return states(nodes.Running) })
	none := func(when string) {
		t.Helper()
		began := time.Now()
		for k, e := range all {
			until(k.String()+" has no connection "+when, func() bool { open, ever := e.counts(); return open == 0 && ever > 0 })
		}
		if took := time.Since(began); took > soonClosed {
			t.Errorf("connections stay for %v %s", took, when)
		}
	}
	for k := range all {
		if _, err := desk.CallNode(h.ctx, k, nodes.Stop, "test"); err != nil {
			t.Error(err)
		}
	}
	none("when it is stopped")
	for k := range all {
		if k.Kind == nodes.Connector {
			if done, err := desk.CallNode(h.ctx, k, nodes.Test, "test"); err != nil || !done.OK {
				t.Error(done, err)
			}
		}
	}
	none("after a test")
	for k := range all {
		if _, err := desk.CallNode(h.ctx, k, nodes.Start, "test"); err != nil {
			t.Error(err)
		}
	}
	until("all run again", func() bool { return states(nodes.Running) })
	h.reload(strings.SplitAfter(file, "\n")[0], vars)
	none("when it is removed")
}
