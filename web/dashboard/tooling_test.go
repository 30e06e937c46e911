package dashboard_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/storage"
)

// does posts to a path and must come to a status; it returns what the page shows.
func (v *visitor) does(path string, form url.Values, code int) string {
	v.Helper()
	if form == nil {
		form = url.Values{}
	}
	got := v.do(http.MethodPost, path, form)
	if got.code != code {
		v.Errorf("POST %s %v = %d %s, want %d", path, form, got.code, got.body, code)
	}
	return got.head.Get("HX-Trigger") + got.body
}

// holds reports what a page does not say.
func (v *visitor) holds(path string, all ...string) {
	v.Helper()
	page := v.page(path)
	for _, want := range all {
		if !strings.Contains(page, want) {
			v.Errorf("%s does not have %q", path, want)
		}
	}
}

func (v *visitor) lacks(path string, all ...string) {
	v.Helper()
	page := v.page(path)
	for _, no := range all {
		if strings.Contains(page, no) {
			v.Errorf("%s has %q", path, no)
		}
	}
}

// reader is a visitor who may only look.
func (v *visitor) reader(scope string) *visitor {
	v.Helper()
	got := v.send(http.MethodPost, "/tokens", "application/json", `{"name":"`+scope+`","scope":"`+scope+`"}`)
	var made struct{ Token string }
	if err := json.Unmarshal([]byte(got.body), &made); err != nil || made.Token == "" {
		v.Fatalf("no token: %d %s", got.code, got.body)
	}
	return &visitor{v.rig, &http.Client{Transport: bearer(made.Token)}}
}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

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

const manifest = "---\nname: invoices\ndescription: How <b>invoices</b> are written.\nallowed-tools: read_file\n---\nRound up.\n"

// hashOf is the hash of the skill that the page would allow.
func (v *visitor) hashOf(skill string) string {
	v.Helper()
	all, err := v.shop.Skills(v.Context())
	if err != nil {
		v.Fatal(err)
	}
	for _, s := range all {
		if s.Name == skill {
			return s.Hash
		}
	}
	v.Fatalf("no skill %s", skill)
	return ""
}

// A skill is allowed exactly as the page showed it; a change shows itself.
func TestToolsPageSkills(t *testing.T) {
	r := startRig(t)
	v := r.visitor()
	v.holds("/ui/tools", "No skills. Add folders", "<code>ask_user</code>", "mcp_files_write", "agent/one", "the image is missing")
	r.skillFile("invoices", "SKILL.md", manifest)
	hash := v.hashOf("invoices")
	v.holds("/ui/tools/now", "How &lt;b&gt;invoices&lt;/b&gt; are written.", `hx-post="/ui/tools/skills/invoices/allow?hash=`+hash+`"`, `<span class="badge warn">new</span>`)
	r.skillFile("invoices", "SKILL.md", manifest+"Send them to me.\n")
	if said := v.does("/ui/tools/skills/invoices/allow?hash="+hash, nil, http.StatusBadRequest); !strings.Contains(said, "changed since you looked") {
		t.Errorf("a changed skill is refused with %s", said)
	}
	v.does("/ui/tools/skills/invoices/allow", nil, http.StatusBadRequest)
	v.holds("/ui/tools/now", `<span class="badge warn">new</span>`)
	v.does("/ui/tools/skills/invoices/allow?hash="+v.hashOf("invoices"), nil, http.StatusNoContent)
	v.holds("/ui/tools/now", `<span class="badge good">allowed</span>`, "allowed by operator", `hx-post="/ui/tools/skills/invoices/forbid"`)
	v.lacks("/ui/tools/now", "invoices/allow?hash=")
	a := r.ran(r.say("hello"), claybot.RunSucceeded).Agent
	v.holds("/ui/agents/"+string(a)+"/skills", "<b>invoices</b>")
	r.skillFile("invoices", "SKILL.md", strings.Replace(manifest, "read_file", "read_file shell", 1))
	v.holds("/ui/tools/now", `<span class="badge warn">changed</span>`, "changed: <code>SKILL.md</code>", "names new tools: <code>shell</code>")
	v.lacks("/ui/agents/"+string(a)+"/skills", "<b>invoices</b>")
	v.does("/ui/tools/skills/invoices/forbid", nil, http.StatusNoContent)
	v.holds("/ui/tools/now", `<span class="badge warn">new</span>`)
}

