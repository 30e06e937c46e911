package files

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func TestModes(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o777} {
		dir := t.TempDir()
		old := syscall.Umask(umask)
		s, err := Open(Config{Dir: dir, Index: &memoryIndex{}})
		if err == nil {
			var a claybot.Agent
			if a, err = s.AgentFor(t.Context(), someone); err == nil {
				err = s.SaveState(t.Context(), storage.Lease{Agent: a.ID}, claybot.AgentState{Engine: "plan"})
			}
		}
		syscall.Umask(old)
		if err != nil {
			t.Fatalf("umask %o: %v", umask, err)
		}
		seen := 0
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == dir {
				return err
			}
			seen++
			want := os.FileMode(0o600)
			if d.IsDir() {
				want = 0o700
			}
			if got := mode(t, path); got != want {
				t.Errorf("umask %o: %s has mode %o, want %o", umask, path, got, want)
			}
			return nil
		})
		if err != nil || seen != 6 { // agents, quarantine, one agent, three files
			t.Errorf("umask %o: saw %d files, %v, want 6", umask, seen, err)
		}
	}
}

func TestFormats(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	a := agentFor(t, s, someone)
	home := dir + "/agents/" + string(a.ID)
	var d, st map[string]any
	for file, doc := range map[string]*map[string]any{"descriptor.json": &d, "state.json": &st} {
		if err := json.Unmarshal([]byte(readFile(t, home+"/"+file)), doc); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]any{
		"v": 1.0, "id": string(a.ID), "type": "user", "createdAt": float64(a.CreatedAt),
		"connector": "telegram", "channelId": "-100", "userId": "7",
	} {
		if d[name] != want || len(d) != 7 {
			t.Errorf("descriptor.json: %s is %v of %d members, want %v of 7", name, d[name], len(d), want)
		}
	}
	if st["v"] != 1.0 || st["engine"] != "react" || st["routing"] != nil {
		t.Errorf("state.json: got %v", st)
	}
	if got := readFile(t, home+"/history.jsonl"); !strings.HasPrefix(got, `{"type":"start","v":1,"at":`) || !strings.HasSuffix(got, "\"}\n") {
		t.Errorf("history.jsonl: got %q", got)
	}
}

func TestUnknownMembersAreKept(t *testing.T) {
	dir, index := t.TempDir(), &memoryIndex{}
	a := agentFor(t, open(t, Config{Dir: dir, Index: index}), someone)
	home := dir + "/agents/" + string(a.ID)
	for _, file := range []string{"descriptor.json", "state.json"} {
		doc := readFile(t, home+"/"+file)
		writeFile(t, home+"/"+file, []byte(`{"colours":{"web":true,"n":12345678901234567890},"a b":[1,  2],`+doc[1:]))
	}
	s := open(t, Config{Dir: dir, Index: index})
	a.State.Context = 7
	for range 2 {
		a.State.Context++
		if err := s.SaveState(t.Context(), storage.Lease{Agent: a.ID}, a.State); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.MoveChannel(t.Context(), "telegram", "-100", "-200"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file string
		want []string
	}{
		{"state.json", []string{`"context": 9`, `"web": true`, `"n": 12345678901234567890`, `"a b": [`}},
		{"descriptor.json", []string{`"channelId": "-200"`, `"web": true`, `"n": 12345678901234567890`, `"a b": [`}},
	} {
		got := readFile(t, home+"/"+tt.file)
		for _, want := range tt.want {
			if strings.Count(got, want) != 1 {
				t.Errorf("%s: got %s, want %q once", tt.file, got, want)
			}
		}
	}
	if got, err := open(t, Config{Dir: dir, Index: index}).Agent(t.Context(), a.ID); err != nil || got.State != a.State || got.CreatedAt != a.CreatedAt {
		t.Errorf("got %+v, %v, want %+v", got, err, a)
	}
}

func TestNewerFormatIsRefusedAndKept(t *testing.T) {
	for file, newer := range map[string]string{
		"descriptor.json": `{"v":2,"id":"x","new":true}`,
		"state.json":      `{"v":3,"engine":{"name":"new"}}`,
		"history.jsonl":   `{"type":"start","v":2,"at":1}` + "\n" + `{"type":"new`,
	} {
		dir, index := t.TempDir(), &memoryIndex{}
		a := agentFor(t, open(t, Config{Dir: dir, Index: index}), someone)
		path := dir + "/agents/" + string(a.ID) + "/" + file
		writeFile(t, path, []byte(newer))
		s := open(t, Config{Dir: dir, Index: index})
		_, err := s.OpenHistory(t.Context(), storage.Lease{Agent: a.ID})
		if !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), "newer claybot") || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v, want a refusal that names the file", file, err)
		}
		if _, err := s.Records(t.Context(), a.ID); !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("%s: records: got %v, want %v", file, err, storage.ErrDamaged)
		}
		if err := s.SaveState(t.Context(), storage.Lease{Agent: a.ID}, claybot.AgentState{}); err == nil && file != "history.jsonl" {
			t.Errorf("%s: saving the state was not refused", file)
		}
		if got := readFile(t, path); got != newer {
			t.Errorf("%s: rewritten as %q", file, got)
		}
	}
}

