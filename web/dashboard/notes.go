package dashboard

import (
	"cmp"
	"encoding/hex"
	"hash/fnv"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// notePages are the pages of what agents remember.
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

// ownerScope is the scope of a person's notes, empty for nobody.
func ownerScope(owner string) string {
	if owner == "" {
		return ""
	}
	return "owner/" + owner
}

const globalScope = "global"

// scopeWords says whose the notes of a scope are.
func scopeWords(scope string) string {
	switch kind, of, _ := strings.Cut(scope, "/"); kind {
	case "agent":
		return "Notes of the agent " + of
	case "owner":
		return "Notes that all agents of " + of + " share"
	}
	return "Notes that all agents read"
}

// domID names something in a page whose own name may have any letters.
func domID(name string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // a hash never fails
	return hex.EncodeToString(sum.Sum(nil))
}

// A noteRow is one note, or one version of it, in a list.
type noteRow struct {
	storage.Memory
	Scope   string
	Version int64
	Gone    bool
}

// URL is the page of the note.
func (n noteRow) URL() string { return noteURL("/ui/notes/note", n.Scope, n.Path) }

// ID names the row in the page.
func (n noteRow) ID() string { return domID(n.Scope + "\x00" + n.Path) }

// Who made the change.
func (n noteRow) Who() string {
	if n.By != "" {
		return n.By
	}
	return cmp.Or(string(n.Agent), "an agent")
}

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

// A foundNote is a note with the place that fits what was searched.
type foundNote struct {
	noteRow
	Excerpt string
}

// Title says whose notes they are.
func (v notesView) Title() string { return v.Words }

// noteListRows is how many notes a page lists.
const noteListRows = 200

// notes lists the notes of ?scope=, those with the words ?q= where there are some.
func (b *notePages) notes(r *http.Request) (any, error) {
	q := r.URL.Query()
	v := notesView{viewer: viewerOf(r), Scope: cmp.Or(q.Get("scope"), globalScope), Query: strings.TrimSpace(q.Get("find"))}
	v.Words = excerpt(120, scopeWords(v.Scope))
	v.Fresh = "/ui/notes/rows?" + url.Values{"scope": {v.Scope}, "find": {v.Query}}.Encode()
	if v.Query != "" {
		found, err := b.tooling.Notes.FindNotes(r.Context(), v.Scope, v.Query)
		if err != nil {
			return nil, err
		}
		found, v.More = cut(found, noteListRows)
		for _, f := range found {
			v.Rows = append(v.Rows, foundNote{noteRow{Memory: f.Memory, Scope: v.Scope}, f.Excerpt})
		}
		return v, nil
	}
	all, err := b.tooling.Notes.Notes(r.Context(), v.Scope)
	if err != nil {
		return nil, err
	}
	all, v.More = cut(all, noteListRows)
	for _, row := range noteRows(v.Scope, all) {
		v.Rows = append(v.Rows, foundNote{noteRow: row})
	}
	return v, nil
}

// A noteView is one note with what became of it.
type noteView struct {
	viewer
	noteRow
	Words    string
	There    bool // false: it was deleted, or never was
	Versions []noteRow
	Shown    *noteRow // a version that was asked for
	Self     string
	All      string // the page of all notes of the scope
}

// Title is the path.
func (v noteView) Title() string { return v.Path }

// noteVersions is how many versions a page lists.
const noteVersions = 50

// note shows ?path= of ?scope=, and of its versions ?version= with its text.
func (b *notePages) note(r *http.Request) (any, error) {
	q := r.URL.Query()
	scope, path := q.Get("scope"), q.Get("path")
	if scope == "" || path == "" {
		return nil, refused(http.StatusBadRequest, "The address does not name a note.", "Open it from a list.")
	}
	v := noteView{viewer: viewerOf(r), noteRow: noteRow{Scope: scope, Memory: storage.Memory{Path: path}}, Words: excerpt(120, scopeWords(scope))}
	v.All = "/ui/notes?" + url.Values{"scope": {scope}}.Encode()
	m, err := b.tooling.Notes.Note(r.Context(), scope, path)
	if ignoreGone(err) != nil {
		return nil, err
	}
	if v.There = err == nil; v.There {
		v.Memory = m
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
	want, _ := strconv.ParseInt(q.Get("version"), 10, 64) // what is no number is no version
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

// saveNote writes a note of a person. Browsers send line ends of their own.
func (b *notePages) saveNote(r *http.Request) (string, error) {
	path := strings.TrimSpace(r.Form.Get("path"))
	if path == "" || !r.Form.Has("text") {
		return "", refused(http.StatusBadRequest, "Give the note a path.", "For example people/birthdays.md.")
	}
	text := strings.ReplaceAll(r.Form.Get("text"), "\r\n", "\n")
	return "Saved. Agents read it from now on.", b.tooling.Notes.SaveNote(r.Context(), r.Form.Get("scope"), path, text, web.User(r))
}

func (b *notePages) dropNote(r *http.Request) (string, error) {
	return "Deleted. Its versions stay.", b.tooling.Notes.DropNote(r.Context(), r.Form.Get("scope"), r.Form.Get("path"), web.User(r))
}

func (b *notePages) revertNote(r *http.Request) (string, error) {
	version, err := strconv.ParseInt(r.Form.Get("version"), 10, 64)
	if err != nil || version < 1 {
		return "", refused(http.StatusBadRequest, "That is no version.", "Choose one from the list.")
	}
	return "It is again what it was.", b.tooling.NoteHistory.RevertNote(r.Context(), r.Form.Get("scope"), version, web.User(r))
}

// notesOfRun are the notes that a run changed, of those that are still known.
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
