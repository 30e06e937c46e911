package heartbeat_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/heartbeat"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/storagetest"
)

// A node is one of several with one heart.
type node struct {
	*rig
	i      int
	tree   *files.Tree
	claims storage.Claims
	mirror *storage.Mirror
	heart  *heartbeat.Heartbeat
	halt   func()
	slow   time.Duration                                                                  // how long its store takes to say who is there
	post   func(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error // nil: that of the rig
}

// Post implements connectors.Handler. The node itself is the one that is told of
// the end.
func (x *node) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	if x.post != nil {
		return x.post(ctx, to, m)
	}
	x.mu.Lock()
	x.rig.heart = x.heart
	x.mu.Unlock()
	return x.rig.Post(ctx, to, m)
}

func team(r *rig, n int, held storage.Claims, apart time.Duration) []*node {
	r.Helper()
	tree := files.OpenTree(files.TreeConfig{Dir: filepath.Join(r.dir, "shared")})
	var all []*node
	for i := range n {
		x := &node{rig: r, i: i, tree: tree, claims: held, mirror: storage.NewMirror(tree), slow: time.Duration(i) * apart}
		x.begin()
		all = append(all, x)
	}
	return all
}

// begin starts a node; halt ends it.
func (x *node) begin() {
	r := x.rig
	ctx, cancel := context.WithCancelCause(context.Background())
	x.heart = heartbeat.New(heartbeat.Config{
		Dir: filepath.Join(r.dir, fmt.Sprint("node", x.i)), Tree: x.mirror, Claims: x.claims, Node: func() string { return fmt.Sprint(x.i) },
		Receipts: (*receipts)(r), Log: slog.New(slog.NewTextHandler(&r.log, nil)),
		Settings: func() heartbeat.Settings { r.mu.Lock(); defer r.mu.Unlock(); return r.settings },
		Notice:   r.notice,
		Place: func(ctx context.Context) (claybot.Route, claybot.Time, error) {
			time.Sleep(x.slow)
			return r.place(ctx)
		},
	})
	var work sync.WaitGroup
	work.Go(func() { _ = x.mirror.Run(ctx) })
	work.Go(func() {
		if err := x.heart.Run(ctx, x); !errors.Is(err, errStopped) {
			r.Errorf("Run returned %v", err)
		}
	})
	x.halt = func() { cancel(errStopped); work.Wait(); x.halt = func() {} }
	synctest.Wait()
}

func (x *node) put(name, text string) {
	x.Helper()
	_, err := storage.EditFile(x.Context(), x.mirror, "heartbeat/"+name, func(storage.TreeFile) ([]byte, error) { return []byte(text), nil })
	if err != nil {
		x.Fatal(err)
	}
}

// moments are when messages were posted, since the test began.
func (r *rig) moments() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []time.Duration
	for _, m := range r.posts {
		all = append(all, m.At.Time().Sub(r.began))
	}
	return all
}

// Several nodes are one heart: a tick is one message, gates are asked by one
// node, and unattended ticks are counted together, also while
// nodes come and go, and when some are slower than others.
func TestNodesTickOnce(t *testing.T) {
	for _, apart := range []time.Duration{0, 7 * time.Millisecond} {
		bubble(t, func(r *rig) {
			asked := filepath.Join(t.TempDir(), "asked")
			r.settings = heartbeat.Settings{Every: 10 * time.Minute, MaxUnattended: 6, Gates: true}
			r.takes = time.Minute
			r.write()
			nodes := team(r, 3, new(storagetest.Claims), apart)
			defer func() {
				for _, x := range nodes {
					x.halt()
				}
			}()
			nodes[0].put("a.md", "---\nwhen: echo x >> "+asked+"\n---\nlook\n")
			for i := range 16 {
				time.Sleep(4 * time.Minute)
				x := nodes[i%3]
				x.halt()
				time.Sleep(time.Minute)
				x.begin()
			}
			synctest.Wait()
			all := r.moments()
			if len(all) != 6 {
				t.Errorf("%d ticks in 80 minutes, want 6 and then a pause: %v", len(all), all)
			}
			for i := 1; i < len(all); i++ {
				if gap := all[i] - all[i-1]; gap < 10*time.Minute || gap > 12*time.Minute {
					t.Errorf("ticks at %v", all)
				}
			}
			r.mu.Lock()
			told := slices.Compact(slices.Sorted(slices.Values(r.notices)))
			r.mu.Unlock()
			if len(told) != 1 {
				t.Errorf("a person is told of the rest in %d ways: %q", len(told), told)
			}
			if b, err := os.ReadFile(asked); err != nil || len(b) != 2*6 {
				t.Errorf("the gate was asked %d times, %v", len(b)/2, err)
			}
			r.write()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if n := len(r.moments()); n != 7 {
				t.Errorf("%d ticks after a person wrote", n)
			}
		})
	}
}

