package schedule

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// A Reading defines how task files are read; T is the parsed form.
type Reading[T any] struct {
	Tree storage.Tree
	Name func(path string) string // name of the task, the key of the result
	// Keep reports whether the parsed form of a file is still current.
	Keep func(old T, now storage.TreeFile) bool
	Max  int // bytes of a file
	// Parse parses a file, whose Err is set if it could not be read.
	Parse func(name string, f storage.TreeFile) T
}

// Read reads the files that have changed since old, and returns the parsed forms
// by name.
func (r Reading[T]) Read(ctx context.Context, files []storage.TreeFile, old map[string]T) (map[string]T, error) {
	all := make(map[string]T, len(files))
	var paths []string
	for _, f := range files {
		name := r.Name(f.Path)
		known, ok := old[name]
		switch {
		case f.Err != nil:
			all[name] = r.parse(name, f)
		case ok && r.Keep(known, f):
			all[name] = known
		default:
			paths = append(paths, f.Path)
		}
	}
	found, err := storage.ReadFiles(ctx, r.Tree, paths)
	for p, f := range found { // a missing file was just removed
		all[r.Name(p)] = r.parse(r.Name(p), f)
	}
	return all, err
}

func (r Reading[T]) parse(name string, f storage.TreeFile) T {
	if errors.Is(f.Err, storage.ErrTooMany) || f.Err == nil && len(f.Body) > r.Max {
		f.Err = &configs.LineError{Text: fmt.Sprintf("the file is longer than %d KiB", r.Max>>10)}
	}
	return r.Parse(name, f)
}

// Problem returns the problem of a file that err describes.
func Problem(file string, err error) connectors.Problem {
	var line *configs.LineError
	if errors.As(err, &line) {
		return connectors.Problem{File: file, Line: line.Line, Text: line.Text}
	}
	return connectors.Problem{File: file, Text: Reason(err)}
}
