package api

import (
	"net/http"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var (
	noWorkspace = hint{"There is no such workspace.", "GET /workspaces lists them; escape the slashes of a key as %2F."}
	noServer    = hint{"There is no such server or tool.", "GET /servers lists the servers."}
	noSkill     = hint{"There is no such skill.", "GET /skills lists them."}
	noNote      = hint{"There is no such note.", "GET /notes lists those of a scope."}
)

var (
	scopeParam = param{name: "scope", about: "agent/<id>, owner/<owner> or global."}
	pathParam  = param{name: "path", about: "Of the note, such as people/birthdays.md."}
	dataParam  = param{name: "data", about: "true removes its files as well.", values: []string{"true", "false"}}
)

// tooling serves what agents work with: tools, workspaces, MCP servers, skills and notes.
type tooling struct{ web.Tooling }

func (t tooling) operations() []operation {
	unknown := []int{http.StatusNotFound}
	all := operation{tag: "tools", fails: []int{http.StatusNotFound, http.StatusConflict}}.like(
		returns(http.StatusOK, operation{
			id: "listTools", method: http.MethodGet, path: "/tools", scope: web.Read, summary: "The tools of an agent, or of the default profile.",
			params: []param{{name: "agent", about: "The id of an agent."}}, fails: unknown, missing: noAgent,
		}, func(r *http.Request) (web.ToolList, error) {
			all, err := t.Tools.Tools(r.Context(), claybot.AgentID(r.URL.Query().Get("agent")))
			return web.ToolList{Tools: orEmpty(all)}, err
		}),
		returns(http.StatusOK, operation{
			id: "listWorkspaces", method: http.MethodGet, path: "/workspaces", scope: web.Read, summary: "The workspaces that there are.", fails: unknown, missing: noWorkspace,
		}, func(r *http.Request) (web.WorkspaceList, error) {
			all, err := t.Workspaces.Workspaces(r.Context())
			return web.WorkspaceList{Workspaces: orEmpty(all)}, err
		}),
		does(operation{
			id: "removeWorkspace", method: http.MethodDelete, path: "/workspaces/{key}", scope: web.Admin, summary: "Take a workspace away.",
			params: []param{dataParam}, missing: noWorkspace,
		}, func(r *http.Request) error {
			return t.Workspaces.RemoveWorkspace(r.Context(), r.PathValue("key"), r.URL.Query().Get("data") == "true")
		}),
		returns(http.StatusOK, operation{
			id: "listServers", method: http.MethodGet, path: "/servers", scope: web.Read, summary: "List MCP servers and their status.", fails: unknown, missing: noServer,
		}, func(r *http.Request) (web.ServerList, error) {
			all, err := t.Servers.Servers(r.Context())
			return web.ServerList{Servers: orEmpty(all)}, err
		}),
		doesWith(operation{
			id: "allowServer", method: http.MethodPost, path: "/servers/{server}/allow", scope: web.Admin,
			summary: "Accept what has changed of a server's tools.", missing: noServer,
		}, func(r *http.Request, in web.ServerAllow) error {
			if in.Hash == "" {
				return bad("Say what you allow.", "Give the offHash that GET /servers shows.")
			}
			return t.Servers.AllowServer(r.Context(), r.PathValue("server"), in.Tool, in.Hash, web.User(r))
		}),
		returns(http.StatusOK, operation{
			id: "listSkills", method: http.MethodGet, path: "/skills", scope: web.Read, summary: "The skills, with what differs from what was allowed.", fails: unknown, missing: noSkill,
		}, func(r *http.Request) (web.SkillList, error) {
			all, err := t.Skills.Skills(r.Context())
			return web.SkillList{Skills: orEmpty(all)}, err
		}),
		doesWith(operation{
			id: "allowSkill", method: http.MethodPost, path: "/skills/{skill}/allow", scope: web.Admin,
			summary: "Let agents use a skill as it is now.", missing: noSkill,
		}, func(r *http.Request, in web.SkillAllow) error {
			if in.Hash == "" {
				return bad("Say which content you allow.", "Give the hash that GET /skills shows.")
			}
			return t.Skills.AllowSkill(r.Context(), r.PathValue("skill"), in.Hash, web.User(r))
		}),
		does(operation{
			id: "forbidSkill", method: http.MethodPost, path: "/skills/{skill}/forbid", scope: web.Operate,
			summary: "Take that back.", fails: unknown, missing: noSkill,
		}, func(r *http.Request) error {
			return t.Skills.ForbidSkill(r.Context(), r.PathValue("skill"), web.User(r))
		}),
	)
	return whereOn(!t.Off(), &web.Problem{Status: http.StatusNotFound, Code: "off", Message: "This daemon shows no tools."}, append(all, t.notes()...))
}

func (t tooling) notes() []operation {
	query := func(r *http.Request, name string) string { return r.URL.Query().Get(name) }
	return operation{tag: "notes", missing: noNote, fails: []int{http.StatusNotFound, http.StatusConflict}}.like(
		returns(http.StatusOK, operation{
			id: "listNotes", method: http.MethodGet, path: "/notes", scope: web.Read, summary: "The notes of a scope.", params: []param{scopeParam},
		}, func(r *http.Request) (web.NoteList, error) {
			all, err := t.Notes.Notes(r.Context(), query(r, "scope"))
			return web.NoteList{Notes: orEmpty(all)}, err
		}),
		returns(http.StatusOK, operation{
			id: "findNotes", method: http.MethodGet, path: "/notes/search", scope: web.Read, summary: "Find notes by words.",
			params: []param{scopeParam, {name: "q", about: "Words that the notes have, all of them."}},
		}, func(r *http.Request) (web.FoundNotes, error) {
			all, err := t.Notes.FindNotes(r.Context(), query(r, "scope"), query(r, "q"))
			return web.FoundNotes{Notes: orEmpty(all)}, err
		}),
		returns(http.StatusOK, operation{
			id: "getNote", method: http.MethodGet, path: "/notes/note", scope: web.Read, summary: "One note, with its text.", params: []param{scopeParam, pathParam},
		}, func(r *http.Request) (storage.Memory, error) {
			return t.Notes.Note(r.Context(), query(r, "scope"), query(r, "path"))
		}),
		doesWith(operation{
			id: "saveNote", method: http.MethodPut, path: "/notes/note", scope: web.Operate, summary: "Write a note.", params: []param{scopeParam, pathParam},
		}, func(r *http.Request, in web.NoteText) error {
			return t.Notes.SaveNote(r.Context(), query(r, "scope"), query(r, "path"), in.Text, web.User(r))
		}),
		does(operation{
			id: "dropNote", method: http.MethodDelete, path: "/notes/note", scope: web.Operate, summary: "Delete a note; its versions stay.", params: []param{scopeParam, pathParam},
		}, func(r *http.Request) error {
			return t.Notes.DropNote(r.Context(), query(r, "scope"), query(r, "path"), web.User(r))
		}),
		returns(http.StatusOK, operation{
			id: "noteVersions", method: http.MethodGet, path: "/notes/versions", scope: web.Read, summary: "What became of a note, or of all notes of a scope.",
			params: []param{scopeParam, pathParam},
		}, func(r *http.Request) (web.NoteVersions, error) {
			all, err := t.NoteHistory.NoteVersions(r.Context(), query(r, "scope"), query(r, "path"))
			return web.NoteVersions{Versions: orEmpty(all)}, err
		}),
		doesWith(operation{
			id: "revertNote", method: http.MethodPost, path: "/notes/revert", scope: web.Operate, summary: "Make a note what it was in a version.",
		}, func(r *http.Request, in web.NoteRevert) error {
			return t.NoteHistory.RevertNote(r.Context(), in.Scope, in.Version, web.User(r))
		}),
	)
}
