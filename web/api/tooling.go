package api

import (
	"net/http"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var (
	noWorkspace = hint{"No such workspace.", "GET /workspaces lists all workspaces. In a path, escape the slashes of a key as %2F."}
	noServer    = hint{"No such server or tool.", "GET /servers lists all servers."}
	noSkill     = hint{"No such skill.", "GET /skills lists all skills."}
	noNote      = hint{"No such note.", "GET /notes lists the notes of a scope."}
)

var (
	scopeParam = param{name: "scope", about: "agent/<id>, owner/<owner> or global."}
	pathParam  = param{name: "path", about: "Path of the note, for example people/birthdays.md."}
	dataParam  = param{name: "data", about: "true also deletes its files.", values: []string{"true", "false"}}
)

// tooling serves tools, workspaces, MCP servers, skills and notes.
type tooling struct{ web.Tooling }

func (t tooling) operations() []operation {
	unknown := []int{http.StatusNotFound}
	all := operation{tag: "tools", fails: []int{http.StatusNotFound, http.StatusConflict}}.like(
		returns(http.StatusOK, op("listTools", web.Read, "GET /tools", "List the tools of an agent, or of the default profile.").
			query(param{name: "agent", about: "The id of an agent."}).failing(unknown...).unknown(noAgent), func(r *http.Request) (web.ToolList, error) {
			all, err := t.Tools.Tools(r.Context(), claybot.AgentID(r.URL.Query().Get("agent")))
			return web.ToolList{Tools: orEmpty(all)}, err
		}),
		returns(http.StatusOK, op("listWorkspaces", web.Read, "GET /workspaces", "List workspaces.").failing(unknown...).unknown(noWorkspace), func(r *http.Request) (web.WorkspaceList, error) {
			all, err := t.Workspaces.Workspaces(r.Context())
			return web.WorkspaceList{Workspaces: orEmpty(all)}, err
		}),
		does(op("removeWorkspace", web.Admin, "DELETE /workspaces/{key}", "Remove a workspace.").query(dataParam).unknown(noWorkspace), func(r *http.Request) error {
			return t.Workspaces.RemoveWorkspace(r.Context(), r.PathValue("key"), r.URL.Query().Get("data") == "true")
		}),
		returns(http.StatusOK, op("listServers", web.Read, "GET /servers", "List MCP servers and their status.").failing(unknown...).unknown(noServer), func(r *http.Request) (web.ServerList, error) {
			all, err := t.Servers.Servers(r.Context())
			return web.ServerList{Servers: orEmpty(all)}, err
		}),
		doesWith(op("allowServer", web.Admin, "POST /servers/{name}/allow", "Accept the changed tools of a server.").unknown(noServer), func(r *http.Request, in web.ServerAllow) error {
			if in.Hash == "" {
				return bad("The field hash is missing.", "Send the offHash from GET /servers.")
			}
			return t.Servers.AllowServer(r.Context(), r.PathValue("name"), in.Tool, in.Hash, web.User(r))
		}),
		returns(http.StatusOK, op("listSkills", web.Read, "GET /skills", "List skills, with their changes since they were allowed.").failing(unknown...).
			unknown(noSkill), func(r *http.Request) (web.SkillList, error) {
			all, err := t.Skills.Skills(r.Context())
			return web.SkillList{Skills: orEmpty(all)}, err
		}),
		doesWith(op("allowSkill", web.Admin, "POST /skills/{skill}/allow", "Allow agents to use the current version of a skill.").unknown(noSkill), func(r *http.Request, in web.SkillAllow) error {
			if in.Hash == "" {
				return bad("The field hash is missing.", "Send the hash from GET /skills.")
			}
			return t.Skills.AllowSkill(r.Context(), r.PathValue("skill"), in.Hash, web.User(r))
		}),
		does(op("forbidSkill", web.Operate, "POST /skills/{skill}/forbid", "Forbid agents to use a skill.").failing(unknown...).unknown(noSkill), func(r *http.Request) error {
			return t.Skills.ForbidSkill(r.Context(), r.PathValue("skill"), web.User(r))
		}),
	)
	return whereOn(!t.Off(), &web.Problem{Status: http.StatusNotFound, Code: "off", Message: "This daemon shows no tools."}, append(all, t.notes()...))
}

func (t tooling) notes() []operation {
	query := func(r *http.Request, name string) string { return r.URL.Query().Get(name) }
	return operation{tag: "notes", missing: noNote, fails: []int{http.StatusNotFound, http.StatusConflict}}.like(
		returns(http.StatusOK, op("listNotes", web.Read, "GET /notes", "List the notes of a scope.").query(scopeParam), func(r *http.Request) (web.NoteList, error) {
			all, err := t.Notes.Notes(r.Context(), query(r, "scope"))
			return web.NoteList{Notes: orEmpty(all)}, err
		}),
		returns(http.StatusOK, op("findNotes", web.Read, "GET /notes/search", "Search notes.").
			query(scopeParam, param{name: "q", about: "Words that a note must contain, all of them."}), func(r *http.Request) (web.FoundNotes, error) {
			all, err := t.Notes.FindNotes(r.Context(), query(r, "scope"), query(r, "q"))
			return web.FoundNotes{Notes: orEmpty(all)}, err
		}),
		returns(http.StatusOK, op("getNote", web.Read, "GET /notes/note", "Get a note with its text.").query(scopeParam, pathParam), func(r *http.Request) (storage.Memory, error) {
			return t.Notes.Note(r.Context(), query(r, "scope"), query(r, "path"))
		}),
		doesWith(op("saveNote", web.Operate, "PUT /notes/note", "Create or replace a note.").query(scopeParam, pathParam), func(r *http.Request, in web.NoteText) error {
			return t.Notes.SaveNote(r.Context(), query(r, "scope"), query(r, "path"), in.Text, web.User(r))
		}),
		does(op("dropNote", web.Operate, "DELETE /notes/note", "Delete a note; its versions stay.").query(scopeParam, pathParam), func(r *http.Request) error {
			return t.Notes.DropNote(r.Context(), query(r, "scope"), query(r, "path"), web.User(r))
		}),
		returns(http.StatusOK, op("noteVersions", web.Read, "GET /notes/versions", "List the versions of a note, or of all notes of a scope.").
			query(scopeParam, pathParam), func(r *http.Request) (web.NoteVersions, error) {
			all, err := t.NoteHistory.NoteVersions(r.Context(), query(r, "scope"), query(r, "path"))
			return web.NoteVersions{Versions: orEmpty(all)}, err
		}),
		doesWith(op("revertNote", web.Operate, "POST /notes/revert", "Restore an earlier version of a note."), func(r *http.Request, in web.NoteRevert) error {
			return t.NoteHistory.RevertNote(r.Context(), in.Scope, in.Version, web.User(r))
		}),
	)
}
