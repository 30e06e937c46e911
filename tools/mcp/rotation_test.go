package mcp_test

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/tools/mcp"
)

// A fullDisk stores nothing while it is full.
type fullDisk struct {
	storage.Secrets
	mu    sync.Mutex
	full  bool
	tries int
}

func (d *fullDisk) fill(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full, d.tries = full, 0
}

func (d *fullDisk) Set(name string, value []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tries++; d.full {
		return errors.New("no space left on device")
	}
	return d.Secrets.Set(name, value)
}

// A fullTree is a fullDisk that several nodes share.
type fullTree struct {
	*fullDisk
	storage.SecretTurns
}

// A refresh token counts once. One that could not be stored is stored as soon as that is
// possible, and not used before; after a crash in between, an operator logs in again.
func TestRotatedTokenIsStored(t *testing.T) {
	for _, crash := range []bool{false, true} {
		a := newAuthServer(t)
		a.lifetime = 1 // which counts as expired at once
		disk := &fullDisk{Secrets: files.NewSecrets(filepath.Join(t.TempDir(), "mcp"))}
		s := mcp.Server{Name: "srv", URL: a.URL + "/mcp", OAuth: &mcp.OAuth{}}
		var browsers sync.WaitGroup
		err := mcp.Login(t.Context(), mcp.Visit{Server: s, HTTP: open(""), Tokens: disk, Show: func(link string) {
			if u, err := url.Parse(link); err != nil || u.Query().Get("resource") != s.URL {
				t.Errorf("the link is %s", link)
			}
			browsers.Go(func() { browse(t, link) })
		}})
		browsers.Wait()
		if err != nil {
			t.Fatal(err)
		}
		disk.fill(true)
		cfg := mcp.Config{Servers: []mcp.Server{s}, HTTP: open, Tokens: disk}
		r := run(t, cfg)
		r.await(func() bool {
			st := r.status("srv")
			return st.State == mcp.StateWaiting && strings.Contains(st.LastError, "no space left")
		})
		a.mu.Lock()
		a.lifetime = 3600
		a.mu.Unlock()
		if crash {
			r.stop()
			r = run(t, cfg)
		}
		disk.fill(false)
		if err := r.Retry("srv"); err != nil {
			t.Fatal(err)
		}
		if crash {
			r.await(func() bool { return r.status("srv").State == mcp.StateLogin })
			r.stop()
			continue
		}
		r.up("srv")
		r.stop()
		r = run(t, cfg) // with what is stored
		r.up("srv")
		r.stop()
	}
}

// A refresh token that could not be stored during a call is stored before the next one,
// also where several nodes share it.
func TestRotatedTokenOfACallIsStored(t *testing.T) {
	for _, shared := range []bool{false, true} {
		a := newAuthServer(t)
		a.lifetime = 1 // each request wants a new token
		disk := &fullDisk{Secrets: files.NewSecrets(filepath.Join(t.TempDir(), "mcp"))}
		var tokens storage.Secrets = disk
		if shared {
			tree := storage.NewTreeSecrets(openTree(t), mcp.Folder)
			disk.Secrets = tree
			tokens = fullTree{disk, tree}
		}
		s := mcp.Server{Name: "srv", URL: a.URL + "/mcp", OAuth: &mcp.OAuth{}}
		var browsers sync.WaitGroup
		err := mcp.Login(t.Context(), mcp.Visit{Server: s, HTTP: open(""), Tokens: tokens, Show: func(link string) {
			browsers.Go(func() { browse(t, link) })
		}})
		browsers.Wait()
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, mcp.Config{Servers: []mcp.Server{s}, HTTP: open, Tokens: tokens})
		r.up("srv")
		disk.fill(true)
		for range 2 {
			if o := r.call(t.Context(), "srv_echo", `{"text":"1"}`); o.Fault == nil {
				t.Errorf("shared %v: a token that is not stored was used", shared)
			}
		}
		disk.fill(false)
		if err := r.Retry("srv"); err != nil {
			t.Fatal(err)
		}
		r.await(func() bool {
			st := r.status("srv")
			if st.State == mcp.StateLogin {
				t.Fatalf("shared %v: %s", shared, st.LastError)
			}
			return st.State == mcp.StateConnected && r.call(t.Context(), "srv_echo", `{"text":"2"}`).Fault == nil
		})
		r.stop()
	}
}
