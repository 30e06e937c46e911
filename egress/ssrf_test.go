package egress_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/claybot/claybot/egress"
)

// forbidden are hosts as they may be written, each of which is, or is read by some
// program as, an address that nothing may reach.
var forbidden = []string{
	// This machine.
	"127.0.0.1", "127.0.0.2", "127.0.1.1", "127.1.2.3", "127.255.255.254", "127.255.255.255",
	"127.1", "127.0.1", "127.0.0.1.", "127.0.0.1..", "127.0.0.01", "127.00.00.01", "127.0.0.001",
	"0177.0.0.1", "0177.0.0.01", "0177.0.1", "0177.1", "00177.0.0.1", "017700000001", "0017700000001",
	"0x7f.0.0.1", "0x7F.0x0.0x0.0x1", "0x7f.1", "0x7f000001", "0X7F000001", "0x07f000001", "0x7f.0x1",
	"2130706433", "02130706433", "2130706433.", "4294967296", "127.0.0.1.0x0", "1.127.0.0.1", "127.0.0.257",
	"127.0.0.1.1", "127..0.1", ".127.0.0.1", "127.0.0.1:", "127.0.0.-1", "127.0.0.1-", "+127.0.0.1",
	"１２７.0.0.1", "127.0.0.１", "127。0。0。1", "127．0．0．1", "127｡0｡0｡1", "①②⑦.⓪.⓪.①", "𝟏𝟐𝟕.𝟎.𝟎.𝟏", "𝟚𝟙𝟛𝟘𝟟𝟘𝟞𝟜𝟛𝟛",
	"０ｘ７ｆ.1", "127.0.0.1\u200b", "\u200b127.0.0.1", "127.0.\u00ad0.1", "127.0.0.1\u3002",
	"localhost", "LOCALHOST", "LocalHost.", "localhost.localdomain", "x.localhost", "ⓛocalhost", "ｌｏｃａｌｈｏｓｔ", "localhoſt",
	// Unspecified.
	"0.0.0.0", "0", "0.0", "0.0.0", "00", "0x0", "0x", "00.0.0.0", "0.0.0.1", "0.255.255.255", "000000000000", "0.0.0.0.",
	// IPv6.
	"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::0001]", "[0::1]", "[::0]", "[::2]",
	"[::1%25lo]", "[::1%25]", "[::%25lo]", "[fe80::1]", "[fe80::1%25eth0]", "[fe80::1%251]", "[febf::1]", "[fec0::1]", "[2001:4860:4860::8888%25lo]",
	"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::FFFF:127.0.0.1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::ffff:0.0.0.0]", "[::ffff:0:0]",
	"[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::ffff:192.168.1.1]", "[::ffff:172.16.0.1]", "[::ffff:100.64.0.1]",
	"[::127.0.0.1]", "[::7f00:1]", "[::10.0.0.1]", "[::169.254.169.254]", "[::8.8.8.8]", "[::ffff:0:127.0.0.1]", "[::ffff:0:a00:1]",
	"[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[64:ff9b::169.254.169.254]", "[64:ff9b::192.168.0.1]", "[64:ff9b::0.0.0.0]", "[64:ff9b::224.0.0.1]",
	"[64:ff9b:1::7f00:1]", "[64:ff9b:1::8.8.8.8]", "[2002:7f00:1::]", "[2002:7f00:1::1]", "[2002:a00:1::1]", "[2002:a9fe:a9fe::]", "[2002:808:808::1]",
	"[2001:0:7f00:1::]", "[2001::1]", "[2001:0:4136:e378:8000:63bf:80ff:fffe]", "[2001:10::1]", "[2001:20::1]", "[2001:2::1]", "[2001:db8::1]", "[3fff::1]",
	"[fc00::1]", "[fd00::1]", "[fd00:ec2::254]", "[fdff:ffff::1]", "[ff00::1]", "[ff02::1]", "[ff05::2]", "[ff0e::1]", "[100::1]", "[5f00::1]", "[4000::1]", "[e000::1]",
	"[127.0.0.1]", "[localhost]", "[2130706433]", "[::1", "::1", "[::ffff:127.1]", "[::ffff:0177.0.0.1]", "[::1].", "[[::1]]", "[v1.::1]",
	// Metadata and link-local.
	"169.254.169.254", "169.254.169.254.", "169.254.170.2", "169.254.0.1", "169.254.255.255", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376",
	"0xA9.0xFE.0xA9.0xFE", "169.254.43518", "169.16689662", "025177524776", "100.100.100.200", "168.63.129.16",
	// Private networks.
	"10.0.0.0", "10.0.0.1", "10.255.255.255", "0xa000001", "167772161", "012.0.0.1", "10.1", "172.16.0.1", "172.31.255.255", "0xac100001",
	"192.168.0.1", "192.168.255.255", "3232235521", "0300.0250.0.1", "192.168.1", "100.64.0.1", "100.127.255.255", "172.17.0.1", "172.18.0.1",
	// Multicast, broadcast, benchmarks, documentation, reserved.
	"224.0.0.1", "239.255.255.255", "255.255.255.255", "4294967295", "0xffffffff", "240.0.0.1", "254.1.2.3",
	"198.18.0.1", "198.19.255.255", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.0.0.1", "192.0.0.170", "192.88.99.1", "192.31.196.1",
	// Other tricks.
	"example.com@127.0.0.1", "127.0.0.1@example.com", "example.com:x@127.0.0.1", "@127.0.0.1", "127.0.0.1%2f", "127.0.0.1%00", "127%2e0%2e0%2e1", "%31%32%37.0.0.1",
	"127.0.0.1\\@example.com", "example.com\\.127.0.0.1", "127.0.0.1 ", " 127.0.0.1", "127.0.0.1\t", "127.0.0.1#", "example.com.0x7f000001", "a.1", "a.0x1", "1.2.3",
}

