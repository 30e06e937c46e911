package heartbeat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

const (
	extension = ".md"
	maxFile   = 64 << 10 // bytes
	maxFiles  = 200
	// freshness is how long after a change another one may leave no trace in the
	// times of a file.
	freshness = 4 * time.Second
)

// A file is one that was looked at.
type file struct {
	seen    seen
	version int64 // of a shared one
	task    *task // nil: there is none in it
	notes   []connectors.Problem
}

// A seen is a file or folder as it was when it was last read.
type seen struct {
	info  fs.FileInfo // nil: it was not there
	fresh bool        // it may have changed since without a trace
}

func see(info fs.FileInfo) seen {
	return seen{info, time.Since(info.ModTime()).Abs() < freshness}
}

// same reports whether info shows it unchanged.
func (s seen) same(info fs.FileInfo) bool {
	return s.info != nil && !s.fresh && s.info.Size() == info.Size() &&
		s.info.ModTime().Equal(info.ModTime()) && os.SameFile(s.info, info)
}

// scan reads the files that have changed. A folder in which there was nothing
// and that is unchanged is not even opened. It is called with edits held.
func (h *Heartbeat) scan(ctx context.Context) error {
	if h.cfg.Tree != nil {
		return h.scanTree(ctx)
	}
	info, err := os.Stat(h.cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		h.folder = seen{}
		h.adopt(nil)
		return nil
	}
	if err != nil {
		return err
	}
	if len(h.files) == 0 && h.folder.same(info) {
		return nil
	}
	looked := see(info)
	entries, err := os.ReadDir(h.cfg.Dir)
	if err != nil {
		return err
	}
	var root *os.Root // nothing that is read lies outside, whatever links there are
	files := make(map[string]file)
	for _, e := range entries {
		name := e.Name()
		if filepath.Ext(name) != extension {
			continue
		}
		old := h.files[name]
		info, err := e.Info()
		if err == nil && old.seen.same(info) {
			files[name] = old
			continue
		}
		if root == nil {
			if root, err = os.OpenRoot(h.cfg.Dir); err != nil {
				return err
			}
			defer func() { _ = root.Close() }()
			info, err = e.Info()
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			info, err = root.Stat(name)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone this moment, or a link to nothing
		case err == nil && old.seen.same(info):
			files[name] = old
		default:
			files[name] = h.readFile(root, name, info, err)
		}
	}
	h.folder = looked
	h.adopt(files)
	return nil
}

// readFile looks at one file; err is why it could not even be found out what it
// is.
func (h *Heartbeat) readFile(root *os.Root, name string, info fs.FileInfo, err error) (f file) {
	if err == nil {
		f.seen = see(info)
		if err = checkID(strings.TrimSuffix(name, extension)); err != nil {
			err = fmt.Errorf("the name: %w", err)
		}
	}
	var text string
	if err == nil {
		text, err = readText(root, name)
	}
	f.parse(name, text, err)
	return f
}

// parse takes the task out of a text; err is why there is none.
func (f *file) parse(name, text string, err error) {
	if err == nil {
		var t task
		if t, f.notes, err = readTask(strings.TrimSuffix(name, extension), text); err == nil && t.prompt != "" {
			f.task = &t
		}
	}
	for i := range f.notes {
		f.notes[i].File = name
	}
	if err != nil {
		p := connectors.Problem{File: name, Text: reason(err)}
		var line *configs.LineError
		if errors.As(err, &line) {
			p.Line, p.Text = line.Line, line.Text
		}
		f.notes = append(f.notes, p)
	}
}

var errTooLong = fmt.Errorf("the file is longer than %d KiB", maxFile>>10)

// readText reads a regular file that is not too long.
func readText(root *os.Root, name string) (string, error) {
	// Not to block, should it be a pipe.
	in, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", cmp.Or(err, errors.New("it is no regular file"))
	}
	b, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = errTooLong
	}
	return string(b), err
}

// reason is an error of the disk in words.
func reason(err error) string {
	var p *fs.PathError
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "it must not be read"
	case errors.As(err, &p):
		return p.Err.Error()
	}
	return storage.Plain(err)
}

// adopt makes the files the tasks in memory, and tells new problems, each once.
// It is called with edits held.
func (h *Heartbeat) adopt(files map[string]file) {
	h.files = files
	var tasks []*task
	var problems []connectors.Problem
	for _, name := range sortedNames(files) {
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
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range problems {
		if !slices.Contains(h.problems, p) {
			h.log.Warn("a heartbeat file has a problem", "file", p.File, "line", p.Line, "problem", p.Text)
		}
	}
	h.tasks, h.problems = tasks, problems
}

func sortedNames(files map[string]file) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// writeFile makes or replaces a file. Readers see the old text or the new one,
// also after a crash.
func writeFile(dir, name, text string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	tmp := ".tmp-" + string(claybot.NewID())
	err = createFile(root, tmp, text)
	if err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		_ = root.Remove(tmp)
		return err
	}
	return syncFolder(root)
}

func createFile(root *os.Root, name, text string) error {
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.WriteString(text)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// removeFile removes a file for good.
func removeFile(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := root.Remove(name); err != nil {
		return err
	}
	return syncFolder(root)
}

// syncFolder makes the names in a folder durable.
func syncFolder(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
