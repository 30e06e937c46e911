package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var worker = claybot.Descriptor{Type: claybot.AgentSubagent, UID: "1", Parent: "p", Name: "digger", Owner: "telegram/7"}

// TestSummaryStopsTheReading opens 50 MB behind a summary: neither read nor
// decoded.
func TestSummaryStopsTheReading(t *testing.T) {
	line, err := new(encoder).lines([]claybot.Record{said(strings.Repeat("long ", 200_000))})
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(line, []byte("long"), []byte("lang"), 1)
	file := bytes.Repeat(damaged, 50) // decoding one of these finds damage
	tailLines, err := new(encoder).lines([]claybot.Record{
		said("folded"), said("kept 1"), said("kept 2"), {Type: claybot.RecordSummary, At: 2, Text: "summary", Keep: 2}, said("later"),
	})
	if err != nil {
		t.Fatal(err)
	}
	file = append(file, tailLines...)
	r := &countingReader{r: bytes.NewReader(file)}
	tl, err := readTail(r, int64(len(file)), marker{})
	if err != nil || len(tl.damaged) > 0 || tl.marker.Type != "" {
		t.Fatalf("got %+v, %v", tl.marker, err)
	}
	wantTexts(t, "tail", tl.records, "kept 1", "kept 2", "summary", "later")
	if r.n > 2*chunk {
		t.Errorf("read %d bytes of %d", r.n, len(file))
	}
	if rest := int64(len(file)) - tl.from; rest > 1000 {
		t.Errorf("the tail is %d bytes, want those of the last lines", rest)
	}
}

// TestDamagedSummary reads on behind a summary that is gone.
func TestDamagedSummary(t *testing.T) {
	lines, err := new(encoder).lines([]claybot.Record{
		startRecord(1), said("1"), {Type: claybot.RecordSummary, Text: "first", Keep: 1}, said("2"), {Type: claybot.RecordSummary, Text: "second"}, said("3"),
	})
	if err != nil {
		t.Fatal(err)
	}
	lines = bytes.Replace(lines, []byte("second"), []byte("secund"), 1)
	tl, err := readTail(bytes.NewReader(lines), int64(len(lines)), marker{})
	if err != nil || len(tl.damaged) != 1 {
		t.Fatalf("got %+v, %v", tl, err)
	}
	wantTexts(t, "tail", tl.records, "1", "first", "2", "3")
}

// TestSummaryInTheCache: a history that was compacted takes little of the cache
// and is what the file says.
func TestSummaryInTheCache(t *testing.T) {
	fsys := &countingFS{}
	s := open(t, Config{Dir: t.TempDir(), FS: fsys})
	a := agentFor(t, s, someone)
	for range 20 {
		appendTo(t, s, a.ID, said(strings.Repeat("x", 100_000)))
	}
	appendTo(t, s, a.ID, said("kept"), claybot.Record{Type: claybot.RecordSummary, Text: "summary", Keep: 1})
	if _, bytes := s.tails.Size(); bytes > 10_000 {
		t.Errorf("the cache has %d bytes", bytes)
	}
	fsys.reads = 0
	h := openHistory(t, s, a.ID, 1)
	wantTexts(t, "from the cache", h.Records(), "kept", "summary")
	if m := h.Marker(); m.Type != "" || fsys.reads != 0 {
		t.Errorf("marker %+v, read %d times", m, fsys.reads)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, "from the file", records(t, s, a.ID), "kept", "summary")
}

func TestResultFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	a := agentFor(t, s, someone)
	for _, text := range []string{"first", "", strings.Repeat("second", 100_000)} {
		path, err := s.SaveResult(t.Context(), a.ID, "call_1", text)
		if err != nil || path != "agents/"+string(a.ID)+"/results/call_1.txt" {
			t.Fatalf("got %s, %v", path, err)
		}
		full := dir + "/" + path
		if got := readFile(t, full); got != text {
			t.Errorf("the file has %d bytes, want %d", len(got), len(text))
		}
		for name, want := range map[string]os.FileMode{full: 0o600, filepath.Dir(full): os.ModeDir | 0o700} {
			if st, err := os.Stat(name); err != nil || st.Mode() != want {
				t.Errorf("%s: mode %v, %v, want %v", name, st.Mode(), err, want)
			}
		}
	}
	if entries, err := os.ReadDir(dir + "/agents/" + string(a.ID) + "/results"); err != nil || len(entries) != 1 {
		t.Errorf("results has %v, %v", entries, err)
	}
}

func FuzzResultName(f *testing.F) {
	for _, call := range []string{"", "call_1", "../x", "a.b", "\x00", strings.Repeat("x", 65)} {
		f.Add(call, call+".")
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		name := storage.ResultName(one)
		if name != filepath.Base(name) || !filepath.IsLocal(name) || len(name) > 128 || name[0] == '.' || !strings.HasSuffix(name, ".txt") {
			t.Errorf("%q is kept as %q", one, name)
		}
		if one != two && name == storage.ResultName(two) {
			t.Errorf("%q and %q are both kept as %q", one, two, name)
		}
	})
}

