package documents

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// A file that a tainted run has written is marked, so that its content is still
// untrusted for the run that reads it. The
// mark goes when a run that has read none gives the file a new content as a whole.
//
// A mark is there before the text that it is for, and goes after it: a crash in
// between marks too much rather than too little.

// Where marks lie: among the documents of a scope by the path of the
// file, in a folder by the sum of it. The tools cannot name either.
const (
	markDocs   = "tainted/"
	markFolder = reserved + "tainted"
)

// untrusted reports whether one of the files is marked.
func untrusted(ctx context.Context, files Backend, paths ...string) (bool, error) {
	if len(paths) == 0 {
		return false, nil
	}
	marked, err := files.taint().marked(ctx)
	return err == nil && slices.ContainsFunc(paths, marked), err
}

func put(ctx context.Context, files Backend, path, text string, tainted bool) error {
	if tainted {
		if err := files.taint().mark(ctx, path, true); err != nil {
			return err
		}
		return files.Write(ctx, path, text)
	}
	if err := files.Write(ctx, path, text); err != nil {
		return err
	}
	return files.taint().mark(ctx, path, false)
}

// result is a text that shows words of the files named, or their names.
func result(ctx context.Context, files Backend, text string, paths ...string) (tools.Result, error) {
	tainted, err := untrusted(ctx, files, paths...)
	if err != nil {
		return tools.Result{}, err
	}
	return tools.Result{Text: text, Untrusted: tainted}, nil
}

func (t scoped) taint() marker { return t }

func (t scoped) marked(ctx context.Context) (func(path string) bool, error) {
	docs, err := t.docs.Documents(ctx, t.scope)
	if err != nil {
		return nil, broken("listing", err)
	}
	marked := make(map[string]bool)
	for _, d := range docs {
		if path, ok := strings.CutPrefix(d.Path, markDocs); ok {
			marked[path] = true
		}
	}
	return func(path string) bool { return marked[path] }, nil
}

func (t scoped) mark(ctx context.Context, path string, tainted bool) error {
	if !tainted {
		if err := t.docs.DropDocuments(ctx, t.scope, markDocs+path); err != nil {
			return broken("writing", err)
		}
		return nil
	}
	err := t.docs.SaveDocument(ctx, t.scope, markDocs+path, "", t.limit)
	if errors.Is(err, storage.ErrTooMany) {
		return scopeFull()
	}
	if err != nil {
		return broken("writing", err)
	}
	return nil
}

func (d disk) taint() marker { return d }

func (d disk) marked(ctx context.Context) (func(path string) bool, error) {
	marked := make(map[string]bool)
	err := d.within(ctx, func(root *os.Root) error {
		entries, err := fs.ReadDir(root.FS(), markFolder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return broken("listing", err)
		}
		for _, e := range entries {
			marked[e.Name()] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return func(path string) bool { return len(marked) > 0 && marked[sum(path)] }, nil
}

func (d disk) mark(ctx context.Context, name string, tainted bool) error {
	return d.within(ctx, func(root *os.Root) error {
		at := path.Join(markFolder, sum(name))
		var err error
		if !tainted {
			if err = root.Remove(at); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
		} else if _, missing := root.Lstat(at); missing != nil {
			err = replace(root, at, "")
		}
		if err != nil {
			return explain("writing", name, err)
		}
		return nil
	})
}
