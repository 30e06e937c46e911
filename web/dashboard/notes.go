package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// notePages serves the notes of agents.
type notePages struct {
	*pages
	tooling web.Tooling
	agents  web.Agents
	runs    web.Runs
}

func (b *notePages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/notes", "notes", guarded(b.tooling, b.notes)),
		b.part("/ui/notes/rows", "notes", "rows", guarded(b.tooling, b.notes)),
		b.screen("/ui/notes/note", "note", guarded(b.tooling, b.note)),
		b.part("/ui/notes/note/now", "note", "note-now", guarded(b.tooling, b.note)),
		b.act("POST /ui/notes/save", web.Operate, guarded(b.tooling, b.saveNote)),
		b.act("POST /ui/notes/delete", web.Operate, guarded(b.tooling, b.dropNote)),
		b.act("POST /ui/notes/revert", web.Operate, guarded(b.tooling, b.revertNote)),
	}
}

func agentScope(id claybot.AgentID) string { return "agent/" + string(id) }

// ownerScope is the scope of a person's notes, empty for no owner.
func ownerScope(owner string) string {
	if owner == "" {
		return ""
	}
	return "owner/" + owner
}

const globalScope = "global"

func scopeWords(scope string) string {
	switch kind, of, _ := strings.Cut(scope, "/"); kind {
	case "agent":
		return "Notes of agent " + of
	case "owner":
		return "Notes shared by the agents of " + of
	}
	return "Notes shared by all agents"
}

// A noteRow is one note, or one version of it, in a list.
type noteRow struct {
	storage.Memory
	Scope   string
	Version int64
	Gone    bool
}

func (n noteRow) URL() string { return noteURL("/ui/notes/note", n.Scope, n.Path) }

func (n noteRow) ID() string { return domID(n.Scope + "\x00" + n.Path) }

// Who is the author of the change.
func (n noteRow) Who() string { return cmp.Or(n.By, string(n.Agent), "an agent") }

func noteURL(base, scope, path string) string {
	return base + "?" + url.Values{"scope": {scope}, "path": {path}}.Encode()
}

func noteRows(scope string, all []storage.Memory) []noteRow {
	rows := make([]noteRow, len(all))
	for i, m := range all {
		rows[i] = noteRow{Memory: m, Scope: scope}
	}
	return rows
}

// A notesView is the notes of one scope.
type notesView struct {
	viewer
	Scope, Words, Query string
	Rows                []foundNote
	More                int
	Fresh               string
}

// A foundNote is a note with an excerpt that matches the search.
type foundNote struct {
	noteRow
	Excerpt string
}

func (v notesView) Title() string { return v.Words }

// noteListRows is how many notes a page lists.
const noteListRows = 200

// notes lists the notes of ?scope=, or those that match ?find=.
func (b *notePages) notes(r *http.Request) (any, error) {
	q := r.URL.Query()
	v := notesView{viewer: viewerOf(r), Scope: cmp.Or(q.Get("scope"), globalScope), Query: strings.TrimSpace(q.Get("find"))}
	v.Words = excerpt(120, scopeWords(v.Scope))
	v.Fresh = "/ui/notes/rows?" + url.Values{"scope": {v.Scope}, "find": {v.Query}}.Encode()
	if v.Query != "" {
		found, err := b.tooling.Notes.FindNotes(r.Context(), v.Scope, v.Query)
		found, v.More = cut(found, noteListRows)
		for _, f := range found {
			v.Rows = append(v.Rows, foundNote{noteRow{Memory: f.Memory, Scope: v.Scope}, f.Excerpt})
		}
		return v, err
	}
	all, err := b.tooling.Notes.Notes(r.Context(), v.Scope)
	all, v.More = cut(all, noteListRows)
	for _, row := range noteRows(v.Scope, all) {
		v.Rows = append(v.Rows, foundNote{noteRow: row})
	}
	return v, err
}

// A noteView is one note with its versions.
type noteView struct {
	viewer
	noteRow
	Words    string
	There    bool // false: it was deleted
	Versions []noteRow
	Shown    *noteRow // the requested version
	Self     string
	All      string // the page of all notes of the scope
}

