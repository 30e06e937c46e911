package s3

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/storage/s3/s3test"
)

// Check says in one sentence what is wrong and what to do, and leaves nothing.
func TestCheck(t *testing.T) {
	const host = "files.example.org"
	always := func(operation string, status int, code, body string) func(*s3test.Server) {
		return func(s *s3test.Server) {
			s.Fail(s3test.Fault{Operation: operation, Times: -1, Status: status, Code: code, Body: body})
		}
	}
	deny := func(operations ...string) func(*s3test.Server) {
		return func(s *s3test.Server) { s.Deny(operations...) }
	}
	for _, tt := range []struct {
		name   string
		server func(*s3test.Server)
		change func(*Config)
		want   string
	}{
		{"all is well", nil, nil, ""},
		{"all is well after a while", func(s *s3test.Server) { s.Fail(s3test.SlowDown("", 3)) }, nil, ""},
		{"no bucket", nil, func(c *Config) { c.Bucket = "other" }, `there is no bucket "other" at ` + host + ": create it, or mend its name"},
		{"unknown key", nil, func(c *Config) { c.AccessKey = "FAKEOTHER" }, "does not know the key: check AWS_ACCESS_KEY_ID"},
		{"wrong secret", nil, func(c *Config) { c.SecretKey = "fake-other" }, "refuses the signature: check AWS_SECRET_ACCESS_KEY"},
		{"a session too much", nil, func(c *Config) { c.SessionToken = "fake-session" }, "refuses the session: set a new AWS_SESSION_TOKEN"},
		{"session over", always("", 400, "ExpiredToken", ""), nil, "refuses the session"},
		{"wrong region", nil, func(c *Config) { c.Region = "eu-west-1" }, `the bucket "files" is in the region us-east-1, not in eu-west-1: write region=us-east-1`},
		{"another region", always("", 301, "PermanentRedirect", ""), nil, `the bucket "files" is not in the region us-east-1: add its own`},
		{"moved", always("", 307, "", "<html>elsewhere</html>"), nil, "is not in the region"},
		{"clock behind", func(s *s3test.Server) { s.SetClock(16 * time.Minute) }, nil, "the clock of this machine is more than 15 minutes away"},
		{"clock ahead", func(s *s3test.Server) { s.SetClock(-16 * time.Minute) }, nil, "best by NTP"},
		{"clock nearly right", func(s *s3test.Server) { s.SetClock(14 * time.Minute) }, nil, ""},
		{"may not write", deny("PutObject"), nil, `the key may not write files in the bucket "files": allow s3:PutObject`},
		{"may not read", deny("GetObject"), nil, "the key may not read files in the bucket \"files\": allow s3:GetObject"},
		{"may not list", deny("ListObjectsV2"), nil, "may not list and delete files in the bucket \"files\": allow s3:ListBucket and s3:DeleteObject"},
		{"may not delete", deny("DeleteObject", "DeleteObjects"), nil, "allow s3:ListBucket and s3:DeleteObject"},
		{"may nothing", always("", 403, "", ""), nil, "may not write"},
		{"busy", func(s *s3test.Server) { s.Fail(s3test.SlowDown("", -1)) }, nil, "cannot be used now: the store says SlowDown (503); try again later"},
		{"cut", func(s *s3test.Server) { s.Fail(s3test.Fault{Times: -1, Drop: true}) }, nil, "check endpoint in files.url, and the network"},
		{"silent", func(s *s3test.Server) { s.Fail(s3test.Fault{Times: -1, Hang: true}) }, nil, "no answer in time: check endpoint"},
		{"away", func(s *s3test.Server) { s.RefuseConnections(true) }, nil, "the file store at " + host + " does not answer: dial tcp: connection refused"},
		{"a page", always("", 200, "", "<html>welcome</html>"), nil, "the answer is not that of a file store; check endpoint"},
		{"a page that is missing", always("", 404, "", "<html>not found</html>"), nil, "check endpoint and bucket"},
		{"a page that takes nothing", always("", 405, "", "<html>not allowed</html>"), nil, "check endpoint and bucket"},
		{"keeps everything", always("DeleteObject", 204, "", ""), nil, "keeps what it was told to delete"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *s3test.Server, inner *Store) {
				cfg := config("http://" + host)
				cfg.Transport = server.Transport()
				cfg.SessionToken = sessionToken
				if tt.change != nil {
					tt.change(&cfg)
				}
				if tt.server != nil {
					tt.server(server)
				}
				start := time.Now()
				err := newStore(t, cfg).Check(t.Context())
				cfg.Transport.(*http.Transport).CloseIdleConnections()
				if took := time.Since(start); took > 25*time.Second {
					t.Errorf("it took %s", took)
				}
				if tt.want == "" {
					if err != nil {
						t.Error(err)
					}
					if keys := server.Keys("files"); len(keys) > 0 {
						t.Errorf("%v are left", keys)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("said %v, want %q", err, tt.want)
				}
				checkSecrets(t, errors.New(strings.NewReplacer("AWS_ACCESS_KEY_ID", "", "AWS_SECRET_ACCESS_KEY", "").Replace(err.Error())))
				if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "html") {
					t.Errorf("not one sentence: %v", err)
				}
				if keys := server.Keys("files"); len(keys) > 0 && !strings.Contains(err.Error(), "delete") {
					t.Errorf("%v are left", keys)
				}
			})
		})
	}
}

