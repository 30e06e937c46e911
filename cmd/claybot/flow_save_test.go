package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/web"
)

const savedFlow = `# Says hello.
owner: telegram/1001   # the shop
start: hello
nodes:
  # The first one.
  hello: {kind: template, value: hello, next: say} # and on
  say: {kind: reply, text: "{{ hello.output }}", next: END}
`

// shelved starts a daemon with a workflow, and returns its file.
func shelved(t *testing.T, text string) (*harness, string) {
	t.Helper()
	h := startDaemon(t, "model:\n  name: demo\n", nil)
	file := filepath.Join(h.dir, "flows", "hello.yaml")
	if text == "" {
		return h, file
	}
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(text), 0o640)); err != nil { //nolint:gosec // the mode is tested
		t.Fatal(err)
	}
	if err := h.daemon.library.look(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	return h, file
}

func textIn(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A change is shown with its difference, saved where it has no fault, in force at once, and recorded;
// the rest of the file and its mode stay as they are.
func TestSaveFlow(t *testing.T) {
	h, file := shelved(t, savedFlow)
	var read web.FlowFile
	h.config(200, "GET", "/flows/hello/file", "", "", &read)
	if read.Text != savedFlow || read.Version != flows.HashOf(savedFlow) || filepath.Base(read.File) != "hello.yaml" {
		t.Fatalf("the file is %+v", read)
	}
	change := func(edits string) string { return `{"version":"` + read.Version + `","edits":[` + edits + `]}` }
	good := change(`{"path":["nodes","hello","value"],"value":"good day"},{"path":["nodes","say","note"],"value":"polite"}`)
	want := strings.NewReplacer("value: hello", "value: good day", `next: END}`, `next: END, note: polite}`).Replace(savedFlow)

	var out web.FlowProposal
	h.config(200, "POST", "/flows/hello/file/diff", "", good, &out)
	diff, _ := json.Marshal(out.Diff)
	if out.Text != want || out.Version != flows.HashOf(want) || len(out.Faults) != 0 || out.InForce || !strings.Contains(string(diff), `{"mark":"+","text":"  hello: {kind: template, value: good day, next: say} # and on"}`) {
		t.Errorf("the proposal is %+v", out)
	}
	if textIn(t, file) != savedFlow {
		t.Fatal("a proposal changed the file")
	}

	h.config(200, "PUT", "/flows/hello/file", "", good, &out)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o640 || textIn(t, file) != want || !out.InForce || h.daemon.library.Named("hello").Text != want {
		t.Errorf("saved: %v %v %+v\n%s", err, info.Mode(), out, textIn(t, file))
	}
	// The change was made on a text that the file does not have any more.
	for _, method := range []string{"PUT /flows/hello/file", "POST /flows/hello/file/diff"} {
		verb, path, _ := strings.Cut(method, " ")
		if got := h.config(409, verb, path, "", good, nil); !strings.Contains(got, `"stale"`) {
			t.Errorf("%s: %s", method, got)
		}
	}
	var saves web.FlowSaves
	h.config(200, "GET", "/flows/hello/file/history", "", "", &saves)
	if len(saves.Changes) != 1 || saves.Changes[0].Before != flows.HashOf(savedFlow) || saves.Changes[0].After != flows.HashOf(want) || saves.Changes[0].By == "" || saves.Changes[0].At == 0 {
		t.Errorf("the history is %+v", saves)
	}
	h.config(200, "GET", "/flows/hello/file?version="+saves.Changes[0].Before, "", "", &read)
	if read.Text != savedFlow {
		t.Errorf("the version before is %q", read.Text)
	}
	h.config(404, "GET", "/flows/hello/file?version=none", "", "", nil)
	h.config(404, "GET", "/flows/nothing/file", "", "", nil)
	h.config(404, "GET", "/flows/nothing/file/history", "", "", nil)
}

// A new file, in a folder that is missing as well.
func TestSaveNewFlow(t *testing.T) {
	h, file := shelved(t, "")
	text, _ := json.Marshal(savedFlow)
	var out web.FlowProposal
	h.config(200, "PUT", "/flows/hello/file", "", `{"version":"","text":`+string(text)+`}`, &out)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || textIn(t, file) != savedFlow || !out.InForce || out.Diff[0].Mark != "+" {
		t.Errorf("saved: %v %+v", err, out)
	}
	if got := h.config(409, "PUT", "/flows/hello/file", "", `{"version":"","text":`+string(text)+`}`, nil); !strings.Contains(got, "stale") {
		t.Error(got)
	}
	h.config(404, "PUT", "/flows/..%2Fhello/file", "", `{"version":"","text":`+string(text)+`}`, nil)
}

// What has a fault is shown with its line, refused, and changes nothing.
func TestSaveFlowRefuses(t *testing.T) {
	h, file := shelved(t, savedFlow)
	other := filepath.Join(filepath.Dir(file), "other.yaml")
	if err := os.WriteFile(other, []byte("owner: telegram/1001\nstart: a\nnodes: {a: {kind: flow, flow: hello, next: END}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	version := flows.HashOf(savedFlow)
	for name, c := range map[string]struct{ body, want string }{
		"an edge to nothing":     {`"edits":[{"path":["nodes","hello","next"],"value":"sya"}]`, `hello.yaml:6: nodes.hello.next: there is no node \"sya\"; did you mean say?`},
		"a node that is needed":  {`"edits":[{"path":["nodes","say"]}]`, `nodes.hello.next: there is no node \"say\"`},
		"an unknown key":         {`"edits":[{"path":["nodes","say","txet"],"value":"x"}]`, "did you mean text?"},
		"no YAML":                {`"text":"a: ["`, "hello.yaml:1"},
		"a token":                {`"edits":[{"path":["nodes","say","text"],"value":"xoxb-000000000000-not-a-token"}]`, "hello.yaml:7: the line has a Slack token"},
		"a circle over files":    {`"edits":[{"path":["nodes","hello"],"value":{"kind":"flow","flow":"other","next":"say"}}]`, "other"},
		"an edit without a path": {`"edits":[{"path":[],"value":"x"}]`, "names no key"},
		"an edit below a text":   {`"edits":[{"path":["owner","x"],"value":"x"}]`, "is no group of keys"},
		"nothing":                {`"edits":[]`, "text, edits and layout are empty"},
	} {
		body := `{"version":"` + version + `",` + c.body + `}`
		status := http.StatusBadRequest
		if strings.HasPrefix(name, "an edit") {
			status = http.StatusConflict
		}
		if got := h.config(status, "PUT", "/flows/hello/file", "", body, nil); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if textIn(t, file) != savedFlow {
			t.Fatalf("%s changed the file", name)
		}
	}
	if _, err := os.Stat(file + ".history"); err == nil {
		t.Error("a refusal is in the history")
	}
	var out web.FlowProposal
	h.config(200, "POST", "/flows/hello/file/diff", "", `{"version":"`+version+`","edits":[{"path":["nodes","hello","next"],"value":"sya"}]}`, &out)
	if len(out.Faults) != 2 || out.Faults[0].Line != 6 || out.Faults[0].Near != "say" || out.Faults[1].Line != 7 { // the other node is not reached
		t.Errorf("the faults are %+v", out.Faults)
	}
}

// Over the network, no change sends a secret of the machine to a host to which no workflow sends it.
func TestSaveFlowKeepsSecrets(t *testing.T) {
	const text = "owner: telegram/1001\nstart: a\nnodes:\n  a: {kind: http, url: \"https://shop.example/a\", headers: {X-Key: env:SHOP}, next: END}\n"
	t.Setenv("SHOP", "shop-key")
	h, _ := shelved(t, text)
	desk, version := flowDesk{h.daemon}, flows.HashOf(text)
	for value, allowed := range map[string]bool{
		`{"kind":"http","url":"https://shop.example/b","headers":{"X-Other":"env:SHOP"},"next":"END"}`:       true,
		`{"kind":"http","url":"https://evil.example/a","headers":{"X-Key":"env:SHOP"},"next":"END"}`:         false,
		`{"kind":"http","url":"https://shop.example@evil.example/","headers":{"X":"env:SHOP"},"next":"END"}`: false,
		`{"kind":"http","url":"http://shop.example/a","headers":{"X-Key":"env:SHOP"},"next":"END"}`:          false,
		`{"kind":"http","url":"https://shop.example/a","headers":{"X-Key":"file:web.token"},"next":"END"}`:   false,
		`{"kind":"http","url":"https://evil.example/a","headers":{"X-Key":"none"},"next":"END"}`:             false, // the host is new
	} {
		c := web.FlowChange{Version: version, Edits: []flows.Edit{{Path: []string{"nodes", "a"}, Value: json.RawMessage(value)}}}
		out, err := desk.ProposeFlow(h.ctx, "hello", c)
		if err != nil || allowed != (len(out.Faults) == 0) || !allowed && !strings.Contains(out.Faults[0].Text, "on the machine") {
			t.Errorf("%s: %v %+v", value, err, out.Faults)
		}
		if allowed {
			continue
		}
		var problem *web.Problem
		if _, err := desk.SaveFlow(h.ctx, "hello", c, "x"); !errors.As(err, &problem) || problem.Status != http.StatusBadRequest {
			t.Errorf("%s was saved: %v", value, err)
		}
	}
	// On the machine itself, the file can be changed anyhow, and a secret that is missing is a fault.
	h.config(400, "PUT", "/flows/hello/file", "", `{"version":"`+version+`","edits":[{"path":["nodes","a","headers","X-Key"],"value":"env:SHOP_KEY"}]}`, nil)
	h.config(200, "PUT", "/flows/hello/file", "", `{"version":"`+version+`","edits":[{"path":["nodes","a","url"],"value":"https://other.example/"}]}`, nil)
}

// Over the network, no change says on whose behalf a workflow acts, who approves, or where it sends.
func TestSaveFlowKeepsPeople(t *testing.T) {
	const text = `owner: telegram/1001
start: ask
nodes:
  ask: {kind: ask, text: "Pay?", by: [telegram/1002], next: pay}
  pay: {kind: tool, tool: memory_write, args: {path: a.md, text: x}, approve: {by: [telegram/1002]}, next: load}
  load: {kind: http, url: "https://shop.example/a", next: say}
  say: {kind: reply, to: [telegram/1001], text: done, next: END}
`
	h, _ := shelved(t, text)
	desk, version := flowDesk{h.daemon}, flows.HashOf(text)
	for _, test := range []struct {
		path, value, key string
		line             int
	}{
		{"nodes pay args text", `"y"`, "", 0},
		{"nodes say to", `["trigger"]`, "", 0},
		{"nodes load url", `"https://shop.example/b"`, "", 0},
		{"owner", `"telegram/7"`, "owner", 1},
		{"profile", `"default"`, "profile", 0},
		{"nodes ask by", `["telegram/7"]`, "nodes.ask.by", 4},
		{"nodes ask by", "", "nodes.ask.by", 4},
		{"nodes pay approve by", `["telegram/7"]`, "nodes.pay.approve", 5},
		{"nodes pay approve", "", "nodes.pay.approve", 5},
		{"nodes load next", `"more"`, "nodes.more.approve", 8},
		{"nodes load url", `"https://other.example/"`, "nodes.load.url", 6},
		{"nodes say to", `["telegram/7"]`, "nodes.say.to", 7},
		{"on_failure", `["telegram/7"]`, "on_failure", 8},
	} {
		c := web.FlowChange{Version: version, Edits: []flows.Edit{{Path: strings.Fields(test.path), Value: json.RawMessage(test.value)}}}
		if test.key == "nodes.more.approve" { // the tool needs an approval in the node that is there
			c.Edits = append(c.Edits, flows.Edit{Path: []string{"nodes", "more"}, Value: json.RawMessage(`{"kind":"tool","tool":"memory_write","args":{"path":"a.md","text":"y"},"next":"say"}`)})
		}
		out, err := desk.ProposeFlow(h.ctx, "hello", c)
		found := ""
		for _, x := range out.Faults {
			if strings.HasPrefix(x.Text, "over the network") && (test.line == 0 || x.Line == test.line) {
				found += x.Key
			}
		}
		if err != nil || found != test.key {
			t.Errorf("%s: %v, the fault is of %q, want %q: %+v", test.path, err, found, test.key, out.Faults)
		}
	}
	for owner, allowed := range map[string]bool{"telegram/1001": true, "telegram/7": false} {
		out, err := desk.ProposeFlow(h.ctx, "new", web.FlowChange{Text: "owner: " + owner + "\nstart: a\nnodes: {a: {kind: reply, text: x, next: END}}\n"})
		if err != nil || allowed != (len(out.Faults) == 0) {
			t.Errorf("a new file for %s: %v %+v", owner, err, out.Faults)
		}
	}
	// On the machine itself, the file can be changed anyhow.
	h.config(200, "PUT", "/flows/hello/file", "", `{"version":"`+version+`","edits":[{"path":["nodes","pay","approve"]}]}`, nil)
}

// A directory or a link that leads nowhere in the place of a file is refused, and the history's lock ends.
func TestSaveFlowIrregular(t *testing.T) {
	h, file := shelved(t, savedFlow)
	for name, put := range map[string]func() error{
		"a directory": func() error { return os.Mkdir(file, 0o750) },
		"a link":      func() error { return os.Symlink(file+".gone", file) },
	} {
		f, err := openConfigFile(file)
		if err = errors.Join(err, os.Remove(file), put()); err != nil {
			t.Fatal(err)
		}
		if got := h.config(409, "GET", "/flows/hello/file", "", "", nil); !strings.Contains(got, "is not a regular file") {
			t.Errorf("%s: %s", name, got)
		}
		if err := f.lock(t.Context()); err == nil || f.log != nil {
			t.Errorf("%s: the lock of a file that cannot be read: %v", name, err)
		}
		if err := errors.Join(os.Remove(file), os.WriteFile(file, []byte(savedFlow), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}