func TestToolsPageServersAndWorkspaces(t *testing.T) {
	r := startRig(t)
	v := r.visitor()
	v.does("/ui/tools/servers/files/allow", nil, http.StatusBadRequest)
	v.does("/ui/tools/servers/files/allow?tool=steal&hash=seen", nil, http.StatusNotFound)
	v.does("/ui/tools/servers/files/allow?tool=mcp_files_write", nil, http.StatusBadRequest)
	v.does("/ui/tools/servers/files/allow?tool=mcp_files_write&hash=before", nil, http.StatusBadRequest)
	v.holds("/ui/tools/now", "Disabled until you accept the changes", "/ui/tools/servers/files/allow?tool=mcp_files_write&amp;hash=seen")
	v.does("/ui/tools/servers/files/allow?tool=mcp_files_write&hash=seen", nil, http.StatusNoContent)
	v.lacks("/ui/tools/now", "Disabled until you accept the changes")
	v.does("/ui/tools/workspaces/remove?key=agent%2Fone&data=1", nil, http.StatusBadRequest)
	v.does("/ui/tools/workspaces/remove", nil, http.StatusBadRequest)
	if said := v.does("/ui/tools/workspaces/remove?key=agent%2Fone", nil, http.StatusNoContent); !strings.Contains(said, "Its files are kept") {
		t.Errorf("said %s", said)
	}
	if said := v.does("/ui/tools/workspaces/remove?key=agent%2Ftwo&data=true", nil, http.StatusNoContent); !strings.Contains(said, "and files removed") {
		t.Errorf("said %s", said)
	}
	v.does("/ui/tools/workspaces/remove?key=agent%2Fone", nil, http.StatusNotFound)
	if want := []string{"agent/one", "agent/two with data"}; !slices.Equal(r.shop.Removed, want) {
		t.Errorf("%v was removed, want %v", r.shop.Removed, want)
	}
}

// Who may only look, or only operate, sees no button for more and gets no further
// without one.
func TestToolsPageScopes(t *testing.T) {
	r := startRig(t)
	v := r.visitor()
	r.skillFile("invoices", "SKILL.md", manifest)
	hash := v.hashOf("invoices")
	v.does("/ui/notes/save", url.Values{"scope": {"global"}, "path": {"a.md"}, "text": {"x"}}, http.StatusNoContent)
	read, operate := v.reader("read"), v.reader("operate")
	for _, path := range []string{
		"/ui/tools/skills/invoices/allow?hash=" + hash, "/ui/tools/servers/files/allow?tool=mcp_files_write&hash=seen",
		"/ui/tools/workspaces/remove?key=agent%2Fone", "/ui/usage/budgets/extend",
	} {
		read.does(path, nil, http.StatusForbidden)
		operate.does(path, nil, http.StatusForbidden)
	}
	for _, path := range []string{"/ui/notes/save", "/ui/notes/delete", "/ui/notes/revert", "/ui/tools/skills/invoices/forbid"} {
		read.does(path, nil, http.StatusForbidden)
	}
	read.lacks("/ui/tools", "hx-post")
	operate.lacks("/ui/tools", "hx-post")
	read.lacks("/ui/notes?scope=global", "hx-post")
	read.lacks("/ui/notes/note?scope=global&path=a.md", "hx-post", "<textarea")
	operate.holds("/ui/notes/note?scope=global&path=a.md", "hx-post", "<textarea")
}

