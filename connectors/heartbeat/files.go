package heartbeat

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

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

// Layout maps the tasks to a data directory. The checkpoint is the state.
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

// A file is the last read state of a task's file.
type file struct {
	version int64
	task    *task // nil: there is none in it
	notes   []connectors.Problem
}

func treePath(name string) string { return folder + "/" + name }

// scan lists the folder and reads the changed files. The caller holds the lock of the
// files.
func (h *Heartbeat) scan(ctx context.Context) error {
	all, err := h.cfg.Tree.Entries(ctx, folder)
	if err != nil {
		return err
	}
	return h.reread(ctx, all)
}

// reread reads the changed files of a listing of the folder. The caller holds the lock
// of the files.
func (h *Heartbeat) reread(ctx context.Context, all []storage.TreeFile) error {
	nameOf := func(p string) string { return strings.TrimPrefix(p, folder+"/") }
	all = slices.DeleteFunc(slices.Clone(all), func(f storage.TreeFile) bool {
		return strings.Contains(nameOf(f.Path), "/") || path.Ext(f.Path) != extension
	})
	files, err := schedule.Reading[file]{
		Tree: h.cfg.Tree, Name: nameOf, Max: maxFile, Parse: parse,
		Keep: func(old file, f storage.TreeFile) bool { return old.version == f.Version },
	}.Read(ctx, all, h.files)
	if err == nil {
		h.adopt(files)
	}
	return err
}

// parse parses the task of a file.
func parse(name string, x storage.TreeFile) file {
	f := file{version: x.Version}
	id := strings.TrimSuffix(name, extension)
	err := checkID(id)
	if err != nil {
		err = fmt.Errorf("the name: %w", err)
	} else if err = x.Err; err == nil {
		var t task
		if t, f.notes, err = readTask(id, string(x.Body)); err == nil && t.prompt != "" {
			f.task = &t
		}
	}
	for i := range f.notes {
		f.notes[i].File = name
	}
	if err != nil {
		f.notes = append(f.notes, schedule.Problem(name, err))
	}
	return f
}

// adopt updates the tasks in memory from the files.
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
	h.sched.SetProblems(problems)
	h.sched.Mu.Lock()
	defer h.sched.Mu.Unlock()
	h.tasks = tasks
}
