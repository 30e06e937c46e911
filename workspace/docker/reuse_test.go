package docker

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/claybot/claybot/workspace"
)

var timeZero time.Time

// TestPlatform has the rows of WS-11, with images that are really pulled.
func TestPlatform(t *testing.T) {
	t.Parallel()
	reg := newRegistry(t)
	p := provider(t, func(c *Config) { c.Image = reg.name })
	const amd, arm = "linux/amd64", "linux/arm64"
	pulls := func(f func()) int64 {
		before := reg.pulls.Load()
		f()
		return reg.pulls.Load() - before
	}
	label := func(w *Workspace) string { return inspect(t, w.box.id).Config.Labels["claybot.platform"] }
	for _, tt := range []struct {
		name       string
		have, want string // platforms
		none       bool   // there is no container before
		reused     bool
		pulls      bool
	}{
		{name: "none, unset", none: true, want: "", pulls: true}, // the image is missing at first
		{name: "none, amd64", none: true, want: amd, pulls: true},
		{name: "no label, unset", have: "", want: "", reused: true},
		{name: "no label, amd64", have: "", want: amd, pulls: true},
		{name: "amd64, unset", have: amd, want: "", reused: true},
		{name: "amd64, amd64", have: amd, want: amd, reused: true},
		{name: "arm64, unset", have: arm, want: "", reused: true},
		{name: "arm64, amd64", have: arm, want: amd, pulls: true},
		{name: "none again, unset", none: true, want: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			key := workspace.Key("agent/platform")
			var before string
			if !tt.none {
				before = opened(t, p, key, workspace.Spec{Platform: tt.have}).box.id
			}
			var w *Workspace
			n := pulls(func() { w = opened(t, p, key, workspace.Spec{Platform: tt.want}) })
			if reused := w.box.id == before; reused != tt.reused {
				t.Errorf("reused %v, want %v", reused, tt.reused)
			}
			if (n > 0) != tt.pulls {
				t.Errorf("%d pulls, want some: %v", n, tt.pulls)
			}
			want := tt.want
			if tt.reused {
				want = tt.have
			}
			if got := label(w); got != want {
				t.Errorf("label %q, want %q", got, want)
			}
			if exists, _ := there(t, before); before != "" && !tt.reused && exists {
				t.Error("the old container is still there")
			}
			if r := sh(t, w, "echo ok"); r.Output != "ok\n" {
				t.Errorf("it does not run: %+v", r)
			}
			if err := p.Remove(t.Context(), key, true); err != nil {
				t.Fatal(err)
			}
		})
	}
	_, err := p.Open(t.Context(), "agent/platform", workspace.Spec{Image: reg.forOne(), Platform: arm})
	wantCode(t, "a platform that the image has not", err, workspace.Refused, reg.forOne(), arm)
	_, err = p.Open(t.Context(), "agent/platform", workspace.Spec{Image: strings.Replace(reg.name, ":both", ":nothing", 1)})
	wantCode(t, "an image that the registry has not", err, workspace.Unavailable, ":nothing")
	_, err = p.Open(t.Context(), "agent/platform", workspace.Spec{Image: "127.0.0.1:1/claybot/test:none"})
	wantCode(t, "a registry that is not there", err, workspace.Unavailable, "registry")
}