// TestDeleteMovesTheFiles: everything of the agent is in the quarantine, its
// saved results too, and stays there when damage comes after it.
func TestDeleteMovesTheFiles(t *testing.T) {
	dir := t.TempDir()
	index := &memoryIndex{}
	s := open(t, Config{Dir: dir, Index: index, FS: hastyFS{}})
	a := agentFor(t, s, someone)
	appendTo(t, s, a.ID, said("kept"))
	if _, err := s.SaveResult(t.Context(), a.ID, "c", "text"); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	s.quarantine.limit = 10
	if _, err := s.quarantine.keep("x", []byte("0123456789")); err != nil {
		t.Fatal(err)
	}
	moved, err := filepath.Glob(dir + "/quarantine/" + string(a.ID) + "-*")
	if err != nil || len(moved) != 1 {
		t.Fatalf("moved to %v, %v", moved, err)
	}
	if got := readFile(t, moved[0]+"/history.jsonl") + readFile(t, moved[0]+"/results/c.txt"); !strings.Contains(got, "kept") || !strings.Contains(got, "text") {
		t.Errorf("the quarantine has %q", got)
	}
	if left, err := os.ReadDir(dir + "/agents"); err != nil || len(left) != 0 || len(index.byID) != 0 {
		t.Errorf("left behind %v and %v, %v", left, index.byID, err)
	}
	tails, _ := s.tails.Size()
	if len(s.residents.byID) != 0 || len(s.residents.byDesc) != 0 || tails != 0 {
		t.Error("the agent is still in memory")
	}
	// An open history of one that is deleted lets it go with its last user.
	b := agentFor(t, s, someone)
	h := openHistory(t, s, b.ID, 1)
	if err := errors.Join(h.Buffer(t.Context(), said("buffered")), s.Delete(t.Context(), b.ID)); err != nil {
		t.Fatal(err)
	}
	if err := h.Append(t.Context(), said("late")); !errors.Is(err, storage.ErrLeaseLost) {
		t.Errorf("got %v, want %v", err, storage.ErrLeaseLost)
	}
	if err := h.Close(); err != nil || len(s.residents.byID) != 0 {
		t.Errorf("closed with %v, %d in memory", err, len(s.residents.byID))
	}
}

// TestDeleteDamaged: an agent that cannot be loaded can be deleted.
func TestDeleteDamaged(t *testing.T) {
	dir := t.TempDir()
	index := &memoryIndex{}
	a := agentFor(t, open(t, Config{Dir: dir, Index: index}), someone)
	home := dir + "/agents/" + string(a.ID)
	writeFile(t, home+"/descriptor.json", []byte("{"))
	if err := index.UnindexAgent(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	s := open(t, Config{Dir: dir, Index: index})
	if err := s.Delete(t.Context(), a.ID); err != nil {
		t.Error(err)
	}
	if err := s.Delete(t.Context(), a.ID); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("again: got %v, want %v", err, storage.ErrNotFound)
	}
}

// TestDeleteCutAtEveryStep cuts the power, or fails the disk, at every step of
// a deletion: the agent is whole afterwards, or gone, and can be deleted again.
func TestDeleteCutAtEveryStep(t *testing.T) {
	for _, broken := range []error{errCut, syscall.ENOSPC} {
		for step, done := 1, false; !done; step++ {
			fsys, index := newModelFS(), &memoryIndex{}
			if err := errors.Join(fsys.Mkdir("d"), fsys.SyncDir("/")); err != nil {
				t.Fatal(err)
			}
			s := open(t, Config{Dir: "d", Index: index, FS: fsys})
			a := agentFor(t, s, worker)
			appendTo(t, s, a.ID, said("kept"))
			from := fsys.ops
			fsys.fail = func(op int) error {
				if op == from+step || errors.Is(broken, errCut) && op > from+step {
					return broken
				}
				return nil
			}
			done = s.Delete(t.Context(), a.ID) == nil
			fsys.fail = nil
			if errors.Is(broken, errCut) {
				fsys = fsys.cut(rand.New(rand.NewPCG(uint64(step), 1)))
			}
			s = open(t, Config{Dir: "d", Index: index, FS: fsys})
			b := agentFor(t, s, worker)
			if done && b.ID == a.ID {
				t.Fatalf("%v at step %d: deleted, and back", broken, step)
			}
			if b.ID == a.ID {
				wantTexts(t, fmt.Sprintf("%v at step %d", broken, step), records(t, s, a.ID), "kept")
			}
			if len(index.byID) != 1 {
				t.Errorf("%v at step %d: index has %v", broken, step, index.byID)
			}
			if err := s.Delete(t.Context(), b.ID); err != nil {
				t.Errorf("%v at step %d: again: %v", broken, step, err)
			}
		}
	}
}

