package imports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/claybot/claybot/configs"
)

// Limits of files.
const (
	maxConfig = 4 << 20
	maxText   = 256 << 10 // of a prompt or a note, as claybot limits both
	maxFiles  = 2000      // of notes
)

// A Dir is a directory of another program. No link leads out of it.
type Dir struct {
	Path string
	root *os.Root
}

// OpenDir opens a directory.
func OpenDir(dir string) (*Dir, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no directory %s", dir)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be opened: %w", dir, reason(err))
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be opened: %w", dir, reason(err))
	}
	return &Dir{dir, root}, nil
}

// Close closes it.
func (d *Dir) Close() { _ = d.root.Close() } // nothing was written

// Has reports whether it has something of this name, also a link that leads nowhere.
func (d *Dir) Has(name string) bool { _, err := d.root.Lstat(name); return err == nil }

// reason is an error without the path and the call that it names.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// open opens a regular file. A missing one is fs.ErrNotExist; other errors are words that go on after the
// name.
func (d *Dir) open(name string) (*os.File, error) {
	info, err := d.root.Stat(name)
	if err != nil {
		if at, lerr := d.root.Lstat(name); lerr == nil && at.Mode()&fs.ModeSymlink != 0 {
			return nil, errors.New("it is a link that leads out of the directory, or nowhere")
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fs.ErrNotExist
		}
		return nil, fmt.Errorf("it cannot be read: %w", reason(err))
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", reason(err))
	}
	return f, nil
}

// Stamp changes when one of some files does, as far as their sizes and times tell.
func (d *Dir) Stamp(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		if info, err := d.root.Stat(name); err == nil {
			fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}

// copyTo copies a regular file of at most limit bytes. Errors are those of open.
func (d *Dir) copyTo(w io.Writer, name string, limit int64) error {
	f, err := d.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	switch n, err := io.Copy(w, io.LimitReader(f, limit+1)); {
	case err != nil:
		return fmt.Errorf("it cannot be read: %w", reason(err))
	case n > limit:
		return fmt.Errorf("it has more than %d KiB", limit>>10)
	}
	return nil
}

// Read reads a regular file of at most limit bytes. A missing one is fs.ErrNotExist; other errors are
// words that go on after the name.
func (d *Dir) Read(name string, limit int64) ([]byte, error) {
	var text bytes.Buffer
	if err := d.copyTo(&text, name, limit); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// Copy copies a regular file of at most limit bytes to a new file, elsewhere. Errors are those of Read.
func (d *Dir) Copy(name, to string, limit int64) error {
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(d.copyTo(f, name, limit), f.Close())
}

// Text reads a text for agents. A missing or blank one is empty; one that cannot be used is left.
func (d *Dir) Text(f *Find, name string) string {
	b, err := d.Read(name, maxText)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		f.Leave(name, err.Error())
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(string(b), "\uFFFD"), "\x00", ""))
}

// JSON5 reads a file of JSON5. The error names the file, and the line of a mistake.
func (d *Dir) JSON5(name string) (Value, error) {
	text, err := d.Read(name, maxConfig)
	if err != nil {
		return Value{}, fmt.Errorf("%s: %w", filepath.Join(d.Path, name), err)
	}
	v, err := ParseJSON5(text)
	var line *configs.LineError
	if errors.As(err, &line) {
		return v, fmt.Errorf("%s:%d: %s", filepath.Join(d.Path, name), line.Line, line.Text)
	}
	return v, err
}

// List returns the regular files below a folder whose names end so, sorted, of more than maxFiles one more
// than that. Links are among them: Read says where they lead.
func (d *Dir) List(folder, ending string) []string {
	var all []string
	_ = fs.WalkDir(d.root.FS(), folder, func(p string, e fs.DirEntry, err error) error { // what cannot be read is as if it were not there
		switch {
		case err != nil && e != nil && e.IsDir():
			return fs.SkipDir
		case err != nil || len(all) > maxFiles:
			return fs.SkipAll
		case !e.IsDir() && strings.HasSuffix(p, ending) && !strings.HasPrefix(path.Base(p), "."):
			all = append(all, p)
		}
		return nil
	})
	slices.Sort(all)
	return all
}

// Names returns the names of what is in a folder, without those that begin with a dot, sorted.
func (d *Dir) Names(folder string) []string {
	entries, err := fs.ReadDir(d.root.FS(), folder)
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			all = append(all, e.Name())
		}
	}
	return all
}

// Folder reports whether it has a folder of this name, which may be reached by a link within it.
func (d *Dir) Folder(name string) bool {
	info, err := d.root.Stat(name)
	return err == nil && info.IsDir()
}
