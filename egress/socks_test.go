package egress_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"testing"

	"github.com/claybot/claybot/egress"
)

// socksRequest is a request of SOCKS for a host, as an address where it is one.
func socksRequest(t *testing.T, command byte, host, port string) []byte {
	t.Helper()
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	b := []byte{5, command, 0}
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" {
		if a.Is4() {
			b = append(b, 1)
		} else {
			b = append(b, 4)
		}
		b = append(b, a.AsSlice()...)
	} else {
		b = append(append(b, 3, byte(len(host))), host...)
	}
	return append(b, byte(n>>8), byte(n))
}

// viaSocks asks a proxy for a connection and returns an error unless it has one.
func viaSocks(t *testing.T, proxy, host, port string) error {
	t.Helper()
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return socksConnect(c, socksRequest(t, 1, host, port))
}

func socksConnect(c net.Conn, request []byte) error {
	if _, err := c.Write(append([]byte{5, 2, 0, 2}, request...)); err != nil {
		return err
	}
	var answer [12]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return err
	}
	if answer[0] != 5 || answer[1] != 0 || answer[2] != 5 {
		return fmt.Errorf("not SOCKS: %v", answer)
	}
	if answer[3] != 0 {
		return socksError(answer[3])
	}
	return nil
}

type socksError byte

func (e socksError) Error() string { return fmt.Sprintf("SOCKS answers %d", byte(e)) }

// TestSocks connects through the proxy by SOCKS, to a name that the proxy looks up and to an
// address, both ways, and says why it does not.
func TestSocks(t *testing.T) {
	_, server := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s", r.URL.Path) })
	host, port, _ := net.SplitHostPort(server)
	_, resolver := startNames(t, map[string][][]string{"in.test": {{"127.0.0.1"}}, "meta.test": {{"169.254.169.254"}}})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	var told ledger
	proxy := startProxy(t, open(t, egress.Policy{
		Public: true, AnyPort: true, Private: []string{server, "in.test:" + port, closed.Addr().String()}, Resolver: resolver, Log: told.add,
	}))
	for _, name := range []string{host, "in.test", "IN.test."} {
		client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			c, err := net.Dial("tcp", proxy)
			if err == nil {
				err = socksConnect(c, socksRequest(t, 1, name, port))
			}
			return c, err
		}}}
		resp, err := client.Get("http://anything.test/x")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(b) != "hello /x" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		client.CloseIdleConnections()
	}
	_, closedPort, _ := net.SplitHostPort(closed.Addr().String())
	for _, tt := range []struct {
		what    string
		request []byte
		want    socksError
	}{
		{"this machine", socksRequest(t, 1, "127.0.0.1", "1"), 2},
		{"a private address", socksRequest(t, 1, "10.0.0.1", "22"), 2},
		{"metadata", socksRequest(t, 1, "169.254.169.254", "80"), 2},
		{"metadata of Azure", socksRequest(t, 1, "168.63.129.16", "80"), 2},
		{"metadata by a name", socksRequest(t, 1, "meta.test", "80"), 2},
		{"this machine in IPv6", socksRequest(t, 1, "::1", port), 2},
		{"an odd name", socksRequest(t, 1, "127.1", port), 2},
		{"no name", socksRequest(t, 1, "", port), 2},
		{"port 0", socksRequest(t, 1, "in.test", "0"), 2},
		{"an unknown name", socksRequest(t, 1, "none.test", port), 4},
		{"nothing listens", socksRequest(t, 1, "127.0.0.1", closedPort), 5},
		{"to listen", socksRequest(t, 2, host, port), 7},
		{"UDP", socksRequest(t, 3, host, port), 7},
		{"an unknown kind of address", []byte{5, 1, 0, 9, 0, 0}, 8},
	} {
		c, err := net.Dial("tcp", proxy)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := errors.AsType[socksError](socksConnect(c, tt.request)); !ok || got != tt.want {
			t.Errorf("%s: %v, want %d", tt.what, got, tt.want)
		}
		c.Close()
	}
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte{5, 1, 2}); err != nil { // a password alone
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil || string(b) != "\x05\xff" {
		t.Errorf("with a password: %v, %v", b, err)
	}
	for _, r := range told.take() {
		if r.Method != "SOCKS" {
			t.Errorf("the log: %+v", r)
		}
	}
}
