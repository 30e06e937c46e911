package mcp_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/tools/mcp"
)

func openTree(t *testing.T) *files.Tree {
	t.Helper()
	tree := files.OpenTree(files.TreeConfig{Dir: t.TempDir()})
	return tree
}

// Nodes with one login get new tokens one after the other, so that none of them
// spends a secret that counts once.
func TestLoginOfNodes(t *testing.T) {
	a := newAuthServer(t)
	a.lifetime = 1 // each request wants a new token
	tree := openTree(t)
	s := mcp.Server{Name: "srv", URL: a.URL + "/mcp", OAuth: &mcp.OAuth{}}
	var browsers sync.WaitGroup
	err := mcp.Login(t.Context(), mcp.Visit{Server: s, HTTP: open(""), Tokens: storage.NewTreeSecrets(tree, mcp.Folder), Show: func(link string) {
		browsers.Go(func() { browse(t, link) })
	}})
	browsers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*rig
	for range 3 {
		r := run(t, mcp.Config{Servers: []mcp.Server{s}, HTTP: open, Tokens: storage.NewTreeSecrets(storage.NewMirror(tree), mcp.Folder)})
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
