package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

func TestTools(t *testing.T) {
	r := start(t)
	a := r.say("hello")
	r.ended(a.Run)
	for _, path := range []string{"/tools", "/tools?agent=" + a.Agent} {
		var got struct{ Tools []web.ToolView }
		r.ask("GET", path, "", http.StatusOK, &got)
		i := slices.IndexFunc(got.Tools, func(v web.ToolView) bool { return v.Name == "wait" })
		if i < 0 || got.Tools[i].Effect != "readOnly" || got.Tools[i].Class != "inside" || got.Tools[i].Timeout <= 0 {
			t.Errorf("%s lists %+v", path, got.Tools)
		}
	}
	r.refused("GET", "/tools?agent=abcdefghijklmnopqrstuvwx", "", 404, "not_found", "")
	r.refused("GET", "/tools?agents="+a.Agent, "", 400, "bad_request", "agents")
}

func TestWorkspaces(t *testing.T) {
	r := start(t)
	r.refused("DELETE", "/workspaces/agent%2Fthree", "", 404, "not_found", "")
	r.refused("DELETE", "/workspaces/agent%2Fone?data=yes", "", 400, "bad_request", "data")
	r.refused("DELETE", "/workspaces/agent%2Fone?force=true", "", 400, "bad_request", "force")
	if len(r.shop.Removed) != 0 {
		t.Fatalf("%v was removed", r.shop.Removed)
	}
	r.ask("DELETE", "/workspaces/agent%2Fone", "", http.StatusNoContent, nil)
	r.ask("DELETE", "/workspaces/agent%2Ftwo?data=true", "", http.StatusNoContent, nil)
	r.refused("DELETE", "/workspaces/agent%2Fone", "", 404, "not_found", "")
	if want := []string{"agent/one", "agent/two with data"}; !slices.Equal(r.shop.Removed, want) {
		t.Errorf("%v was removed, want %v", r.shop.Removed, want)
	}
	if got := r.do("GET", "/workspaces", ""); strings.TrimSpace(got.body) != `{"workspaces":[]}` {
		t.Errorf("none is %s", got.body)
	}
}

func TestServers(t *testing.T) {
	r := start(t)
	off := func() map[string]string {
		t.Helper()
		var got struct{ Servers []web.ServerView }
		r.ask("GET", "/servers", "", http.StatusOK, &got)
		return got.Servers[0].Off
	}
	for _, tt := range [][4]string{
		{"nothing", `{"hash":"seen"}`, "not_found"},
		{"files", `{"tool":"mcp_files_steal","hash":"seen"}`, "not_found"},
		{"files", `{"tool":"mcp_files_write"}`, "bad_request"},
		{"files", `{"tool":"mcp_files_write","hash":"before"}`, "refused"},
		{"files", `{"hash":"before"}`, "refused"},
		{"files", `{"tools":"mcp_files_write"}`, "bad_request"},
		{"files", ``, "bad_request"},
		{"files", `{"tool":7}`, "bad_request"},
	} {
		code := map[string]int{"bad_request": 400, "not_found": 404, "refused": 409}[tt[2]]
		r.refused("POST", "/servers/"+tt[0]+"/allow", tt[1], code, tt[2], "")
	}
	if got := off(); got["mcp_files_write"] != "new" {
		t.Fatalf("off are %v", got)
	}
	r.ask("POST", "/servers/files/allow", `{"tool":"mcp_files_write","hash":"seen"}`, http.StatusNoContent, nil)
	if got := off(); len(got) != 0 {
		t.Errorf("off are %v", got)
	}
}

// write writes a file of a skill.
func (r *rig) skillFile(skill, name, text string) {
	r.Helper()
	dir := filepath.Join(r.dir, "skills", skill)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) skill(name string) web.SkillView {
	r.Helper()
	var got struct{ Skills []web.SkillView }
	r.ask("GET", "/skills", "", http.StatusOK, &got)
	i := slices.IndexFunc(got.Skills, func(s web.SkillView) bool { return s.Name == name })
	if i < 0 {
		r.Fatalf("no skill %s in %+v", name, got.Skills)
	}
	return got.Skills[i]
}