// TestReuse has the other rows: what stopped is started, what cannot be started
// is made anew, and what belongs to others stays.
func TestReuse(t *testing.T) {
	t.Parallel()
	p := provider(t)
	const key = "agent/reuse"
	w := opened(t, p, key, workspace.Spec{InitialScript: "echo run >> scripts"})
	first := w.box.id
	e, _ := p.connect()
	if err := e.api.ContainerKill(t.Context(), first, "KILL"); err != nil {
		t.Fatal(err)
	}
	if r := sh(t, w, "cat scripts"); r.Output != "run\n" {
		t.Errorf("a handle whose container was stopped: %+v", r)
	}
	if err := e.api.ContainerKill(t.Context(), first, "KILL"); err != nil {
		t.Fatal(err)
	}
	w = opened(t, p, key, workspace.Spec{InitialScript: "echo run >> scripts"})
	if _, runs := there(t, first); w.box.id != first || !runs {
		t.Error("a container that was stopped is not started again")
	}
	// A daemon that was killed leaves a half-made container, a helper and a sidecar.
	labels := func(role string) map[string]string {
		l := p.labels(role, key)
		l[p.label(labelSpec)] = w.want.digest
		return l
	}
	half := foreign(t, p.name(key)+halfMade, labels(roleWorkspace), true)
	w = opened(t, p, key, workspace.Spec{InitialScript: "echo run >> scripts"})
	if exists, _ := there(t, half); exists {
		t.Error("a half-made container is left, though there is a whole one")
	}
	if w.box.id != first {
		t.Error("the half-made container was preferred")
	}
	if err := p.Remove(t.Context(), key, false); err != nil {
		t.Fatal(err)
	}
	half = foreign(t, p.name(key)+halfMade, labels(roleWorkspace), true)
	helper := foreign(t, p.name(key)+"-volumes", labels(roleHelper), false)
	sidecar := foreign(t, p.name(key)+"-relay", labels(roleSidecar), true)
	w = opened(t, p, key, workspace.Spec{InitialScript: "echo run >> scripts"})
	if w.box.id == half || w.box.id == sidecar || w.box.id == helper {
		t.Error("what a killed daemon left is taken for a workspace")
	}
	if r := sh(t, w, "cat scripts"); r.Output != "run\nrun\n" {
		t.Errorf("in a new container on the old data the script ran: %q", r.Output)
	}
	if err := p.Remove(t.Context(), key, true); err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{"half-made": half, "helper": helper, "sidecar": sidecar} {
		if exists, _ := there(t, id); exists {
			t.Errorf("the %s container of a killed daemon is left", name)
		}
	}
}

// TestOthers leaves alone what another installation, or a person, created.
func TestOthers(t *testing.T) {
	t.Parallel()
	p, other := provider(t), provider(t, func(c *Config) { c.Node += "-other" })
	const key = "agent/others"
	w := opened(t, p, key, workspace.Spec{})
	theirs := opened(t, other, key, workspace.Spec{})
	if w.box.id == theirs.box.id {
		t.Fatal("two installations share a container")
	}
	sh(t, theirs, "echo theirs > file")
	if _, err := w.ReadFile(t.Context(), "file", 10); !workspace.Is(err, workspace.NotFound) {
		t.Errorf("one sees the file of the other: %v", err)
	}
	list, err := p.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Errorf("list %+v, %v", list, err)
	}
	if err := p.Remove(t.Context(), key, true); err != nil {
		t.Fatal(err)
	}
	if r := sh(t, theirs, "cat file"); r.Output != "theirs\n" {
		t.Errorf("the other's workspace has suffered: %+v", r)
	}
	for _, tt := range []struct{ name, container string }{
		{"whole", p.name("agent/taken")},
		{"half", p.name("agent/taken") + halfMade},
	} {
		t.Run("a name that is taken, "+tt.name, func(t *testing.T) {
			id := foreign(t, tt.container, nil, true)
			_, err := p.Open(t.Context(), "agent/taken", workspace.Spec{})
			wantCode(t, "open", err, workspace.Refused, "did not make", tt.container)
			if _, runs := there(t, id); !runs {
				t.Error("a person's container is gone")
			}
			list, err := p.List(t.Context())
			if err != nil || len(list) != 0 {
				t.Errorf("left: %+v, %v", list, err)
			}
		})
	}
}

// TestInitialScript fails an opening with the end of what the script wrote, and
// runs it in a new container alone.
func TestInitialScript(t *testing.T) {
	t.Parallel()
	p := provider(t)
	const key = "agent/initial"
	failing := workspace.Spec{InitialScript: "echo begun >> tries; i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done; exit 3"}
	for range 2 {
		_, err := p.Open(t.Context(), key, failing)
		wantCode(t, "a failing script", err, workspace.Failed, "initial script", "exit code 3")
		e := new(workspace.Error)
		if !errors.As(err, &e) || !strings.HasSuffix(e.Output, "line 4999\n") || len(e.Output) > workspace.MaxTail {
			t.Errorf("its output ends with %.40q", e.Output)
		}
		if list, err := p.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("a half-made container is left: %+v, %v", list, err)
		}
	}
	w := opened(t, p, key, workspace.Spec{InitialScript: "cat tries; echo good > tries; id -u > who"})
	for range 3 {
		w = opened(t, p, key, w.want.Spec)
	}
	if r := sh(t, w, "cat tries who"); r.Output != "good\n10001\n" {
		t.Errorf("the files have %q", r.Output)
	}
}

