package files

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// endsIndex is an index that keeps ends as well.
type endsIndex struct {
	memoryIndex
	marks map[string]string
}

func (m *endsIndex) Checkpoint(_ context.Context, key string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.marks[key], nil
}

func (m *endsIndex) SetCheckpoints(_ context.Context, values map[string]string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.marks == nil {
		m.marks = make(map[string]string)
	}
	maps.Copy(m.marks, values)
	return nil
}

var reset = claybot.Record{Type: claybot.RecordReset, At: 5, By: "user"}

// A house is a data directory with one agent, which is closed, and what its person was
// told when it was opened again.
type house struct {
	dir, history string
	index        *endsIndex
	agent        claybot.Agent
	told         []string
}

func (h *house) config() Config {
	return Config{Dir: h.dir, Index: h.index, FS: hastyFS{}, OnDamage: func(_ claybot.AgentID, text string) { h.told = append(h.told, text) }}
}

// again opens the store again, as the next process does.
func (h *house) again(t testing.TB) (*Store, []claybot.Record) {
	t.Helper()
	s := open(t, h.config())
	o := openHistory(t, s, h.agent.ID, 1)
	got := slices.Clone(o.Records())
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s, got
}

// newHouse has an agent that remembers the records.
func newHouse(t testing.TB, records ...claybot.Record) *house {
	t.Helper()
	h := &house{dir: t.TempDir(), index: new(endsIndex)}
	s := open(t, h.config())
	h.agent = agentFor(t, s, someone)
	h.history = h.dir + "/agents/" + string(h.agent.ID) + "/history.jsonl"
	o := openHistory(t, s, h.agent.ID, 1)
	for _, r := range records {
		if err := o.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return h
}

// A flipped bit in the line of a reset revived what the person had forgotten (R6). Each
// copy of where the reset is protects by itself.
func TestDamagedReset(t *testing.T) {
	for _, tt := range []struct {
		name string
		lose func(t *testing.T, h *house)
	}{
		{"both copies", func(*testing.T, *house) {}},
		{"state.json alone", func(_ *testing.T, h *house) { h.index.marks = nil }},
		{"the index alone", func(t *testing.T, h *house) {
			writeFile(t, filepath.Dir(h.history)+"/state.json", []byte(`{"v":1}`))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, said("secret"), said("more of it"), reset, said("new"), said("words"))
			tt.lose(t, h)
			whole := []byte(readFile(t, h.history))
			marks, state := maps.Clone(h.index.marks), readFile(t, filepath.Dir(h.history)+"/state.json")
			from := strings.Index(string(whole), `{"type":"reset"`)
			to := from + strings.IndexByte(string(whole[from:]), '\n')
			for at := from; at < to; at++ {
				bad := slices.Clone(whole)
				bad[at] ^= 1 << (at % 8)
				writeFile(t, h.history, bad)
				h.index.marks, h.told = maps.Clone(marks), nil
				writeFile(t, filepath.Dir(h.history)+"/state.json", []byte(state))
				if err := os.RemoveAll(h.dir + "/quarantine"); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					_, got := h.again(t)
					if bad[at] != '\n' { // else the two halves of the line are told as well
						wantTexts(t, fmt.Sprintf("byte %d", at), got, "new", "words")
					}
				}
				if want := []string{saidBegin}; !reflect.DeepEqual(h.told, want) {
					t.Fatalf("byte %d: told %q, want %q, once", at, h.told, want)
				}
				if kept := quarantined(t, h.dir); len(kept) == 0 {
					t.Errorf("byte %d: the damaged line is not kept", at)
				}
			}
		})
	}
}

// A crash between the history and the copies of its marker leaves an older copy: then
// the file counts, and nothing is reported.
func TestMarkerOlderThanHistory(t *testing.T) {
	h := newHouse(t, said("secret"), reset, said("old"))
	state, marks := readFile(t, filepath.Dir(h.history)+"/state.json"), maps.Clone(h.index.marks)
	s := open(t, h.config())
	appendTo(t, s, h.agent.ID, said("older"), reset, said("new"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Dir(h.history)+"/state.json", []byte(state))
	h.index.marks = marks
	_, got := h.again(t)
	wantTexts(t, "after the crash", got, "new")
	if len(h.told) > 0 {
		t.Errorf("told %q", h.told)
	}
	if strings.Contains(readFile(t, h.history), `"reset"`) == false {
		t.Fatal("the history has no reset")
	}
	// The copy is caught up with: now it protects.
	bad := []byte(readFile(t, h.history))
	bad[strings.LastIndex(string(bad), `"reset"`)+2] ^= 4
	writeFile(t, h.history, bad)
	_, got = h.again(t)
	wantTexts(t, "after the damage", got, "new")
}

// A directory of an older version has no copies; they are made from what is read.
func TestMarkerIsAdopted(t *testing.T) {
	h := newHouse(t, said("secret"), reset, said("new"))
	writeFile(t, filepath.Dir(h.history)+"/state.json", []byte(`{"v":1,"later":7}`))
	h.index.marks = nil
	h.again(t)
	s := open(t, h.config())
	o := openHistory(t, s, h.agent.ID, 2)
	if err := s.SaveState(t.Context(), lease(h.agent.ID, 2), claybot.AgentState{Engine: "plan"}); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"state.json": readFile(t, filepath.Dir(h.history)+"/state.json"), "the index": h.index.marks[endKey(h.agent.ID)],
	} {
		if !strings.Contains(text, `"offset"`) {
			t.Errorf("%s has no marker: %s", what, text)
		}
	}
}