func (v noteView) Title() string { return v.Path }

// noteVersions is how many versions a page lists.
const noteVersions = 50

// note shows ?path= of ?scope=, and of its versions ?version= with its text.
func (b *notePages) note(r *http.Request) (any, error) {
	q := r.URL.Query()
	scope, path := q.Get("scope"), q.Get("path")
	if scope == "" || path == "" {
		return nil, errNoteNamed
	}
	v := noteView{viewer: viewerOf(r), noteRow: noteRow{Scope: scope, Memory: storage.Memory{Path: path}}, Words: excerpt(120, scopeWords(scope))}
	v.All = "/ui/notes?" + url.Values{"scope": {scope}}.Encode()
	m, err := b.tooling.Notes.Note(r.Context(), scope, path)
	if v.There = err == nil; v.There {
		v.Memory = m
	} else if ignoreGone(err) != nil {
		return nil, err
	}
	versions, err := b.tooling.NoteHistory.NoteVersions(r.Context(), scope, path)
	if ignoreGone(err) != nil {
		return nil, err
	}
	if !v.There && len(versions) == 0 {
		return nil, storage.ErrNotFound
	}
	versions, _ = cut(versions, noteVersions)
	v.Self = noteURL("/ui/notes/note/now", scope, path)
	want, _ := strconv.ParseInt(q.Get("version"), 10, 64) // a text that is not a number names no version
	for _, one := range versions {
		row := noteRow{Memory: one.Memory, Scope: scope, Version: one.Version, Gone: one.Gone}
		if one.Version == want {
			shown := row
			v.Shown, v.Self = &shown, v.Self+"&version="+strconv.FormatInt(want, 10)
		}
		row.Text = ""
		v.Versions = append(v.Versions, row)
	}
	return v, nil
}

// Link is the page of a version.
func (v noteView) Link(version int64) string {
	return v.URL() + "&version=" + strconv.FormatInt(version, 10)
}

func (b *notePages) saveNote(r *http.Request) (string, error) {
	path := strings.TrimSpace(r.Form.Get("path"))
	if path == "" || !r.Form.Has("text") {
		return "", errNotePath
	}
	text := strings.ReplaceAll(r.Form.Get("text"), "\r\n", "\n")
	return doneNoteSaved, b.tooling.Notes.SaveNote(r.Context(), r.Form.Get("scope"), path, text, web.User(r))
}

func (b *notePages) dropNote(r *http.Request) (string, error) {
	return doneNoteDeleted, b.tooling.Notes.DropNote(r.Context(), r.Form.Get("scope"), r.Form.Get("path"), web.User(r))
}

func (b *notePages) revertNote(r *http.Request) (string, error) {
	version, err := strconv.ParseInt(r.Form.Get("version"), 10, 64)
	if err != nil || version < 1 {
		return "", errVersion
	}
	return doneNoteReverted, b.tooling.NoteHistory.RevertNote(r.Context(), r.Form.Get("scope"), version, web.User(r))
}

// notesOfRun are the notes that a run changed, as far as versions are kept.
func (b *notePages) notesOfRun(r *http.Request, id claybot.RunID) ([]noteRow, error) {
	if b.tooling.Off() {
		return nil, nil
	}
	run, err := b.runs.Run(r.Context(), id)
	if err != nil {
		return nil, ignoreGone(err)
	}
	scopes := []string{agentScope(run.Agent), globalScope}
	e, err := b.agents.Agent(r.Context(), run.Agent)
	if ignoreGone(err) != nil {
		return nil, err
	}
	if owner := ownerScope(e.Descriptor.OwnerID()); owner != "" {
		scopes = slices.Insert(scopes, 1, owner)
	}
	var rows []noteRow
	for _, scope := range scopes {
		versions, err := b.tooling.NoteHistory.NoteVersions(r.Context(), scope, "")
		if ignoreGone(err) != nil {
			return nil, err
		}
		for _, v := range versions {
			if v.Run == run.ID {
				v.Text = ""
				rows = append(rows, noteRow{Memory: v.Memory, Scope: scope, Version: v.Version, Gone: v.Gone})
			}
		}
	}
	return rows, nil
}
