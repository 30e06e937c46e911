package web_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/web"
)

// A flaky tree cannot be reached for some time.
type flaky struct {
	storage.Tree
	down atomic.Bool
}

var errDown = errors.New("the store is down")

func (f *flaky) Read(ctx context.Context, paths ...string) ([]storage.TreeFile, error) {
	if f.down.Load() {
		return nil, errDown
	}
	return f.Tree.Read(ctx, paths...)
}

func (f *flaky) Changes(ctx context.Context, since int64) (storage.TreeDelta, error) {
	if f.down.Load() {
		return storage.TreeDelta{}, errDown
	}
	return f.Tree.Changes(ctx, since)
}

func (f *flaky) Write(ctx context.Context, path string, body []byte, was int64) (int64, error) {
	if f.down.Load() {
		return 0, errDown
	}
	return f.Tree.Write(ctx, path, body, was)
}

// nodes are n servers with data directories of their own that share a tree.
func nodes(t *testing.T, n int) (all []*world, stores []*flaky) {
	t.Helper()
	tree := files.OpenTree(files.TreeConfig{Dir: t.TempDir()})
	for range n {
		store := &flaky{Tree: tree}
		mirror := storage.NewMirror(store)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = mirror.Run(ctx) })
		t.Cleanup(func() { cancel(); wg.Wait() })
		w, _ := start(t, t.TempDir(), func(c *web.Config) { c.Tree, c.Cookie = mirror, "nodes" })
		all, stores = append(all, w), append(stores, store)
	}
	return all, stores
}

// data asks a node with a bearer token or a cookie.
func (w *world) data(t *testing.T, head ...string) int {
	t.Helper()
	return do(t, browser(t), "GET", w.url("/data"), "", head...).code
}

// A login at one node is one at all of them, with the very next request, and so
// is its end.
func TestLoginsOfNodes(t *testing.T) {
	all, _ := nodes(t, 3)
	b := all[0].loggedIn(t)
	cookie := all[0].cookie(t, b).String()
	for i, w := range all {
		if got := w.data(t, "Cookie", cookie); got != http.StatusOK {
			t.Errorf("node %d lets the session of another in with %d", i, got)
		}
	}
	other := all[1].cookie(t, all[1].loggedIn(t)).String()
	s := open(t, browser(t), "GET", all[2].url("/stream"), "Cookie", cookie, "Sec-Fetch-Site", "same-origin")
	s.first(t)
	if got := do(t, b, "POST", all[0].url("/logout"), "", same...); got.code != http.StatusNoContent {
		t.Fatalf("logout = %v", got)
	}
	if rest := s.rest(); strings.Contains(rest, "last words") {
		t.Errorf("a stream of another node said %q after the logout", rest)
	}
	<-all[2].ends
	for i, w := range all {
		if got := w.data(t, "Cookie", other); got != http.StatusOK {
			t.Errorf("node %d: another login ended as well: %d", i, got)
		}
	}
	if got := all[2].data(t, "Cookie", cookie); got != http.StatusUnauthorized {
		t.Errorf("after the logout = %d", got)
	}
}

