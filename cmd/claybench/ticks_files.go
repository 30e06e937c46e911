package main

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/claybot/claybot/storage"
)

// taskFiles is where the files of scheduled tasks are.
type taskFiles interface {
	// put creates or replaces the file of a task, so that no reader sees half of it.
	put(ctx context.Context, task, text string) error
	// names are the tasks that there are, those that are put aside apart.
	names(ctx context.Context) ([]string, error)
}

// A taskFolder is the tasks of a daemon in its data directory, below dir.
type taskFolder struct{ dir string }

func (f taskFolder) folder() string { return filepath.Join(f.dir, "data", "cron") }

func (f taskFolder) put(_ context.Context, task, text string) error {
	draft := filepath.Join(f.dir, "draft-"+task)
	folder := filepath.Join(f.folder(), task)
	if err := os.MkdirAll(f.folder(), 0o700); err != nil {
		return err
	}
	if _, err := os.Stat(folder); err == nil {
		if err := os.WriteFile(draft, []byte(text), 0o600); err != nil {
			return err
		}
		return os.Rename(draft, filepath.Join(folder, "TASK.md"))
	}
	if err := os.Mkdir(draft, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(draft, "TASK.md"), []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(draft, folder)
}

func (f taskFolder) names(context.Context) ([]string, error) {
	entries, err := os.ReadDir(f.folder())
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// A taskTree is the tasks that nodes share, in their database.
type taskTree struct{ tree storage.Tree }

// recoveryLimit is how long a database may take that was stopped like in a crash: it
// syncs all of its files first, beside whatever else writes to the disk.
const recoveryLimit = 5 * time.Minute

// put tries until the database is there, and no member has changed the file
// meanwhile.
func (t taskTree) put(ctx context.Context, task, text string) error {
	return t.write(ctx, "cron/"+task+"/TASK.md", text)
}

func (t taskTree) write(ctx context.Context, name, text string) error {
	for deadline := time.Now().Add(recoveryLimit); ; {
		err := t.replace(ctx, name, text)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if !pause(ctx, 100*time.Millisecond) {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

func (t taskTree) replace(ctx context.Context, name, text string) error {
	old, err := t.tree.Read(ctx, name)
	if err != nil {
		return err
	}
	was := int64(0)
	if len(old) > 0 {
		if string(old[0].Body) == text {
			return nil // the last try, whose answer was lost
		}
		was = old[0].Version
	}
	_, err = t.tree.Write(ctx, name, []byte(text), was)
	return err
}

func (t taskTree) names(ctx context.Context) ([]string, error) {
	files, err := t.tree.List(ctx, "cron")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		if dir, file := path.Split(strings.TrimPrefix(f.Path, "cron/")); file == "TASK.md" && strings.Count(dir, "/") == 1 {
			names = append(names, strings.TrimSuffix(dir, "/"))
		}
	}
	return names, nil
}