func TestCheckCanceled(t *testing.T) {
	bubble(t, func(t *testing.T, server *s3test.Server, s *Store) {
		server.Fail(s3test.Fault{Times: -1, Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := s.Check(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "was not checked") {
			t.Errorf("got %v", err)
		}
	})
}

// What takes everything and gives back something else is no store.
func TestCheckOtherBytes(t *testing.T) {
	bubble(t, func(t *testing.T, server *s3test.Server, _ *Store) {
		transport := server.Transport()
		defer transport.CloseIdleConnections()
		cfg := config("http://files.example.org")
		cfg.SessionToken = sessionToken
		cfg.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := transport.RoundTrip(r)
			if err == nil && r.Method == http.MethodGet && resp.Header.Get("Etag") != "" {
				b, _ := io.ReadAll(resp.Body)
				resp.Body = io.NopCloser(strings.NewReader(strings.Repeat("x", len(b))))
			}
			return resp, err
		})
		err := newStore(t, cfg).Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), "gives back other bytes than it got, so it is not a file store: check endpoint") {
			t.Errorf("got %v", err)
		}
		if keys := server.Keys("files"); len(keys) > 0 {
			t.Errorf("%v are left", keys)
		}
	})
}

// An endpoint with an unknown certificate, and one without TLS at https.
func TestCheckTLS(t *testing.T) {
	server, err := s3test.New(s3test.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	secure, plain := httptest.NewUnstartedServer(server), httptest.NewServer(server)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // the refused handshake is wanted
	secure.StartTLS()
	defer secure.Close()
	defer plain.Close()
	for _, tt := range []struct{ endpoint, want string }{
		{secure.URL, "is not trusted: install its authority"},
		{strings.Replace(plain.URL, "http:", "https:", 1), "does not speak TLS: write endpoint=http://"},
	} {
		err := newStore(t, config(tt.endpoint)).Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.endpoint, err, tt.want)
		}
	}
	// With the authority all is well, over TLS as over plain HTTP.
	cfg := config(secure.URL)
	cfg.Transport = secure.Client().Transport
	s := newStore(t, cfg)
	s.part = 5 << 20
	if err := errors.Join(s.Check(t.Context()), put(t.Context(), s, "a", content(6<<20))); err != nil {
		t.Error(err)
	}
}

// Buckets that are hosts of their own.
func TestAddressing(t *testing.T) {
	for _, addressing := range []string{AddressingAuto, AddressingPath, AddressingHost} {
		bubble(t, func(t *testing.T, _ *s3test.Server, _ *Store) {
			server, err := s3test.New(s3test.Config{Domain: "s3.example.org"})
			if err != nil {
				t.Fatal(err)
			}
			transport := server.Transport()
			defer func() {
				transport.CloseIdleConnections()
				_ = server.Close()
			}()
			seen := ""
			cfg := config("http://s3.example.org")
			cfg.Addressing, cfg.Prefix = addressing, "p/"
			cfg.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				seen = r.URL.Host + r.URL.Path
				return transport.RoundTrip(r)
			})
			s := newStore(t, cfg)
			if err := round(t.Context(), s); err != nil {
				t.Errorf("%q: %v", addressing, err)
			}
			if err := put(t.Context(), s, "a", nil); err != nil {
				t.Error(err)
			}
			want := "s3.example.org/files/p/a"
			if addressing == AddressingHost {
				want = "files.s3.example.org/p/a"
			}
			if seen != want {
				t.Errorf("%q asks %s, want %s", addressing, seen, want)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestNew(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"whole", func(*Config) {}, ""},
		{"Amazon", func(c *Config) { c.Endpoint, c.Region = "", "eu-central-1" }, ""},
		{"no bucket", func(c *Config) { c.Bucket = "" }, "is not the name of a bucket"},
		{"bad bucket", func(c *Config) { c.Bucket = "../x" }, "is not the name of a bucket"},
		{"bad prefix", func(c *Config) { c.Prefix = "a b" }, "cannot stand before the keys"},
		{"no scheme", func(c *Config) { c.Endpoint = "s3.example.org" }, "write endpoint as https://host"},
		{"a path", func(c *Config) { c.Endpoint = "https://s3.example.org/x" }, "without a path"},
		{"a key in it", func(c *Config) { c.Endpoint = "https://k:hush@s3.example.org" }, "or a key"},
		{"a strange port", func(c *Config) { c.Endpoint = "https://s3.example.org:x" }, "write endpoint as"},
		{"bad addressing", func(c *Config) { c.Addressing = "x" }, "invalid bucket addressing"},
		{"no key", func(c *Config) { c.AccessKey = "" }, "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"},
		{"no secret", func(c *Config) { c.SecretKey = "" }, "set AWS_SECRET_ACCESS_KEY"},
	} {
		cfg := config("https://s3.example.org")
		cfg.Transport = roundTripper(func(*http.Request) (*http.Response, error) {
			t.Errorf("%s: New sends a request", tt.name)
			return nil, io.EOF
		})
		tt.change(&cfg)
		s, err := New(cfg)
		switch {
		case tt.want == "" && (err != nil || s == nil):
			t.Errorf("%s: %v", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hush")):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