// A node that dies between writing a tick down and posting it costs a minute or
// two, and no second message: the others wait whether it comes.
func TestNodeDiesBeforeThePost(t *testing.T) {
	bubble(t, func(r *rig) {
		r.settings = heartbeat.Settings{Every: 30 * time.Minute}
		r.write()
		nodes := team(r, 3, new(storagetest.Claims), 0)
		defer func() {
			for _, x := range nodes {
				x.halt()
			}
		}()
		reached := make(chan *node, 3)
		for _, x := range nodes {
			x.post = func(ctx context.Context, _ claybot.Descriptor, _ claybot.AgentMessage) error {
				reached <- x
				<-ctx.Done() // it hangs, and is killed
				return context.Cause(ctx)
			}
		}
		nodes[0].put("a.md", "look\n")
		first := <-reached
		time.Sleep(45 * time.Second)
		if n := len(r.moments()) + len(reached); n != 0 {
			t.Errorf("%d messages while one is under way", n)
		}
		for _, x := range nodes {
			x.post = nil
		}
		first.halt()
		if err := first.claims.Yield(t.Context(), storage.Claim{Name: "heartbeat/tick"}); err != nil { // as its lease has run out
			t.Error(err)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if all := r.moments(); len(all) != 1 {
			t.Errorf("ticks at %v, want one by another node", all)
		}
	})
}

// What is added, changed and removed on one node counts on all.
func TestNodesShareHeartbeats(t *testing.T) {
	bubble(t, func(r *rig) {
		r.write()
		nodes := team(r, 2, new(storagetest.Claims), 0)
		defer func() {
			for _, x := range nodes {
				x.halt()
			}
		}()
		ctx := r.Context()
		if _, err := nodes[0].heart.AddHeartbeat(ctx, connectors.HeartbeatTask{Title: "Mail", Prompt: "look", Enabled: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if _, err := nodes[1].heart.AddHeartbeat(ctx, connectors.HeartbeatTask{ID: "mail", Title: "Mail", Prompt: "look twice", Enabled: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		for i, x := range nodes {
			all, problems, err := x.heart.Heartbeats(ctx)
			if err != nil || len(problems) != 0 || len(all) != 1 || all[0].Prompt != "look twice" || all[0].LastRun.IsZero() {
				t.Errorf("node %d: %+v, %v, %v", i, all, problems, err)
			}
		}
		if n, err := nodes[0].heart.RunHeartbeats(ctx, "key", "mail"); err != nil || n != 1 {
			t.Errorf("RunHeartbeats = %d, %v", n, err)
		}
		time.Sleep(3 * time.Second)
		if n, err := nodes[1].heart.RunHeartbeats(ctx, "key", "mail"); err != nil || n != 1 {
			t.Errorf("the same RunHeartbeats elsewhere = %d, %v", n, err)
		}
		synctest.Wait()
		if n := len(r.moments()); n != 2 {
			t.Errorf("%d messages, want the first tick and one by hand", n)
		}
		if err := nodes[1].heart.RemoveHeartbeat(ctx, "mail"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		if all, _, err := nodes[0].heart.Heartbeats(ctx); err != nil || len(all) != 0 {
			t.Errorf("there is still %+v, %v", all, err)
		}
		if err := nodes[0].heart.RemoveHeartbeat(ctx, "mail"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("removed twice: %v", err)
		}
		nodes[0].put("bad.md", "---\nevery: [\n---\nx\n")
		nodes[0].put("long.md", strings.Repeat("x", 70_000))
		time.Sleep(4 * time.Second)
		if _, problems, err := nodes[1].heart.Heartbeats(ctx); err != nil || len(problems) != 2 {
			t.Errorf("problems %v, %v", problems, err)
		}
	})
}
