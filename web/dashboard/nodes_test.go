package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/webtest"
)

// Unknown nodes, kinds and calls are refused in words that say what to do, and the map is there as Mermaid.
func TestNodePages(t *testing.T) {
	r := newRig(t)
	r.desk = func(b *web.Backend) { b.Nodes, b.Configuration = webtest.NewNodes(), webtest.NewConfiguration() }
	r.start()
	v := r.visitor()
	for path, want := range map[string]string{
		"/ui/nodes/connector/telegrm": "No node is called connector/telegrm.",
		"/ui/nodes/dish/telegram":     "The map shows all nodes.",
		"/ui/nodes/add?kind=dish":     "Entries of the kind dish cannot be added here.",
	} {
		if got := v.do(http.MethodGet, path, nil, "Accept", "text/html"); got.code != http.StatusNotFound || !strings.Contains(got.body, want) || !strings.Contains(got.body, `href="/ui/nodes">Go to the map`) {
			t.Errorf("%s = %d, no %q in %s", path, got.code, want, got.body)
		}
	}
	for path, code := range map[string]int{
		"/ui/nodes/connector/telegrm/stop": http.StatusNotFound, "/ui/nodes/connector/telegram/dance": http.StatusNotFound, "/ui/nodes/connector/web/stop": http.StatusBadRequest,
	} {
		if got := v.do(http.MethodPost, path, url.Values{}); got.code != code || !strings.Contains(got.body, "message") {
			t.Errorf("%s = %d %s", path, got.code, got.body)
		}
	}
	got := v.do(http.MethodGet, "/ui/nodes/mermaid", nil)
	if !strings.HasPrefix(got.body, "flowchart LR\n") || !strings.Contains(got.body, "-->|model|") || !strings.Contains(got.head.Get("Content-Disposition"), "claybot.mmd") {
		t.Errorf("the export is %v %s", got.head, got.body)
	}
}

// Two operators who edit the same file are kept apart, and a key that a variable sets says that it wins.
func TestNodeSettings(t *testing.T) {
	r := newRig(t)
	config := webtest.NewConfiguration()
	r.desk = func(b *web.Backend) { b.Nodes, b.Configuration = webtest.NewNodes(), config }
	r.start()
	v := r.visitor()
	says(t, v.page("/ui/config/key?key=telegram.token"), "TELEGRAM_BOT_TOKEN is set as well, and wins over the file.")
	says(t, v.page("/ui/nodes/connector/telegram"), `id="settings"`, "telegram.token", "TELEGRAM_BOT_TOKEN")
	form := url.Values{"kind": {"telegram"}, "key": {"sales"}, "f.token": {"env:SALES"}, "version": {"0"}}
	config.Rewrite()
	if got := v.do(http.MethodPost, "/ui/nodes/add", form); got.code != http.StatusPreconditionFailed || !strings.Contains(got.body, "has been changed meanwhile") {
		t.Errorf("a late addition = %d %s", got.code, got.body)
	}
	for _, key := range []string{"agents.none.max_steps", "agents.sales.dish", "connectors.sales.token"} {
		if got := v.do(http.MethodGet, "/ui/config/key?key="+key, nil, "Accept", "text/html"); got.code != http.StatusNotFound || !strings.Contains(got.body, "No such setting.") {
			t.Errorf("%s = %d", key, got.code)
		}
	}
}

// A manyKeys is a configuration with a key of the default profile that has no keys below it.
type manyKeys struct{ *inMemory }

type inMemory = webtest.Configuration

func (c manyKeys) Configuration(ctx context.Context) (web.ConfigView, error) {
	v, err := c.inMemory.Configuration(ctx)
	v.Keys = append(v.Keys, web.ConfigKey{Key: "agents.default.memory", Value: "on", Origin: "default"}, web.ConfigKey{Key: "node.name", Value: "a", Origin: "claybot.yaml:9", Restart: true, InForce: "b"})
	return v, err
}