// A history that was edited has its reset at another place.
func TestEditedHistory(t *testing.T) {
	h := newHouse(t, said("secret"), said("typo"), reset, said("new"))
	lines := strings.SplitAfter(readFile(t, h.history), "\n")
	writeFile(t, h.history, []byte(strings.Join(slices.Delete(lines, 1, 2), "")))
	_, got := h.again(t)
	wantTexts(t, "edited", got, "new")
	// A crash that cuts its last line short makes nothing of it suspect.
	writeFile(t, h.history, []byte(readFile(t, h.history)+`{"type":"user","te`))
	_, got = h.again(t)
	wantTexts(t, "edited, and cut short", got, "new")
	if len(h.told) > 1 || len(h.told) == 1 && h.told[0] != saidShorter {
		t.Errorf("told %q", h.told)
	}
}

// What is gone is told once, and the agent goes on.
func TestWhatIsGoneIsTold(t *testing.T) {
	for _, tt := range []struct {
		name string
		lose func(h *house) error
		left []string
		told string
	}{
		{"history.jsonl removed", func(h *house) error { return os.Remove(h.history) }, nil, saidGone},
		{"history.jsonl emptied", func(h *house) error { return os.Truncate(h.history, 0) }, nil, saidGone},
		{"the directory removed", func(h *house) error { return os.RemoveAll(filepath.Dir(h.history)) }, nil, saidGone},
		{"an older copy, from before the reset", func(h *house) error {
			b, err := os.ReadFile(h.history)
			if err != nil {
				return err
			}
			return os.WriteFile(h.history, b[:strings.Index(string(b), `{"type":"reset"`)], 0o600)
		}, nil, saidGone},
		{"an older copy, from after the reset", func(h *house) error {
			b, err := os.ReadFile(h.history)
			if err != nil {
				return err
			}
			return os.WriteFile(h.history, b[:strings.LastIndex(strings.TrimSuffix(string(b), "\n"), "\n")+1], 0o600)
		}, []string{"new"}, saidShorter},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, said("secret"), reset, said("new"), said("words"))
			if err := tt.lose(h); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				s := open(t, h.config())
				h.agent = agentFor(t, s, someone)
				h.history = h.dir + "/agents/" + string(h.agent.ID) + "/history.jsonl"
				wantTexts(t, "left", records(t, s, h.agent.ID), tt.left...)
				appendTo(t, s, h.agent.ID, said(fmt.Sprint("next ", i)))
				tt.left = append(tt.left, fmt.Sprint("next ", i))
				wantTexts(t, "with what was added", records(t, s, h.agent.ID), tt.left...)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if want := []string{tt.told}; !reflect.DeepEqual(h.told, want) {
				t.Errorf("told %q, want %q", h.told, want)
			}
		})
	}
}

// An agent that was deleted is not reported as lost.
func TestDeletedIsNotGone(t *testing.T) {
	h := newHouse(t, said("secret"))
	s := open(t, h.config())
	if err := s.Delete(t.Context(), h.agent.ID); err != nil {
		t.Fatal(err)
	}
	agentFor(t, s, someone)
	// As if the process had died before the index was told.
	if err := h.index.IndexAgents(t.Context(), h.agent); err != nil {
		t.Log(err) // the new agent has the descriptor
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	agentFor(t, open(t, h.config()), someone)
	if len(h.told) > 0 {
		t.Errorf("told %q", h.told)
	}
}

// Random damages of a history: nothing that was forgotten comes back, nothing that was
// changed is believed, and nothing that is missing goes untold.
func TestHistoryDamageSweep(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("CLAYBOT_TEST_DAMAGES"))
	if err != nil {
		n = 60
	}
	var all []claybot.Record
	for i := range 40 {
		all = append(all, said(fmt.Sprint("forgotten ", i, strings.Repeat(" and so on", i%9*8))))
	}
	all = append(all, reset)
	for i := range 40 {
		all = append(all, said(fmt.Sprint("kept ", i, strings.Repeat(" and so on", i%7*8))))
	}
	h := newHouse(t, all...)
	whole := []byte(readFile(t, h.history))
	state, marks := readFile(t, filepath.Dir(h.history)+"/state.json"), maps.Clone(h.index.marks)
	want := texts(all[41:])
	noticed, harmless := 0, 0
	for seed := range uint64(n) {
		bad, how := hurt(rand.New(rand.NewPCG(seed, 13)), whole)
		writeFile(t, h.history, bad)
		writeFile(t, filepath.Dir(h.history)+"/state.json", []byte(state))
		h.index.marks, h.told = maps.Clone(marks), nil
		if err := os.RemoveAll(h.dir + "/quarantine"); err != nil {
			t.Fatal(err)
		}
		_, records := h.again(t)
		got := texts(records)
		for _, text := range got {
			if !slices.Contains(want, text) {
				t.Fatalf("seed %d, %s: remembers %q", seed, how, text)
			}
		}
		switch {
		case len(h.told) > 0:
			noticed++
		case slices.Equal(got, want):
			harmless++ // before the reset, where nothing is read
		default:
			t.Errorf("seed %d, %s: %d of %d records, and no report", seed, how, len(got), len(want))
		}
	}
	t.Logf("%d told, %d harmless", noticed, harmless)
}

