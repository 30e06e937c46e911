package s3

import (
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/s3/s3test"
	"github.com/claybot/claybot/storage/storagetest"
)

// emulator starts a store over TCP.
func emulator(t *testing.T, cfg s3test.Config) (s *s3test.Server, endpoint string) {
	t.Helper()
	s, err := s3test.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	endpoint, err = s.Start()
	if err != nil {
		t.Fatal(err)
	}
	return s, endpoint
}

// config reaches an emulator with its defaults.
func config(endpoint string) Config {
	return Config{Endpoint: endpoint, Bucket: "files", AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey}
}

func newStore(t *testing.T, cfg Config) *Store {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBlobs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server s3test.Config
		change func(*Config)
	}{
		{"at the root", s3test.Config{}, func(*Config) {}},
		{"below a prefix", s3test.Config{Page: 2, SessionToken: "fake-session-token"}, func(c *Config) {
			c.Prefix, c.Region, c.SessionToken = "claybot/test", "us-east-1", "fake-session-token"
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			storagetest.TestBlobs(t, func(t *testing.T) storage.Blobs {
				server, endpoint := emulator(t, tt.server)
				t.Cleanup(func() {
					if n := server.Uploads(); n != 0 {
						t.Errorf("%d uploads were left behind", n)
					}
				})
				cfg := config(endpoint)
				tt.change(&cfg)
				return newStore(t, cfg)
			})
		})
	}
}