// named are hosts whose names lead to addresses that nothing may reach.
var named = map[string][][]string{
	"loop.test":             {{"127.0.0.1"}},
	"loop6.test":            {{"::1"}},
	"unspecified.test":      {{"0.0.0.0"}},
	"any6.test":             {{"::"}},
	"mapped.test":           {{"::ffff:127.0.0.1"}},
	"nat64.test":            {{"64:ff9b::7f00:1"}},
	"private.test":          {{"10.0.0.1"}},
	"metadata.test":         {{"169.254.169.254"}},
	"mixed.test":            {{"93.184.215.14", "127.0.0.1"}}, // one of two
	"mixed6.test":           {{"2606:2800:21f:cb07:6820:80da:af6b:8b2c", "127.0.0.1"}},
	"many.test":             {{"93.184.215.14", "93.184.215.15", "93.184.215.16", "93.184.215.17", "93.184.215.18", "93.184.215.19", "93.184.215.20", "93.184.215.21", "93.184.215.22", "127.0.0.1"}},
	"localhost":             {{"127.0.0.1"}},
	"xn--localhot-3ya":      {{"127.0.0.1"}},
	"localhost.localdomain": {{"127.0.0.1"}},
}

// Every form, asked for by each way out, reaches nothing.
func TestForbiddenAddresses(t *testing.T) {
	trap := setTrap(t)
	names, resolver := startNames(t, named)
	var target atomic.Pointer[string]
	_, server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Location"] = []string{*target.Load()}
		w.WriteHeader(http.StatusFound)
	})
	var told ledger
	door := open(t, egress.Policy{Public: true, AnyPort: true, Private: []string{server}, Resolver: resolver, Log: told.add})
	client := door.Client(egress.Limits{})
	proxy := startProxy(t, door)

	hosts := append([]string(nil), forbidden...)
	for name := range named {
		hosts = append(hosts, name, strings.ToUpper(name), name+".")
	}
	if len(hosts) < 120 {
		t.Fatalf("only %d forms", len(hosts))
	}
	for _, host := range hosts {
		address := "http://" + host + ":" + trap.port + "/?q=hidden"
		if strings.HasSuffix(host, ":") {
			address = "http://" + host + "/"
		}
		ways := map[string]func() error{
			"directly": func() error { return get(t, client, address) },
			"by a redirect": func() error {
				target.Store(&address)
				return get(t, client, "http://"+server+"/")
			},
			"by CONNECT":         func() error { return viaProxy(t, proxy, "CONNECT "+host+":"+trap.port+" HTTP/1.1\r\nHost: x\r\n\r\n") },
			"by SOCKS":           func() error { return viaSocks(t, proxy, strings.Trim(host, "[]"), trap.port) },
			"by a whole address": func() error { return viaProxy(t, proxy, "GET "+address+" HTTP/1.1\r\nHost: x\r\n\r\n") },
			"by dialing": func() error {
				c, err := door.DialContext(t.Context(), "tcp", strings.Trim(host, "[]")+":"+trap.port)
				if err == nil {
					c.Close()
				}
				return err
			},
		}
		for way, try := range ways {
			if err := try(); err == nil {
				t.Errorf("%q passes %s", host, way)
			} else if refused, ok := errors.AsType[*egress.RefusedError](err); ok && strings.Contains(refused.Error(), "hidden") {
				t.Errorf("%q: the error shows the query: %v", host, err)
			}
		}
	}
	trap.check(t)
	for _, r := range told.take() {
		if strings.Contains(fmt.Sprintf("%+v", r), "hidden") {
			t.Errorf("the log shows the query: %+v", r)
		}
		if r.Decision == egress.Allowed && r.Host != server {
			t.Errorf("allowed: %+v", r)
		}
	}
	if names.count("loop.test") == 0 {
		t.Error("the name server was never asked")
	}
	t.Logf("%d forms, 6 ways each, 0 connections", len(hosts))
}

