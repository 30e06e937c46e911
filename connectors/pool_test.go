package connectors_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/claybot/claybot/connectors"
)

// A call before a connector runs, or after it has ended, leaves no connection behind. It stayed open for 90
// seconds: a request makes a transport keep connections again, and a connector that is made anew
// while it is stopped, so that its credentials are checked, does not run.
func TestRestingPoolKeepsNoConnection(t *testing.T) {
	opened, closed := make(chan net.Conn, 16), make(chan net.Conn, 16)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") }))
	srv.Config.ConnState = func(c net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			opened <- c
		case http.StateClosed:
			closed <- c
		}
	}
	srv.Start()
	defer srv.Close()
	pool := connectors.NewPool(&http.Transport{}, nil) // which itself closes none
	call := func() {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := pool.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	gone := func() {
		t.Helper()
		if was, is := <-opened, <-closed; was != is {
			t.Fatal("another connection was closed")
		}
	}
	call() // a check of its credentials
	gone()
	pool.Wake()
	call()
	call()
	if n := len(opened); n != 1 {
		t.Fatalf("two calls of a connector that runs opened %d connections, want 1", n)
	}
	pool.Rest()
	gone()
	call() // the rest of a delivery
	gone()
	pool.Wake()
	call()
	call()
	if n := len(opened); n != 1 {
		t.Fatalf("after the next start, two calls opened %d connections, want 1", n)
	}
	pool.Rest()
	gone()
}
