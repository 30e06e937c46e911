package configs

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
)

func TestWorkspaceDefault(t *testing.T) {
	c, _ := load(t, "log: json\n", nil)
	want := Workspace{Provider: WorkspaceDocker, Network: NetworkNone, TTL: 24 * time.Hour, Per: PerAgent, KillOnTimeout: true}
	for name, w := range map[string]Workspace{"common": c.Tools.Workspace, "default": c.Agents.Profiles[DefaultProfile].Workspace, "Default": Default().Tools.Workspace} {
		if !reflect.DeepEqual(w, want) {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

func TestWorkspace(t *testing.T) {
	c, warnings := load(t, `
workspaces:
  image: debian:bookworm
  platform: linux/amd64
  initial_script: |
    set -e
    echo ready
  env:
    - {name: MODE, value: test}
    - {name: TOKEN, secret: "env:TOOL_TOKEN"}
  cpus: 1.5
  memory: 512m
  pids: 100
  disk: 2GiB
  network: {allow: [Example.org, "*.pypi.org:443", example.org]}
  ttl: 90m
  per: thread
  user: 1000:1000
  volumes: [{name: cache, path: /cache}, {name: data, path: /data, read_only: true}]
  runtime: runsc
  docker: docker:dind
  kill_on_timeout: false
  unsafe: [writable-root]
agents:
  ops:
    match: [web]
    workspace: {network: full, ttl: 0, env: [], docker: off, unsafe: []}
  dev:
    match: [telegram]
    workspace: local
  none:
    match: [slack]
    workspace: off
`, map[string]string{"TOOL_TOKEN": "not-a-real-token"})
	if len(warnings) > 0 {
		t.Fatalf("warnings %v", warnings)
	}
	w := c.Tools.Workspace
	if len(w.Env) != 2 || w.Env[0].Value.Value() != "test" || w.Env[1].Value.Value() != "not-a-real-token" {
		t.Errorf("env %v", w.Env)
	}
	want := Workspace{
		Provider: WorkspaceDocker, InitialScript: "set -e\necho ready", Env: w.Env,
		CPUs: 1.5, Memory: 512 << 20, PIDs: 100, Disk: 2 << 30, Network: NetworkAllow, Hosts: []string{"example.org", "*.pypi.org:443"},
		TTL: 90 * time.Minute, Per: PerThread,
		Volumes:   []WorkspaceVolume{{"cache", "/cache", false}, {"data", "/data", true}},
		Container: Container{Image: "debian:bookworm", Platform: "linux/amd64", User: "1000:1000", Runtime: "runsc", Docker: "docker:dind", Unsafe: []string{"writable-root"}},
	}
	if !reflect.DeepEqual(w, want) {
		t.Errorf("got %+v\nwant %+v", w, want)
	}
	ops := c.Profile(claybot.User("web", "1", "2")).Workspace
	want.Network, want.Hosts, want.TTL, want.Env, want.Container.Docker, want.Container.Unsafe = NetworkFull, nil, 0, nil, "", nil
	if !reflect.DeepEqual(ops, want) {
		t.Errorf("ops: got %+v\nwant %+v", ops, want)
	}
	if got := c.Agents.Profiles["dev"].Workspace; got.Provider != WorkspaceLocal || got.Container.Image != want.Container.Image {
		t.Errorf("dev: %+v", got)
	}
	if got := c.Agents.Profiles["none"].Workspace.Provider; got != Off {
		t.Errorf("none: %q", got)
	}
}

// What was not understood may have been a protection: there is no workspace then,
// and nothing of the group holds.
func TestWorkspaceClosed(t *testing.T) {
	plainOff := plainWorkspace()
	plainOff.Provider = Off
	for _, tt := range []struct{ line, want string }{
		{"provider: podman", `"podman" is not one of docker, local, off`},
		{"provider: [docker]", "want a single value"},
		{"image: 'a b'", "not the name of an image"},
		{"platform: linux/386", "not one of linux/amd64, linux/arm64"},
		{"cpus: 0", "not a number of CPUs"},
		{"cpus: NaN", "not a number of CPUs"},
		{"memory: 1k", "not a size such as"},
		{"memory: -1g", "not a size such as"},
		{"memory: 99999999t", "not a size such as"},
		{"memory: 5x", "not a size such as"},
		{"memory: g", "not a size such as"},
		{"pids: 0", "not a whole number"},
		{"disk: lots", "not a size such as"},
		{"network: host", "not one of none, full, host-unsafe"},
		{"network: {alow: [a.org]}", "unknown key"},
		{"network: {allow: ['http://a.org/']}", "not a host such as"},
		{"network: [full]", "want a single value"},
		{"ttl: 5s", "not a duration such as 90s or 30m, from 1m to 8784h, nor 0"},
		{"ttl: -1h", "not a duration such as 90s or 30m, from 1m to 8784h, nor 0"},
		{"per: channel", "not one of agent, thread, owner"},
		{"user: 0:0", "and not root"},
		{"user: root", "and not root"},
		{"volumes: [{name: /var/run/docker.sock, path: /s}]", "folders of this machine cannot be one"},
		{"volumes: [{name: a, path: b}]", "not an absolute path"},
		{"volumes: [a]", "want a group of keys"},
		{"runtime: '../x'", "not the name of a runtime"},
		{"docker: true", "not the name of an image"},
		{"kill_on_timeout: maybe", "not one of true, false"},
		{"unsafe: [everthing]", "not the name of a protection, which are capabilities, docker, exec-tmp, new-privileges, root, seccomp, unconfined, writable-root"},
		{"unsafe: ['a b']", "not the name of a protection"},
		{"runtme: runsc", "unknown key"},
		{"env: {A: b}", "want a list"},
		{"env: [{name: A=B, value: c}]", "not the name of a variable"},
		{"env: [{name: A}]", "want one of value and secret"},
		{"env: [{name: A, value: a, secret: 'env:HOME'}]", "want one of value and secret"},
		{"env: [{name: A, value: a}, {name: A, value: b}]", "is there twice"},
		{"env: [{name: A, secret: 'env:NOT_SET'}]", "is not set"},
		{"env: [{name: A, secret: plain}]", "must not stand in the file"},
		{"env: [{name: A, value: sk-not-a-real-key}]", "must not stand in the file"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			text := "workspaces:\n  memory: 4g\n  network: full\nagents:\n  ops:\n    match: [web]\n    workspace:\n      provider: docker\n      " + tt.line + "\n"
			if strings.HasPrefix(tt.line, "provider") {
				text = strings.Replace(text, "      provider: docker\n", "", 1)
			}
			if got := Default(); got.Tools.Workspace.Provider != WorkspaceDocker {
				t.Fatal("the default is off")
			}
			c, warnings := load(t, text, nil)
			if got := c.Agents.Profiles["ops"].Workspace; !reflect.DeepEqual(got, plainOff) {
				t.Errorf("got %+v", got)
			}
			if c.Tools.Workspace.Provider != WorkspaceDocker || c.Tools.Workspace.Network != NetworkFull {
				t.Errorf("the common one is %+v", c.Tools.Workspace)
			}
			found := false
			for _, w := range warnings {
				found = found || strings.Contains(w.Text, tt.want) && strings.HasSuffix(w.Text, closed)
				if strings.Contains(w.Text, "sk-not") {
					t.Errorf("the warning shows a secret: %s", w)
				}
			}
			if !found {
				t.Errorf("warnings %v, want %q", warnings, tt.want)
			}
			// In the common group it is off for all that say nothing themselves.
			c, _ = load(t, "workspaces:\n  "+tt.line+"\n", nil)
			if got := c.Agents.Profiles[DefaultProfile].Workspace; got.Provider != Off {
				t.Errorf("common: %+v", got)
			}
		})
	}
}