func get(t *testing.T, c *http.Client, address string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// The metadata services of the clouds stay closed, whatever the policy says, and also where
// their address is public or in a private range.
func TestMetadata(t *testing.T) {
	for _, tt := range []struct{ cloud, addr string }{
		{"Azure", "168.63.129.16"},
		{"Azure, mapped", "::ffff:168.63.129.16"},
		{"Azure, NAT64", "64:ff9b::168.63.129.16"},
		{"all, IPv4", "169.254.169.254"},
		{"all, IPv6 of OpenStack", "fe80::a9fe:a9fe"},
		{"AWS, containers", "169.254.170.2"},
		{"AWS, pods", "169.254.170.23"},
		{"AWS, IPv6", "fd00:ec2::254"},
		{"AWS, pods, IPv6", "fd00:ec2::23"},
		{"AWS, name server", "fd00:ec2::253"},
		{"Alibaba", "100.100.100.200"},
		{"Alibaba, IPv6", "fd00:100::100:200"},
		{"Google, IPv6", "fd20:ce::254"},
		{"Linode, IPv6", "fd00:a9fe:a9fe::1"},
		{"Oracle Classic", "192.0.0.192"},
		{"Oracle, IPv6", "fd00:c1::a9fe:a9fe"},
		{"Scaleway", "169.254.42.42"},
		{"Scaleway, IPv6", "fd00:42::42"},
		{"Tencent", "169.254.0.23"},
	} {
		pair := net.JoinHostPort(tt.addr, "80")
		if _, err := egress.New(egress.Policy{Private: []string{pair}}); err == nil {
			t.Errorf("%s: an exception opens %s", tt.cloud, pair)
		}
		if _, err := egress.New(egress.Policy{Allow: []string{pair}}); err == nil {
			t.Errorf("%s: a list opens %s", tt.cloud, pair)
		}
		err := open(t, egress.Policy{Public: true}).Check(&url.URL{Scheme: "http", Host: pair})
		if _, refused := errors.AsType[*egress.RefusedError](err); !refused {
			t.Errorf("%s: %s: %v", tt.cloud, pair, err)
		}
		_, resolver := startNames(t, map[string][][]string{"metadata.test": {{tt.addr}}})
		door := open(t, egress.Policy{Public: true, Private: []string{"metadata.test:80"}, Resolver: resolver})
		c, err := door.DialContext(t.Context(), "tcp", "metadata.test:80")
		if err == nil {
			c.Close()
		}
		if _, refused := errors.AsType[*egress.RefusedError](err); !refused {
			t.Errorf("%s: a name of it: %v", tt.cloud, err)
		}
	}
}

// A name whose address changes between one connection and the next: each answer is
// judged for itself, so only those that are allowed are connected to.
func TestRebinding(t *testing.T) {
	_, server := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := net.SplitHostPort(server)
	var turns [][]string
	for range 6 { // 0.0.0.0 and ::ffff:0.0.0.0 would reach the same server
		turns = append(turns, []string{"127.0.0.1"}, []string{"0.0.0.0"}, []string{"127.0.0.1", "0.0.0.0"}, []string{"169.254.169.254"})
	}
	_, resolver := startNames(t, map[string][][]string{"rebind.test": turns})
	door := open(t, egress.Policy{Private: []string{"rebind.test:" + port}, Resolver: resolver})
	for i, turn := range turns {
		c, err := door.DialContext(t.Context(), "tcp", "rebind.test:"+port)
		if err == nil {
			c.Close()
		}
		want := len(turn) == 1 && turn[0] == "127.0.0.1"
		if _, refused := errors.AsType[*egress.RefusedError](err); (err == nil) != want || refused == want {
			t.Errorf("turn %d, %v: %v", i, turn, err)
		}
	}
}

// One lookup is made for one connection, so there is no second answer to use.
func TestOneLookup(t *testing.T) {
	_, server := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := net.SplitHostPort(server)
	names, resolver := startNames(t, map[string][][]string{"once.test": {{"127.0.0.1"}, {"10.0.0.1"}}})
	door := open(t, egress.Policy{Private: []string{"once.test:" + port}, Resolver: resolver})
	c, err := door.DialContext(t.Context(), "tcp", "ONCE.test.:"+port)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if got := names.count("once.test"); got != 2 { // A and AAAA
		t.Errorf("%d questions, want 2", got)
	}
}

// An exception opens private addresses at its port alone, and nothing worse.
func TestExceptions(t *testing.T) {
	_, server := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := net.SplitHostPort(server)
	trap := setTrap(t)
	_, resolver := startNames(t, map[string][][]string{
		"wiki.test": {{"127.0.0.1"}}, "bad.test": {{"169.254.169.254"}}, "any.test": {{"0.0.0.0"}}, "nat.test": {{"64:ff9b::7f00:1"}},
	})
	p := egress.Policy{Resolver: resolver, Private: []string{"wiki.test:" + port, "bad.test:80", "any.test:" + trap.port, "nat.test:" + trap.port, "127.0.0.1:" + port}}
	door := open(t, p)
	for addr, want := range map[string]bool{
		"wiki.test:" + port: true, "WIKI.TEST.:" + port: true, "127.0.0.1:" + port: true, "[::ffff:127.0.0.1]:" + port: true,
		"wiki.test:" + trap.port: false, "127.0.0.1:" + trap.port: false, "bad.test:80": false,
		"any.test:" + trap.port: false, "nat.test:" + trap.port: false, "x.wiki.test:" + port: false, "127.0.0.2:" + port: false,
	} {
		c, err := door.DialContext(t.Context(), "tcp", addr)
		if err == nil {
			c.Close()
		}
		if _, refused := errors.AsType[*egress.RefusedError](err); (err == nil) != want || !want && !refused {
			t.Errorf("%s: %v", addr, err)
		}
	}
	p.Own = egress.Listeners(server)
	if _, err := open(t, p).DialContext(t.Context(), "tcp", "wiki.test:"+port); err == nil || !strings.Contains(err.Error(), "claybot itself") {
		t.Errorf("own listener: %v", err)
	}
	trap.check(t)
}

func TestListeners(t *testing.T) {
	own := egress.Listeners("127.0.0.1:8420", "0.0.0.0:9000", ":9001", "localhost:9002", "[::1]:9003", "/run/claybot.sock", "x:y", "")
	here := "127.0.0.1"
	if addrs, err := net.InterfaceAddrs(); err == nil {
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLoopback() {
				here = p.Addr().String()
			}
		}
	}
	for addr, want := range map[string]bool{
		"127.0.0.1:8420": true, "[::ffff:127.0.0.1]:8420": true, "127.0.0.2:8420": false, "127.0.0.1:8421": false,
		"127.9.9.9:9000": true, "[::1]:9001": true, net.JoinHostPort(here, "9000"): true, "93.184.215.14:9000": false,
		"127.0.0.1:9002": true, "[::1]:9002": true, "[::1]:9003": true,
	} {
		if got := own(netip.MustParseAddrPort(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

func TestLists(t *testing.T) {
	door := open(t, egress.Policy{Allow: []string{"example.com", "*.Example.ORG", "api.example.net:8443", "bücher.example", "[2606:4700::1111]", "9.9.9.9:53"}})
	for address, want := range map[string]bool{
		"https://example.com/": true, "http://EXAMPLE.com./x?y": true, "https://example.com:443/": true, "http://example.com:80/": true,
		"https://example.com:8443/": false, "https://www.example.com/": false, "https://notexample.com/": false, "https://example.com.evil.test/": false,
		"https://a.example.org/": true, "https://a.b.example.org/": true, "https://example.org/": false, "https://aexample.org/": false,
		"https://api.example.net:8443/": true, "https://api.example.net/": false, "https://BÜCHER.example/": true, "https://xn--bcher-kva.example/": true,
		"https://[2606:4700::1111]/": true, "https://[2606:4700:0:0::1111]/": true, "https://[2606:4700::1112]/": false, "http://9.9.9.9:53/": true, "http://9.9.9.9/": false,
		"ftp://example.com/": false, "file:///etc/passwd": false, "https:example.com": false, "//example.com/": false, "gopher://example.com/": false,
		"https://user@example.com/": false, "https://user:pass@example.com/": false, "https://:@example.com/": false, "ws://example.com/": false, "javascript:alert(1)": false, "": false,
		"https://example.com:0/": false, "https://example.com:99999/": false, "https://example.com:/": false, "https://example.com:0443/": false, "unix:///run/docker.sock": false, "http+unix://x/": false,
	} {
		u, err := url.Parse(address)
		if err == nil {
			err = door.Check(u)
		}
		if (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	if door.Check(nil) == nil {
		t.Error("nil is allowed")
	}
}

func TestPublicPorts(t *testing.T) {
	door := open(t, egress.Policy{Public: true})
	for port, want := range map[int]bool{80: true, 443: true, 8080: true, 3000: true, 22: false, 25: false, 6379: false, 6000: false, 11211: false, 65535: true} {
		err := door.Check(&url.URL{Scheme: "https", Host: fmt.Sprintf("example.com:%d", port)})
		if (err == nil) != want {
			t.Errorf("%d: %v", port, err)
		}
	}
}

func TestAnyPort(t *testing.T) {
	door := open(t, egress.Policy{Public: true, AnyPort: true})
	for _, port := range []int{22, 25, 80, 6379} {
		if err := door.Check(&url.URL{Scheme: "https", Host: fmt.Sprintf("example.com:%d", port)}); err != nil {
			t.Errorf("%d: %v", port, err)
		}
		if err := door.Check(&url.URL{Scheme: "https", Host: fmt.Sprintf("10.0.0.1:%d", port)}); err == nil {
			t.Errorf("%d of a private address", port)
		}
	}
}

func TestInvalidPolicies(t *testing.T) {
	for _, text := range []string{"", "*", "*.", "*.com", "http://example.com", "example.com/", "example.com:0", "example.com:x", "example.com:080", "a b", "127.1", "10.0.0.1", "localhost:", "*.1.2.3.4", "[::1]", "user@example.com", "-a.test", "a..b", strings.Repeat("a", 64) + ".test", "0x7f"} {
		if _, err := egress.New(egress.Policy{Allow: []string{"example.com", text}}); err == nil || !strings.Contains(err.Error(), "host") {
			t.Errorf("allow %q: %v", text, err)
		}
	}
	for _, text := range []string{"", "example.com", "10.0.0.1", "*.example.com:80", "169.254.169.254:80", "0.0.0.0:80", "[::]:80", "224.0.0.1:80", "255.255.255.255:80", "[fe80::1%eth0]:80", "[fd00:ec2::254]:80", "100.100.100.200:80", "10.1:80", "x:0"} {
		if _, err := egress.New(egress.Policy{Private: []string{text}}); err == nil || !strings.Contains(err.Error(), "private host") {
			t.Errorf("private %q: %v", text, err)
		}
	}
	if _, err := egress.New(egress.Policy{Allow: []string{"a b"}, Private: []string{"c"}}); err == nil || !strings.Contains(err.Error(), `"a b"`) || !strings.Contains(err.Error(), `"c"`) {
		t.Errorf("%v", err)
	}
	if _, err := egress.New(egress.Policy{Private: []string{"10.0.0.1:80", "[::1]:8080", "localhost:3000", "[fd12::1]:1"}}); err != nil {
		t.Error(err)
	}
}

// viaProxy sends a request as it is and returns an error unless the answer is a
// good one.
func viaProxy(t *testing.T, proxy, request string) error {
	t.Helper()
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if strings.Contains(string(text), "hidden") {
		t.Errorf("the answer shows the query: %s", text)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, text)
	}
	return nil
}
