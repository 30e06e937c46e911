package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/local"
)

// observed is the local provider, which counts, and fails when it is told to.
type observed struct {
	workspace.Provider

	mu      sync.Mutex
	opened  map[workspace.Key]int
	removed []string
	fails   int  // the next removals
	gone    bool // the next use finds the workspace gone
	hold    chan struct{}
	opening int // at the same time
	most    int
}

func (o *observed) Open(ctx context.Context, key workspace.Key, s workspace.Spec) (workspace.Workspace, error) {
	o.mu.Lock()
	o.opened[key]++
	o.opening++
	o.most = max(o.most, o.opening)
	o.mu.Unlock()
	time.Sleep(time.Millisecond) // so that others come meanwhile
	w, err := o.Provider.Open(ctx, key, s)
	o.mu.Lock()
	o.opening--
	o.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return &observedWorkspace{Workspace: w, o: o}, nil
}

func (o *observed) Remove(ctx context.Context, key workspace.Key, data bool) error {
	o.mu.Lock()
	fail := o.fails > 0
	if fail {
		o.fails--
	} else {
		o.removed = append(o.removed, fmt.Sprintf("%s %v", key, data))
	}
	o.mu.Unlock()
	if fail {
		return &workspace.Error{Code: workspace.Failed, Text: "the engine does not answer"}
	}
	return o.Provider.Remove(ctx, key, data)
}

// fail lets the next removals fail.
func (o *observed) fail(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fails = n
}

func (o *observed) removals() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.removed)
}

type observedWorkspace struct {
	workspace.Workspace
	o *observed
}

// ReadFile waits while the provider is held.
func (w *observedWorkspace) ReadFile(ctx context.Context, path string, max int64) ([]byte, error) {
	w.o.mu.Lock()
	hold, gone := w.o.hold, w.o.gone
	w.o.gone = false
	w.o.mu.Unlock()
	if gone {
		return nil, &workspace.Error{Code: workspace.Gone, Text: "the container has ended"}
	}
	if hold != nil {
		<-hold
	}
	return w.Workspace.ReadFile(ctx, path, max)
}

// A rig is a Manager on a real provider and a real ledger.
type rig struct {
	*testing.T
	o    *observed
	db   *sqlite.DB
	m    *workspace.Manager
	cfg  workspace.ManagerConfig
	stop func()
}

var full = workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkFull}}

func newRig(t *testing.T, exists func(claybot.AgentID) (bool, error)) *rig {
	t.Helper()
	dir := t.TempDir()
	db, err := sqlite.Open(context.Background(), filepath.Join(dir, "claybot.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, db: db, o: &observed{Provider: local.New(local.Config{Dir: filepath.Join(dir, "ws")}), opened: make(map[workspace.Key]int)}}
	r.cfg = workspace.ManagerConfig{Providers: []workspace.Provider{r.o}, Ledger: db, Node: "n1"}
	if exists != nil {
		r.cfg.Exists = func(_ context.Context, id claybot.AgentID) (bool, error) { return exists(id) }
	}
	r.m = workspace.NewManager(r.cfg)
	return r
}

// run runs the manager until the end of the test.
func (r *rig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.m.Run(ctx)
	}()
	r.stop = func() { cancel(); <-done }
}

func (r *rig) close() {
	if r.stop != nil {
		r.stop()
	}
	if err := r.db.Close(); err != nil {
		r.Error(err)
	}
}

func (r *rig) open(key workspace.Key, ttl time.Duration) workspace.Workspace {
	r.Helper()
	w, err := r.m.Open(r.Context(), workspace.Want{Provider: "local", Key: key, Spec: full, TTL: ttl})
	if err != nil {
		r.Fatal(err)
	}
	return w
}

func (r *rig) entry(key workspace.Key) workspace.Listed {
	r.Helper()
	list, err := r.m.List(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	for _, l := range list {
		if l.Key == key {
			return l
		}
	}
	return workspace.Listed{}
}

func TestManagerOpensOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.close()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				w, err := r.m.Open(t.Context(), workspace.Want{Provider: "local", Key: "agent/a", Spec: full})
				if err == nil {
					err = w.WriteFile(t.Context(), "x", nil)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if r.o.opened["agent/a"] != 1 || r.o.most != 1 {
			t.Errorf("opened %d times, %d at once", r.o.opened["agent/a"], r.o.most)
		}
		if e := r.entry("agent/a"); e.State != workspace.Running || e.Agent != "a" || e.InUse || !e.Expires.IsZero() {
			t.Errorf("entry %+v", e)
		}
	})
}