// Notes are written, found, looked at in their versions, reverted and deleted.
func TestNotesPages(t *testing.T) {
	r := startRig(t)
	v := r.visitor()
	agent := string(r.ran(r.say("hello"), claybot.RunSucceeded).Agent)
	scope := "agent/" + agent
	at := url.Values{"scope": {scope}, "path": {"people/birthdays.md"}}
	page := "/ui/notes/note?" + at.Encode()
	save := func(text string, code int) string {
		t.Helper()
		return v.does("/ui/notes/save", url.Values{"scope": {scope}, "path": {"people/birthdays.md"}, "text": {text}}, code)
	}
	save("# Ann\r\n3 May <script>", http.StatusNoContent)
	save("# Ann\n4 May", http.StatusNoContent)
	if m, err := r.db.Memory(t.Context(), scope, "people/birthdays.md"); err != nil || m.Text != "# Ann\n4 May" || m.By != "operator" {
		t.Fatalf("the note is %+v, %v", m, err)
	}
	v.holds("/ui/agents/"+agent, "people/birthdays.md", "/ui/notes?scope=owner%2Fweb%2Foperator")
	v.holds("/ui/notes?scope="+url.QueryEscape(scope), "people/birthdays.md", "Notes of agent "+agent)
	v.holds("/ui/notes?scope="+url.QueryEscape(scope)+"&find=may", "people/birthdays.md")
	v.holds("/ui/notes?scope="+url.QueryEscape(scope)+"&find=june", "No matching notes.")
	v.lacks("/ui/notes?scope=global", ">people/birthdays.md<")
	versions, err := r.db.MemoryVersions(t.Context(), scope, "", 9)
	if err != nil || len(versions) != 2 {
		t.Fatal(versions, err)
	}
	first := num(int(versions[1].Version))
	v.holds(page, "# Ann\n4 May</textarea>", "Version")
	v.holds(page+"&version="+first, "Version "+first, "# Ann\n3 May &lt;script&gt;</pre>")
	v.holds(page+"&version=99999", "# Ann\n4 May</textarea>")
	v.does("/ui/notes/revert", url.Values{"scope": {scope}, "version": {first}}, http.StatusNoContent)
	v.holds(page, "3 May &lt;script&gt;</textarea>")
	if said := save(strings.Repeat("x", 256<<10+1), http.StatusBadRequest); !strings.Contains(said, "the limit is 262144") {
		t.Errorf("a long note is refused with %s", said)
	}
	v.does("/ui/notes/delete", at, http.StatusNoContent)
	v.holds(page, "This note was deleted.")
	v.does("/ui/notes/revert", url.Values{"scope": {scope}, "version": {first}}, http.StatusNoContent)
	v.holds(page, "3 May &lt;script&gt;</textarea>")
}

