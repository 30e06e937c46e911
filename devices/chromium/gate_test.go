package chromium

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/claybot/claybot/devices"
)

// The gate alone keeps to the hosts: for plain requests, redirects and tunnels.
func TestGate(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	defer elsewhere.Close()
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
			return
		}
		if r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Via") != "" {
			t.Errorf("headers %v", r.Header)
		}
		fmt.Fprintf(w, "%s %s", r.Host, r.URL)
	}))
	defer inside.Close()
	host := strings.TrimPrefix(inside.URL, "http://")
	hosts, err := devices.ParseHosts([]string{host})
	if err != nil {
		t.Fatal(err)
	}
	g, err := openGate(t.Context(), hosts, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := url.Parse(g.address())
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyURL(proxy)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	get := func(address string) (int, string) {
		t.Helper()
		r, err := client.Get(address)
		if err != nil {
			return 0, err.Error()
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(body)
	}
	if status, body := get(inside.URL + "/x?y=1"); status != 200 || body != host+" /x?y=1" {
		t.Errorf("inside: %d %q", status, body)
	}
	if status, _ := get(inside.URL + "/away"); status != http.StatusFound {
		t.Errorf("a redirect is followed: %d", status)
	}
	for _, bad := range []string{elsewhere.URL, "http://clients.example/", "http://127.0.0.1.evil.test/", "ftp://" + host + "/"} {
		if status, body := get(bad); status != http.StatusForbidden && !strings.Contains(body, "unsupported protocol") {
			t.Errorf("%s: %d %q", bad, status, body)
		}
	}
	if status, _ := get(g.address()); status != http.StatusForbidden {
		t.Errorf("the gate through itself: %d", status)
	}

	tunnel := func(to string) (net.Conn, *bufio.Reader, string) {
		t.Helper()
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", proxy.Host)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
		in := bufio.NewReader(c)
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return c, in, line
	}
	c, in, line := tunnel(host)
	defer c.Close()
	if !strings.Contains(line, "200") {
		t.Fatalf("tunnel: %q", line)
	}
	in.ReadString('\n') // the empty line
	fmt.Fprintf(c, "GET /t HTTP/1.1\r\nHost: %s\r\n\r\n", host)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "200 OK") {
		t.Errorf("through the tunnel: %q, %v", line, err)
	}
	for _, bad := range []string{strings.TrimPrefix(elsewhere.URL, "http://"), "127.0.0.1:22", host + "0"} {
		c, _, line := tunnel(bad)
		if !strings.Contains(line, "403") {
			t.Errorf("tunnel to %s: %q", bad, line)
		}
		c.Close()
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(in); err == nil {
		if _, err := c.Write([]byte("x")); err == nil {
			_, err = in.ReadByte()
			if err == nil {
				t.Error("the tunnel outlives the gate")
			}
		}
	}
	if status, _ := get(inside.URL); status != 0 {
		t.Errorf("a closed gate answers %d", status)
	}
}

func TestPlace(t *testing.T) {
	same := [][2]string{
		{"http://a.test/item/1", "http://a.test/item/22"},
		{"http://a.test/?page=1", "http://a.test/?page=9"},
		{"http://a.test/x#section", "http://a.test/x"},
		{"http://a.test/u/0f8fad5b-d9cb-469f-a165-70867728950e", "http://a.test/u/7c9e6679-7425-40de-944b-e07fc1f90ae7"},
		{"http://a.test/?sid=A8f3kd92Kd0s2Lq81Zx0p", "http://a.test/?sid=Zx0pA8f3kd92Kd0s2Lq81"},
	}
	for _, p := range same {
		if place(p[0]) != place(p[1]) {
			t.Errorf("%s is %q, %s is %q", p[0], place(p[0]), p[1], place(p[1]))
		}
	}
	other := [][2]string{
		{"http://a.test/a", "http://a.test/b"},
		{"http://a.test/?view=list", "http://a.test/?view=map"},
		{"http://a.test/#/one", "http://a.test/#/two"},
		{"http://a.test/", "http://b.test/"},
	}
	for _, p := range other {
		if place(p[0]) == place(p[1]) {
			t.Errorf("%s and %s are both %q", p[0], p[1], place(p[0]))
		}
	}
	if place("http://[::1") != "" {
		t.Error("no address")
	}
}
