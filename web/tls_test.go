package web_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/web"
)

// certify writes a new certificate for names into dir and returns what trusts it.
func certify(t *testing.T, dir string, serial int64, names ...string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if names[0] == "127.0.0.1" {
		leaf.DNSNames, leaf.IPAddresses = names[1:], []net.IP{net.ParseIP("127.0.0.1")}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		// Two writes within one tick of the file system's clock are two states.
		at := time.Unix(1_000_000_000+serial, 0)
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	if b, err := os.ReadFile(cert); err != nil || !pool.AppendCertsFromPEM(b) {
		t.Fatalf("pool: %v", err)
	}
	return cert, key, pool
}

// trusting is a browser that knows a certificate.
func trusting(t *testing.T, pool *x509.CertPool) *http.Client {
	t.Helper()
	b := browser(t)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	b.Transport = tr
	return b
}

func TestTLS(t *testing.T) {
	files := t.TempDir()
	cert, key, pool := certify(t, files, 1, "127.0.0.1", "localhost")
	w, _ := start(t, t.TempDir(), func(c *web.Config) { c.TLSCert, c.TLSKey = cert, key })
	b := trusting(t, pool)
	link := <-w.links
	if !strings.HasPrefix(link, "https://127.0.0.1:") {
		t.Fatalf("link %s", link)
	}
	got := enter(t, b, link)
	c := got.head.Get("Set-Cookie")
	_, port, err := net.SplitHostPort(w.srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"__Host-claybot-" + port + "=", "Secure", "HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(c, part) {
			t.Errorf("the cookie lacks %s: %s", part, c)
		}
	}
	page := "https://" + w.srv.Addr()
	if got := do(t, b, "GET", page+"/data", ""); got.code != 200 || got.head.Get("Strict-Transport-Security") != "" {
		t.Errorf("by address: %d %v", got.code, got.head)
	}
	if got := do(t, b, "GET", page+"/data", "", "Origin", "http://"+w.srv.Addr()); got.code != 403 {
		t.Errorf("the origin without TLS = %d", got.code)
	}
	// A cookie that a page without TLS could have set is none.
	jar := b.Jar
	b.Jar = nil
	value := strings.TrimPrefix(strings.Split(c, ";")[0], "__Host-")
	if got := do(t, b, "GET", page+"/data", "", "Cookie", value); got.code != 401 {
		t.Errorf("a cookie without its prefix = %d", got.code)
	}
	b.Jar = jar
	if got := do(t, browser(t), "GET", w.url("/data"), ""); got.code != 400 {
		t.Errorf("without TLS = %d", got.code)
	}
	old := &tls.Dialer{Config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}}
	if conn, err := old.DialContext(t.Context(), "tcp", w.srv.Addr()); err == nil {
		t.Error("TLS 1.1 is spoken")
		_ = conn.Close()
	}
	// A stream over HTTP/2 ends with its token, too.
	token := w.token(t, "reader", web.Read)
	s := open(t, trusting(t, pool), "GET", page+"/stream", "Authorization", "Bearer "+token)
	s.first(t)
	if s.resp.ProtoMajor != 2 {
		t.Errorf("the stream is of %s", s.resp.Proto)
	}
	w.ask(t, "DELETE", "/tokens/reader", "")
	if rest := s.rest(); strings.Contains(rest, "last words") {
		t.Errorf("said after the end: %q", rest)
	}
}