// The page of the notes lists the keys that there are: none of a profile below a key of one. What does not run has the
// next step.
func TestNodeSettingsOfNotes(t *testing.T) {
	r := newRig(t)
	notes := nodes.View{Key: nodes.Key{Kind: nodes.Memory, Name: "notes"}, State: nodes.Failed, Text: "it is full", Next: "make <room>"}
	r.desk = func(b *web.Backend) {
		b.Nodes, b.Configuration = webtest.NodesOf(notes), manyKeys{webtest.NewConfiguration()}
	}
	r.start()
	page := r.visitor().page("/ui/nodes/memory/notes")
	says(t, page, "agents.default.memory", "Next step: make &lt;room&gt;", "failed, retrying")
	denies(t, page, "agents.default.memory.")
	const waits = "Waits for a restart of claybot; until then b is in force."
	says(t, r.visitor().page("/ui/config/key?key=node.name"), waits)
	says(t, r.visitor().page("/ui/config?find=node.name"), waits)
}

// A budget has no name that a fault could be about; the field of a list says how it is written.
func TestNodeAddFaults(t *testing.T) {
	r := newRig(t)
	r.desk = func(b *web.Backend) {
		b.Nodes, b.Configuration = webtest.NewNodes(), faultyName{webtest.NewConfiguration()}
	}
	r.start()
	v := r.visitor()
	got := v.do(http.MethodPost, "/ui/nodes/add", url.Values{"kind": {"relay"}, "f.file": {""}, "version": {"0"}})
	says(t, got.body, "it says nothing", `"f.file":"and needs a file"`, "file: and needs a file")
	denies(t, got.body, "name: it says")
	says(t, v.page("/ui/nodes/add?kind=profile"), "A list: a comma between two")
}

// A faultyName refuses changes.
type faultyName struct{ *inMemory }

func (faultyName) ChangeConfig(context.Context, web.ConfigEdit) (web.ConfigChanged, error) {
	return web.ConfigChanged{}, &web.Problem{Status: http.StatusBadRequest, Code: "values", Fields: map[string]string{"name": "it says nothing", "file": "and needs a file"}}
}

// What the pages show follows the scope: the log is for those who operate, settings and calls for administrators, and
// nothing is for programs that only chat.
func TestNodeScopes(t *testing.T) {
	r := newRig(t)
	r.desk = func(b *web.Backend) { b.Nodes, b.Configuration = webtest.NewNodes(), webtest.NewConfiguration() }
	r.start()
	v, stranger := r.visitor(), &visitor{r, &http.Client{}}
	see := func(scope web.Scope, path string) answer {
		made := v.send(http.MethodPost, "/tokens", "application/json", `{"name":"`+string(claybot.NewID())+`","scope":"`+string(scope)+`"}`)
		return stranger.do(http.MethodGet, path, nil, "Authorization", "Bearer "+word(made.body, `"token":"`, `"`))
	}
	for scope, want := range map[web.Scope][3]bool{ // the log, settings, calls
		web.Read: {}, web.Operate: {true}, web.Admin: {true, true, true},
	} {
		got := see(scope, "/ui/nodes/connector/telegram")
		if got.code != http.StatusOK {
			t.Errorf("%s: %d %s", scope, got.code, got.body)
		}
		for i, part := range []string{`id="log"`, `id="settings"`, `aria-label="Stop telegram"`} {
			if strings.Contains(got.body, part) != want[i] {
				t.Errorf("%s: %s is there: %v", scope, part, !want[i])
			}
		}
	}
	for _, path := range []string{"/ui/nodes", "/ui/nodes/now", "/ui/nodes/mermaid", "/ui/nodes/connector/telegram", "/ui/nodes/connector/telegram/now"} {
		if got := see(web.Chat, path); got.code != http.StatusForbidden {
			t.Errorf("chat: %s = %d %s", path, got.code, got.body)
		}
	}
}