func TestOpenReconciles(t *testing.T) {
	dir, index := t.TempDir(), &memoryIndex{}
	s := open(t, Config{Dir: dir, Index: index})
	var agents []claybot.Agent
	for _, user := range []string{"known", "unindexed", "removed", "broken", "twin"} {
		agents = append(agents, agentFor(t, s, claybot.User("web", "c", user)))
	}
	known, unindexed, removed, broken, twin := agents[0], agents[1], agents[2], agents[3], agents[4]
	home := func(a claybot.Agent) string { return dir + "/agents/" + string(a.ID) }
	for _, a := range []claybot.Agent{unindexed, broken, twin} {
		if err := index.UnindexAgent(t.Context(), a.ID); err != nil {
			t.Fatal(err)
		}
	}
	twins := strings.ReplaceAll(readFile(t, home(twin)+"/descriptor.json"), `"twin"`, `"known"`)
	writeFile(t, home(twin)+"/descriptor.json", []byte(twins))
	writeFile(t, home(broken)+"/descriptor.json", []byte("{"))
	unfinished := dir + "/agents/" + newPrefix + string(claybot.NewID())
	if err := errors.Join(os.RemoveAll(home(removed)), os.Mkdir(unfinished, 0o700), os.Mkdir(dir+"/agents/Notes", 0o700)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, unfinished+"/state.json", nil)

	s = open(t, Config{Dir: dir, Index: index})
	if _, err := os.Lstat(unfinished); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the unfinished agent is still there: %v", err)
	}
	if _, err := os.Lstat(dir + "/agents/Notes"); err != nil {
		t.Error(err)
	}
	if len(index.byID) != 2 || agentFor(t, s, known.Descriptor).ID != known.ID || agentFor(t, s, unindexed.Descriptor).ID != unindexed.ID {
		t.Errorf("index is %v, want the known and the unindexed agent", index.byID)
	}
	if got := readFile(t, home(broken)+"/descriptor.json"); got != "{" {
		t.Errorf("the broken descriptor became %q", got)
	}
	if _, err := s.Agent(t.Context(), broken.ID); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("the broken agent: got %v, want %v", err, storage.ErrDamaged)
	}
	if agentFor(t, s, removed.Descriptor).ID == removed.ID {
		t.Error("the removed agent is back")
	}
}

// TestAgentRemovedWhileRunning takes a directory away between two starts of
// use: the next message makes a new agent.
func TestAgentRemovedWhileRunning(t *testing.T) {
	dir, index := t.TempDir(), &memoryIndex{}
	s := open(t, Config{Dir: dir, Index: index})
	s.residents.limit = 0
	a := agentFor(t, s, someone)
	if err := os.RemoveAll(dir + "/agents/" + string(a.ID)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Agent(t.Context(), a.ID); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v, want %v", err, storage.ErrNotFound)
	}
	if b := agentFor(t, s, someone); b.ID == a.ID || len(index.byID) != 1 {
		t.Errorf("got %s and index %v, want one new agent", b.ID, index.byID)
	}
}

// TestIndexFails checks that a descriptor has one agent although the index
// failed after its directory was made.
func TestIndexFails(t *testing.T) {
	dir, index := t.TempDir(), &memoryIndex{fail: syscall.ENOSPC}
	s := open(t, Config{Dir: dir, Index: index})
	if _, err := s.AgentFor(t.Context(), someone); !errors.Is(err, storage.ErrFull) {
		t.Fatalf("got %v, want %v", err, storage.ErrFull)
	}
	a := agentFor(t, s, someone)
	if entries, err := os.ReadDir(dir + "/agents"); err != nil || len(entries) != 1 || entries[0].Name() != string(a.ID) {
		t.Errorf("got directories %v, %v, want only %s", entries, err, a.ID)
	}
}

