package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/claybot/claybot/tools/mcp"
)

// A Probe connects each server once, lists its tools, and is gone.
func TestProbe(t *testing.T) {
	good := streamable(goodServer(make(chan string, 1)))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer not-real-token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		good.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	m := mcp.New(mcp.Config{HTTP: open, Servers: []mcp.Server{
		{Name: "good", URL: web.URL, Token: "not-real-token"}, {Name: "refused", URL: web.URL, Token: "another-one"}, {Name: "wrong", URL: "ftp://x"},
	}})
	for _, s := range m.Probe(t.Context()) {
		switch s.Name {
		case "good":
			if s.LastError != "" || len(s.Tools)+len(s.Off) == 0 {
				t.Errorf("%+v", s)
			}
		default:
			if s.LastError == "" || strings.Contains(s.LastError, "another-one") {
				t.Errorf("%+v", s)
			}
		}
	}
}
