package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors/webchat"
	"github.com/claybot/claybot/web"
)

// proxied is the name that the guide has.
const proxied = "chat.example.org"

// A proxyProgram is a proxy that the guide has a file for.
type proxyProgram struct {
	lang string // of the block in docs/proxies.md
	// command is how it runs in the foreground with a file.
	command func(file, dir string) []string
	// around is what the file has beside the block; %s is the block.
	around string
}

var proxyPrograms = []proxyProgram{
	{
		"nginx", func(file, dir string) []string { return []string{"nginx", "-c", file, "-p", dir, "-e", "stderr"} },
		"daemon off;\npid nginx.pid;\nevents {}\nhttp {\naccess_log off;\nclient_body_temp_path body;\nproxy_temp_path proxy;\nfastcgi_temp_path f;\nuwsgi_temp_path u;\nscgi_temp_path s;\n%s}\n",
	},
	{
		"caddy", func(file, _ string) []string {
			return []string{"caddy", "run", "--adapter", "caddyfile", "--config", file}
		},
		"{\n admin off\n auto_https disable_redirects\n https_port $PORT\n}\n%s",
	},
	{"haproxy", func(file, _ string) []string { return []string{"haproxy", "-db", "-f", file} }, "%s"},
}

// The proxies run with the files of the guide: a browser behind them logs in, sends the largest file, and reads
// a stream while it is written; other names and paths are refused.
func TestProxies(t *testing.T) {
	for _, p := range proxyPrograms {
		t.Run(p.lang, func(t *testing.T) {
			if _, err := exec.LookPath(p.lang); err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatalf("no %s: scripts/setup.sh installs it", p.lang)
				}
				t.Skipf("SKIPPED, claybot is not tried behind %s: it is not installed (scripts/programs.sh installs it)", p.lang)
			}
			h := startDaemon(t, "model: {provider: demo}\n", map[string]string{
				"CLAYBOT_HTTP_ADDR": "127.0.0.1:0", "CLAYBOT_HTTP_PROXIES": "127.0.0.1", "CLAYBOT_HTTP_HOSTS": proxied,
			})
			var link web.LoginLink
			if err := h.client.call(h.ctx, "POST", "/login-link", nil, &link); err != nil {
				t.Fatal(err)
			}
			at, _, _ := strings.Cut(strings.TrimPrefix(link.Local, "http://"), "/")
			b := proxiedBrowser{T: t, ctx: h.ctx, http: p.start(t, at)}
			b.try(link)
		})
	}
}

// start runs the proxy in front of an address, and returns a client that reaches only it.
func (p proxyProgram) start(t *testing.T, at string) *http.Client {
	t.Helper()
	dir := t.TempDir()
	pool := writeCertificate(t, dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	front := l.Addr().String()
	_, port, _ := net.SplitHostPort(front)
	_ = l.Close() // the proxy takes its place
	guide, err := os.ReadFile("../../docs/proxies.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)\n```" + p.lang + "\n(.*?)```\n").FindSubmatch(guide)
	if block == nil {
		t.Fatalf("docs/proxies.md has no block %s", p.lang)
	}
	text := strings.NewReplacer("/etc/ssl", dir, "127.0.0.1:8420", at, "listen 443", "listen 127.0.0.1:"+port, "bind :443", "bind 127.0.0.1:"+port, "$PORT", port).
		Replace(fmt.Sprintf(p.around, block[1]))
	file := filepath.Join(dir, "proxy.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := p.command(file, dir)
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec // one of proxyPrograms
	var log logText
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = dir, &log, &log, append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); <-ended }) // a test in the background may ignore interrupts
	to := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: proxied, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", front)
		},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(to.CloseIdleConnections)
	client := &http.Client{Transport: to}
	for {
		r, err := client.Get("https://" + proxied + "/healthz")
		if err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				break
			}
			err = fmt.Errorf("status %d", r.StatusCode)
		}
		select {
		case <-ended:
			t.Fatalf("%s has ended: %s", p.lang, log.String())
		case <-t.Context().Done():
			t.Fatalf("%s: %v\n%s", p.lang, err, log.String())
		case <-time.After(patientStep):
		}
	}
	client.Jar, _ = cookiejar.New(nil) // it never fails
	return client
}

