package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
)

const (
	extension = ".md"
	maxFile   = 64 << 10 // bytes
	maxFiles  = 200
)

const (
	folder    = Name // of the Tree
	stateFile = folder + "/state.json"
)

// Layout says how a data directory has the tasks. The mark is the memory.
var Layout = storage.Layout{
	Folder: folder, Watch: "*" + extension,
	Kept: storage.MarkFiles{
		Mark: Name,
		Has:  func(p string) bool { return p == stateFile },
		Split: func(mark string, _ map[string][]byte) map[string][]byte {
			return map[string][]byte{stateFile: []byte(mark)}
		},
		Join: func(files map[string][]byte) string { return string(files[stateFile]) },
	},
}

// A file is one that was looked at.
type file struct {
	version int64
	task    *task // nil: there is none in it
	notes   []connectors.Problem
}

func treePath(name string) string { return folder + "/" + name }

// scan reads the files that have changed. It is called with edits held.
func (h *Heartbeat) scan(ctx context.Context) error {
	all, err := h.cfg.Tree.Entries(ctx, folder)
	if err != nil {
		return err
	}
	files := make(map[string]file)
	var want []string
	for _, e := range all {
		name := strings.TrimPrefix(e.Path, folder+"/")
		old, known := h.files[name]
		switch {
		case strings.Contains(name, "/") || path.Ext(name) != extension:
		case known && old.version == e.Version:
			files[name] = old
		case checkID(strings.TrimSuffix(name, extension)) != nil, e.Err != nil:
			files[name] = parse(name, e)
		default:
			want = append(want, e.Path)
		}
	}
	if len(want) == 0 && len(files) == len(h.files) && maps.EqualFunc(files, h.files, func(a, b file) bool { return a.version == b.version }) {
		return nil
	}
	found, err := storage.ReadFiles(ctx, h.cfg.Tree, want)
	if err != nil {
		return err
	}
	for p, x := range found {
		name := strings.TrimPrefix(p, folder+"/")
		files[name] = parse(name, x)
	}
	h.adopt(files)
	return nil
}

// parse takes the task out of a file.
func parse(name string, x storage.TreeFile) file {
	f := file{version: x.Version}
	err := checkID(strings.TrimSuffix(name, extension))
	switch {
	case err != nil:
		err = fmt.Errorf("the name: %w", err)
	case errors.Is(x.Err, storage.ErrTooMany), x.Err == nil && len(x.Body) > maxFile:
		err = fmt.Errorf("the file is longer than %d KiB", maxFile>>10)
	default:
		err = x.Err
	}
	if err == nil {
		var t task
		if t, f.notes, err = readTask(strings.TrimSuffix(name, extension), string(x.Body)); err == nil && t.prompt != "" {
			f.task = &t
		}
	}
	for i := range f.notes {
		f.notes[i].File = name
	}
	if err != nil {
		p := connectors.Problem{File: name, Text: schedule.Reason(err)}
		var line *configs.LineError
		if errors.As(err, &line) {
			p.Line, p.Text = line.Line, line.Text
		}
		f.notes = append(f.notes, p)
	}
	return f
}

// adopt makes the files the tasks in memory, and tells new problems, each once.
// It is called with edits held.
func (h *Heartbeat) adopt(files map[string]file) {
	h.files = files
	var tasks []*task
	var problems []connectors.Problem
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		problems = append(problems, f.notes...)
		switch {
		case f.task == nil:
		case len(tasks) == maxFiles:
			problems = append(problems, connectors.Problem{File: name, Text: fmt.Sprintf("there are more than %d tasks, and this one is not looked at", maxFiles)})
		default:
			tasks = append(tasks, f.task)
		}
	}
	slices.SortFunc(tasks, byTitle)
	h.base.SetProblems(problems)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tasks = tasks
}
