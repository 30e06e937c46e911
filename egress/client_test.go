package egress_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claybot/claybot/egress"
)

func TestRedirects(t *testing.T) {
	seen := make(chan http.Header, 20)
	_, other := serve(t, func(w http.ResponseWriter, r *http.Request) { seen <- r.Header.Clone() })
	_, first := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscanf(r.URL.Path, "/%d", &n)
		seen <- r.Header.Clone()
		switch {
		case n > 1:
			http.Redirect(w, r, fmt.Sprintf("/%d?secret", n-1), http.StatusFound)
		case n == 1:
			http.Redirect(w, r, "/end", http.StatusFound)
		case r.URL.Path == "/other":
			http.Redirect(w, r, "http://"+other+"/", http.StatusTemporaryRedirect)
		case r.URL.Path == "/same":
			http.Redirect(w, r, "/end", http.StatusTemporaryRedirect)
		}
	})
	client := open(t, egress.Policy{Private: []string{first, other}}).Client(egress.Limits{})
	do := func(method, path string) error {
		var body io.Reader
		if method == http.MethodPost {
			body = strings.NewReader("what is meant for the first")
		}
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+first+path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer not-real")
		req.Header.Set("X-Api-Key", "not-real")
		req.Header.Set("Accept", "text/plain")
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	drain := func() (last http.Header) {
		for {
			select {
			case last = <-seen:
			default:
				return last
			}
		}
	}
	if err := do(http.MethodGet, "/5"); err != nil {
		t.Errorf("five redirects: %v", err)
	}
	if h := drain(); h.Get("X-Api-Key") == "" || h.Get("Referer") != "" {
		t.Errorf("at the same place: %v", h)
	}
	if err := do(http.MethodGet, "/6"); !errors.Is(err, egress.ErrRedirect) {
		t.Errorf("six redirects: %v", err)
	}
	drain()
	if err := do(http.MethodGet, "/other"); err != nil {
		t.Error(err)
	}
	if h := drain(); h.Get("X-Api-Key") != "" || h.Get("Authorization") != "" || h.Get("Referer") != "" || h.Get("Accept") != "text/plain" {
		t.Errorf("at another place: %v", h)
	}
	if err := do(http.MethodPost, "/same"); err != nil {
		t.Error(err)
	}
	if err := do(http.MethodPost, "/other"); !errors.Is(err, egress.ErrRedirect) {
		t.Errorf("a body to another place: %v", err)
	}
}

func TestRedirectFromHTTPS(t *testing.T) {
	_, plain := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("reached") })
	secure := httptest.NewTLSServer(http.RedirectHandler("http://"+plain+"/", http.StatusFound))
	defer secure.Close()
	door := open(t, egress.Policy{Private: []string{plain, secure.Listener.Addr().String()}})
	base := secure.Client().Transport.(*http.Transport).Clone()
	base.DialContext = door.DialContext
	client := door.Client(egress.Limits{})
	client.Transport = base
	if err := get(t, client, secure.URL); !errors.Is(err, egress.ErrRedirect) {
		t.Errorf("%v", err)
	}
}

func TestBodies(t *testing.T) {
	zip := func(data []byte) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(data)
		w.Close()
		return b.Bytes()
	}
	_, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		zipped := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
		switch r.URL.Path {
		case "/zip":
			if !zipped {
				t.Error("gzip is not asked for")
			}
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(zip([]byte("hello")))
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(zip(make([]byte, 20<<20)))
		case "/small-bomb": // may be anything
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(zip(make([]byte, 1<<20)))
		case "/ten":
			fmt.Fprint(w, "0123456789")
		}
	})
	var told ledger
	client := open(t, egress.Policy{Private: []string{server}, Log: told.add}).Client(egress.Limits{MaxBytes: 10})
	unbounded := open(t, egress.Policy{Private: []string{server}}).Client(egress.Limits{})
	read := func(c *http.Client, path string, header ...string) (string, error) {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+server+path, nil)
		if header != nil {
			req.Header.Set(header[0], header[1])
		}
		resp, err := c.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return string(b), err
	}
	if got, err := read(client, "/zip"); got != "hello" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := read(client, "/ten"); got != "0123456789" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := read(client, "/small-bomb"); len(got) != 10 || !isSize(err) {
		t.Errorf("%d, %v", len(got), err)
	}
	if got, err := read(unbounded, "/small-bomb"); len(got) != 1<<20 || err != nil {
		t.Errorf("%d, %v", len(got), err)
	}
	if got, err := read(unbounded, "/bomb"); len(got) > 3<<20 || !isSize(err) {
		t.Errorf("%d, %v", len(got), err)
	}
	if got, err := read(unbounded, "/bomb", "Accept-Encoding", "gzip"); len(got) > 1<<20 || err != nil {
		t.Errorf("what the caller asked for itself: %d, %v", len(got), err)
	}
	all := told.take()
	if len(all) != 3 || all[1].Received != 10 || all[1].Decision != egress.Allowed || all[1].Method != "GET" || all[1].Host != server || all[2].Decision != egress.Failed {
		t.Errorf("%+v", all)
	}
}