// writeCertificate makes the certificate of the name, its key, and both in one file.
func writeCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: proxied}, DNSNames: []string{proxied, "other.example.org"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	open, secret := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for name, data := range map[string][]byte{".pem": open, ".key": secret, ".both.pem": bytes.Join([][]byte{open, secret}, nil)} {
		if err := os.WriteFile(filepath.Join(dir, proxied+name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(open)
	return pool
}

// A proxiedBrowser is a browser behind a proxy.
type proxiedBrowser struct {
	*testing.T
	ctx  context.Context
	http *http.Client
}

// send makes a request as the page does; more are names and values of further headers.
func (b proxiedBrowser) send(method, url string, body io.Reader, more ...string) *http.Response {
	b.Helper()
	req, err := http.NewRequestWithContext(b.ctx, method, url, body)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.Header.Set("Origin", "https://"+proxied)
	for i := 0; i < len(more); i += 2 {
		req.Header.Set(more[i], more[i+1])
	}
	r, err := b.http.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.Body.Close() })
	return r
}

// wants reads a response.
func (b proxiedBrowser) wants(what string, r *http.Response, code int, text string) {
	b.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != code || !strings.Contains(string(body), text) {
		b.Fatalf("%s: %d %.300s, %v; want %d with %q", what, r.StatusCode, body, err, code, text)
	}
}

func (b proxiedBrowser) try(link web.LoginLink) {
	b.Helper()
	page := "https://" + proxied
	_, token, _ := strings.Cut(link.URL, "/login?token=")
	if !strings.HasPrefix(link.URL, page+"/login?") {
		b.Errorf("the link is %.40s", link.URL)
	}
	for _, said := range []string{"", proxied} { // a client cannot say that it used another name
		other := b.send("GET", "https://other.example.org/healthz", nil, "X-Forwarded-Host", said)
		if body, err := io.ReadAll(other.Body); err != nil || other.StatusCode == http.StatusOK && len(body) > 0 { // Caddy has an empty answer of its own
			b.Errorf("another name: %d %q, %v", other.StatusCode, body, err)
		}
	}
	b.wants("a name that the client claims", b.send("GET", page+"/healthz", nil, "X-Forwarded-Host", "evil.example.org"), http.StatusOK, "")
	b.wants("a path cut off", b.send("GET", page+"/healthz", nil, "X-Forwarded-Prefix", "/claybot"), http.StatusMisdirectedRequest, "name of its own")
	b.wants("another origin", b.send("POST", page+"/login", strings.NewReader(`{"token":"`+token+`"}`), "Origin", "https://evil.example.org", "Sec-Fetch-Site", "cross-site"), http.StatusForbidden, "origin")
	login := b.send("POST", page+"/login", strings.NewReader(`{"token":"`+token+`"}`))
	if c := login.Cookies(); login.StatusCode != http.StatusNoContent || len(c) != 1 || !c[0].Secure {
		b.Fatalf("login: %d, cookies %v", login.StatusCode, c)
	}
	b.wants("the largest file", b.send("POST", page+"/chat/files?name=large.bin", bytes.NewReader(make([]byte, webchat.MaxUpload)), "Content-Type", "application/octet-stream"), http.StatusCreated, "large.bin")
	stream := b.send("GET", page+"/chat/stream", nil, "Accept", "text/event-stream")
	b.wants("a message", b.send("POST", page+"/chat/messages", strings.NewReader(`{"id":"m1","text":"through the proxy"}`)), http.StatusAccepted, "m1")
	var seen bytes.Buffer
	for piece := make([]byte, 4096); !strings.Contains(seen.String(), "through the proxy"); {
		n, err := stream.Body.Read(piece)
		seen.Write(piece[:n])
		if err != nil {
			b.Fatalf("the stream ended: %v\n%s", err, seen.String())
		}
	}
}
