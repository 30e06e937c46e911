package main

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/web"
)

// Positions of nodes are saved beside the workflow, which keeps every byte, and go with nodes that are
// renamed or removed.
func TestSaveFlowLayout(t *testing.T) {
	h, file := shelved(t, savedFlow)
	beside := filepath.Join(filepath.Dir(file), "hello.layout.yaml")
	read := func() (f web.FlowFile) {
		t.Helper()
		h.config(200, "GET", "/flows/hello/file", "", "", &f)
		return f
	}
	body := func(on web.FlowFile, nodes flows.Layout, edits ...flows.Edit) string {
		c := web.FlowChange{Version: on.Version, Edits: edits}
		if nodes != nil {
			c.Layout = &web.FlowLayoutChange{Version: on.Layout.Version, Nodes: nodes}
		}
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := read()
	if first.Layout.Version != "" || len(first.Layout.Nodes) > 0 || first.Layout.File != beside {
		t.Fatalf("without a file the layout is %+v", first.Layout)
	}
	change := body(first, flows.Layout{"hello": {X: -40, Y: 20}, "say": {X: 60, Y: 200}, "gone": {X: 1, Y: 1}})
	var out web.FlowProposal
	h.config(200, "POST", "/flows/hello/file/diff", "", change, &out)
	if _, err := os.Stat(beside); err == nil || len(out.Diff) > 0 || out.Layout.Version == "" {
		t.Fatalf("the proposal %+v wrote a file", out)
	}
	h.config(200, "PUT", "/flows/hello/file", "", change, &out)
	info, err := os.Stat(beside)
	if err != nil || info.Mode().Perm() != 0o600 || textIn(t, file) != savedFlow || !out.InForce || out.Version != first.Version {
		t.Fatalf("saved: %v %+v", err, out)
	}
	if want := "nodes:\n  hello: {x: -40, y: 20}\n  say: {x: 60, y: 200}\n"; !strings.HasSuffix(textIn(t, beside), want) {
		t.Errorf("the file is\n%s", textIn(t, beside))
	}
	h.config(409, "PUT", "/flows/hello/file", "", change, nil) // the layout has changed since
	seen, err := flowDesk{h.daemon}.Flow(t.Context(), "hello", "")
	if err != nil || !maps.Equal(seen.Layout, flows.Layout{"hello": {X: -40, Y: 20}, "say": {X: 60, Y: 200}}) {
		t.Errorf("the flow shows %v %v", seen.Layout, err)
	}

	// A node with another name keeps its position.
	h.config(200, "PUT", "/flows/hello/file", "", body(read(), nil, flows.Edit{Path: []string{"start"}, Value: json.RawMessage(`"greet"`)}, flows.Edit{Path: []string{"nodes", "hello"}, Rename: "greet"},
		flows.Edit{Path: []string{"nodes", "say", "text"}, Value: json.RawMessage(`"{{ greet.output }}"`)}), &out)
	if got := read().Layout.Nodes; !maps.Equal(got, flows.Layout{"greet": {X: -40, Y: 20}, "say": {X: 60, Y: 200}}) {
		t.Errorf("after another name: %v", got)
	}
	// One that goes takes it with it, also where the whole text is new.
	text := strings.NewReplacer("start: hello", "start: say", "{{ hello.output }}", "hi").Replace(savedFlow)
	text = text[:strings.Index(text, "  # The first")] + text[strings.Index(text, "  say:"):]
	b, _ := json.Marshal(web.FlowChange{Version: read().Version, Text: text})
	h.config(200, "PUT", "/flows/hello/file", "", string(b), &out)
	if got := read().Layout.Nodes; !maps.Equal(got, flows.Layout{"say": {X: 60, Y: 200}}) {
		t.Errorf("after a node less: %v", got)
	}
	for _, at := range []flows.Position{{X: 20_001}, {Y: -20_001}, {X: math.MinInt}} {
		h.config(409, "PUT", "/flows/hello/file", "", body(read(), flows.Layout{"say": at}), nil)
	}
	h.config(200, "PUT", "/flows/hello/file", "", body(read(), flows.Layout{}), &out)
	if _, err := os.Stat(beside); err == nil || read().Layout.Version != "" {
		t.Error("a tidy layout has a file")
	}

	// Where the layout cannot be saved, nothing is.
	if err := os.Mkdir(beside, 0o700); err != nil {
		t.Fatal(err)
	}
	before := textIn(t, file)
	h.config(409, "PUT", "/flows/hello/file", "", body(read(), flows.Layout{"say": {X: 1}},
		flows.Edit{Path: []string{"nodes", "say", "text"}, Value: json.RawMessage(`"lost"`)}), nil)
	if textIn(t, file) != before {
		t.Error("the workflow was saved without the layout")
	}
}

// A layout that is broken changes nothing but a hint, and is replaced by the next save of positions.
func TestBrokenFlowLayout(t *testing.T) {
	h, file := shelved(t, savedFlow)
	read := func() (f web.FlowFile) {
		t.Helper()
		h.config(200, "GET", "/flows/hello/file", "", "", &f)
		return f
	}
	beside := filepath.Join(filepath.Dir(file), "hello.layout.yaml")
	for text, want := range map[string]string{
		"nodes: [":                             "did not find",
		"nodes: {helo: {x: 1, y: 2}}":          `there is no`,
		"nodes: {hello: {x: 1, y: there}}\n":   "want a position",
		"nodes:\n  say: {x: 1, y: 2}\nmore: 1": "want nodes",
	} {
		if err := os.WriteFile(beside, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := h.daemon.library.look(t.Context(), true); err != nil || h.daemon.library.Named("hello") == nil || len(h.daemon.library.faults) > 0 {
			t.Fatalf("%q: the workflow is not in force: %v %v", text, err, h.daemon.library.faults)
		}
		f := read()
		if want = strings.Replace(want, "there is no", "the workflow has no node", 1); len(f.Layout.Hints) != 1 || !strings.Contains(f.Layout.Hints[0].Text, want) {
			t.Errorf("%q: %+v, want %s", text, f.Layout.Hints, want)
		}
		// Other changes leave it as it is.
		h.config(200, "PUT", "/flows/hello/file", "", `{"version":"`+f.Version+`","edits":[{"path":["description"],"value":`+string(quotedJSON(text))+`}]}`, nil)
		if textIn(t, beside) != text {
			t.Errorf("%q was changed to %q", text, textIn(t, beside))
		}
	}
	f := read()
	h.config(200, "PUT", "/flows/hello/file", "", `{"version":"`+f.Version+`","layout":{"version":"`+f.Layout.Version+`","nodes":{"say":{"x":10,"y":20}}}}`, nil)
	f = read()
	if len(f.Layout.Hints) > 0 || f.Layout.Nodes["say"] != (flows.Position{X: 10, Y: 20}) {
		t.Errorf("after a save: %+v", f.Layout)
	}
	if err := os.Remove(beside); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(beside, 0o700); err != nil {
		t.Fatal(err)
	}
	f = read()
	if len(f.Layout.Hints) != 1 {
		t.Errorf("a folder: %+v", f.Layout)
	}
	h.config(409, "PUT", "/flows/hello/file", "", `{"version":"`+f.Version+`","layout":{"version":"","nodes":{"say":{"x":10,"y":20}}}}`, nil)
}

func quotedJSON(s string) []byte {
	b, _ := json.Marshal(s) // of a text
	return b
}