// A history that was cut at the end of a line right after its process was killed went
// unnoticed: its end was recorded once a minute only. Now the end of each run commits it.
func TestHistoryCutAfterKill(t *testing.T) {
	const turns = 12
	h := newHouse(t)
	s := open(t, h.config())
	for i := range turns {
		o := openHistory(t, s, h.agent.ID, 1)
		for _, text := range []string{"question", "answer"} {
			if err := o.Append(t.Context(), said(fmt.Sprint(text, " ", i))); err != nil {
				t.Fatal(err)
			}
		}
		end := storage.EndOf(t.Context(), o)
		if err := h.index.SetCheckpoints(t.Context(), map[string]string{end.Key: end.Value}); err != nil { // as the end of a run does
			t.Fatal(err)
		}
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	marks, whole := maps.Clone(h.index.marks), readFile(t, h.history) // the process is killed here
	state := readFile(t, filepath.Dir(h.history)+"/state.json")
	for at := range whole {
		if at > 0 && whole[at-1] != '\n' {
			continue
		}
		writeFile(t, h.history, []byte(whole[:at]))
		writeFile(t, filepath.Dir(h.history)+"/state.json", []byte(state))
		h.index.marks, h.told = maps.Clone(marks), nil
		for range 2 {
			h.again(t)
		}
		if len(h.told) != 1 {
			t.Errorf("cut at %d of %d: told %q, want one sentence", at, len(whole), h.told)
		}
	}
	for _, more := range []string{"", `{"type":"user","te`} { // whole, and with what a kill leaves of the next run
		writeFile(t, h.history, []byte(whole+more))
		h.index.marks, h.told = maps.Clone(marks), nil
		if _, got := h.again(t); len(got) != 2*turns || len(h.told) > 0 {
			t.Errorf("with %q behind it: %d records, told %q", more, len(got), h.told)
		}
	}
}

// hurt damages a copy of b at a random place, and says how.
func hurt(r *rand.Rand, b []byte) (damaged []byte, how string) {
	damaged = slices.Clone(b)
	size := 512 << r.IntN(4) // to 4096
	block := func() []byte { at := r.IntN(len(b)/size) * size; return damaged[at : at+size] }
	switch r.IntN(5) {
	case 0, 1:
		at, bit := r.IntN(len(b)), r.IntN(8)
		damaged[at] ^= 1 << bit
		return damaged, fmt.Sprintf("bit %d of byte %d flipped", bit, at)
	case 2:
		clear(block())
		return damaged, fmt.Sprintf("%d bytes zeroed", size)
	case 3:
		x, y := block(), block()
		for i := range x {
			x[i], y[i] = y[i], x[i]
		}
		return damaged, fmt.Sprintf("blocks of %d bytes swapped", size)
	}
	at := r.IntN(len(b))
	return damaged[:at], fmt.Sprintf("cut at %d of %d", at, len(b))
}

func lease(id claybot.AgentID, token int64) storage.Lease {
	return storage.Lease{Agent: id, Node: "n", Token: token}
}

// slowEnds are ends of a database that ends a read with its context.
type slowEnds struct{ endsIndex }

func (m *slowEnds) Checkpoint(ctx context.Context, key string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return m.endsIndex.Checkpoint(ctx, key)
}

// A run that is canceled opens the history as well: its end is recorded there.
func TestOpenHistoryOfACanceledRun(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), Index: new(slowEnds), FS: hastyFS{}}
	s := open(t, cfg)
	a := agentFor(t, s, someone)
	appendTo(t, s, a.ID, said("one"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h, err := open(t, cfg).OpenHistory(ctx, lease(a.ID, 2))
	if err != nil {
		t.Fatal(err)
	}
	wantTexts(t, "records", h.Records(), "one")
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}
