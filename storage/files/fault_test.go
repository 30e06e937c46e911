package files

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// A scenario is the life of one agent, and what was confirmed of it.
type scenario struct {
	index     *memoryIndex
	id        claybot.AgentID
	confirmed []string // texts whose Append returned nil, since the last reset
	buffered  []string // given to Buffer since, in order
	maybe     []string // of the Append under way or failed last
	reset     bool     // maybe is a reset
	engine    string   // confirmed by SaveState
	engines   []string // that SaveState was called with
	channel   string
}

// run plays the scenario on fsys. Each step is tried as often as tries says;
// the first step that fails for good ends it.
func (sc *scenario) run(ctx context.Context, fsys FS, tries int) error {
	again := func(step func() error) (err error) {
		for range tries {
			if err = step(); err == nil {
				return nil
			}
		}
		return err
	}
	var s *Store
	if err := again(func() (err error) { s, err = Open(Config{Dir: "d", Index: sc.index, FS: fsys}); return err }); err != nil {
		return err
	}
	d := claybot.User("t", "old", "u")
	if err := again(func() error {
		a, err := s.AgentFor(ctx, d)
		if err == nil {
			sc.id, sc.engine = a.ID, a.State.Engine
		}
		return err
	}); err != nil {
		return err
	}
	for round := range 3 {
		l := storage.Lease{Agent: sc.id, Token: int64(round)}
		if err := again(func() error { return sc.converse(ctx, s, l, round, again) }); err != nil {
			return err
		}
		engine := fmt.Sprint("engine", round)
		sc.engines = append(sc.engines, engine)
		if err := again(func() error { return s.SaveState(ctx, l, claybot.AgentState{Engine: engine}) }); err != nil {
			return err
		}
		sc.engine = engine
	}
	sc.channel = "new"
	return again(func() error { return s.MoveChannel(ctx, "t", "old", "new") })
}

// converse opens the history and adds to it.
func (sc *scenario) converse(ctx context.Context, s *Store, l storage.Lease, round int, again func(func() error) error) error {
	h, err := s.OpenHistory(ctx, l)
	if err != nil {
		return err
	}
	for i := range 3 {
		buffered, text := fmt.Sprintf("buffered %d.%d", round, i), fmt.Sprintf("%d.%d", round, i)
		if slices.Contains(sc.confirmed, text) || slices.Contains(sc.maybe, "") {
			continue // confirmed in an earlier try
		}
		if err := again(func() error { return h.Buffer(ctx, said(buffered)) }); err != nil {
			return errors.Join(err, h.Close())
		}
		sc.buffered = append(sc.buffered, buffered)
		batch := []claybot.Record{said(text), said(text + "+")}
		sc.maybe, sc.reset = texts(batch), false
		if round == 1 && i == 1 {
			batch, sc.maybe, sc.reset = append(batch, claybot.Record{Type: claybot.RecordReset, By: "user"}), nil, true
		}
		if err := again(func() error { return h.Append(ctx, batch...) }); err != nil {
			return errors.Join(err, h.Close())
		}
		if sc.confirmed = append(append(sc.confirmed, sc.buffered...), sc.maybe...); sc.reset {
			sc.confirmed = nil
		}
		sc.buffered, sc.maybe, sc.reset = nil, nil, false
	}
	return h.Close()
}