// TestMoveCutShort leaves MoveChannel after the index, as a crash would.
func TestMoveCutShort(t *testing.T) {
	moved := someone
	moved.ChannelID = "-200"
	for name, finish := range map[string]func(*Store) error{
		"by the next message": func(s *Store) error { _, err := s.AgentFor(t.Context(), moved); return err },
		"by a second move":    func(s *Store) error { return s.MoveChannel(t.Context(), "telegram", "-100", "-200") },
	} {
		dir, index := t.TempDir(), &memoryIndex{}
		a := agentFor(t, open(t, Config{Dir: dir, Index: index}), someone)
		b := a
		b.Descriptor = moved
		if err := index.IndexAgents(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		s := open(t, Config{Dir: dir, Index: index})
		if err := finish(s); err != nil {
			t.Fatal(err)
		}
		if got := readFile(t, dir+"/agents/"+string(a.ID)+"/descriptor.json"); !strings.Contains(got, `"-200"`) {
			t.Errorf("finished %s: got %s", name, got)
		}
		if got := agentFor(t, s, moved); got.ID != a.ID || got.Descriptor != moved {
			t.Errorf("finished %s: got %+v, want %s", name, got, a.ID)
		}
	}
}

func TestResidentsAreBounded(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir(), FS: hastyFS{}})
	s.residents.limit = 2
	for _, user := range []string{"1", "2", "3", "4", "1", "2"} {
		agentFor(t, s, claybot.User("web", "c", user))
	}
	h := openHistory(t, s, agentFor(t, s, someone).ID, 1)
	for _, user := range []string{"1", "2", "3"} {
		agentFor(t, s, claybot.User("web", "c", user))
	}
	if byID, byDesc := len(s.residents.byID), len(s.residents.byDesc); byID != 3 || byDesc != 3 {
		t.Errorf("got %d and %d residents, want 2 and the one in use", byID, byDesc)
	}
	if len(s.keys.gates) != 0 {
		t.Errorf("got %d descriptor gates, want none", len(s.keys.gates))
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if byID := len(s.residents.byID); byID != 2 {
		t.Errorf("got %d residents, want 2", byID)
	}
}

// TestRelease lets go of most agents, and loses nothing of them; what is in use stays.
func TestRelease(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir(), FS: hastyFS{}})
	ids := make([]claybot.AgentID, releasedResidents+50)
	for i := range ids {
		ids[i] = agentFor(t, s, claybot.User("web", "c", strconv.Itoa(i))).ID
		appendTo(t, s, ids[i], said("hello"))
	}
	h := openHistory(t, s, ids[0], 1)
	s.Release()
	if n := len(s.residents.byID); n != releasedResidents+1 {
		t.Errorf("%d agents in memory, want %d and the one in use", n, releasedResidents)
	}
	if n, _ := s.tails.Size(); n != releasedResidents {
		t.Errorf("%d short tails in memory, want %d", n, releasedResidents)
	}
	if err := errors.Join(h.Append(t.Context(), said("bye")), h.Close()); err != nil {
		t.Error(err)
	}
	if agentFor(t, s, claybot.User("web", "c", "0")).ID != ids[0] {
		t.Error("another agent")
	}
	for i, id := range ids {
		want := []string{"hello"}
		if i == 0 {
			want = append(want, "bye")
		}
		if got := texts(records(t, s, id)); !slices.Equal(got, want) {
			t.Errorf("agent %d: %q, want %q", i, got, want)
		}
	}
	large := strings.Repeat("x", releasedTails/2)
	for _, id := range ids[:3] {
		appendTo(t, s, id, said(large))
	}
	s.Release()
	if _, cost := s.tails.Size(); cost > releasedTails {
		t.Errorf("tails take %d bytes after a release", cost)
	}
	appendTo(t, s, ids[1], said("again"))
	if got := records(t, s, ids[1]); got[len(got)-1].Text != "again" || got[len(got)-2].Text != large {
		t.Error("the history has changed")
	}
}

// TestConcurrentUse lets everybody at one agent at once: a worker, readers,
// state changes and a channel that moves forth and back.
func TestConcurrentUse(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir(), FS: hastyFS{}})
	s.residents.limit = 1
	a := agentFor(t, s, someone)
	const n = 200
	var want []string
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			text := strconv.Itoa(i)
			want = append(want, text)
			h, err := s.OpenHistory(t.Context(), storage.Lease{Agent: a.ID, Token: 1})
			if err == nil {
				err = errors.Join(h.Buffer(t.Context(), said(text)), h.Append(t.Context(), said(text+"!")), h.Close())
				want = append(want, text+"!")
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for _, use := range []func(i int) error{
		func(int) error { _, err := s.Records(t.Context(), a.ID); return err },
		func(int) error { _, err := s.Agent(t.Context(), a.ID); return err },
		func(i int) error {
			_, err := s.AgentFor(t.Context(), claybot.User("web", "c", strconv.Itoa(i%5)))
			return err
		},
		func(i int) error {
			return s.SaveState(t.Context(), storage.Lease{Agent: a.ID, Token: 1}, claybot.AgentState{Context: int64(i)})
		},
		func(i int) error {
			channels := [2]string{someone.ChannelID, "-200"}
			return s.MoveChannel(t.Context(), someone.Connector, channels[i%2], channels[(i+1)%2])
		},
	} {
		wg.Go(func() {
			for i := range n {
				if err := use(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	wantTexts(t, "the one order", records(t, s, a.ID), want...)
	if got := agentFor(t, s, someone); got.ID != a.ID {
		t.Errorf("got %s, want %s", got.ID, a.ID)
	}
}
