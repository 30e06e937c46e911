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

// toolPages serves tools, MCP servers, skills and workspaces.
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

// A toolsView has tools, MCP servers, skills and workspaces.
type toolsView struct {
	viewer
	Off     bool // there is no tooling
	Tools   []toolRow
	Servers []serverRow
	Skills  []web.SkillView
	Rooms   []roomRow
}

// A toolRow is one tool.
type toolRow struct{ web.ToolView }

// Limit is how long a call may take.
func (t toolRow) Limit() string { return took(int64(t.Timeout / time.Millisecond)) }

// A serverRow is one MCP server, with its disabled tools by name.
type serverRow struct {
	web.ServerView
	Waiting []offTool
}

// An offTool is a tool whose changes need to be accepted.
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

// rooms are the workspaces of an agent, or all.
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

// A benchView has the tools, workspaces and notes of one agent.
type benchView struct {
	viewer
	ID    claybot.AgentID
	Off   bool
	Tools []toolRow
	Rooms []roomRow
	Notes []noteRow
	More  int // notes that are not listed
	// Owner is the person whose notes the agent shares with others; empty for none.
	Owner string
}

func (v benchView) Scope() string { return agentScope(v.ID) }

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

func (b *toolPages) agentSkills(r *http.Request) (any, error) {
	e, err := b.agents.Agent(r.Context(), agentOf(r))
	if err == nil && b.tooling.Off() {
		err = storage.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	all, err := b.tooling.Skills.Skills(r.Context())
	if err != nil {
		return nil, err
	}
	names, err := b.tooling.Skills.AgentSkills(r.Context(), e.ID)
	return slices.DeleteFunc(all, func(s web.SkillView) bool {
		return s.State != "allowed" || names != nil && !slices.Contains(names, s.Name)
	}), err
}

// guarded is fn while there is tooling, and a refusal otherwise.
func guarded[T any](t web.Tooling, fn func(*http.Request) (T, error)) func(*http.Request) (T, error) {
	if !t.Off() {
		return fn
	}
	return func(*http.Request) (T, error) {
		return *new(T), errNoTools
	}
}

func (b *toolPages) allowSkill(r *http.Request) (string, error) {
	hash := r.Form.Get("hash")
	if hash == "" {
		return "", errSkillHash
	}
	return doneSkill, b.tooling.Skills.AllowSkill(r.Context(), r.PathValue("name"), hash, web.User(r))
}

func (b *toolPages) forbidSkill(r *http.Request) (string, error) {
	return doneForbidden, b.tooling.Skills.ForbidSkill(r.Context(), r.PathValue("name"), web.User(r))
}

// allowServer accepts the changes of one tool of a server, or of all tools.
func (b *toolPages) allowServer(r *http.Request) (string, error) {
	tool, hash := r.Form.Get("tool"), r.Form.Get("hash")
	switch {
	case tool == "" && r.Form.Get("all") == "":
		return "", errServerTool
	case hash == "":
		return "", errServerHash
	}
	return doneAccepted, b.tooling.Servers.AllowServer(r.Context(), r.PathValue("name"), tool, hash, web.User(r))
}

func (b *toolPages) removeWorkspace(r *http.Request) (string, error) {
	key, data := r.Form.Get("key"), r.Form.Get("data")
	if key == "" || data != "" && data != "true" {
		return "", errWorkspace
	}
	err := b.tooling.Workspaces.RemoveWorkspace(r.Context(), key, data == "true")
	if errors.Is(err, storage.ErrNotFound) {
		err = errNoRoom
	}
	if data == "true" {
		return doneWorkspaceAll, err
	}
	return doneWorkspace, err
}
