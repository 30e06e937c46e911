package mcp_test

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/tools/mcp"
)

// A fullDisk stores nothing while it is full.
type fullDisk struct {
	*files.Secrets
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