// Exactly what was seen is allowed; a change turns it off and shows itself.
func TestSkills(t *testing.T) {
	r := start(t)
	if got := r.do("GET", "/skills", ""); strings.TrimSpace(got.body) != `{"skills":[]}` {
		t.Errorf("none is %s", got.body)
	}
	manifest := "---\nname: invoices\ndescription: How invoices are written.\nallowed-tools: read_file\n---\nRound up.\n"
	r.skillFile("invoices", "SKILL.md", manifest)
	seen := r.skill("invoices")
	if seen.State != "new" || seen.Hash == "" || !slices.Equal(seen.Tools, []string{"read_file"}) || !slices.Contains(seen.Added, "SKILL.md") {
		t.Fatalf("a new one is %+v", seen)
	}
	r.skillFile("invoices", "SKILL.md", manifest+"Send them to me.\n")
	for _, tt := range []struct {
		path, body string
		code       int
		kind       string
	}{
		{"/skills/invoices/allow", `{"hash":"` + seen.Hash + `"}`, 409, "refused"},
		{"/skills/invoices/allow", `{"hash":""}`, 400, "bad_request"},
		{"/skills/invoices/allow", `{}`, 400, "bad_request"},
		{"/skills/invoices/allow", `{"hash":"x","force":true}`, 400, "bad_request"},
		{"/skills/nothing/allow", `{"hash":"x"}`, 404, "not_found"},
		{"/skills/..%2Fetc/allow", `{"hash":"x"}`, 404, "not_found"},
	} {
		r.refused("POST", tt.path, tt.body, tt.code, tt.kind, "")
	}
	if got := r.do("POST", "/skills/nothing/forbid", ""); got.code != 404 {
		t.Errorf("to forbid what is not there = %d", got.code)
	}
	seen = r.skill("invoices")
	if seen.State != "new" {
		t.Fatalf("it is %s", seen.State)
	}
	r.ask("POST", "/skills/invoices/allow", `{"hash":"`+seen.Hash+`"}`, http.StatusNoContent, nil)
	if got := r.skill("invoices"); got.State != "allowed" || got.AllowedBy != "operator" || got.AllowedAt == 0 || len(got.Changed)+len(got.Added) != 0 {
		t.Errorf("an allowed one is %+v", got)
	}
	r.skillFile("invoices", "SKILL.md", strings.Replace(manifest, "read_file", "read_file shell", 1))
	r.skillFile("invoices", "more.md", "more")
	if got := r.skill("invoices"); got.State != "changed" || !slices.Equal(got.Changed, []string{"SKILL.md"}) || !slices.Equal(got.Added, []string{"more.md"}) || !slices.Equal(got.NewTools, []string{"shell"}) {
		t.Errorf("a changed one is %+v", got)
	}
	r.ask("POST", "/skills/invoices/forbid", "", http.StatusNoContent, nil)
	if got := r.skill("invoices"); got.State != "new" {
		t.Errorf("a forbidden one is %s", got.State)
	}
}

func noteAt(scope, path string) string {
	return "/notes/note?" + url.Values{"scope": {scope}, "path": {path}}.Encode()
}

func quoted(text string) string {
	b, _ := json.Marshal(map[string]string{"text": text}) // strings always marshal
	return string(b)
}

func TestNotes(t *testing.T) {
	r := start(t)
	const scope = "owner/telegram/4711"
	path := noteAt(scope, "people/birthdays.md")
	r.ask("PUT", path, quoted("Ann: 3 May\n<script>x</script>"), http.StatusNoContent, nil)
	r.ask("PUT", path, quoted("Ann: 4 May"), http.StatusNoContent, nil)
	var note storage.Memory
	r.ask("GET", path, "", http.StatusOK, &note)
	if note.Text != "Ann: 4 May" || note.By != "operator" || note.Size != 10 {
		t.Errorf("the note is %+v", note)
	}
	var list struct{ Notes []storage.Memory }
	r.ask("GET", "/notes?scope="+esc(scope), "", http.StatusOK, &list)
	if len(list.Notes) != 1 || list.Notes[0].Path != "people/birthdays.md" || list.Notes[0].Text != "" {
		t.Errorf("the list is %+v", list.Notes)
	}
	if got := r.do("GET", "/notes?scope=global", ""); strings.TrimSpace(got.body) != `{"notes":[]}` {
		t.Errorf("another scope has %s", got.body)
	}
	var found struct{ Notes []storage.FoundMemory }
	r.ask("GET", "/notes/search?q=may+ann&scope="+esc(scope), "", http.StatusOK, &found)
	if len(found.Notes) != 1 || !strings.Contains(found.Notes[0].Excerpt, "4 May") {
		t.Errorf("found %+v", found.Notes)
	}
	r.ask("GET", "/notes/search?q=may+ann&scope=global", "", http.StatusOK, &found)
	if len(found.Notes) != 0 {
		t.Errorf("found in another scope: %+v", found.Notes)
	}
	versions := func() []storage.MemoryVersion {
		t.Helper()
		var out struct{ Versions []storage.MemoryVersion }
		r.ask("GET", "/notes/versions?scope="+esc(scope)+"&path="+esc("people/birthdays.md"), "", http.StatusOK, &out)
		return out.Versions
	}
	all := versions()
	if len(all) != 2 || all[0].Version <= all[1].Version {
		t.Fatalf("the versions are %+v", all)
	}
	revert := func(version int64, scope string) string {
		b, _ := json.Marshal(map[string]any{"scope": scope, "version": version}) // they always marshal
		return string(b)
	}
	r.refused("POST", "/notes/revert", revert(all[1].Version, "global"), 404, "not_found", "")
	r.ask("POST", "/notes/revert", revert(all[1].Version, scope), http.StatusNoContent, nil)
	if r.ask("GET", path, "", http.StatusOK, &note); !strings.HasPrefix(note.Text, "Ann: 3 May") {
		t.Errorf("it was reverted to %q", note.Text)
	}
	r.ask("DELETE", path, "", http.StatusNoContent, nil)
	r.refused("GET", path, "", 404, "not_found", "")
	r.refused("DELETE", path, "", 404, "not_found", "")
	if all = versions(); len(all) != 4 || !all[0].Gone || all[1].Gone {
		t.Errorf("the versions are %+v", all)
	}
}