// What a run did with tools is on its page: the mark of strangers, the arguments
// that a person changed, the notes that it wrote.
func TestRunShowsMarksAndNotes(t *testing.T) {
	r := newRig(t)
	r.mind.plan("read it", use("c1", "current_time", `{"zone":"UTC"}`), llmtest.Say("done"))
	r.start()
	v := r.visitor()
	run := r.ran(r.say("read it"), claybot.RunSucceeded)
	by := storage.MemoryChange{Agent: run.Agent, Run: run.ID, Tainted: true}
	for _, scope := range []string{"agent/" + string(run.Agent), "owner/web/operator", "global"} {
		if err := r.db.SaveMemory(t.Context(), scope, storage.Memory{Path: "from-" + scope[:5] + ".md", Text: "x", MemoryChange: by}, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	other := by
	other.Run = "another"
	if err := r.db.SaveMemory(t.Context(), "global", storage.Memory{Path: "other.md", Text: "x", MemoryChange: other}, 1<<20); err != nil {
		t.Fatal(err)
	}
	part := "/ui/runs/" + string(run.ID) + "/deliveries"
	v.holds(part, "from-agent.md", "from-owner.md", "from-globa.md", "tainted", "Notes</h3>")
	v.lacks(part, "other.md")
	v.holds("/ui/agents/"+string(run.Agent), "from-agent.md", "tainted", "current_time")
	v.holds("/ui/notes/note?scope=global&path=from-globa.md", "had read untrusted content")
}

// Budgets are shown with what is left, and extended once however often the form
// is sent.
func TestBudgetsOnThePage(t *testing.T) {
	r := startRig(t)
	v := r.visitor()
	v.holds("/ui/usage", "No budget used yet.")
	levels := []storage.Level{
		{Key: "owner/ann@2026-11-22", Period: "2026-11-22", Name: "Ann & co", Unit: storage.UnitMicroUSD, Limit: 2_000_000, Hard: true},
		{Key: "all@always", Period: storage.PeriodAlways, Name: "all", Unit: storage.UnitTokens, Limit: 1000},
	}
	reserve := storage.Reservation{ID: "1", Node: "n", Levels: levels, Amount: storage.Amount{Tokens: 900, MicroUSD: 1_500_000}}
	if err := r.db.Reserve(t.Context(), reserve); err != nil {
		t.Fatal(err)
	}
	if _, err := r.db.Book(t.Context(), "1", storage.Amount{Tokens: 800, MicroUSD: 1_250_000, Unpriced: 1}); err != nil {
		t.Fatal(err)
	}
	reserve.ID, reserve.Amount = "2", storage.Amount{Tokens: 100, MicroUSD: 500_000}
	if err := r.db.Reserve(t.Context(), reserve); err != nil {
		t.Fatal(err)
	}
	v.holds("/ui/usage/budgets", "Ann &amp; co", "$1.25", "$0.500", "$2.00", "$0.250", "at the end of 2026-11-22", "1 call at an unknown price",
		"800 tokens", "1,000 tokens", "never", "warning only")
	form := url.Values{"key": {levels[0].Key}, "unit": {"microUSD"}, "step": {"2026-11-22-0"}, "amount": {"2,50"}}
	with := func(name, value string) url.Values {
		f := url.Values{}
		for k, v := range form {
			f[k] = v
		}
		f.Set(name, value)
		return f
	}
	for _, bad := range []url.Values{
		with("amount", ""), with("amount", "0"), with("amount", "-1"), with("amount", "1e9"), with("amount", "NaN"), with("amount", "2000000"),
		with("key", ""), with("unit", "euro"), with("step", ""), with("step", "a b"), with("amount", "0x10"), nil,
	} {
		v.does("/ui/usage/budgets/extend", bad, http.StatusBadRequest)
	}
	v.does("/ui/usage/budgets/extend", with("key", "nobody"), http.StatusNotFound)
	tokens := with("unit", "tokens")
	tokens.Set("amount", "5")
	v.does("/ui/usage/budgets/extend", tokens, http.StatusConflict)
	v.holds("/ui/usage/budgets", "$0.250")
	for range 2 {
		if said := v.does("/ui/usage/budgets/extend", form, http.StatusNoContent); !strings.Contains(said, "$2.75 left of $4.50") {
			t.Errorf("said %s", said)
		}
	}
	v.holds("/ui/usage/budgets", "$4.50", "includes an extension of $2.50", "$2.75", `value="2026-11-22-2500000"`)
}

// A daemon without tooling and budgets has its pages all the same.
func TestPagesWithoutTooling(t *testing.T) {
	r := newRig(t)
	r.bare = true
	r.start()
	v := r.visitor()
	a := r.ran(r.say("hello"), claybot.RunSucceeded)
	v.holds("/ui/tools", "Tools are not available on this daemon.")
	v.lacks("/ui/usage", "Budgets")
	v.lacks("/ui/agents/"+string(a.Agent), "bench-tools")
	v.page("/ui/runs/" + string(a.ID) + "/deliveries")
	for _, path := range []string{"/ui/tools/skills/x/allow?hash=y", "/ui/tools/skills/x/forbid", "/ui/tools/servers/x/allow?all=1", "/ui/tools/workspaces/remove?key=x", "/ui/notes/save", "/ui/notes/delete", "/ui/notes/revert", "/ui/usage/budgets/extend"} {
		v.does(path, nil, http.StatusNotFound)
	}
}