func TestManagerRefuses(t *testing.T) {
	r := newRig(t, nil)
	defer r.close()
	for _, tt := range []struct {
		name string
		w    workspace.Want
		want workspace.Code
	}{
		{"unknown provider", workspace.Want{Provider: "podman", Key: "agent/a"}, workspace.Unavailable},
		{"no key", workspace.Want{Provider: "local"}, workspace.Refused},
		{"bad spec", workspace.Want{Provider: "local", Key: "agent/a", Spec: workspace.Spec{Memory: -1}}, workspace.Refused},
	} {
		if _, err := r.m.Open(t.Context(), tt.w); !workspace.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if err := r.m.Check(t.Context(), "podman"); !workspace.Is(err, workspace.Unavailable) {
		t.Error(err)
	}
	if err := r.m.Check(t.Context(), "local"); err != nil {
		t.Error(err)
	}
}

// One that was not used for its time is removed, its files stay, and the next use
// has them.
func TestManagerExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.close()
		r.run()
		w, kept := r.open("agent/a", time.Hour), r.open("agent/kept", 0)
		if err := w.WriteFile(t.Context(), "x", []byte("data")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Minute)
		if err := w.WriteFile(t.Context(), "y", nil); err != nil { // begins its time anew
			t.Fatal(err)
		}
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		if got := r.o.removals(); got != nil {
			t.Fatalf("removed %q", got)
		}
		time.Sleep(16 * time.Minute)
		synctest.Wait()
		if got, want := r.o.removals(), []string{"agent/a false"}; !slices.Equal(got, want) {
			t.Fatalf("removed %q, want %q", got, want)
		}
		if e := r.entry("agent/a"); e.State != workspace.Idle {
			t.Errorf("entry %+v", e)
		}
		if b, err := w.ReadFile(t.Context(), "x", 10); err != nil || string(b) != "data" || r.o.opened["agent/a"] != 2 {
			t.Errorf("opened %d times, %q, %v", r.o.opened["agent/a"], b, err)
		}
		time.Sleep(3 * 24 * time.Hour)
		synctest.Wait()
		if e := r.entry("agent/kept"); e.State != workspace.Running {
			t.Errorf("entry %+v", e)
		}
		if _, err := kept.ReadFile(t.Context(), "x", 10); !workspace.Is(err, workspace.NotFound) {
			t.Error(err)
		}
	})
}

func TestManagerKeepsWhatIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.close()
		r.run()
		w := r.open("agent/a", time.Minute)
		if err := w.WriteFile(t.Context(), "x", []byte("data")); err != nil {
			t.Fatal(err)
		}
		r.o.hold = make(chan struct{})
		done := make(chan error)
		go func() {
			_, err := w.ReadFile(t.Context(), "x", 10)
			done <- err
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		if e := r.entry("agent/a"); !e.InUse || e.State != workspace.Running || r.o.removals() != nil {
			t.Errorf("entry %+v, removed %q", e, r.o.removals())
		}
		close(r.o.hold)
		if err := <-done; err != nil {
			t.Error(err)
		}
		end := time.Now()
		if e := r.entry("agent/a"); e.LastUsed.Before(end.Add(-time.Second)) || e.InUse {
			t.Errorf("at %v: %+v", end, e)
		}
		time.Sleep(7 * time.Minute)
		synctest.Wait()
		if got := r.o.removals(); len(got) != 1 {
			t.Errorf("removed %q", got)
		}
	})
}

// Renew ends what is open and not in use, of its provider alone; the next use has the files.
func TestManagerRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.close()
		r.run()
		idle, used := r.open("agent/a", time.Hour), r.open("agent/b", time.Hour)
		for _, w := range []workspace.Workspace{idle, used} {
			if err := w.WriteFile(t.Context(), "x", []byte("data")); err != nil {
				t.Fatal(err)
			}
		}
		r.o.hold = make(chan struct{})
		done := make(chan error)
		go func() {
			_, err := used.ReadFile(t.Context(), "x", 10)
			done <- err
		}()
		synctest.Wait()
		if err := r.m.Renew(t.Context(), "local"); err != nil {
			t.Error(err)
		}
		if err := r.m.Renew(t.Context(), "none"); !workspace.Is(err, workspace.Unavailable) {
			t.Errorf("another provider: %v", err)
		}
		close(r.o.hold)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got, want := r.o.removals(), []string{"agent/a false"}; !slices.Equal(got, want) {
			t.Errorf("removed %q, want %q", got, want)
		}
		if b, err := idle.ReadFile(t.Context(), "x", 10); err != nil || string(b) != "data" {
			t.Errorf("%q, %v", b, err)
		}
	})
}

func TestManagerTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.close()
		r.run()
		r.open("agent/a", time.Minute)
		r.o.fail(12)
		time.Sleep(6 * time.Minute) // due, and the first try
		synctest.Wait()
		first := r.entry("agent/a")
		if first.State != workspace.Terminating || first.Problem == "" || first.Tries < 1 {
			t.Fatalf("entry %+v", first)
		}
		time.Sleep(40 * time.Minute)
		synctest.Wait()
		// 2+4+...+512 s are 17 minutes, then it is 15 minutes each.
		if e := r.entry("agent/a"); e.Tries < 10 || e.Tries > 12 || time.Until(e.NextTry) > 15*time.Minute {
			t.Errorf("entry %+v", e)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if e := r.entry("agent/a"); e.State != workspace.Idle || e.Problem != "" || len(r.o.removals()) != 1 {
			t.Errorf("entry %+v, removed %q", e, r.o.removals())
		}
	})
}

// A removal that did not come to its end is ended before the workspace is used
// again.
func TestManagerOpensBehindARemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.close()
		r.open("agent/a", time.Minute)
		r.o.fail(2)
		if err := r.m.Remove(t.Context(), "local", "agent/a", true); err == nil {
			t.Fatal("removed")
		}
		if _, err := r.m.Open(t.Context(), workspace.Want{Provider: "local", Key: "agent/a", Spec: full}); !workspace.Is(err, workspace.Unavailable) {
			t.Errorf("opened: %v", err)
		}
		r.open("agent/a", time.Minute)
		if got, want := r.o.removals(), []string{"agent/a true"}; !slices.Equal(got, want) {
			t.Errorf("removed %q", got)
		}
		if e := r.entry("agent/a"); e.State != workspace.Running || e.Data || e.Tries != 0 {
			t.Errorf("entry %+v", e)
		}
	})
}

// Two sweepers on one ledger: one removal each.
func TestManagerTwoSweepers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.close()
		r.run()
		for i := range 30 {
			r.open(workspace.Key(fmt.Sprintf("agent/%02d", i)), time.Minute)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { _ = workspace.NewManager(r.cfg).Run(ctx) })
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		got := r.o.removals()
		slices.Sort(got)
		if len(got) != 30 || len(slices.Compact(got)) != 30 {
			t.Errorf("%d removals: %q", len(got), got)
		}
		cancel()
		wg.Wait()
	})
}

func TestManagerOpensGoneAnew(t *testing.T) {
	r := newRig(t, nil)
	defer r.close()
	w := r.open("agent/a", 0)
	if err := w.WriteFile(t.Context(), "x", []byte("data")); err != nil {
		t.Fatal(err)
	}
	r.o.gone = true
	if _, err := w.ReadFile(t.Context(), "x", 10); !workspace.Is(err, workspace.Gone) {
		t.Fatal(err)
	}
	if b, err := w.ReadFile(t.Context(), "x", 10); err != nil || string(b) != "data" || r.o.opened["agent/a"] != 2 {
		t.Errorf("%q, %v, opened %d times", b, err, r.o.opened["agent/a"])
	}
}

// A changed Spec waits for who uses the old one.
func TestManagerChangedSpec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.close()
		w := r.open("agent/a", 0)
		if err := w.WriteFile(t.Context(), "x", nil); err != nil {
			t.Fatal(err)
		}
		r.o.hold = make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := w.ReadFile(t.Context(), "x", 10); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		changed := full
		changed.Memory = 1 << 30
		next, err := r.m.Open(t.Context(), workspace.Want{Provider: "local", Key: "agent/a", Spec: changed})
		if err != nil || r.o.opened["agent/a"] != 1 {
			t.Fatalf("opened %d times, %v", r.o.opened["agent/a"], err)
		}
		exact := workspace.Want{Provider: "local", Key: "agent/a", Spec: changed, Exact: true}
		if _, err := r.m.Open(t.Context(), exact); !workspace.Is(err, workspace.Unavailable) {
			t.Errorf("the former workspace is taken for another one: %v", err)
		}
		close(r.o.hold)
		<-done
		if _, err := r.m.Open(t.Context(), exact); err != nil || r.o.opened["agent/a"] != 2 {
			t.Errorf("an idle workspace is not replaced: opened %d times, %v", r.o.opened["agent/a"], err)
		}
		if err := next.WriteFile(t.Context(), "y", nil); err != nil || r.o.opened["agent/a"] != 2 {
			t.Errorf("opened %d times, %v", r.o.opened["agent/a"], err)
		}
	})
}

