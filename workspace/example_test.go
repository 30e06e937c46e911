package workspace_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot/workspace"
)

// Memory is a Provider whose workspaces are files in memory. They run no commands.
type Memory struct {
	mu   sync.Mutex
	made map[workspace.Key]*shelf
}

func (m *Memory) Name() string                { return "memory" }
func (m *Memory) Check(context.Context) error { return nil }

func (m *Memory) Open(_ context.Context, key workspace.Key, s workspace.Spec) (workspace.Workspace, error) {
	if s.Image != "" { // never less than what the Spec asks for
		return nil, &workspace.Error{Code: workspace.Refused, Text: "a workspace in memory has no image"}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.made[key]
	if w == nil {
		w = &shelf{key: key, files: make(map[string][]byte)}
		m.made[key] = w
	}
	return w, nil
}

func (m *Memory) Remove(_ context.Context, key workspace.Key, data bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data { // else the files stay, and nothing else is there
		delete(m.made, key)
	}
	return nil
}

func (m *Memory) List(context.Context) (all []workspace.Info, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(m.made)) {
		all = append(all, workspace.Info{Key: key, Provider: m.Name(), ID: string(key), State: "idle"})
	}
	return all, nil
}

type shelf struct {
	key   workspace.Key
	mu    sync.Mutex
	files map[string][]byte
}

func (w *shelf) Place() string { return "memory " + string(w.key) }

func (w *shelf) WriteFile(_ context.Context, path string, content []byte) error {
	path, err := workspace.Clean("/", path)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files[path] = slices.Clone(content)
	return nil
}

func (w *shelf) ReadFile(_ context.Context, path string, max int64) ([]byte, error) {
	path, err := workspace.Clean("/", path)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch content, ok := w.files[path]; {
	case !ok:
		return nil, &workspace.Error{Code: workspace.NotFound, Text: "there is no file " + path}
	case int64(len(content)) > max:
		return nil, &workspace.Error{Code: workspace.TooBig, Text: path + " is too big"}
	default:
		return slices.Clone(content), nil
	}
}

func (w *shelf) List(_ context.Context, dir string, max int) (files []workspace.File, more bool, err error) {
	dir, err = workspace.Clean("/", dir)
	if err != nil {
		return nil, false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(w.files)) {
		if dir == "." || strings.HasPrefix(path, dir+"/") {
			files = append(files, workspace.File{Path: path, Size: int64(len(w.files[path]))})
		}
	}
	n := min(len(files), max)
	return files[:n], n < len(files), nil
}

var errNoCommands = &workspace.Error{Code: workspace.Refused, Text: "a workspace in memory runs no commands"}

func (w *shelf) Exec(context.Context, workspace.Command) (workspace.Result, error) {
	return workspace.Result{}, errNoCommands
}

func (w *shelf) Pipe(context.Context, workspace.Command) (workspace.Process, error) {
	return nil, errNoCommands
}

var _ workspace.Provider = (*Memory)(nil)

// The whole of a Provider, and the life of one of its workspaces.
func Example() {
	ctx := context.Background()
	var p workspace.Provider = &Memory{made: make(map[workspace.Key]*shelf)}
	w, err := p.Open(ctx, "agent/a1", workspace.Spec{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Place())
	fmt.Println(w.WriteFile(ctx, "notes/today.md", []byte("Water the plants.")))
	fmt.Println(workspace.Is(w.WriteFile(ctx, "../secret", nil), workspace.Outside))
	_, err = w.Exec(ctx, workspace.Command{Shell: "ls"})
	fmt.Println(err)

	_ = p.Remove(ctx, "agent/a1", false) // its data stays
	w, _ = p.Open(ctx, "agent/a1", workspace.Spec{})
	text, err := w.ReadFile(ctx, "notes/today.md", 1<<10)
	fmt.Printf("%s %v\n", text, err)

	_ = p.Remove(ctx, "agent/a1", true)
	all, err := p.List(ctx)
	fmt.Println(len(all), err)
	// Output:
	// memory agent/a1
	// <nil>
	// true
	// a workspace in memory runs no commands
	// Water the plants. <nil>
	// 0 <nil>
}
