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

type (
	toolList struct {
		Tools []web.ToolView `json:"tools"`
	}
	workspaceList struct {
		Workspaces []web.WorkspaceView `json:"workspaces"`
	}
	serverList struct {
		Servers []web.ServerView `json:"servers"`
	}
	serverAllow struct {
		Tool string `json:"tool,omitempty" doc:"One tool; all of the server when left out."`
		Hash string `json:"hash" doc:"The offHash of the server as it was seen; with another one nothing is accepted."`
	}
	skillList struct {
		Skills []web.SkillView `json:"skills"`
	}
	skillAllow struct {
		Hash string `json:"hash" doc:"Of the skill as you have seen it; another one is refused."`
	}
	noteList struct {
		Notes []storage.Memory `json:"notes" doc:"Without their texts."`
	}
	foundNotes struct {
		Notes []storage.FoundMemory `json:"notes" doc:"The best first."`
	}
	noteText struct {
		Text string `json:"text" doc:"The whole note, in Markdown."`
	}
	noteVersions struct {
		Versions []storage.MemoryVersion `json:"versions" doc:"The newest first."`
	}
	noteRevert struct {
		Scope   string `json:"scope" doc:"agent/<id>, owner/<owner> or global."`
		Version int64  `json:"version"`
	}
)

func (a *api) workshopOperations() []operation {
	done := []answer{{status: http.StatusNoContent}}
	notFound := []int{http.StatusNotFound}
	refused := []int{http.StatusNotFound, http.StatusConflict}
	return append(a.noteOperations(), []operation{
		{
			id: "listTools", method: http.MethodGet, path: "/tools", tag: "tools", scope: web.Read, summary: "The tools of an agent, or of the default profile.",
			params: []param{{name: "agent", about: "The id of an agent."}}, answers: []answer{{status: http.StatusOK, value: toolList{}}},
			fails: notFound, missing: noAgent, serve: a.withShop(listTools),
		},
		{
			id: "listWorkspaces", method: http.MethodGet, path: "/workspaces", tag: "tools", scope: web.Read, summary: "The workspaces that there are.", fails: notFound, missing: noWorkspace,
			answers: []answer{{status: http.StatusOK, value: workspaceList{}}}, serve: a.withShop(listWorkspaces),
		},
		{
			id: "removeWorkspace", method: http.MethodDelete, path: "/workspaces/{key}", tag: "tools", scope: web.Admin, summary: "Take a workspace away.",
			params: []param{dataParam}, answers: done, fails: refused, missing: noWorkspace, serve: a.withShop(removeWorkspace),
		},
		{
			id: "listServers", method: http.MethodGet, path: "/servers", tag: "tools", scope: web.Read, summary: "The servers of tools, and how they are doing.", fails: notFound, missing: noServer,
			answers: []answer{{status: http.StatusOK, value: serverList{}}}, serve: a.withShop(listServers),
		},
		{
			id: "allowServer", method: http.MethodPost, path: "/servers/{server}/allow", tag: "tools", scope: web.Admin,
			summary: "Accept what has changed of a server's tools.", body: serverAllow{},
			answers: done, fails: refused, missing: noServer, serve: a.withShop(allowServer),
		},
		{
			id: "listSkills", method: http.MethodGet, path: "/skills", tag: "tools", scope: web.Read, summary: "The skills, with what differs from what was allowed.", fails: notFound, missing: noSkill,
			answers: []answer{{status: http.StatusOK, value: skillList{}}}, serve: a.withShop(listSkills),
		},
		{
			id: "allowSkill", method: http.MethodPost, path: "/skills/{skill}/allow", tag: "tools", scope: web.Admin,
			summary: "Let agents use a skill as it is now.", body: skillAllow{},
			answers: done, fails: refused, missing: noSkill, serve: a.withShop(allowSkill),
		},
		{
			id: "forbidSkill", method: http.MethodPost, path: "/skills/{skill}/forbid", tag: "tools", scope: web.Operate,
			summary: "Take that back.", answers: done, fails: notFound, missing: noSkill, serve: a.withShop(forbidSkill),
		},
	}...)
}

