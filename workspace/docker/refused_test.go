package docker

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/docker/docker/pkg/stdcopy"

	"github.com/claybot/claybot/workspace"
)

// startOf and inspectOf are the requests of one exec.
var (
	startOf   = regexp.MustCompile(`^/v[0-9.]+/exec/([0-9a-f]+)/start$`)
	inspectOf = regexp.MustCompile(`^/v[0-9.]+/exec/([0-9a-f]+)/json$`)
)

// TestRefused begins a command whose container ended in the middle of it: the engine
// refuses the stream, or says in it that it knows no such exec. Neither ran anything,
// so the command is begun again, and runs once.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		refuse func(w http.ResponseWriter, id string)
	}{
		{"not found", func(w http.ResponseWriter, id string) {
			http.Error(w, `{"message":"No such exec instance: `+id+`"}`, http.StatusNotFound)
		}},
		{"not running", func(w http.ResponseWriter, id string) {
			http.Error(w, `{"message":"container is not running"}`, http.StatusConflict)
		}},
		{"in the stream", func(w http.ResponseWriter, id string) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, _ = fmt.Fprint(c, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.multiplexed-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
			_, _ = fmt.Fprintf(stdcopy.NewStdWriter(c, stdcopy.Stdout), "No such exec instance: %s\r\n", id)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			provider(t) // there is an engine
			line := newWire(t)
			var armed atomic.Bool
			var gone atomic.Value
			gone.Store("")
			pass := &httputil.ReverseProxy{
				Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
				Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "unix", line.path)
				}},
			}
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if m := startOf.FindStringSubmatch(r.URL.Path); m != nil && armed.CompareAndSwap(true, false) {
					gone.Store(m[1])
					_, _ = io.Copy(io.Discard, r.Body) // or its connection is reset
					tt.refuse(w, m[1])
					return
				}
				if m := inspectOf.FindStringSubmatch(r.URL.Path); m != nil && m[1] == gone.Load() {
					http.Error(w, `{"message":"No such exec instance: `+m[1]+`"}`, http.StatusNotFound)
					return
				}
				pass.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			p := provider(t, func(c *Config) { c.Host = "tcp://" + front.Listener.Addr().String() })
			w := opened(t, p, "agent/refused", workspace.Spec{})
			sh(t, w, "true")
			armed.Store(true)
			if r := sh(t, w, "echo run >> runs; cat runs"); r.Output != "run\n" || r.ExitCode != 0 {
				t.Errorf("got %+v", r)
			}
			if gone.Load() == "" {
				t.Error("no command was refused")
			}
		})
	}
}