// A link opens at any node, once.
func TestLinksOfNodes(t *testing.T) {
	all, stores := nodes(t, 3)
	_, code, _ := strings.Cut(all[0].srv.NewLoginLink().URL, "?token=")
	var wg sync.WaitGroup
	var in atomic.Int32
	for range 4 {
		for _, w := range all {
			wg.Go(func() {
				if do(t, browser(t), "POST", w.url("/login"), `{"token":"`+code+`"}`).code == http.StatusNoContent {
					in.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if in.Load() != 1 {
		t.Errorf("one link logged %d browsers in", in.Load())
	}
	// While the store is away it is unknown whether a link was used, but a link that
	// only this node knows is good.
	_, code, _ = strings.Cut(all[0].srv.NewLoginLink().URL, "?token=")
	stores[0].down.Store(true)
	if got := do(t, browser(t), "POST", all[0].url("/login"), `{"token":"`+code+`"}`); got.code != http.StatusUnauthorized {
		t.Errorf("a link that may have been used = %d", got.code)
	}
	if link := all[0].srv.NewLoginLink(); !link.Alone {
		t.Error("a link without the store is not told from one that all nodes know")
	}
	if link := all[1].srv.NewLoginLink(); link.Alone {
		t.Error("a link that all nodes know is told as one of this node")
	}
	b := all[0].loggedIn(t)
	cookie := all[0].cookie(t, b).String()
	if got := all[0].data(t, "Cookie", cookie); got != http.StatusOK {
		t.Errorf("logged in without the store = %d", got)
	}
	if got := do(t, b, "POST", all[0].url("/logout"), "", same...); got.code != http.StatusServiceUnavailable || got.errorCode() != "store_down" {
		t.Errorf("logout without the store = %d %s", got.code, got.body)
	}
}

// Tokens count on all nodes at once, and end on all within two seconds.
func TestTokensOfNodes(t *testing.T) {
	all, stores := nodes(t, 2)
	secret := "Bearer " + all[0].token(t, "reader", web.Read)
	mine := "Bearer " + all[1].token(t, "other", web.Read)
	for i, w := range all {
		for _, s := range []string{secret, mine} {
			if got := w.data(t, "Authorization", s); got != http.StatusOK {
				t.Errorf("node %d = %d", i, got)
			}
		}
	}
	s := open(t, browser(t), "GET", all[1].url("/stream"), "Authorization", secret)
	s.first(t)
	if got := all[0].ask(t, "DELETE", "/tokens/reader", ""); got.code != http.StatusNoContent {
		t.Fatalf("revoke = %v", got)
	}
	if rest := s.rest(); strings.Contains(rest, "last words") {
		t.Errorf("the stream said %q", rest)
	}
	<-all[1].ends
	if got := all[1].data(t, "Authorization", secret); got != http.StatusUnauthorized {
		t.Errorf("revoked = %d", got)
	}
	stores[0].down.Store(true)
	if got := all[0].ask(t, "DELETE", "/tokens/other", ""); got.code != http.StatusServiceUnavailable || got.errorCode() != "store_down" {
		t.Errorf("revoke without the store = %d %s", got.code, got.body)
	}
	if got := all[0].data(t, "Authorization", mine); got != http.StatusOK {
		t.Errorf("a token that was not revoked = %d", got)
	}
}

// All nodes have one owner's token, also in their data directories.
func TestOwnerOfNodes(t *testing.T) {
	all, _ := nodes(t, 2)
	old := all[0].owner(t)
	if all[1].owner(t) != old {
		t.Error("two nodes have two owners")
	}
	cookie := all[1].cookie(t, all[1].loggedIn(t)).String()
	s := open(t, browser(t), "GET", all[1].url("/stream"), "Authorization", "Bearer "+old)
	s.first(t)
	if got := all[0].ask(t, "POST", "/tokens/owner/rotate", ""); got.code != http.StatusOK {
		t.Fatalf("rotate = %v", got)
	}
	s.rest()
	<-all[1].ends
	fresh := all[0].owner(t)
	if fresh == old {
		t.Fatal("the token in the data directory is the old one")
	}
	if got := all[1].data(t, "Authorization", "Bearer "+fresh); got != http.StatusOK {
		t.Errorf("the new token at the other node = %d", got)
	}
	if got := all[1].data(t, "Authorization", "Bearer "+old); got != http.StatusUnauthorized {
		t.Errorf("the old token at the other node = %d", got)
	}
	if got := all[1].data(t, "Cookie", cookie); got != http.StatusUnauthorized {
		t.Errorf("a session from before = %d", got)
	}
	// The file is written after the old token has ended.
	for end := time.Now().Add(time.Minute); all[1].owner(t) != fresh; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the other data directory keeps an old token")
		}
	}
}
