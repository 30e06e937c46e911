package cron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
)

// The files of the Tree:
//
//	cron/<slug>/TASK.md
//	cron/<slug>/MEMORY.md
//	cron/<slug>/facts.json    what must survive of the task, see fact
//	cron/.done/<slug>-<time>/ tasks that are over
//	cron/.gone/<uid>.json     facts of tasks whose folder is not there
//	cron/.made/<person>.json  when agents created tasks for a person, see quota
//
// A data directory has them without cron/, and keeps the facts in a mark.
const (
	taskFile   = "TASK.md"
	memoryFile = "MEMORY.md"
	filesDir   = "files"
	doneDir    = folder + "/.done"

	noMemory   = "No memory"
	maxTask    = 256 << 10 // bytes of a TASK.md
	maxMemory  = 16 << 10  // bytes of a MEMORY.md that are read
	freshness  = 4 * time.Second
	doneLayout = "20060102T150405Z"
)

// folder is that of the Tree.
const folder = Name

// Layout says how a data directory has the tasks. The mark has the facts by uid.
var Layout = storage.Layout{
	Folder: folder, Watch: "*/" + taskFile,
	Kept: storage.MarkFiles{Mark: Name, Has: isFacts, ID: idOfFacts, Split: splitFacts, Join: joinFacts},
}

func taskPath(slug string) string   { return path.Join(folder, slug, taskFile) }
func memoryPath(slug string) string { return path.Join(folder, slug, memoryFile) }

// A dir is the folders of all tasks.
type dir struct {
	path string // on this machine, for gate commands
	tree *storage.Mirror
	now  func() time.Time
}

// create creates the folder of a new task. Its name is slug, or slug with a number
// behind it when that is taken.
func (d *dir) create(ctx context.Context, slug, task string) error {
	slug, err := schedule.FreeName(slug, func(try string) (bool, error) {
		left, err := d.tree.List(ctx, path.Join(folder, try)) // of another task, perhaps
		if err != nil || len(left) > 0 {
			return true, err
		}
		_, err = d.tree.Write(ctx, taskPath(try), []byte(task), 0)
		if errors.Is(err, storage.ErrStale) {
			return true, nil
		}
		return false, err
	})
	if err == nil { // without these the task works as well
		_, _ = d.tree.Write(ctx, memoryPath(slug), []byte(noMemory+"\n"), 0)
		_, _ = d.workspace(slug)
	}
	return err
}

// putAway puts a task's folder aside. With a version, only when its TASK.md is still
// that one. A folder that is gone, or another one, is left alone.
func (d *dir) putAway(ctx context.Context, slug string, version int64) error {
	guard := storage.TreeFile{}
	if version != 0 {
		guard = storage.TreeFile{Path: taskPath(slug), Version: version}
	}
	for n := 1; ; n++ {
		to := path.Join(doneDir, slug+"-"+d.now().UTC().Format(doneLayout))
		if n > 1 {
			to += "-" + strconv.Itoa(n)
		}
		err := d.tree.Move(ctx, path.Join(folder, slug), to, guard)
		switch {
		case errors.Is(err, storage.ErrState):
			continue
		case errors.Is(err, storage.ErrStale), errors.Is(err, storage.ErrNotFound):
			return nil
		}
		return err
	}
}

// edit replaces a file of a task by what change makes of it. A file that cannot be
// read is an error of change's choice.
func (d *dir) edit(ctx context.Context, name string, change func(old string, err error) (string, error)) error {
	_, err := storage.EditFile(ctx, d.tree, name, func(f storage.TreeFile) ([]byte, error) {
		err := f.Err
		if f.Version == 0 {
			err = fs.ErrNotExist
			if found, err := d.tree.Read(ctx, path.Join(path.Dir(name), taskFile)); err != nil || len(found) == 0 {
				return nil, errors.Join(err, fs.ErrNotExist) // the task is gone
			}
		}
		text, err := change(string(f.Body), err)
		return []byte(text), err
	})
	return err
}

// memory reads MEMORY.md of a task; a task without one has no memory.
func (d *dir) memory(ctx context.Context, slug string) (string, error) {
	f, err := storage.ReadFile(ctx, d.tree, memoryPath(slug))
	return memoryText(string(f.Body), err)
}

// remember replaces MEMORY.md of a task, or adds to it.
func (d *dir) remember(ctx context.Context, slug, text string, add bool) error {
	return d.edit(ctx, memoryPath(slug), func(old string, err error) (string, error) {
		whole := text
		if add {
			if old, err = memoryText(old, err); err != nil {
				return "", err
			}
			if old != noMemory {
				whole = strings.TrimSpace(old + "\n" + text)
			}
		}
		if len(whole) > maxMemory {
			return "", fmt.Errorf("MEMORY.md would have %d bytes; at most %d are kept, so replace it with something shorter", len(whole), maxMemory)
		}
		return cmp.Or(whole, noMemory) + "\n", nil
	})
}

func memoryText(text string, err error) (string, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return noMemory, nil
	}
	if errors.Is(err, storage.ErrTooMany) {
		err = nil
	}
	cut := len(text) > maxMemory
	text = strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), maxMemory)], ""))
	if cut {
		text += "\n[the rest of MEMORY.md is left out: it is longer than 16 KiB]"
	}
	if text == "" {
		text = noMemory
	}
	return text, err
}

// workspace is where the gate of a task runs, on this machine.
func (d *dir) workspace(slug string) (string, error) {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	name := path.Join(slug, filesDir)
	if err := root.MkdirAll(name, 0o700); err != nil {
		return "", err
	}
	info, err := root.Stat(name) // refuses a link that leads outside
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", name)
	}
	if err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join(d.path, slug, filesDir))
}
