package docker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/claybot/claybot/workspace"
)

// opened opens a workspace, which the provider's cleaning removes.
func opened(t testing.TB, p *Provider, key workspace.Key, s workspace.Spec) *Workspace {
	t.Helper()
	ws, err := p.Open(t.Context(), key, s)
	if err != nil {
		t.Fatalf("open %s: %v, %v", key, err, errors.Unwrap(err))
	}
	return ws.(*Workspace)
}

// sh runs a command that does not fail to run.
func sh(t testing.TB, w workspace.Workspace, line string) workspace.Result {
	t.Helper()
	r, err := w.Exec(t.Context(), workspace.Command{Shell: line, Wall: 5 * time.Minute})
	if err != nil {
		t.Fatalf("%s: %v, %v", line, err, errors.Unwrap(err))
	}
	return r
}

// wantCode checks the code of an error and that its text has some words.
func wantCode(t *testing.T, what string, err error, code workspace.Code, words ...string) {
	t.Helper()
	e, ok := errors.AsType[*workspace.Error](err)
	if !ok || e.Code != code {
		t.Errorf("%s: got %v, want an error of code %s", what, err, code)
		return
	}
	for _, word := range words {
		if !strings.Contains(e.Text, word) {
			t.Errorf("%s: the text %q has no %q", what, e.Text, word)
		}
	}
}

// raw is a client of the engine that claybot knows nothing of.
func raw(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// foreign makes a container by hand, which the test removes.
func foreign(t *testing.T, name string, labels map[string]string, start bool) string {
	t.Helper()
	c := raw(t)
	made, err := c.ContainerCreate(t.Context(), &container.Config{
		Image: testImage, Cmd: []string{"sleep", "600"}, Labels: labels,
	}, &container.HostConfig{NetworkMode: "none", Init: new(true)}, nil, nil, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.ContainerRemove(context.WithoutCancel(t.Context()), made.ID, container.RemoveOptions{Force: true})
	})
	if start {
		if err := c.ContainerStart(t.Context(), made.ID, container.StartOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return made.ID
}

// inspect looks at a container.
func inspect(t *testing.T, id string) container.InspectResponse {
	t.Helper()
	got, err := raw(t).ContainerInspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// there reports whether a container exists and runs.
func there(t *testing.T, id string) (exists, runs bool) {
	t.Helper()
	got, err := raw(t).ContainerInspect(t.Context(), id)
	return err == nil, err == nil && got.State.Running
}

// leftOver are the command lines of a container's processes that are not its own.
func leftOver(t *testing.T, id string) []string {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; { // each look is a call of the engine
		top, err := raw(t).ContainerTop(t.Context(), id, []string{"-eo", "pid,args"})
		if err != nil {
			return nil // it does not run
		}
		var left []string
		writes := false
		for _, p := range top.Processes {
			line := strings.Join(p[1:], " ")
			switch {
			case isOwn(line) && time.Now().Before(end):
				writes = true
			case !strings.Contains(line, "docker-init") && !strings.Contains(line, "sleep 2147483647"):
				left = append(left, line)
			}
		}
		if !writes && (len(left) == 0 || time.Now().After(end)) { // a kill may still be under way
			return left
		}
	}
}

// isOwn reports whether a command line is one of claybot's own that ends by itself:
// it writes an output away, or measures the volume.
func isOwn(line string) bool {
	return strings.Contains(line, "/"+outputDir+"/") || strings.Contains(line, "du -sk ") || strings.Contains(measureScript, line)
}