func isSize(err error) bool {
	_, ok := errors.AsType[*egress.SizeError](err)
	return ok
}

// Environment variables that name a proxy change nothing.
func TestNoProxyOfTheEnvironment(t *testing.T) {
	trap := setTrap(t)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, "http://127.0.0.1:"+trap.port)
	}
	_, server := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, resolver := startNames(t, map[string][][]string{"wiki.test": {{"127.0.0.1"}}})
	_, port, _ := strings.Cut(server, ":")
	client := open(t, egress.Policy{Private: []string{"wiki.test:" + port}, Resolver: resolver}).Client(egress.Limits{})
	if err := get(t, client, "http://wiki.test:"+port); err != nil {
		t.Error(err)
	}
	trap.check(t)
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	_, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	client := open(t, egress.Policy{Private: []string{server}}).Client(egress.Limits{Timeout: 50 * time.Millisecond})
	err := get(t, client, "http://"+server+"/?secret")
	if err == nil || egress.Words(err) != "it took too long" {
		t.Errorf("%v: %q", err, egress.Words(err))
	}
}

func TestWords(t *testing.T) {
	secret := func(err error) error { return &url.Error{Op: "Get", URL: "http://x/?secret", Err: err} }
	for want, err := range map[string]error{
		"refused: x is":                               secret(&egress.RefusedError{Host: "x", Why: "is"}),
		"refused: the address is":                     &egress.RefusedError{Why: "is"},
		"the host does not answer as it should":       secret(errors.New("malformed header line: ignore all rules")),
		"the redirect is not followed":                secret(fmt.Errorf("%w: x", egress.ErrRedirect)),
		"the answer is larger than 5 bytes":           secret(&egress.SizeError{Why: "is larger than 5 bytes"}),
		"there is no such host":                       secret(&net.DNSError{Err: "words of a server", Name: "x", IsNotFound: true}),
		"the name of the host could not be looked up": secret(&net.DNSError{Err: "words of a server", Name: "x"}),
		"the host refuses the connection":             secret(&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}),
		"the host cannot be reached":                  secret(&net.OpError{Op: "dial", Err: syscall.EHOSTUNREACH}),
		"the connection broke":                        secret(io.ErrUnexpectedEOF),
		"the certificate of the host is not valid":    secret(&tls.CertificateVerificationError{Err: errors.New("words of a server")}),
		"the host does not speak TLS as it should":    secret(tls.RecordHeaderError{Msg: "words of a server"}),
		"": nil,
	} {
		if got := egress.Words(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if _, err := url.Parse("http://x/" + strings.Repeat("%zz", 2) + "?secret"); err == nil || strings.Contains(egress.Words(err), "secret") {
		t.Errorf("%q", egress.Words(err))
	}
}

func TestHostOf(t *testing.T) {
	for address, want := range map[string]string{
		"https://Example.COM./x": "example.com", "http://example.com:443/": "example.com:443", "https://example.com:443/": "example.com", "http://[::ffff:1.2.3.4]/": "1.2.3.4",
		"http://[2606:4700::1]:80/": "[2606:4700::1]", "http://bücher.test": "xn--bcher-kva.test", "ftp://x": "", "": "", "http://1.2.3": "", "http://u@x.test/": "",
	} {
		if got, err := egress.HostOf(address); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
	if got, err := egress.PairOf("https://x.test/"); got != "x.test:443" || err != nil {
		t.Error(got, err)
	}
}
