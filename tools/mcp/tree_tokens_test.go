package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/tools/mcp"
)

func openTree(t *testing.T) *files.Tree {
	t.Helper()
	tree := files.OpenTree(files.TreeConfig{Dir: t.TempDir()})
	return tree
}

func TestTreeTokens(t *testing.T) {
	tree := openTree(t)
	a, b := mcp.NewTreeTokens(tree), mcp.NewTreeTokens(tree)
	if got, err := a.Get("x"); got != nil || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	for _, secret := range []string{"1", "2"} {
		if err := a.Set("x", []byte(secret)); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Get("x"); string(got) != secret || err != nil {
			t.Errorf("%s, %v", got, err)
		}
	}
	for _, bad := range []string{"", "..", "../x", "a/b", "A"} {
		if err := a.Set(bad, nil); err == nil {
			t.Errorf("Set(%q)", bad)
		}
		if _, err := a.Get(bad); err == nil {
			t.Errorf("Get(%q)", bad)
		}
		if _, err := a.Turn(t.Context(), bad); err == nil {
			t.Errorf("Turn(%q)", bad)
		}
	}
}

// One at a time has the turn, and one whose process is gone loses it.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tree := openTree(t)
		a, b := mcp.NewTreeTokens(tree), mcp.NewTreeTokens(tree)
		done, err := a.Turn(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := b.Turn(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("two have the turn: %v", err)
		}
		time.AfterFunc(3*time.Second, done)
		start := time.Now()
		if _, err := b.Turn(t.Context(), "x"); err != nil || time.Since(start) > 4*time.Second {
			t.Errorf("the turn came after %v, %v", time.Since(start), err)
		}
		start = time.Now() // b is gone with it
		done, err = a.Turn(t.Context(), "x")
		if err != nil || time.Since(start) < 30*time.Second || time.Since(start) > 2*time.Minute {
			t.Errorf("a turn was taken over after %v, %v", time.Since(start), err)
		}
		done()
		if all, err := tree.List(t.Context(), "mcp"); err != nil || len(all) != 0 {
			t.Errorf("left are %+v, %v", all, err)
		}
	})
}

// Nodes with one login get new tokens one after the other, so that none of them
// spends a secret that counts once.
func TestLoginOfNodes(t *testing.T) {
	a := newAuthServer(t)
	a.lifetime = 1 // each request wants a new token
	tree := openTree(t)
	s := mcp.Server{Name: "srv", URL: a.URL + "/mcp", OAuth: &mcp.OAuth{}}
	var browsers sync.WaitGroup
	err := mcp.Login(t.Context(), mcp.Visit{Server: s, HTTP: open(""), Tokens: mcp.NewTreeTokens(tree), Show: func(link string) {
		browsers.Go(func() { browse(t, link) })
	}})
	browsers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*rig
	for range 3 {
		r := run(t, mcp.Config{Servers: []mcp.Server{s}, HTTP: open, Tokens: mcp.NewTreeTokens(storage.NewMirror(tree))})
		nodes = append(nodes, r)
	}
	for _, r := range nodes {
		r.up("srv")
	}
	var work sync.WaitGroup
	for _, r := range nodes {
		work.Go(func() {
			for i := range 3 {
				text := fmt.Sprint("in ", i)
				r.want("srv_echo", `{"text":"`+text+`"}`, text)
			}
		})
	}
	work.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if grants := strings.Join(a.grants, " "); strings.Count(grants, "authorization_code") != 1 || strings.Count(grants, "refresh_token") < 9 {
		t.Errorf("tokens by %s", grants)
	}
}
