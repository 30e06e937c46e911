package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// X8: each response has the id of its request, which leads to the run.
func TestRequestID(t *testing.T) {
	r := start(t)
	for given, kept := range map[string]bool{"req_1:a.b-C": true, "": false, "a b": false, strings.Repeat("x", 129): false, `"`: false} {
		g := r.do("GET", "/status", "", "X-Request-Id", given)
		if id := g.head.Get("X-Request-Id"); id == "" || (id == given) != kept {
			t.Errorf("the request %q has the id %q", given, id)
		}
	}
	if g := r.do("POST", "/v1/responses", "{", "X-Request-Id", "bad-1", "Authorization", "Bearer none"); g.code != http.StatusUnauthorized || g.head.Get("X-Request-Id") != "bad-1" {
		t.Errorf("an error has the id %q", g.head.Get("X-Request-Id"))
	}
	b := r.respond(r.token, `{"model":"claybot","input":"hello"}`, "X-Request-Id", "req-7", "Idempotency-Key", "k")
	again := r.respond(r.token, `{"model":"claybot","input":"hello"}`, "X-Request-Id", "req-8", "Idempotency-Key", "k")
	var run struct{ Requests []string }
	r.ask("GET", "/agents/runs/"+b.run(), "", http.StatusOK, &run)
	if !slices.Equal(run.Requests, []string{"req-7"}) || again.ID != b.ID {
		t.Errorf("the run is of the requests %q", run.Requests)
	}
	if g := r.do("GET", "/receipts?message="+b.run(), ""); !strings.Contains(g.body, "by the request req-7") {
		t.Errorf("receipts %s", g.body)
	}
}
