package main

import (
	"errors"
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
	at      fileMark // of the file when it had this version
	last    fileMark // at the look before
}

// A fileMark says without reading it whether a file is likely the same as before.
type fileMark struct {
	there bool
	size  int64
	mtime time.Time
}

// newFileWatch watches the file from a version on.
func newFileWatch(e *env, version string) *fileWatch { return &fileWatch{env: e, version: version} }

// look returns the path and the mark of the file; the empty path for one that cannot be looked at.
func (w *fileWatch) look() (string, fileMark) {
	path, _, err := configs.Path(w.env.Config, w.env.lookup)
	if err != nil {
		return "", fileMark{}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, fileMark{}
	case err != nil || !info.Mode().IsRegular(): // reading a pipe would wait
		return "", fileMark{}
	}
	return path, fileMark{true, info.Size(), info.ModTime()}
}

// read returns the version of the file with a mark.
func (fileWatch) read(path string, mark fileMark) (version string, ok bool) {
	if !mark.there {
		return "", true
	}
	text, err := os.ReadFile(path)
	return configs.VersionOf(text), err == nil
}

// tried notes that a load is about to read the file as it is.
func (w *fileWatch) tried() {
	path, mark := w.look()
	if version, ok := w.read(path, mark); ok && path != "" {
		w.version, w.at, w.last = version, mark, mark
	}
}

// changed reports once that the file has another text than the last load has read.
func (w *fileWatch) changed() bool {
	path, mark := w.look()
	steady := mark == w.last
	w.last = mark
	if path == "" || !steady || mark == w.at && mark.there {
		return false
	}
	version, ok := w.read(path, mark)
	if !ok {
		return false
	}
	if _, now := w.look(); now != mark { // written meanwhile
		return false
	}
	was := w.version
	w.version, w.at = version, mark
	return version != was
}
