package files

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claybot/claybot/storage"
)

// A Documents knows which documents of nodes are files in a data directory, below
// agents/<id>/files.
type Documents interface {
	// Document is the document that a file becomes, if it becomes one.
	Document(agent, file string) (scope, name string, ok bool)
	// Taint is the mark of a file: another file, and a document of its scope.
	Taint(file string) (mark, name string)
	// File is the file that a document becomes, if it becomes one.
	File(scope, name string) (agent, file string, ok bool)
}

// maxDocument is the largest file that becomes a document, in bytes.
const maxDocument = 64 << 20

type documentKey struct{ scope, name string }

// documents yields the documents of claybot.db, and then the files of agents that are
// documents elsewhere. Of duplicates the first one counts: marks may be in both.
func (a *Archive) documents(ctx context.Context, t storage.Table) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		seen := make(map[documentKey]bool)
		for r, err := range a.cfg.Tables.Rows(ctx, t) {
			if err == nil {
				seen[documentKey{text(r[0]), text(r[1])}] = true
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
		if a.cfg.Documents == nil {
			return
		}
		for id, err := range a.ids(ctx, "") {
			if err == nil && a.deleted[id] == "" {
				err = a.folderFiles(ctx, id, seen, yield)
			}
			if errors.Is(err, fs.SkipAll) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// folderFiles yields the documents of one agent's folder; fs.SkipAll if yield
// returns false.
func (a *Archive) folderFiles(ctx context.Context, agent string, seen map[documentKey]bool, yield func(storage.Row, error) bool) error {
	top := filepath.Join(a.folder(agent), "files")
	give := func(scope, name, body string, at int64) error {
		if key := (documentKey{scope, name}); !seen[key] {
			seen[key] = true
			if !yield(storage.Row{scope, name, body, int64(len(body)), at}, nil) {
				return errEnough
			}
		}
		return nil
	}
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		if errors.Is(err, fs.ErrNotExist) && path == top {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		file, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		scope, name, ok := a.cfg.Documents.Document(agent, file)
		if !ok {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Size() > maxDocument {
			a.remark("agents/%s/files/%.200s is too large or no regular file, and stays where it is", agent, file)
			return nil
		}
		body, err := read(a.fs, path, maxDocument)
		if err != nil {
			return err
		}
		if err := give(scope, name, string(body), info.ModTime().UnixMilli()); err != nil {
			return err
		}
		mark, name := a.cfg.Documents.Taint(file)
		if info, err := os.Lstat(filepath.Join(top, filepath.FromSlash(mark))); err == nil {
			return give(scope, name, "", info.ModTime().UnixMilli())
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return fs.SkipAll
	}
	return err
}

// errEnough ends a walk after yield returned false.
var errEnough = errors.New("enough")

// loadDocuments adds documents, and writes those that are files here. Marks are
// documents and files: nothing says what they are for.
func (a *Archive) loadDocuments(ctx context.Context, t storage.Table, rows iter.Seq2[storage.Row, error]) error {
	if a.cfg.Documents == nil {
		return a.cfg.Tables.Load(ctx, t, rows)
	}
	type marked struct {
		agent, name string
		at          int64
	}
	tainted := make(map[marked]bool)
	written := make(map[marked]string)
	err := a.cfg.Tables.Load(ctx, t, func(yield func(storage.Row, error) bool) {
		for r, err := range rows {
			agent, file, ok := "", "", false
			if err == nil {
				agent, file, ok = a.cfg.Documents.File(text(r[0]), text(r[1]))
				ok = ok && filepath.IsLocal(filepath.FromSlash(file)) && a.has(agent)
			}
			if ok {
				if err = a.writeFile(agent, file, text(r[2]), number(r[4])); err == nil {
					mark, name := a.cfg.Documents.Taint(file)
					written[marked{agent: agent, name: name}] = mark
					continue
				}
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if agent, found := strings.CutPrefix(text(r[0]), "agent/"); found && text(r[2]) == "" {
				tainted[marked{strings.TrimSuffix(agent, "/store"), text(r[1]), number(r[4])}] = true
			}
			if !yield(r, nil) {
				return
			}
		}
	})
	for m := range tainted {
		if mark := written[marked{agent: m.agent, name: m.name}]; err == nil && mark != "" {
			err = a.writeFile(m.agent, mark, "", m.at)
		}
	}
	return err
}

// has reports whether there is a folder of an agent.
func (a *Archive) has(agent string) bool {
	there, err := exists(a.fs, a.root+"/"+agent)
	return err == nil && there
}

// writeFile writes a file into the folder of an agent.
func (a *Archive) writeFile(agent, file, body string, at int64) error {
	path := filepath.Join(a.root, agent, "files", filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := write(unsynced{a.fs}, path, []byte(body)); err != nil {
		return err
	}
	changed := time.UnixMilli(at)
	return os.Chtimes(path, changed, changed)
}
