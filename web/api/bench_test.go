package api_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/api"
)

// BenchmarkStream100k is 100,000 events over HTTP to one reader, made from
// events in memory: what the stream itself costs.
func BenchmarkStream100k(b *testing.B) {
	const events = 100_000
	updates := make([]runs.Update, events)
	for i := range updates {
		updates[i] = event(int64(i+1), 200)
	}
	mux := http.NewServeMux()
	desk := spring{watch: func(_ context.Context, yield func(runs.Update, error) bool) {
		for _, u := range updates {
			if !yield(u, nil) {
				return
			}
		}
	}}
	for _, route := range api.Routes(api.Config{Backend: web.Backend{Runs: desk}}) {
		mux.Handle(route.Pattern, route.Handler)
	}
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for b.Loop() {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, srv.URL+"/agents/runs/r/stream", http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "id: ") {
				n++
			}
		}
		resp.Body.Close()
		if n != events {
			b.Fatalf("%d events", n)
		}
	}
}