// check opens what is left on fsys and compares it with what was confirmed.
func (sc *scenario) check(t *testing.T, what string, fsys *modelFS) {
	t.Helper()
	fsys.fail = nil
	s, err := Open(Config{Dir: "d", Index: sc.index, FS: fsys})
	if err != nil {
		t.Fatalf("%s: open: %v", what, err)
	}
	a, err := s.AgentFor(t.Context(), claybot.User("t", "old", "u"))
	if sc.channel != "" {
		if err := s.MoveChannel(t.Context(), "t", "old", "new"); err != nil { // it is repeated until it succeeds
			t.Fatalf("%s: move: %v", what, err)
		}
		a, err = s.AgentFor(t.Context(), claybot.User("t", "new", "u"))
	}
	if err != nil {
		t.Fatalf("%s: agent: %v", what, err)
	}
	for _, name := range fsys.list("d/agents") {
		if strings.HasPrefix(name, newPrefix) {
			t.Errorf("%s: %s was left", what, name)
		}
	}
	if sc.id == "" {
		return // never confirmed
	}
	if a.ID != sc.id {
		t.Fatalf("%s: the agent is %s, want %s", what, a.ID, sc.id)
	}
	if e := a.State.Engine; e != sc.engine && !slices.Contains(sc.engines, e) || slices.Index(sc.engines, e) < slices.Index(sc.engines, sc.engine) {
		t.Errorf("%s: state has %q, want %q or later of %q", what, e, sc.engine, sc.engines)
	}
	for range 2 {
		h := openHistory(t, s, a.ID, 1)
		got := texts(h.Records())
		if err := h.Close(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if !sc.allows(got) {
			t.Fatalf("%s: got %q, want %q, then perhaps of %q and %q (reset %v)", what, got, sc.confirmed, sc.buffered, sc.maybe, sc.reset)
		}
	}
	before := texts(records(t, s, a.ID))
	appendTo(t, s, a.ID, said("last"))
	if got, want := texts(records(t, s, a.ID)), append(before, "last"); !slices.Equal(got, want) {
		t.Errorf("%s: after one more append got %q, want %q", what, got, want)
	}
}

// allows reports whether got is what was confirmed, followed by a beginning of
// what was not, or nothing after a reset that was not confirmed.
func (sc *scenario) allows(got []string) bool {
	rest := slices.Concat(sc.buffered, sc.maybe)
	if sc.reset {
		if len(got) == 0 {
			return true
		}
		rest = slices.Concat(sc.buffered, []string{"1.1", "1.1+"})
	}
	n := len(sc.confirmed)
	return len(got) >= n && slices.Equal(got[:n], sc.confirmed) &&
		len(got)-n <= len(rest) && slices.Equal(got[n:], rest[:len(got)-n])
}

func newScenario() (*scenario, *modelFS) {
	fsys := newModelFS()
	if err := errors.Join(fsys.Mkdir("d"), fsys.SyncDir("/")); err != nil {
		panic(err) // the model is broken
	}
	return &scenario{index: &memoryIndex{}}, fsys
}

// TestIOErrorSweep lets the k-th operation fail, for every k, once and from
// then on. What failed once succeeds when it is tried again, without a lost or
// doubled record; what was confirmed survives a disk that stays broken.
func TestIOErrorSweep(t *testing.T) {
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		for k, done := 1, false; !done; k++ {
			sc, fsys := newScenario()
			first := fsys.ops
			fsys.fail = func(op int) error {
				if op == first+k {
					return fault
				}
				return nil
			}
			what := fmt.Sprintf("operation %d fails with %v", k, fault)
			if err := sc.run(t.Context(), fsys, 2); err != nil {
				t.Fatalf("%s once: %v", what, err)
			}
			done = fsys.ops < first+k
			sc.check(t, what+" once", fsys)

			sc, fsys = newScenario()
			fsys.fail = func(op int) error {
				if op >= first+k {
					return fault
				}
				return nil
			}
			err := sc.run(t.Context(), fsys, 2)
			moves := sc.channel != "" && errors.Is(fault, syscall.EIO) // then the files follow the index later
			if !done && !errors.Is(err, fault) && !moves || done && err != nil || errors.Is(err, storage.ErrFull) != (err != nil && full(fault)) {
				t.Fatalf("%s and later: got %v", what, err)
			}
			sc.check(t, what+" and later", fsys)
		}
	}
}

