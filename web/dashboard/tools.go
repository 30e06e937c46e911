package dashboard

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// toolPages are the pages of what agents work with.
type toolPages struct {
	*pages
	tooling web.Tooling
	agents  web.Agents
}

func (b *toolPages) routes() []web.Route {
	return []web.Route{
		b.screen("/ui/tools", "tools", b.shown),
		b.part("/ui/tools/now", "tools", "tools-now", b.shown),
		b.act("POST /ui/tools/skills/{name}/allow", web.Admin, guarded(b.tooling, b.allowSkill)),
		b.act("POST /ui/tools/skills/{name}/forbid", web.Operate, guarded(b.tooling, b.forbidSkill)),
		b.act("POST /ui/tools/servers/{name}/allow", web.Admin, guarded(b.tooling, b.allowServer)),
		b.act("POST /ui/tools/workspaces/remove", web.Admin, guarded(b.tooling, b.removeWorkspace)),
		b.part("/ui/agents/{id}/bench", "agent", "bench", b.agentBench),
		b.part("/ui/agents/{id}/skills", "agent", "agent-skills", b.agentSkills),
	}
}

// A toolsView is what agents work with.
type toolsView struct {
	viewer
	Off     bool // nothing is told of it
	Tools   []toolRow
	Servers []serverRow
	Skills  []web.SkillView
	Rooms   []roomRow
}

// A toolRow is one tool.
type toolRow struct {
	web.ToolView
}

// Limit is how long a call may take.
func (t toolRow) Limit() string { return took(int64(t.Timeout / time.Millisecond)) }

// A serverRow is one server of tools, with those that are off in order.
type serverRow struct {
	web.ServerView
	Waiting []offTool
}

// An offTool is a tool that waits for somebody to accept it.
type offTool struct{ Name, Why string }

// A roomRow is one workspace for a viewer.
type roomRow struct {
	viewer
	web.WorkspaceView
	Anchor string // names it in the page
}

func (b *toolPages) shown(r *http.Request) (any, error) {
	v := toolsView{viewer: viewerOf(r), Off: b.tooling.Off()}
	if v.Off {
		return v, nil
	}
	ctx := r.Context()
	own, err := b.tooling.Tools.Tools(ctx, "")
	if err != nil {
		return nil, err
	}
	v.Tools = toolRows(own)
	servers, err := b.tooling.Servers.Servers(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		row := serverRow{ServerView: s}
		for _, name := range slices.Sorted(maps.Keys(s.Off)) {
			row.Waiting = append(row.Waiting, offTool{name, s.Off[name]})
		}
		v.Servers = append(v.Servers, row)
	}
	if v.Skills, err = b.tooling.Skills.Skills(ctx); err != nil {
		return nil, err
	}
	v.Rooms, err = b.rooms(r, "")
	return v, err
}

func toolRows(all []web.ToolView) []toolRow {
	rows := make([]toolRow, len(all))
	for i, t := range all {
		rows[i] = toolRow{t}
	}
	return rows
}

// rooms are the workspaces of an agent, or of all.
func (b *toolPages) rooms(r *http.Request, agent claybot.AgentID) ([]roomRow, error) {
	all, err := b.tooling.Workspaces.Workspaces(r.Context())
	if err != nil {
		return nil, err
	}
	var rows []roomRow
	for _, w := range all {
		if agent == "" || w.Agent == agent {
			rows = append(rows, roomRow{viewerOf(r), w, domID(w.Key)})
		}
	}
	return rows, nil
}

// A benchView is what one agent works with.
type benchView struct {
	viewer
	ID    claybot.AgentID
	Off   bool
	Tools []toolRow
	Rooms []roomRow
	Notes []noteRow
	More  int // notes that are not listed
	// Owner is the person whose notes the agent shares with others of the same
	// person, empty for nobody.
	Owner string
}

// Scope is that of the agent's own notes.
func (v benchView) Scope() string { return agentScope(v.ID) }

// OwnerScope is that of the notes of its person.
func (v benchView) OwnerScope() string { return ownerScope(v.Owner) }

// benchNotes is how many notes the page of an agent lists.
const benchNotes = 20

func (b *toolPages) agentBench(r *http.Request) (any, error) {
	e, err := b.agents.Agent(r.Context(), agentOf(r))
	if err != nil {
		return nil, err
	}
	return b.readBench(r, e)
}

