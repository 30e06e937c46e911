package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/workspace"
)

// Agents of a real daemon, as another program has them by the protocol.
func TestMCPAgents(t *testing.T) {
	cfg := configs.Default()
	cfg.DataDir, cfg.HTTP.Addr, cfg.Log.Format = t.TempDir(), configs.Off, "text"
	var log bytes.Buffer
	e := &env{cli: new(cli), in: strings.NewReader(""), out: new(bytes.Buffer), err: &log, lookup: func(string) (string, bool) { return "", false }}
	cl, stop, err := e.inside(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("%v\n%s", err, &log)
		}
	}()
	a := mcpAgents{client: cl, who: "test"}

	ask := mcp.Ask{Conversation: "plans", Text: "hello there", Key: "mcp:one"}
	first, err := a.Ask(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.Ask(t.Context(), ask); err != nil || again != first {
		t.Errorf("asked again: %v, %v, want %v", again, err, first)
	}
	var told []string
	end, err := a.Follow(t.Context(), first.Run, func(s string) { told = append(told, s) })
	if err != nil || end.State != claybot.RunSucceeded || end.Agent != first.Agent || end.Text == "" || len(told) == 0 || told[0] != "started" {
		t.Errorf("ended %+v, %v, told %v", end, err, told)
	}
	if now, err := a.Run(t.Context(), first.Run); err != nil || !reflect.DeepEqual(now, end) {
		t.Errorf("run %+v, %v, want %+v", now, err, end)
	}
	other, err := a.Ask(t.Context(), mcp.Ask{Agent: first.Agent, Text: "go on", Key: "mcp:two"})
	if err != nil || other.Agent != first.Agent || other.Run == first.Run {
		t.Errorf("%+v, %v", other, err)
	}
	if _, err := a.Follow(t.Context(), other.Run, func(string) {}); err != nil {
		t.Error(err)
	}
	said, err := a.History(t.Context(), first.Agent, 4)
	if err != nil || len(said) != 4 || said[0].Text != "hello there" || said[1].Who != "agent" || said[1].Text != end.Text || said[2].Text != "go on" {
		t.Errorf("history %+v, %v", said, err)
	}
	all, err := a.List(t.Context())
	if err != nil || len(all) == 0 || all[0].ID == "" || all[0].Name == "" {
		t.Errorf("agents %+v, %v", all, err)
	}
	if err := a.Cancel(t.Context(), first.Run); err != nil {
		t.Errorf("a run that has ended: %v", err)
	}

	slow, err := a.Ask(t.Context(), mcp.Ask{Text: "busy 300", Key: "mcp:slow"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	end, err = a.Follow(ctx, slow.Run, func(s string) {
		if s == "uses wait" { // it ends by itself much later
			if err := a.Cancel(ctx, slow.Run); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil || end.State != claybot.RunCanceled {
		t.Errorf("ended %+v, %v", end, err)
	}
	for _, bad := range []claybot.RunID{"", "..", "nothing"} {
		if r, err := a.Run(t.Context(), bad); err == nil {
			t.Errorf("run %q is %+v", bad, r)
		}
	}
}

func TestMCPServerOf(t *testing.T) {
	secret := configs.NewSecret("env:X", "not-real")
	got := mcpServer(configs.MCPServer{
		Name: "n", Process: configs.MCPProcess{Command: []string{"a"}, Where: configs.MCPHost, Env: map[string]string{"B": "2"}, Secrets: map[string]configs.Secret{"A": secret}},
		Effects: map[string]string{"x": configs.EffectReadOnly, "y": configs.EffectIdempotent, "z": configs.EffectOnce}, Timeout: time.Second, Trusted: true, Deny: []string{"d"},
	}, configs.Workspace{Provider: "docker"})
	want := mcp.Server{
		Name: "n", Command: []string{"a"}, Where: mcp.Host, Env: []workspace.Var{{Name: "A", Value: "not-real"}, {Name: "B", Value: "2"}},
		Effects: map[string]tools.Effect{"x": tools.ReadOnly, "y": tools.Idempotent, "z": tools.Once}, Timeout: time.Second, Trusted: true, Deny: []string{"d"},
	}
	if !reflect.DeepEqual(got, want) || got.Check() != nil {
		t.Errorf("%+v, %v", got, got.Check())
	}
	for image, want := range map[string]string{"i": "i", "": "usual"} { // and the usual one of all
		inside := mcpServer(
			configs.MCPServer{Name: "n", Process: configs.MCPProcess{Command: []string{"a"}, Image: image, Network: configs.NetworkAllow, Hosts: []string{"h"}}},
			configs.Workspace{Provider: "docker", Container: configs.Container{Image: "usual"}},
		)
		spec := workspace.Spec{Image: want, Network: workspace.Network{Mode: configs.NetworkAllow, Allow: []string{"h"}}}
		if got := inside.Container; !reflect.DeepEqual(got, workspace.Want{Provider: "docker", Key: "mcp/n", Spec: spec, Exact: true}) {
			t.Errorf("%+v", got)
		}
	}
	far := mcpServer(configs.MCPServer{
		Name: "n", Remote: configs.MCPRemote{
			URL: "https://x/mcp", Headers: map[string]configs.Secret{"H": secret},
			OAuth: &configs.MCPOAuth{Grant: configs.GrantClient, ClientID: "c", ClientSecret: secret, Scopes: []string{"s"}},
		},
	}, configs.Workspace{})
	if far.Headers["H"] != "not-real" || !reflect.DeepEqual(far.OAuth, &mcp.OAuth{Grant: mcp.GrantClient, ClientID: "c", ClientSecret: "not-real", Scopes: []string{"s"}}) || far.Check() != nil {
		t.Errorf("%+v", far)
	}
}

// The agents are offered at /mcp, behind the door, with sessions.
func TestMCPOverHTTP(t *testing.T) {
	cfg := configs.Default()
	cfg.DataDir, cfg.HTTP.Addr, cfg.Log.Format = t.TempDir(), configs.Off, "text"
	e := &env{cli: new(cli), in: strings.NewReader(""), out: new(bytes.Buffer), err: new(bytes.Buffer), lookup: func(string) (string, bool) { return "", false }}
	cl, stop, err := e.inside(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stop() }()
	session := ""
	post := func(body string) (int, string) {
		t.Helper()
		req, err := cl.Request(t.Context(), http.MethodPost, mcpPath, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := cl.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			session = id
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	code, text := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	if code != http.StatusOK || !strings.Contains(text, `"claybot"`) || session == "" {
		t.Fatalf("%d %s", code, text)
	}
	if code, text = post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); code != http.StatusAccepted {
		t.Fatalf("%d %s", code, text)
	}
	code, text = post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask_agent","arguments":{"text":"say hello over http"}}}`)
	if code != http.StatusOK || !strings.Contains(text, "hello over http") {
		t.Errorf("%d %s", code, text)
	}
	for range 2 { // the second is the same message
		code, text = post(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask_agent","arguments":{"text":"busy 300","wait":0}}}`)
		if code != http.StatusOK || !strings.Contains(text, "Still working: the run ") {
			t.Fatalf("%d %s", code, text)
		}
	}
	var all web.RunList
	if err := cl.call(t.Context(), "GET", "/agents/runs", nil, &all); err != nil || len(all.Runs) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	run := string(all.Runs[0].ID)
	code, text = post(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"stop_run","arguments":{"run":"` + run + `"}}}`)
	if code != http.StatusOK || strings.Contains(text, `"isError":true`) {
		t.Errorf("%d %s", code, text)
	}
	code, text = post(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"run_status","arguments":{"run":"` + run + `","wait":50}}}`)
	if code != http.StatusOK || !strings.Contains(text, "The run was canceled.") {
		t.Errorf("%d %s", code, text)
	}
}
