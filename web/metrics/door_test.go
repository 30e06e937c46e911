package metrics

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/web"
)

// Behind the real door, figures are for who may read, profiles for admins alone.
func TestDoor(t *testing.T) {
	dir := t.TempDir()
	tree := storage.MirrorAlone(files.OpenNamed(dir, web.Names(), web.Load(slog.Default())))
	srv, err := web.New(web.Config{Addr: "127.0.0.1:0", Dir: dir, Tree: tree, Routes: New(Config{Serve: yes, Pprof: yes}).Routes()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = srv.Run(ctx) }() // returns the cause of its end
	defer func() { cancel(); <-ended }()
	select {
	case <-srv.Up():
	case <-time.After(time.Minute):
		t.Fatal("the server did not come up")
	}
	own, err := os.ReadFile(filepath.Join(dir, "web.token"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, token, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+srv.Addr()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	tokens := map[string]string{"anonymous": "", "wrong": "claybot_not-a-token", "admin": strings.TrimSpace(string(own))}
	for _, scope := range []string{"read", "operate"} {
		code, body := ask(http.MethodPost, "/tokens", tokens["admin"], `{"name":"`+scope+`","scope":"`+scope+`"}`)
		var made struct {
			Token string `json:"token"`
		}
		if err := json.Unmarshal([]byte(body), &made); err != nil || made.Token == "" {
			t.Fatalf("no token: %d %s", code, body)
		}
		tokens[scope] = made.Token
	}
	for who, want := range map[string][2]int{
		"anonymous": {401, 401},
		"wrong":     {401, 401},
		"read":      {200, 403},
		"operate":   {200, 403},
		"admin":     {200, 200},
	} {
		for i, path := range []string{"/metrics", "/debug/pprof/goroutine?debug=1"} {
			code, body := ask(http.MethodGet, path, tokens[who], "")
			if code != want[i] {
				t.Errorf("%s of %s answers %d, want %d", path, who, code, want[i])
			}
			if code != 200 && (strings.Contains(body, "claybot_agents") || strings.Contains(body, "goroutine")) {
				t.Errorf("%s of %s shows %s", path, who, body)
			}
		}
	}
	if code, _ := ask(http.MethodPost, "/metrics", tokens["admin"], "{}"); code != http.StatusMethodNotAllowed {
		t.Errorf("POST /metrics answers %d", code)
	}
}