// TestChange replaces a workspace whose settings changed at an opening, but not
// under a command.
func TestChange(t *testing.T) {
	t.Parallel()
	p := provider(t)
	const key = "agent/change"
	old := opened(t, p, key, workspace.Spec{})
	sh(t, old, "echo kept > data")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := old.Pipe(ctx, workspace.Command{Args: []string{"cat"}})
	if err != nil {
		t.Fatal(err)
	}
	changed := workspace.Spec{Env: []workspace.Var{{Name: "NEW", Value: "yes"}}, PIDs: 99}
	w := opened(t, p, key, changed)
	if w.box.id != old.box.id {
		t.Error("it was replaced under a command")
	}
	if !strings.Contains(w.Place(), "older") || strings.Contains(old.Place(), "older") {
		t.Errorf("the place %q does not say so", w.Place())
	}
	said := func(c workspace.Process) {
		t.Helper()
		const line = "still here\n"
		b := make([]byte, len(line))
		if _, err := io.WriteString(c, line); err != nil {
			t.Fatal(err)
		}
		if n, err := io.ReadFull(c, b); err != nil || string(b) != line {
			t.Errorf("the command reads %q, %v", b[:n], err)
		}
	}
	said(c)
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	within, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	if code, err := c.Wait(within); code != 0 || err != nil {
		t.Errorf("the command ended with %d, %v", code, err)
	}
	w = opened(t, p, key, changed)
	if w.box.id == old.box.id || strings.Contains(w.Place(), "older") {
		t.Error("it was not replaced when no command ran")
	}
	if r := sh(t, w, "cat data; echo $NEW"); r.Output != "kept\nyes\n" {
		t.Errorf("the new one has %q", r.Output)
	}
	_, err = old.Exec(t.Context(), workspace.Command{Shell: "true"})
	wantCode(t, "a handle of the old one", err, workspace.Gone)
	// A command of another process counts as well.
	twin := New(p.cfg)
	defer twin.Close()
	ws, err := twin.Open(t.Context(), key, changed)
	if err != nil {
		t.Fatal(err)
	}
	c, err = ws.Pipe(ctx, workspace.Command{Args: []string{"cat"}})
	if err != nil {
		t.Fatal(err)
	}
	said(c) // the engine says that it runs a moment after it was asked to start it
	if again := opened(t, p, key, workspace.Spec{}); again.box.id != w.box.id {
		t.Error("it was replaced under a command of another process")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestParallel opens one key 50 times at once, by two processes in effect.
func TestParallel(t *testing.T) {
	t.Parallel()
	p := provider(t)
	const key = "agent/parallel"
	var mu sync.Mutex
	ids := make(map[string]int)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			ws, err := p.Open(t.Context(), key, workspace.Spec{InitialScript: "echo run >> scripts"})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[ws.(*Workspace).box.id]++
		})
	}
	wg.Wait()
	list, err := raw(t).ContainerList(t.Context(), container.ListOptions{All: true, Filters: p.filter(roleWorkspace, key)})
	if err != nil || len(list) != 1 || len(ids) != 1 {
		t.Errorf("%d containers, %v; openings %v", len(list), err, ids)
	}
	w := opened(t, p, key, workspace.Spec{InitialScript: "echo run >> scripts"})
	if r := sh(t, w, "cat scripts"); r.Output != "run\n" {
		t.Errorf("the script ran: %q", r.Output)
	}
	// Who gives up does not end the opening of the others.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Open(ctx, key, workspace.Spec{}); !errors.Is(err, context.Canceled) {
		t.Errorf("an opening that was given up: %v", err)
	}
}
