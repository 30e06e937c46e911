package documents

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// below is where files lie among the documents of a scope.
const below = "files/"

// What the runs of an agent have replaced is in scopes of its own, behind that of
// the agent, and goes with the agent; that of its own files goes with the
// conversation as well, as they do.
const (
	undoState = "/undo"
	undoStore = "/undo/store"
)

// State keeps the files of each agent for itself, in the scope "agent/<id>" of
// docs.
func State(docs storage.Documents) Source {
	return func(env tools.Env) (Backend, error) {
		if env.Agent.ID == "" {
			return nil, fail(Unavailable, "this agent has no files")
		}
		return files(docs, "agent/"+string(env.Agent.ID), undoState), nil
	}
}

// Store keeps files that all agents of an owner share whose conversations have the same
// readers: in the scope "owner/<OwnerID>" of docs where the owner alone reads, in
// "owner/<OwnerID>/in/<place>" where others read as well. An agent without an owner has
// its own, in "agent/<id>/store".
func Store(docs storage.Documents, audience func(tools.Env) claybot.Audience) Source {
	return func(env tools.Env) (Backend, error) {
		switch a := audience(env); {
		case a.Owner != "" && a.Place != "":
			return files(docs, "owner/"+a.Owner+"/in/"+a.Place, undoStore), nil
		case a.Owner != "":
			return files(docs, "owner/"+a.Owner, undoStore), nil
		}
		if env.Agent.ID == "" {
			return nil, fail(Unavailable, "this agent has no files")
		}
		return files(docs, "agent/"+string(env.Agent.ID)+"/store", undoStore), nil
	}
}

// Folder keeps the files of an agent in docs instead of a folder of the machine,
// for nodes that share a store: in "agent/<id>/store", apart from those of Store.
// They go with the agent.
func Folder(docs storage.Documents) Source {
	return func(env tools.Env) (Backend, error) {
		if env.Agent.ID == "" {
			return nil, fail(Unavailable, "this agent has no files")
		}
		return scoped{docs, "agent/" + string(env.Agent.ID) + "/store", "folder/", MaxScope, undoStore}, nil
	}
}

// scoped is a Backend on the documents of one scope whose paths begin with below.
type scoped struct {
	docs  storage.Documents
	scope string
	below string
	limit int64  // bytes of the scope
	undo  string // the scope of what is put aside, behind that of an agent
}

func files(docs storage.Documents, scope, undo string) scoped {
	return scoped{docs, scope, below, MaxScope, undo}
}

func (t scoped) aside(agent claybot.AgentID) (Backend, bool) {
	if agent == "" || t.undo == "" {
		return nil, false
	}
	return scoped{docs: t.docs, scope: "agent/" + string(agent) + t.undo, limit: keptBytes}, true
}

func (t scoped) Read(ctx context.Context, path string) (string, error) {
	text, err := t.docs.Document(ctx, t.scope, t.below+path)
	if err == nil {
		return text, nil
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return "", broken("reading", err)
	}
	all, err := t.all(ctx)
	if err != nil {
		return "", err
	}
	if err := passable(all, path); err != nil {
		return "", err
	}
	return "", missing(path)
}

func (t scoped) Write(ctx context.Context, path, text string) error {
	all, err := t.all(ctx)
	if err != nil {
		return err
	}
	if err := passable(all, path); err != nil {
		return err
	}
	if _, known := find(all, path); !known && len(all) >= MaxFiles {
		return scopeFull()
	}
	err = t.docs.SaveDocument(ctx, t.scope, t.below+path, text, t.limit)
	if errors.Is(err, storage.ErrTooMany) {
		return scopeFull()
	}
	if err != nil {
		return broken("writing", err)
	}
	return nil
}

func (t scoped) Remove(ctx context.Context, path string) error {
	if err := t.docs.DropDocuments(ctx, t.scope, t.below+path); err != nil {
		return broken("removing", err)
	}
	return nil
}

func (t scoped) List(ctx context.Context, folder string) ([]File, error) {
	all, err := t.all(ctx)
	if err != nil {
		return nil, err
	}
	files := all
	if folder != "" {
		files = nil
		for _, f := range all {
			if strings.HasPrefix(f.Path, folder+"/") {
				files = append(files, f)
			}
		}
		if files == nil {
			return nil, noFolder(all, folder)
		}
	}
	if len(files) > MaxFiles {
		return nil, tooMany(folder)
	}
	return files, nil
}

func (t scoped) all(ctx context.Context) ([]File, error) {
	docs, err := t.docs.Documents(ctx, t.scope)
	if err != nil {
		return nil, broken("listing", err)
	}
	var files []File
	for _, d := range docs {
		if path, ok := strings.CutPrefix(d.Path, t.below); ok {
			files = append(files, File{path, d.Size})
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

func find(all []File, path string) (int, bool) {
	return slices.BinarySearchFunc(all, path, func(f File, path string) int { return strings.Compare(f.Path, path) })
}

// passable reports, as an error, why path cannot be a file: a folder has its
// name, or a file is in its way.
func passable(all []File, path string) error {
	if at, _ := find(all, path+"/"); at < len(all) && strings.HasPrefix(all[at].Path, path+"/") {
		return isFolder(path)
	}
	for _, folder := range above(path) {
		if _, file := find(all, folder); file {
			return notFolder(folder)
		}
	}
	return nil
}

func noFolder(all []File, folder string) error {
	for _, f := range append(above(folder), folder) {
		if _, file := find(all, f); file {
			return notFolder(f)
		}
	}
	return missing(folder)
}

// A Copier knows where the files lie that Filesystem keeps in a folder for each agent,
// and Folder among the documents that nodes share. It is for code that copies one store
// to the other.
type Copier struct{}

// Document is the document that a file of the folder of an agent becomes; ok is false
// for what is none: marks, and files that are being written.
func (Copier) Document(agent, file string) (scope, name string, ok bool) {
	if rest, aside := strings.CutPrefix(file, undoFolder+"/"); aside {
		of, name, found := strings.Cut(rest, "/")
		return "agent/" + of + undoStore, name, found && plainName.MatchString(of) && !strings.Contains(rest, reserved)
	}
	return "agent/" + agent + "/store", "folder/" + file, !strings.HasPrefix(file, reserved) && !strings.Contains(file, "/"+reserved)
}

// Taint is the mark of a file with untrusted content: a file in the folder, and a
// document of the same scope.
func (Copier) Taint(file string) (mark, name string) {
	return path.Join(markFolder, sum(file)), markDocs + file
}

// File is the file that a document becomes; ok is false when it stays a document.
func (Copier) File(scope, name string) (agent, file string, ok bool) {
	agent, isStore := strings.CutSuffix(scope, "/store")
	agent, isAgent := strings.CutPrefix(agent, "agent/")
	file, isFile := strings.CutPrefix(name, "folder/")
	return agent, file, isStore && isAgent && isFile && plainName.MatchString(agent)
}
