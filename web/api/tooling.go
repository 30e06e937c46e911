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
		returns(http.StatusOK, op("listTools", web.Read, "GET /tools", "The tools of an agent, or of the default profile.").
			query(param{name: "agent", about: "The id of an agent."}).failing(unknown...).unknown(noAgent), func(r *http.Request) (web.ToolList, error) {
			all, err := t.Tools.Tools(r.Context(), claybot.AgentID(r.URL.Query().Get("agent")))
			return web.ToolList{Tools: orEmpty(all)}, err
		}),
		returns(http.StatusOK, op("listWorkspaces", web.Read, "GET /workspaces", "The workspaces that there are.").failing(unknown...).unknown(noWorkspace), func(r *http.Request) (web.WorkspaceList, error) {
			all, err := t.Workspaces.Workspaces(r.Context())
			return web.WorkspaceList{Workspaces: orEmpty(all)}, err
		}),
		does(op("removeWorkspace", web.Admin, "DELETE /workspaces/{key}", "Take a workspace away.").query(dataParam).unknown(noWorkspace), func(r *http.Request) error {
			return t.Workspaces.RemoveWorkspace(r.Context(), r.PathValue("key"), r.URL.Query().Get("data") == "true")
		}),
		returns(http.StatusOK, op("listServers", web.Read, "GET /servers", "List MCP servers and their status.").failing(unknown...).unknown(noServer), func(r *http.Request) (web.ServerList, error) {
			all, err := t.Servers.Servers(r.Context())
			return web.ServerList{Servers: orEmpty(all)}, err
		}),
		doesWith(op("allowServer", web.Admin, "POST /servers/{server}/allow", "Accept what has changed of a server's tools.").unknown(noServer), func(r *http.Request, in web.ServerAllow) error {
			if in.Hash == "" {
				return bad("Say what you allow.", "Give the offHash that GET /servers shows.")
			}
			return t.Servers.AllowServer(r.Context(), r.PathValue("server"), in.Tool, in.Hash, web.User(r))
		}),
		returns(http.StatusOK, op("listSkills", web.Read, "GET /skills", "The skills, with what differs from what was allowed.").failing(unknown...).
			unknown(noSkill), func(r *http.Request) (web.SkillList, error) {
			all, err := t.Skills.Skills(r.Context())
			return web.SkillList{Skills: orEmpty(all)}, err
		}),
		doesWith(op("allowSkill", web.Admin, "POST /skills/{skill}/allow", "Let agents use a skill as it is now.").unknown(noSkill), func(r *http.Request, in web.SkillAllow) error {
			if in.Hash == "" {
				return bad("Say which content you allow.", "Give the hash that GET /skills shows.")
			}
			return t.Skills.AllowSkill(r.Context(), r.PathValue("skill"), in.Hash, web.User(r))
		}),
		does(op("forbidSkill", web.Operate, "POST /skills/{skill}/forbid", "Take that back.").failing(unknown...).unknown(noSkill), func(r *http.Request) error {
			return t.Skills.ForbidSkill(r.Context(), r.PathValue("skill"), web.User(r))
		}),
	)
	return whereOn(!t.Off(), &web.Problem{Status: http.StatusNotFound, Code: "off", Message: "This daemon shows no tools."}, append(all, t.notes()...))
}

func (t tooling) notes() []operation {
	query := func(r *http.Request, name string) string { return r.URL.Query().Get(name) }
	return operation{tag: "notes", missing: noNote, fails: []int{http.StatusNotFound, http.StatusConflict}}.like(
		returns(http.StatusOK, op("listNotes", web.Read, "GET /notes", "The notes of a scope.").query(scopeParam), func(r *http.Request) (web.NoteList, error) {
			all, err := t.Notes.Notes(r.Context(), query(r, "scope"))
			return web.NoteList{Notes: orEmpty(all)}, err
		}),
		returns(http.StatusOK, op("findNotes", web.Read, "GET /notes/search", "Find notes by words.").
			query(scopeParam, param{name: "q", about: "Words that the notes have, all of them."}), func(r *http.Request) (web.FoundNotes, error) {
			all, err := t.Notes.FindNotes(r.Context(), query(r, "scope"), query(r, "q"))
			return web.FoundNotes{Notes: orEmpty(all)}, err
		}),
		returns(http.StatusOK, op("getNote", web.Read, "GET /notes/note", "One note, with its text.").query(scopeParam, pathParam), func(r *http.Request) (storage.Memory, error) {
			return t.Notes.Note(r.Context(), query(r, "scope"), query(r, "path"))
		}),
		doesWith(op("saveNote", web.Operate, "PUT /notes/note", "Write a note.").query(scopeParam, pathParam), func(r *http.Request, in web.NoteText) error {
			return t.Notes.SaveNote(r.Context(), query(r, "scope"), query(r, "path"), in.Text, web.User(r))
		}),
		does(op("dropNote", web.Operate, "DELETE /notes/note", "Delete a note; its versions stay.").query(scopeParam, pathParam), func(r *http.Request) error {
			return t.Notes.DropNote(r.Context(), query(r, "scope"), query(r, "path"), web.User(r))
		}),
		returns(http.StatusOK, op("noteVersions", web.Read, "GET /notes/versions", "What became of a note, or of all notes of a scope.").
			query(scopeParam, pathParam), func(r *http.Request) (web.NoteVersions, error) {
			all, err := t.NoteHistory.NoteVersions(r.Context(), query(r, "scope"), query(r, "path"))
			return web.NoteVersions{Versions: orEmpty(all)}, err
		}),
		doesWith(op("revertNote", web.Operate, "POST /notes/revert", "Make a note what it was in a version."), func(r *http.Request, in web.NoteRevert) error {
			return t.NoteHistory.RevertNote(r.Context(), in.Scope, in.Version, web.User(r))
		}),
	)
}