// unindexFails is an index whose removals fail.
type unindexFails struct{ *memoryIndex }

func (unindexFails) UnindexAgent(context.Context, claybot.AgentID) error { return storage.ErrBusy }

// TestDeleteHalfDone leaves a deletion between the files and the index.
func TestDeleteHalfDone(t *testing.T) {
	for name, finish := range map[string]func(s *Store, id claybot.AgentID) error{
		"by a second call":    func(s *Store, id claybot.AgentID) error { return s.Delete(t.Context(), id) },
		"by the next message": func(s *Store, _ claybot.AgentID) error { _, err := s.AgentFor(t.Context(), someone); return err },
		"by the next start":   nil,
		"by the next lookup": func(s *Store, id claybot.AgentID) error {
			_, err := s.Agent(t.Context(), id)
			return ignoring(err, storage.ErrNotFound)
		},
	} {
		dir, index := t.TempDir(), &memoryIndex{}
		s := open(t, Config{Dir: dir, Index: index, FS: hastyFS{}})
		a := agentFor(t, s, someone)
		s.index = unindexFails{index}
		if err := s.Delete(t.Context(), a.ID); !errors.Is(err, storage.ErrBusy) {
			t.Fatalf("%s: got %v, want %v", name, err, storage.ErrBusy)
		}
		s.index = index
		if finish == nil {
			s = open(t, Config{Dir: dir, Index: index, FS: hastyFS{}})
		} else if err := finish(s, a.ID); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b := agentFor(t, s, someone); b.ID == a.ID || len(index.byID) != 1 {
			t.Errorf("%s: got %s and index %v, want one new agent", name, b.ID, index.byID)
		}
	}
}

func ignoring(err, known error) error {
	if errors.Is(err, known) {
		return nil
	}
	return err
}

// TestNewNameCutShort changes the name of an agent and fails at every step: the
// next call has it in the file and in the index.
func TestNewNameCutShort(t *testing.T) {
	renamed := worker
	renamed.Name, renamed.Owner = "painter", "slack/8"
	for step, done := 1, false; !done; step++ {
		fsys, index := newModelFS(), &memoryIndex{}
		if err := errors.Join(fsys.Mkdir("d"), fsys.SyncDir("/")); err != nil {
			t.Fatal(err)
		}
		s := open(t, Config{Dir: "d", Index: index, FS: fsys})
		a := agentFor(t, s, worker)
		from := fsys.ops
		fsys.fail = func(op int) error {
			if op == from+step {
				return syscall.ENOSPC
			}
			return nil
		}
		_, err := s.AgentFor(t.Context(), renamed)
		done = err == nil
		fsys.fail = nil
		if step%2 == 0 {
			s = open(t, Config{Dir: "d", Index: index, FS: fsys})
		}
		if b := agentFor(t, s, renamed); b.ID != a.ID || b.Descriptor != renamed {
			t.Errorf("step %d: got %+v", step, b)
		}
		if got := index.byID[a.ID].Descriptor; got != renamed || len(index.byID) != 1 {
			t.Errorf("step %d: index has %+v", step, got)
		}
		if got := string(fsys.content("d/agents/" + string(a.ID) + "/descriptor.json")); !strings.Contains(got, "painter") || !strings.Contains(got, "slack/8") {
			t.Errorf("step %d: descriptor.json is %s", step, got)
		}
	}
}

// FuzzSummaries compares what an open history remembers with what its file
// says, for any order of messages, summaries and resets.
func FuzzSummaries(f *testing.F) {
	f.Add([]byte{1, 2, 0x81, 3, 0x80, 0x8f, 4})
	f.Add([]byte{0xff, 1, 0x81, 0xff, 0x82, 0x81})
	f.Fuzz(func(t *testing.T, steps []byte) {
		all := []claybot.Record{startRecord(1)}
		var want []claybot.Record
		for i, b := range steps[:min(len(steps), 200)] {
			switch r := said(fmt.Sprint(i)); {
			case b == 0xff:
				all, want = append(all, claybot.Record{Type: claybot.RecordReset, At: 2}), nil
			case b >= 0x80:
				r = claybot.Record{Type: claybot.RecordSummary, Text: fmt.Sprint("summary ", i), Keep: int(b&0x7f) - 2}
				all, want = append(all, r), storage.Summarized(want, r)
			default:
				all, want = append(all, r), append(want, r)
			}
		}
		file, err := new(encoder).lines(all)
		if err != nil {
			t.Fatal(err)
		}
		tl, err := readTail(bytes.NewReader(file), int64(len(file)), marker{})
		if err != nil || len(tl.damaged) > 0 || len(tl.records)+len(want) > 0 && !reflect.DeepEqual(tl.records, want) {
			t.Errorf("got %q, %v, want %q", texts(tl.records), err, texts(want))
		}
	})
}
