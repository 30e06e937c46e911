package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/claybot/claybot/configs"
)

// lookFile is how often the daemon looks at its configuration file. A change counts once the
// file has stayed as it is from one look to the next: it may be half written.
const lookFile = 2 * time.Second

// A fileWatch finds changes of the configuration file that no load has tried.
type fileWatch struct {
	env     *env
	version string   // that the last load has read; empty for no file
	last    fileMark // at the look before
}

// A fileMark says whether a file is being written: then it changes from look to look. Another file may
// have the same one.
type fileMark struct {
	there bool
	size  int64
	mtime time.Time
}

// newFileWatch watches the file from a version on.
func newFileWatch(e *env, version string) *fileWatch { return &fileWatch{env: e, version: version} }

// unread is the version of a file that cannot be read.
const unread = "unreadable"

// look returns the path and the mark of the file; the empty path for one that cannot be looked at, and why.
func (w *fileWatch) look() (path string, mark fileMark, err error) {
	path, _, err = configs.Path(w.env.Config, w.env.lookup)
	if err != nil {
		return "", fileMark{}, err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, fileMark{}, nil
	case err != nil:
		return "", fileMark{}, err
	case !info.Mode().IsRegular(): // reading a pipe would wait
		return "", fileMark{}, fmt.Errorf("%s %w", path, errIrregular)
	}
	return path, fileMark{true, info.Size(), info.ModTime()}, nil
}

// read returns the version of the file with a mark.
func (fileWatch) read(path string, mark fileMark) (version string, err error) {
	if !mark.there {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return unread, err
	}
	return configs.VersionOf(text), nil
}

// tried notes that a load is about to read the file as it is.
func (w *fileWatch) tried() {
	path, mark, err := w.look()
	version := unread
	if err == nil {
		version, _ = w.read(path, mark) // the load says why it cannot be read
	}
	w.version, w.last = version, mark
}

// changed reports once that the file has another text than the last load has read, and once why it
// cannot be read any more.
func (w *fileWatch) changed() (changed bool, err error) {
	path, mark, err := w.look()
	steady := mark == w.last
	w.last = mark
	if !steady {
		return false, nil
	}
	version := unread
	if err == nil {
		version, err = w.read(path, mark)
	}
	if _, now, _ := w.look(); now != mark { // written meanwhile
		return false, nil
	}
	was := w.version
	w.version = version
	if version == was {
		return false, nil
	}
	return err == nil, err
}