// TestDiskFillsAndRecovers keeps one store and one history over the fault.
func TestDiskFillsAndRecovers(t *testing.T) {
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		_, fsys := newScenario()
		s := open(t, Config{Dir: "d", FS: fsys})
		a := agentFor(t, s, someone)
		h := openHistory(t, s, a.ID, 1)
		if err := errors.Join(h.Append(t.Context(), said("before")), h.Buffer(t.Context(), said("buffered"))); err != nil {
			t.Fatal(err)
		}
		fsys.fail = func(int) error { return fault }
		for range 3 {
			if err := h.Append(t.Context(), said("lost")); !errors.Is(err, fault) {
				t.Fatalf("got %v, want %v", err, fault)
			}
		}
		wantTexts(t, "while it fails", h.Records(), "before", "buffered")
		if errors.Is(fault, syscall.EIO) {
			s.residents.limit = 0 // what has to be cut off must not be forgotten
			if err := h.Close(); !errors.Is(err, fault) {
				t.Errorf("close: got %v, want %v", err, fault)
			}
			fsys.fail = nil
			h = openHistory(t, s, a.ID, 1)
			wantTexts(t, "opened again", h.Records(), "before")
		}
		fsys.fail = nil
		if err := errors.Join(h.Append(t.Context(), said("after")), h.Close()); err != nil {
			t.Fatal(err)
		}
		want := []string{"before", "buffered", "after"}
		if errors.Is(fault, syscall.EIO) {
			want = []string{"before", "after"} // what was only buffered went with its history
		}
		wantTexts(t, "afterwards", records(t, s, a.ID), want...)
		if len(s.residents.byID) > 1 {
			t.Errorf("got %d residents", len(s.residents.byID))
		}
	}
}

// TestPowerCutSweep cuts the power after the k-th operation, for every k, and
// looks at several of the states that the disk may then be in.
func TestPowerCutSweep(t *testing.T) {
	states := 0
	for k, done := 1, false; !done; k++ {
		for seed := range uint64(8) {
			sc, fsys := newScenario()
			first := fsys.ops
			fsys.fail = func(op int) error {
				if op > first+k {
					return errCut
				}
				return nil
			}
			err := sc.run(t.Context(), fsys, 1)
			if err != nil && !errors.Is(err, errCut) {
				t.Fatalf("power cut after operation %d: %v", k, err)
			}
			done = err == nil
			sc.check(t, fmt.Sprintf("power cut after operation %d, seed %d", k, seed), fsys.cut(rand.New(rand.NewPCG(seed, uint64(k)))))
			states++
		}
	}
	if states < 500 {
		t.Errorf("looked at %d states, want at least 500", states)
	}
}

// TestReadMeansDurable kills the process before its last lines are synced, and
// cuts the power after the next process has read them: they are still there,
// and so is what was set aside.
func TestReadMeansDurable(t *testing.T) {
	for seed := range uint64(20) {
		sc, fsys := newScenario()
		cfg := Config{Dir: "d", Index: sc.index, FS: fsys}
		s := open(t, cfg)
		a := agentFor(t, s, someone)
		h := openHistory(t, s, a.ID, 1)
		if err := h.Buffer(t.Context(), said("written")); err != nil {
			t.Fatal(err)
		}
		const torn = `{"type":"user_mess`
		f, err := fsys.Open(s.dir(a.ID)+"/history.jsonl", os.O_WRONLY|os.O_APPEND)
		if err != nil {
			t.Fatal(err)
		}
		if err := writeAll(f, []byte(torn)); err != nil {
			t.Fatal(err)
		}
		wantTexts(t, "after kill -9", openHistory(t, open(t, cfg), a.ID, 1).Records(), "written")
		cfg.FS = fsys.cut(rand.New(rand.NewPCG(seed, 0)))
		wantTexts(t, "after a power cut", records(t, open(t, cfg), a.ID), "written")
		if got := cfg.FS.(*modelFS).quarantined(); !slices.Equal(got, []string{torn}) {
			t.Errorf("quarantine has %q, want %q", got, torn)
		}
	}
}
