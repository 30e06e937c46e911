package files

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// TestDocumentsTornAtEveryByte cuts descriptor.json and state.json everywhere:
// the agent keeps its identity and history, and starts.
func TestDocumentsTornAtEveryByte(t *testing.T) {
	sc, fsys := newScenario()
	told := 0
	cfg := Config{Dir: "d", Index: sc.index, FS: fsys, OnDamage: func(claybot.AgentID, string) { told++ }}
	s := open(t, cfg)
	a := agentFor(t, s, someone)
	appendTo(t, s, a.ID, said("kept"))
	custom := a.State
	custom.Engine, custom.Context = "plan", 5
	if err := s.SaveState(t.Context(), storage.Lease{Agent: a.ID, Token: 1}, custom); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"descriptor.json", "state.json"} {
		path := "d/agents/" + string(a.ID) + "/" + file
		whole := fsys.content(path)
		for cut := -1; cut < len(whole); cut++ {
			if cut < 0 {
				if err := fsys.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else {
				fsys.write(path, whole[:cut])
			}
			told = 0
			s := open(t, cfg)
			got := agentFor(t, s, someone)
			want := custom
			if file == "state.json" && cut < len(whole)-1 { // the last byte is a newline
				want = storage.NewState(a.CreatedAt)
				want.UpdatedAt = got.State.UpdatedAt
			}
			if got.ID != a.ID || got.Descriptor != someone || got.CreatedAt != a.CreatedAt || got.State != want {
				t.Fatalf("%s cut at %d: got %+v, want %s with %+v", file, cut, got, a.ID, want)
			}
			wantTexts(t, file, records(t, s, a.ID), "kept")
			if want != custom && told != 1 || want == custom && told != 0 {
				t.Errorf("%s cut at %d: told %d times", file, cut, told)
			}
			agentFor(t, open(t, cfg), someone)
			if want != custom && told != 1 {
				t.Errorf("%s cut at %d: told again after a restart", file, cut)
			}
			if kept := fsys.quarantined(); cut > 0 && cut < len(whole)-1 && !strings.Contains(strings.Join(kept, "\x00"), string(whole[:cut])) {
				t.Errorf("%s cut at %d: the bytes are not in the quarantine", file, cut)
			}
			fsys.write(path, whole)
		}
	}
}

func TestDamagedDocuments(t *testing.T) {
	for file, contents := range map[string][]string{
		"state.json": {"", "null", "[]", "{", `{"v":"1"}`, `{"v":0}`, `{"v":1,"engine":7}`, `{"v":1}x`, "\x00\x00\x00"},
		"descriptor.json": {
			"", "null", "7", `{"v":1}`, `{"v":1,"id":"x","type":"user","connector":"t","channelId":"c","userId":"u"}`,
			`{"v":-1}`, `{"v":1,"id":["x"]}`,
		},
	} {
		for _, content := range contents {
			dir, index := t.TempDir(), &memoryIndex{}
			a := agentFor(t, open(t, Config{Dir: dir, Index: index, FS: hastyFS{}}), someone)
			writeFile(t, dir+"/agents/"+string(a.ID)+"/"+file, []byte(content))
			var told []string
			s := open(t, Config{Dir: dir, Index: index, FS: hastyFS{}, OnDamage: func(id claybot.AgentID, text string) { told = append(told, text) }})
			for range 2 {
				if got := agentFor(t, s, someone); got.ID != a.ID || got.State.Engine != "react" {
					t.Errorf("%s %q: got %+v", file, content, got)
				}
			}
			if got := quarantined(t, dir); len(got) != 1 || got[0] != content {
				t.Errorf("%s %q: quarantine has %q", file, content, got)
			}
			if want := file == "state.json"; want != reflect.DeepEqual(told, []string{saidState}) {
				t.Errorf("%s %q: told %q", file, content, told)
			}
		}
	}
}

func TestQuarantineIsBounded(t *testing.T) {
	dir := t.TempDir()
	q := &quarantine{fs: osFS{}, dir: dir, limit: 1000}
	keep := func(origin string, size int) bool {
		t.Helper()
		fresh, err := q.keep(origin, bytes.Repeat([]byte{'x'}, size))
		if err != nil {
			t.Fatal(err)
		}
		return fresh
	}
	for i, origin := range []string{"a", "b", "c"} {
		if !keep(origin, 300) || keep(origin, 300) {
			t.Errorf("%s: want it fresh once", origin)
		}
		name := dir + "/" + firstWith(t, dir, origin)
		old := time.Unix(int64(i+1), 0)
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	keep("d", 400)
	if firstWith(t, dir, "a") != "" || firstWith(t, dir, "b") == "" || firstWith(t, dir, "d") == "" {
		t.Error("want the oldest one gone and the others there")
	}
	keep("huge", 5000)
	if got, err := os.ReadDir(dir); err != nil || len(got) != 1 || len(readFile(t, dir+"/"+got[0].Name())) != 1000 {
		t.Errorf("got %v, %v, want the first 1000 bytes of the huge one", got, err)
	}
}

func firstWith(t *testing.T, dir, prefix string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix+".") {
			return e.Name()
		}
	}
	return ""
}

// FuzzHistory: whatever is in the file, opening it neither fails nor loses a
// readable record, and what is appended then is there.
func FuzzHistory(f *testing.F) {
	whole, _ := sample(f)
	f.Add(whole)
	f.Add(whole[:len(whole)-9])
	f.Add([]byte("{\"type\":\"note\"}\n\x00\x00"))
	f.Add([]byte(`{"type":"reset"}`))
	f.Add([]byte("\n\n"))
	sc, made := newScenario() // once: random ids would look like new coverage
	a := agentFor(f, open(f, Config{Dir: "d", Index: sc.index, FS: made}), someone)
	f.Fuzz(func(t *testing.T, data []byte) {
		fsys := made.copy()
		cfg := Config{Dir: "d", Index: sc.index, FS: fsys}
		s := open(t, cfg)
		fsys.write(s.dir(a.ID)+"/history.jsonl", data)
		if checkVersion(bytes.NewReader(data), int64(len(data))) != nil {
			return // refused, as TestNewerFormatIsRefusedAndKept wants
		}
		before := records(t, s, a.ID)
		appendTo(t, s, a.ID, said("new"))
		s = open(t, cfg)
		if got, want := records(t, s, a.ID), append(before, said("new")); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// FuzzDocument: whatever is in a document, it is refused or it survives being
// written anew, unknown members included.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"v":1,"engine":"react","routing":{"connector":"t","channelId":"c"},"later":[1.50,{"a":null}]}`))
	f.Add([]byte(`{"id":"x","type":"user","userId":"<","ID":"y","":1}`))
	f.Add([]byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var st, stAgain stateFile
		if extra, err := decodeDocument("f", data, &st); err == nil {
			st.V = version // as every writer sets it
			survives(t, st, &stAgain, extra)
		}
		var d, dAgain descriptorFile
		if extra, err := decodeDocument("f", data, &d); err == nil {
			d.V = version
			survives(t, d, &dAgain, extra)
		}
	})
}

// survives writes doc with extra and reads it into again.
func survives[T any](t *testing.T, doc T, again *T, extra extras) {
	t.Helper()
	data, err := encodeDocument(doc, extra)
	if err != nil {
		t.Fatal(err)
	}
	extraAgain, err := decodeDocument("f", data, again)
	if err != nil {
		t.Fatalf("written as %s: %v", data, err)
	}
	if !reflect.DeepEqual(*again, doc) || len(extraAgain) != len(extra) {
		t.Errorf("got %+v %s, want %+v %s", *again, extraAgain, doc, extra)
	}
}
