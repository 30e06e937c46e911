package web

import (
	"net/http/httptest"
	"testing"
)

// A request is from the machine only if its connection, the host that it names and its origin are of
// the machine, and no proxy has a part in it. A proxy on the machine that hides itself rewrites the host,
// and leaves the origin.
func TestHere(t *testing.T) {
	for _, tt := range []struct {
		name, method, peer, host string
		headers                  []string
		want                     bool
	}{
		{"a page", "GET", "127.0.0.1:5000", "127.0.0.1:8420", nil, true},
		{"a page by IPv6", "GET", "[::1]:5000", "[::1]:8420", nil, true},
		{"a page by name", "GET", "127.0.0.1:5000", "localhost:8420", nil, true},
		{"a form", "POST", "127.0.0.1:5000", "127.0.0.1:8420", []string{"Origin", "http://127.0.0.1:8420"}, true},
		{"a form without an origin", "POST", "127.0.0.1:5000", "127.0.0.1:8420", nil, false},
		{"a form with a hidden origin", "POST", "127.0.0.1:5000", "127.0.0.1:8420", []string{"Origin", "null"}, false},
		{"a hidden proxy", "POST", "127.0.0.1:5000", "127.0.0.1:8420", []string{"Origin", "https://claybot.example"}, false},
		{"another machine", "GET", "192.0.2.7:5000", "127.0.0.1:8420", nil, false},
		{"the bridge of a container", "GET", "172.17.0.1:5000", "localhost:8420", nil, false},
		{"a name", "GET", "127.0.0.1:5000", "claybot.example", nil, false},
		{"a name like an address", "GET", "127.0.0.1:5000", "127.0.0.1.claybot.example:8420", nil, false},
		{"a proxy", "GET", "127.0.0.1:5000", "127.0.0.1:8420", []string{"X-Forwarded-For", "127.0.0.1"}, false},
		{"a proxy with the old header", "GET", "127.0.0.1:5000", "localhost", []string{"X-Real-Ip", "127.0.0.1"}, false},
		{"a proxy that says its name", "GET", "127.0.0.1:5000", "localhost", []string{"Via", "1.1 squid"}, false},
		{"a page over HTTP/1.0", "GET", "127.0.0.1:5000", "127.0.0.1:8420", []string{"HTTP", "1.0"}, false},
		{"no peer", "GET", "", "127.0.0.1:8420", nil, false},
		{"no host", "GET", "127.0.0.1:5000", "", nil, false},
	} {
		r := httptest.NewRequest(tt.method, "/", nil)
		r.RemoteAddr, r.Host = tt.peer, tt.host
		for i := 0; i < len(tt.headers); i += 2 {
			if r.Header.Set(tt.headers[i], tt.headers[i+1]); tt.headers[i] == "HTTP" {
				r.ProtoMajor, r.ProtoMinor = 1, 0
			}
		}
		if got := here(r); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