func (a *api) noteOperations() []operation {
	done := []answer{{status: http.StatusNoContent}}
	fails := []int{http.StatusNotFound, http.StatusConflict}
	note := func(o operation) operation {
		o.tag, o.missing, o.fails = "notes", noNote, fails
		return o
	}
	return []operation{
		note(operation{
			id: "listNotes", method: http.MethodGet, path: "/notes", scope: web.Read, summary: "The notes of a scope.",
			params: []param{scopeParam}, answers: []answer{{status: http.StatusOK, value: noteList{}}}, serve: a.withShop(listNotes),
		}),
		note(operation{
			id: "findNotes", method: http.MethodGet, path: "/notes/search", scope: web.Read, summary: "Find notes by words.",
			params:  []param{scopeParam, {name: "q", about: "Words that the notes have, all of them."}},
			answers: []answer{{status: http.StatusOK, value: foundNotes{}}}, serve: a.withShop(findNotes),
		}),
		note(operation{
			id: "getNote", method: http.MethodGet, path: "/notes/note", scope: web.Read, summary: "One note, with its text.",
			params: []param{scopeParam, pathParam}, answers: []answer{{status: http.StatusOK, value: storage.Memory{}}}, serve: a.withShop(getNote),
		}),
		note(operation{
			id: "saveNote", method: http.MethodPut, path: "/notes/note", scope: web.Operate, summary: "Write a note.", body: noteText{},
			params: []param{scopeParam, pathParam}, answers: done, serve: a.withShop(saveNote),
		}),
		note(operation{
			id: "dropNote", method: http.MethodDelete, path: "/notes/note", scope: web.Operate, summary: "Delete a note; its versions stay.",
			params: []param{scopeParam, pathParam}, answers: done, serve: a.withShop(dropNote),
		}),
		note(operation{
			id: "noteVersions", method: http.MethodGet, path: "/notes/versions", scope: web.Read, summary: "What became of a note, or of all notes of a scope.",
			params: []param{scopeParam, pathParam}, answers: []answer{{status: http.StatusOK, value: noteVersions{}}}, serve: a.withShop(listVersions),
		}),
		note(operation{
			id: "revertNote", method: http.MethodPost, path: "/notes/revert", scope: web.Operate, summary: "Make a note what it was in a version.", body: noteRevert{},
			answers: done, serve: a.withShop(revertNote),
		}),
	}
}

type shopHandler func(http.ResponseWriter, *http.Request, web.Workshop) error

// withShop serves fn where there is a workshop.
func (a *api) withShop(fn shopHandler) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if a.Shop == nil {
			return &problem{status: http.StatusNotFound, Code: "off", Message: "This daemon shows no tools."}
		}
		return fn(w, r, a.Shop)
	}
}

func listTools(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	all, err := shop.Tools(r.Context(), claybot.AgentID(r.URL.Query().Get("agent")))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, toolList{orEmpty(all)})
}

func listWorkspaces(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	all, err := shop.Workspaces(r.Context())
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, workspaceList{orEmpty(all)})
}

func removeWorkspace(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	if err := shop.RemoveWorkspace(r.Context(), r.PathValue("key"), r.URL.Query().Get("data") == "true"); err != nil {
		return err
	}
	return noContent(w)
}

func listServers(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	all, err := shop.Servers(r.Context())
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, serverList{orEmpty(all)})
}

func allowServer(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	var in serverAllow
	if err := readBody(r, &in); err != nil {
		return err
	}
	if in.Hash == "" {
		return bad("Say what you allow.", "Give the offHash that GET /servers shows.")
	}
	if err := shop.AllowServer(r.Context(), r.PathValue("server"), in.Tool, in.Hash, web.User(r)); err != nil {
		return err
	}
	return noContent(w)
}

func listSkills(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	all, err := shop.Skills(r.Context())
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, skillList{orEmpty(all)})
}

func allowSkill(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	var in skillAllow
	if err := readBody(r, &in); err != nil {
		return err
	}
	if in.Hash == "" {
		return bad("Say which content you allow.", "Give the hash that GET /skills shows.")
	}
	if err := shop.AllowSkill(r.Context(), r.PathValue("skill"), in.Hash, web.User(r)); err != nil {
		return err
	}
	return noContent(w)
}

func forbidSkill(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	if err := shop.ForbidSkill(r.Context(), r.PathValue("skill"), web.User(r)); err != nil {
		return err
	}
	return noContent(w)
}

func listNotes(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	all, err := shop.Notes(r.Context(), r.URL.Query().Get("scope"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, noteList{orEmpty(all)})
}

func findNotes(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	q := r.URL.Query()
	all, err := shop.FindNotes(r.Context(), q.Get("scope"), q.Get("q"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, foundNotes{orEmpty(all)})
}

func getNote(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	q := r.URL.Query()
	m, err := shop.Note(r.Context(), q.Get("scope"), q.Get("path"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, m)
}

func saveNote(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	var in noteText
	if err := readBody(r, &in); err != nil {
		return err
	}
	q := r.URL.Query()
	if err := shop.SaveNote(r.Context(), q.Get("scope"), q.Get("path"), in.Text, web.User(r)); err != nil {
		return err
	}
	return noContent(w)
}

func dropNote(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	q := r.URL.Query()
	if err := shop.DropNote(r.Context(), q.Get("scope"), q.Get("path"), web.User(r)); err != nil {
		return err
	}
	return noContent(w)
}

func listVersions(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	q := r.URL.Query()
	all, err := shop.NoteVersions(r.Context(), q.Get("scope"), q.Get("path"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, noteVersions{orEmpty(all)})
}

func revertNote(w http.ResponseWriter, r *http.Request, shop web.Workshop) error {
	var in noteRevert
	if err := readBody(r, &in); err != nil {
		return err
	}
	if err := shop.RevertNote(r.Context(), in.Scope, in.Version, web.User(r)); err != nil {
		return err
	}
	return noContent(w)
}