// What a killed process has left is taken over, or removed with its agent.
func TestManagerAdopts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exists := func(id claybot.AgentID) (bool, error) {
			if id == "unsure" {
				return false, errors.New("the store is busy")
			}
			return id != "dead", nil
		}
		r := newRig(t, exists)
		defer r.close()
		for _, key := range []workspace.Key{"agent/alive", "agent/dead", "thread/dead/1", "agent/unsure", "owner/tg/1"} {
			if _, err := r.o.Provider.Open(t.Context(), key, full); err != nil {
				t.Fatal(err)
			}
		}
		lost := workspace.Entry{Node: "n1", Provider: "local", Key: "agent/lost", State: workspace.Running}
		foreign := workspace.Entry{Node: "n2", Provider: "local", Key: "agent/foreign", State: workspace.Running, TTL: time.Second}
		for _, e := range []workspace.Entry{lost, foreign} {
			if saved, err := r.db.SaveWorkspaceEntry(t.Context(), e); !saved || err != nil {
				t.Fatal(err)
			}
		}
		r.run()
		time.Sleep(6 * time.Second)
		synctest.Wait()
		got := r.o.removals()
		slices.Sort(got)
		if want := []string{"agent/dead true", "thread/dead/1 true"}; !slices.Equal(got, want) {
			t.Errorf("removed %q", got)
		}
		for key, want := range map[workspace.Key]workspace.State{
			"agent/alive": workspace.Running, "agent/unsure": workspace.Running, "owner/tg/1": workspace.Running,
			"agent/dead": workspace.Removed, "agent/lost": workspace.Idle, "agent/foreign": workspace.Running,
		} {
			if e := r.entry(key); e.State != want || want == workspace.Running && key != "agent/foreign" && e.TTL != workspace.DefaultTTL {
				t.Errorf("%s: %+v", key, e)
			}
		}
		time.Sleep(15 * 24 * time.Hour)
		synctest.Wait()
		if e := r.entry("agent/dead"); e.Key != "" {
			t.Errorf("after 15 days: %+v", e)
		}
		if e := r.entry("agent/alive"); e.State != workspace.Idle {
			t.Errorf("after 15 days: %+v", e)
		}
	})
}

func TestManagerForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.close()
		for _, key := range []workspace.Key{"agent/parent", "agent/child", "thread/child/7", "browser/parent", "agent/other", "owner/tg/1"} {
			r.open(key, 0)
		}
		if err := r.m.Forget(t.Context(), "child", "parent", ""); err != nil {
			t.Fatal(err)
		}
		want := []string{"agent/child true", "thread/child/7 true", "agent/parent true", "browser/parent true"}
		if got := r.o.removals(); !slices.Equal(got, want) {
			t.Errorf("removed %q, want %q", got, want)
		}
		infos, err := r.o.List(t.Context())
		if err != nil || len(infos) != 2 || infos[0].Key != "agent/other" || infos[1].Key != "owner/tg/1" {
			t.Errorf("left are %+v, %v", infos, err)
		}
		// What fails is tried again.
		r.run()
		time.Sleep(time.Minute)
		r.o.fail(1)
		if err := r.m.Forget(t.Context(), "other"); err == nil {
			t.Error("a failed removal is not an error")
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if e := r.entry("agent/other"); e.State != workspace.Removed {
			t.Errorf("entry %+v", e)
		}
	})
}

func TestClean(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		code     workspace.Code
	}{
		{"", ".", ""},
		{".", ".", ""},
		{"/ws", ".", ""},
		{"/ws/", ".", ""},
		{"a//b/./c/", "a/b/c", ""},
		{"/ws/a", "a", ""},
		{"a..b", "a..b", ""},
		{"/wsx/a", "", workspace.Outside},
		{"/", "", workspace.Outside},
		{"/etc/passwd", "", workspace.Outside},
		{"/ws/../etc", "", workspace.Outside},
		{"../a", "", workspace.Outside},
		{"a/..", "", workspace.Outside},
		{"a\x00", "", workspace.Refused},
		{"a\x1bb", "", workspace.Refused},
		{"\xff", "", workspace.Refused},
	} {
		got, err := workspace.Clean("/ws", tt.in)
		var e *workspace.Error
		errors.As(err, &e)
		if got != tt.want || (e == nil) != (tt.code == "") || e != nil && e.Code != tt.code {
			t.Errorf("%q: %q, %v", tt.in, got, err)
		}
	}
}