func (b *toolPages) readBench(r *http.Request, e storage.IndexEntry) (benchView, error) {
	v := benchView{viewer: viewerOf(r), ID: e.ID, Off: b.tooling.Off(), Owner: e.Descriptor.OwnerID()}
	if v.Off {
		return v, nil
	}
	own, err := b.tooling.Tools.Tools(r.Context(), e.ID)
	if ignoreGone(err) != nil {
		return v, err
	}
	v.Tools = toolRows(own)
	if v.Rooms, err = b.rooms(r, e.ID); err != nil {
		return v, err
	}
	notes, err := b.tooling.Notes.Notes(r.Context(), v.Scope())
	if ignoreGone(err) != nil {
		return v, err
	}
	slices.SortStableFunc(notes, func(a, b storage.Memory) int { return cmp.Compare(b.At, a.At) })
	notes, v.More = cut(notes, benchNotes)
	v.Notes = noteRows(v.Scope(), notes)
	return v, nil
}

// agentSkills are the skills that an agent may use.
func (b *toolPages) agentSkills(r *http.Request) (any, error) {
	e, err := b.agents.Agent(r.Context(), agentOf(r))
	if err != nil {
		return nil, err
	}
	if b.tooling.Off() {
		return nil, storage.ErrNotFound
	}
	all, err := b.tooling.Skills.Skills(r.Context())
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s web.SkillView) bool { return s.State != "allowed" })
	names, err := b.tooling.Skills.AgentSkills(r.Context(), e.ID)
	if err != nil {
		return nil, err
	}
	if names != nil {
		all = slices.DeleteFunc(all, func(s web.SkillView) bool { return !slices.Contains(names, s.Name) })
	}
	return all, nil
}

// guarded is fn while there is tooling, and a refusal otherwise.
func guarded[T any](t web.Tooling, fn func(*http.Request) (T, error)) func(*http.Request) (T, error) {
	if !t.Off() {
		return fn
	}
	return func(*http.Request) (T, error) {
		return *new(T), refused(http.StatusNotFound, "This daemon shows no tools.", "")
	}
}

// allowSkill lets agents use a skill exactly as the page showed it.
func (b *toolPages) allowSkill(r *http.Request) (string, error) {
	hash := r.Form.Get("hash")
	if hash == "" {
		return "", refused(http.StatusBadRequest, "The form does not say which content you saw.", "Load the page again.")
	}
	return "Allowed, exactly as it is now. A change turns it off.", b.tooling.Skills.AllowSkill(r.Context(), r.PathValue("name"), hash, web.User(r))
}

func (b *toolPages) forbidSkill(r *http.Request) (string, error) {
	return "No agent may use it any more.", b.tooling.Skills.ForbidSkill(r.Context(), r.PathValue("name"), web.User(r))
}

// allowServer accepts one tool of a server, or with none named all that wait.
func (b *toolPages) allowServer(r *http.Request) (string, error) {
	tool := r.Form.Get("tool")
	if tool == "" && r.Form.Get("all") == "" {
		return "", refused(http.StatusBadRequest, "The form does not say which tool.", "Load the page again.")
	}
	hash := r.Form.Get("hash")
	if hash == "" {
		return "", refused(http.StatusBadRequest, "The form does not say what was shown.", "Load the page again.")
	}
	return "Accepted. Agents may use it now.", b.tooling.Servers.AllowServer(r.Context(), r.PathValue("name"), tool, hash, web.User(r))
}

func (b *toolPages) removeWorkspace(r *http.Request) (string, error) {
	key, data := r.Form.Get("key"), r.Form.Get("data")
	if key == "" || data != "" && data != "true" {
		return "", refused(http.StatusBadRequest, "The form does not say which workspace.", "Load the page again.")
	}
	err := b.tooling.Workspaces.RemoveWorkspace(r.Context(), key, data == "true")
	if errors.Is(err, storage.ErrNotFound) {
		return "", &web.Problem{Status: http.StatusNotFound, Code: "not_found", Message: "There is no such workspace any more.", Fix: "It may have been removed in the meantime."}
	}
	if err != nil {
		return "", err
	}
	words := "The workspace is gone; its files are kept for the next one."
	if data == "true" {
		words = "The workspace and its files are gone."
	}
	return words, nil
}