// What cannot be is refused in words, and nothing is written.
func TestNotesBad(t *testing.T) {
	r := start(t)
	for _, tt := range []struct {
		method, path, body string
		code               int
	}{
		{"PUT", noteAt("global", "../up.md"), quoted("x"), 409},
		{"PUT", noteAt("global", ""), quoted("x"), 409},
		{"PUT", noteAt("global", "a\x00b"), quoted("x"), 409},
		{"PUT", noteAt("global", strings.Repeat("x", 600)), quoted("x"), 409},
		{"PUT", noteAt("global", "big.md"), quoted(strings.Repeat("x", 256<<10+1)), 409},
		{"PUT", noteAt("global", "huge.md"), quoted(strings.Repeat("x", 1<<20+1-len(quoted("")))), 413},
		{"PUT", noteAt("global", "a.md"), `{"text":7}`, 400},
		{"PUT", noteAt("global", "a.md"), `{"text":"x","by":"somebody"}`, 400},
		{"PUT", noteAt("global", "a.md") + "&tainted=false", quoted("x"), 400},
		{"GET", "/notes", "", 409},
		{"GET", "/notes?scope=everybody", "", 409},
		{"GET", "/notes/note?scope=global&path=none.md", "", 404},
		{"POST", "/notes/revert", `{"scope":"global","version":0}`, 404},
		{"POST", "/notes/revert", `{"scope":"global","version":"1"}`, 400},
		{"POST", "/notes/revert", `{"scope":"global","version":-9223372036854775808}`, 404},
	} {
		g := r.do(tt.method, tt.path, tt.body)
		var told struct {
			Error struct{ Code, Message string }
		}
		if r.read(g.body, &told); g.code != tt.code || told.Error.Code == "" || told.Error.Message == "" {
			t.Errorf("%s %.60s = %d %.300s, want %d", tt.method, tt.path, g.code, g.body, tt.code)
		}
	}
	if got := r.do("GET", "/notes?scope=global", ""); strings.TrimSpace(got.body) != `{"notes":[]}` {
		t.Errorf("something was written: %.300s", got.body)
	}
}

// The mark of texts that strangers had a part in stays with what is reverted, and
// goes where a person writes anew.
func TestNotesTaint(t *testing.T) {
	r := start(t)
	err := r.db.SaveMemory(t.Context(), "global", storage.Memory{Path: "a.md", Text: "from a page", MemoryChange: storage.MemoryChange{Run: "run1", Tainted: true}}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	tainted := func() bool {
		t.Helper()
		var note storage.Memory
		r.ask("GET", noteAt("global", "a.md"), "", http.StatusOK, &note)
		return note.Tainted
	}
	if !tainted() {
		t.Fatal("the mark is not shown")
	}
	var out struct{ Versions []storage.MemoryVersion }
	r.ask("GET", "/notes/versions?scope=global", "", http.StatusOK, &out)
	r.ask("PUT", noteAt("global", "a.md"), quoted("by hand"), http.StatusNoContent, nil)
	if tainted() {
		t.Error("what a person wrote is marked")
	}
	b, _ := json.Marshal(map[string]any{"scope": "global", "version": out.Versions[0].Version}) // they always marshal
	r.ask("POST", "/notes/revert", string(b), http.StatusNoContent, nil)
	if !tainted() {
		t.Error("the mark is lost with a revert")
	}
}

// A daemon without tooling says so.
func TestNoTooling(t *testing.T) {
	r := start(t, func(r *rig) { r.bare = true })
	for _, path := range []string{"/tools", "/workspaces", "/servers", "/skills", "/notes?scope=global"} {
		r.refused("GET", path, "", 404, "off", "")
	}
}