func TestCertificateIsReadAgain(t *testing.T) {
	files := t.TempDir()
	cert, key, _ := certify(t, files, 1, "127.0.0.1")
	w, _ := start(t, t.TempDir(), func(c *web.Config) { c.TLSCert, c.TLSKey = cert, key })
	serial := func() int64 {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", w.srv.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Fatalf("serial %d", got)
	}
	certify(t, files, 2, "127.0.0.1")
	if got := serial(); got != 2 {
		t.Errorf("after a change serial %d", got)
	}
	if err := os.WriteFile(cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != 2 || !strings.Contains(w.logged(), "cannot be used") {
		t.Errorf("with a broken file serial %d, log %s", got, w.logged())
	}
	certify(t, files, 3, "127.0.0.1")
	if got := serial(); got != 3 {
		t.Errorf("after the repair serial %d", got)
	}
}

// Beyond this machine there is TLS, a proxy that has it, or the word of the
// operator; or there is no page.
func TestWhereItListens(t *testing.T) {
	files := t.TempDir()
	cert, key, _ := certify(t, files, 1, "127.0.0.1")
	proxy := []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	for _, tc := range []struct {
		name string
		cfg  web.Config
		says string // empty: it starts
	}{
		{"this machine", web.Config{Addr: "127.0.0.1:0"}, ""},
		{"this machine by name", web.Config{Addr: "localhost:0"}, ""},
		{"this machine, IPv6", web.Config{Addr: "[::1]:0"}, ""},
		{"default", web.Config{}, ""},
		{"off", web.Config{Addr: web.Off}, ""},
		{"everything", web.Config{Addr: "0.0.0.0:0"}, "http.tls_cert"},
		{"everything, IPv6", web.Config{Addr: "[::]:0"}, "CLAYBOT_HTTP_INSECURE=1"},
		{"everything, short", web.Config{Addr: ":0"}, "http.trusted_proxies"},
		{"a network", web.Config{Addr: "192.168.1.5:8420"}, "without encryption"},
		{"a name", web.Config{Addr: "host.example:8420"}, "without encryption"},
		{"with TLS", web.Config{Addr: "0.0.0.0:0", TLSCert: cert, TLSKey: key}, ""},
		{"behind a proxy", web.Config{Addr: "0.0.0.0:0", Proxies: proxy}, ""},
		{"on purpose", web.Config{Addr: "0.0.0.0:0", Insecure: true}, ""},
		{"without a key", web.Config{Addr: "127.0.0.1:0", TLSCert: cert}, "http.tls_key"},
		{"without a certificate", web.Config{Addr: "127.0.0.1:0", TLSKey: key}, "http.tls_cert"},
		{"no such file", web.Config{Addr: "0.0.0.0:0", TLSCert: cert + "x", TLSKey: key}, "the certificate cannot be used"},
		{"the wrong file", web.Config{Addr: "0.0.0.0:0", TLSCert: key, TLSKey: cert}, "the certificate cannot be used"},
	} {
		tc.cfg.Dir = t.TempDir()
		_, err := newServer(tc.cfg)
		var no web.Refusal
		if tc.says == "" && err != nil || tc.says != "" && (!errors.As(err, &no) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
	for addr, want := range map[string]bool{
		"127.0.0.1:1": false, "127.9.9.9:1": false, "[::1]:1": false, "localhost:1": false, "[::ffff:127.0.0.1]:1": false, "no port": false,
		"0.0.0.0:1": true, ":1": true, "[::]:1": true, "10.0.0.1:1": true, "[fe80::1%eth0]:1": true, "example.org:1": true, "localhost.example:1": true,
	} {
		if got := web.Exposed(addr); got != want {
			t.Errorf("others reach %s: %v", addr, got)
		}
	}
}

// Links have names that browsers accept.
func TestLinks(t *testing.T) {
	files := t.TempDir()
	cert, key, _ := certify(t, files, 1, "chat.example.org")
	own := []net.Addr{&net.IPNet{IP: net.ParseIP("192.168.1.5")}}
	proxy := []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	names := []string{"other.example.org", "chat.example.org:8443"}
	for name, tc := range map[string]struct {
		cfg  web.Config
		addr string
		want []string
	}{
		"plain":           {web.Config{Addr: "127.0.0.1:1", Hosts: names}, "127.0.0.1:1", []string{"http://127.0.0.1:1"}},
		"insecure":        {web.Config{Addr: "0.0.0.0:1", Insecure: true}, "0.0.0.0:1", []string{"http://127.0.0.1:1", "http://192.168.1.5:1"}},
		"TLS with a name": {web.Config{Addr: "0.0.0.0:1", TLSCert: cert, TLSKey: key, Hosts: names}, "0.0.0.0:1", []string{"https://chat.example.org:8443", "https://127.0.0.1:1"}},
		"TLS, no name":    {web.Config{Addr: "127.0.0.1:1", TLSCert: cert, TLSKey: key}, "127.0.0.1:1", []string{"https://127.0.0.1:1"}},
		"proxy":           {web.Config{Addr: "0.0.0.0:1", Proxies: proxy, Hosts: names[:1]}, "0.0.0.0:1", []string{"http://127.0.0.1:1", "https://other.example.org"}},
		"proxy, no name":  {web.Config{Addr: "0.0.0.0:1", Proxies: proxy}, "0.0.0.0:1", []string{"http://127.0.0.1:1"}},
	} {
		tc.cfg.Dir = t.TempDir()
		srv, err := newServer(tc.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got := srv.LinksForTest(tc.addr, own); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// A fresh link has the name that people see, where a proxy has one; and it is valid
// for a caller that comes through the proxy.
func TestLoginLinkBehindAProxy(t *testing.T) {
	cert, key, _ := certify(t, t.TempDir(), 1, "127.0.0.1")
	proxy := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	names := []string{"chat.example.org", "other.example.org:8443"}
	for name, tc := range map[string]struct {
		change func(*web.Config)
		want   string // "": this machine's
	}{
		"proxy":                  {func(c *web.Config) { c.Proxies, c.Hosts = proxy, names }, "https://chat.example.org/login?token="},
		"proxy at another port":  {func(c *web.Config) { c.Proxies, c.Hosts = proxy, names[1:] }, "https://other.example.org:8443/login?token="},
		"proxy and TLS behind":   {func(c *web.Config) { c.Proxies, c.Hosts, c.TLSCert, c.TLSKey = proxy, names, cert, key }, "https://chat.example.org/login?token="},
		"proxy without a name":   {func(c *web.Config) { c.Proxies = proxy }, ""},
		"a name without a proxy": {func(c *web.Config) { c.Hosts = names }, ""},
		"neither":                {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := start(t, t.TempDir(), tc.change)
			want := tc.want
			if want == "" {
				want = "http://" + w.srv.Addr() + "/login?token="
			}
			var link web.LoginLink
			decode(t, w.ask(t, "POST", "/login-link", "").body, &link)
			if link.Alone {
				t.Error("one node has no other node to tell")
			}
			code, ok := strings.CutPrefix(link.URL, want)
			if !ok || code == "" {
				t.Fatalf("the link is %s, want %s…", link.URL, want)
			}
			if tc.want == "" {
				if link.Local != "" {
					t.Errorf("two links for this machine: %s", link.Local)
				}
				return
			}
			scheme := "http://"
			if name == "proxy and TLS behind" {
				scheme = "https://"
			}
			if want := scheme + w.srv.Addr() + "/login?token=" + code; link.Local != want {
				t.Errorf("on this machine it is %s, want %s", link.Local, want)
			}
			host := strings.TrimSuffix(strings.TrimPrefix(want, "https://"), "/login?token=")
			got := sent(t, w.srv, "192.0.2.7:1", "POST", "/login", `{"token":"`+code+`"}`, "Host", host, "X-Forwarded-Proto", "https", "Content-Type", "application/json")
			if got.code != http.StatusNoContent {
				t.Errorf("login by way of the proxy = %d %s", got.code, got.body)
			}
		})
	}
}

// from makes a request to a page that listens on every interface.
func from(t *testing.T, srv *web.Server, addr, path string, head ...string) answer {
	t.Helper()
	return sent(t, srv, addr, "GET", path, "", head...)
}

func sent(t *testing.T, srv *web.Server, addr, method, path, body string, head ...string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.RemoteAddr, r.Host = addr, "chat.example.org"
	for i := 0; i+1 < len(head); i += 2 {
		if head[i] == "Host" {
			r.Host = head[i+1]
		} else {
			r.Header.Add(head[i], head[i+1])
		}
	}
	rec := httptest.NewRecorder()
	srv.PageForTest(t.Context(), &net.TCPAddr{IP: net.IPv4zero, Port: 8420}).ServeHTTP(rec, r)
	return answer{rec.Code, rec.Header(), rec.Body.String()}
}

func TestBehindAProxy(t *testing.T) {
	w := &world{dir: t.TempDir()}
	srv, err := newServer(web.Config{
		Addr: "0.0.0.0:8420", Dir: w.dir, Ready: w.Ready, Routes: w.routes(), Hosts: []string{"chat.example.org"},
		Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::5/128")},
	})
	if err != nil {
		t.Fatal(err)
	}
	token := "Bearer " + w.owner(t)
	for _, tc := range []struct {
		name, addr string
		head       []string
		want       int
		code, has  string
	}{
		{"proxy", "192.0.2.7:1", []string{"X-Forwarded-For", "203.0.113.5"}, 200, "", `"from":"203.0.113.5:0"`},
		{"proxy, IPv6", "[2001:db8::5]:1", []string{"X-Forwarded-For", "[2001:db8:7::1]:55"}, 200, "", `"from":"[2001:db8:7::1]:0"`},
		{"two proxies", "192.0.2.7:1", []string{"X-Forwarded-For", "203.0.113.5, 192.0.2.8"}, 200, "", `"from":"203.0.113.5:0"`},
		{"forged first hop", "192.0.2.7:1", []string{"X-Forwarded-For", "127.0.0.1, 203.0.113.5"}, 200, "", `"from":"203.0.113.5:0"`},
		{"forged line", "192.0.2.7:1", []string{"X-Forwarded-For", "127.0.0.1", "X-Forwarded-For", "203.0.113.5"}, 200, "", `"from":"203.0.113.5:0"`},
		{"nonsense", "192.0.2.7:1", []string{"X-Forwarded-For", "127.0.0.1, unknown"}, 200, "", `"from":"192.0.2.7:0"`},
		{"handlers see no such header", "192.0.2.7:1", []string{"X-Forwarded-For", "203.0.113.5"}, 200, "", `"for":""`},
		{"name of the proxy", "192.0.2.7:1", []string{"Host", "10.0.0.1:8420", "X-Forwarded-Host", "chat.example.org"}, 200, "", treasure},
		{"foreign name", "192.0.2.7:1", []string{"X-Forwarded-Host", "evil.example"}, 421, "host", ""},
		{"forged name", "192.0.2.7:1", []string{"X-Forwarded-Host", "chat.example.org, evil.example"}, 421, "host", ""},
		{"this machine", "127.0.0.1:1", nil, 200, "", `"from":"127.0.0.1:1"`},
		{"this machine forges", "127.0.0.1:1", []string{"X-Forwarded-For", "203.0.113.5"}, 200, "", `"from":"127.0.0.1:1"`},
		{"around the proxy", "203.0.113.5:1", nil, 403, "proxy", ""},
		{"around the proxy, forged", "203.0.113.5:1", []string{"X-Forwarded-For", "192.0.2.7", "X-Forwarded-Proto", "https", "X-Real-Ip", "127.0.0.1"}, 403, "proxy", ""},
		{"no address", "@", nil, 403, "proxy", ""},
	} {
		got := from(t, srv, tc.addr, "/data", append(tc.head, "Authorization", token)...)
		if got.code != tc.want || tc.code != "" && got.errorCode() != tc.code || !strings.Contains(got.body, tc.has) || got.code != 200 && strings.Contains(got.body, treasure) {
			t.Errorf("%s = %d %s, want %d %s", tc.name, got.code, got.body, tc.want, tc.has)
		}
	}
	for proto, want := range map[string]bool{"https": true, "HTTPS": true, "http": false, "": false, "https, http": false, "ftp": false} {
		got := sent(t, srv, "192.0.2.7:1", "POST", "/login", `{"token":"`+srv.CodeForTest()+`"}`, "X-Forwarded-Proto", proto, "Content-Type", "application/json")
		c := got.head.Get("Set-Cookie")
		if strings.HasPrefix(c, "__Host-") != want || strings.Contains(c, "Secure") != want || (got.head.Get("Strict-Transport-Security") != "") != want {
			t.Errorf("scheme %q: cookie %s, %v", proto, c, got.head)
		}
	}
}

// Behind a stated proxy each address is locked by itself; without one, no caller
// escapes the lock by naming another address.
func TestForwardedAddressesAndTheLock(t *testing.T) {
	for _, stated := range []bool{true, false} {
		w := &world{dir: t.TempDir()}
		cfg := web.Config{Addr: "127.0.0.1:8420", Dir: w.dir, Ready: w.Ready, Routes: w.routes(), Hosts: []string{"chat.example.org"}}
		if stated {
			cfg.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		}
		srv, err := newServer(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if got := from(t, srv, "127.0.0.1:1", "/data", "X-Forwarded-For", "203.0.113.5", "Authorization", fmt.Sprint("Bearer guess", i)); got.code != 401 {
				t.Fatalf("guess %d = %d", i, got.code)
			}
		}
		for addr, want := range map[string]int{"203.0.113.5": 429, "203.0.113.6": 401} {
			if !stated {
				want = 429
			}
			if got := from(t, srv, "127.0.0.1:1", "/data", "X-Forwarded-For", addr, "Authorization", "Bearer guess"); got.code != want {
				t.Errorf("proxy stated %v: %s = %d, want %d", stated, addr, got.code, want)
			}
		}
	}
}
