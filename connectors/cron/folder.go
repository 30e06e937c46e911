package cron

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claybot/claybot"
)

const (
	taskFile   = "TASK.md"
	memoryFile = "MEMORY.md"
	filesDir   = "files"
	doneDir    = ".done"
	newPrefix  = ".new-" // of folders that are being made

	noMemory   = "No memory"
	maxTask    = 256 << 10 // bytes of a TASK.md
	maxMemory  = 16 << 10  // bytes of a MEMORY.md that are read
	maxSlug    = 64
	freshness  = 4 * time.Second
	doneLayout = "20060102T150405Z"
)

// A folder is the directory with the tasks. Nothing it does leaves the
// directory, whatever links lie in it.
type folder struct {
	root *os.Root
	dir  string
}

// openFolder opens dir, and makes it when it is not there. What a crash left half
// made goes away.
func openFolder(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{root, dir}
	names, err := f.names(context.Background())
	for _, name := range names {
		if err == nil && strings.HasPrefix(name, newPrefix) {
			err = root.RemoveAll(name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return f, nil
}

// names lists what lies in the directory, sorted.
func (f *folder) names(context.Context) ([]string, error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// stat is what is known of a file without reading it. A link is followed only
// when it stays inside.
func (f *folder) stat(name string) (fs.FileInfo, error) {
	// One system call where os.Root takes several; only the link itself could be
	// seen outside, and then os.Root decides.
	info, err := os.Lstat(filepath.Join(f.dir, filepath.FromSlash(name)))
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return f.root.Stat(name)
	}
	return info, err
}

// read returns a regular file of at most limit bytes; more is cut off, and said
// so.
func (f *folder) read(_ context.Context, name string, limit int64) (text string, cut bool, err error) {
	// Not to block, should it have become a pipe.
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", false, errors.Join(err, fmt.Errorf("%s is no regular file", path.Base(name)))
	}
	b, err := io.ReadAll(io.LimitReader(file, limit+1))
	if int64(len(b)) > limit {
		b, cut = b[:limit], true
	}
	return string(b), cut, err
}

// write replaces a file. Readers see the old text or the new one, also after a
// crash.
func (f *folder) write(name, text string) error {
	tmp := path.Join(path.Dir(name), ".tmp-"+string(claybot.NewID()))
	err := f.create(tmp, text)
	if err == nil {
		err = f.root.Rename(tmp, name)
	}
	if err != nil {
		_ = f.root.Remove(tmp)
		return err
	}
	return f.sync(path.Dir(name))
}

func (f *folder) create(name, text string) error {
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// sync makes the names in a directory durable.
func (f *folder) sync(name string) error {
	d, err := f.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// make makes the folder of a new task: all of it or nothing. Its name is slug, or
// slug with a number behind it when that is taken.
func (f *folder) make(_ context.Context, slug, task string) (string, error) {
	tmp := newPrefix + string(claybot.NewID())
	err := f.root.Mkdir(tmp, 0o700)
	if err == nil {
		err = f.root.Mkdir(path.Join(tmp, filesDir), 0o700)
	}
	if err == nil {
		err = f.create(path.Join(tmp, memoryFile), noMemory+"\n")
	}
	if err == nil {
		err = f.create(path.Join(tmp, taskFile), task)
	}
	if err == nil {
		err = f.sync(tmp)
	}
	name := ""
	if err == nil {
		if name, err = f.free("", slug); err == nil {
			err = f.root.Rename(tmp, name)
		}
	}
	if err != nil {
		_ = f.root.RemoveAll(tmp)
		return "", err
	}
	return name, f.sync(".")
}

// free is name, or the first of name-2, name-3 and so on that dir does not have.
func (f *folder) free(dir, name string) (string, error) {
	for n := 1; ; n++ {
		try := name
		if n > 1 {
			end := "-" + strconv.Itoa(n)
			try = name[:min(len(name), maxSlug-len(end))] + end
			if dir != "" {
				try = name + end
			}
		}
		switch _, err := f.root.Lstat(path.Join(dir, try)); {
		case errors.Is(err, fs.ErrNotExist):
			return try, nil
		case err != nil:
			return "", err
		}
	}
}

// done puts a task's folder aside.
func (f *folder) done(_ context.Context, slug string, now time.Time, _ fs.FileInfo) error {
	if err := f.root.Mkdir(doneDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	to, err := f.free(doneDir, slug+"-"+now.UTC().Format(doneLayout))
	if err == nil {
		err = f.root.Rename(slug, path.Join(doneDir, to))
	}
	if err == nil {
		err = f.sync(doneDir)
	}
	if err == nil {
		err = f.sync(".")
	}
	return err
}

// edit replaces a file by what change makes of it.
func (f *folder) edit(ctx context.Context, name string, limit int64, change func(string, bool, error) (string, error)) error {
	text, cut, err := f.read(ctx, name, limit)
	if text, err = change(text, cut, err); err != nil {
		return err
	}
	if err := f.write(name, text); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// isFolder follows a link only when it stays inside.
func (f *folder) isFolder(slug string) (bool, error) {
	info, err := f.root.Stat(slug)
	return err == nil && info.IsDir(), err
}

func (f *folder) fetch(context.Context, []string) error { return nil }
func (f *folder) shared() bool                          { return false }
func (f *folder) close() error                          { return f.root.Close() }

// workspace is where the gate of a task runs.
func (f *folder) workspace(slug string) (string, error) {
	name := path.Join(slug, filesDir)
	if err := f.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := f.root.Stat(name) // refuses a link that leads outside
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", name)
	}
	if err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join(f.dir, slug, filesDir))
}

// A seen is a file as it was when it was last read.
type seen struct {
	info fs.FileInfo // nil: it was not there
	// fresh: it had been written so shortly before that a later change may have
	// left no trace in its times.
	fresh bool
}

func look(info fs.FileInfo, now time.Time) seen {
	if info == nil {
		return seen{}
	}
	return seen{info, now.Sub(info.ModTime()).Abs() < freshness}
}

// same reports whether info shows the file unchanged.
func (s seen) same(info fs.FileInfo) bool {
	if s.info == nil || info == nil {
		return s.info == nil && info == nil
	}
	if v, ok := s.info.(versioned); ok {
		now, ok := info.(versioned)
		return ok && now.Version() == v.Version()
	}
	return !s.fresh && s.info.Size() == info.Size() && s.info.ModTime().Equal(info.ModTime()) && os.SameFile(s.info, info)
}

// slugForm are the names that a task's folder may have.
var slugForm = regexp.MustCompile(`^[a-z0-9_-][a-z0-9._-]*$`) // and at most 64 bytes

// slugOf makes the name of a folder from the name of a task.
func slugOf(name string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	slug := strings.Trim(b.String(), "-._")
	slug = strings.TrimRight(slug[:min(len(slug), maxSlug)], "-._")
	if slug == "" {
		return "task"
	}
	return slug
}
