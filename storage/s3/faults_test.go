package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/s3/s3test"
)

const sessionToken = "fake-session-token-for-tests-only"

// smallPart is the size of parts in a bubble, to have little to send.
const smallPart = 64 << 10

// bubble runs a test in a synctest bubble, with a store in memory, where waiting
// costs nothing.
func bubble(t *testing.T, test func(t *testing.T, server *s3test.Server, s *Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, err := s3test.New(s3test.Config{Page: 3, SessionToken: sessionToken, MinPart: smallPart})
		if err != nil {
			t.Fatal(err)
		}
		transport := server.Transport()
		defer func() {
			transport.CloseIdleConnections()
			if err := server.Close(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute) // until the last connection is closed
		}()
		cfg := config("http://files.example.org")
		cfg.SessionToken, cfg.Transport = sessionToken, transport
		s := newStore(t, cfg)
		s.part = smallPart
		test(t, server, s)
	})
}

func put(ctx context.Context, s *Store, key string, content []byte) error {
	return s.Put(ctx, key, bytes.NewReader(content), int64(len(content)))
}

func get(ctx context.Context, s *Store, key string) ([]byte, error) {
	r, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	return b, errors.Join(err, r.Close())
}

// content is size bytes of which no two stretches are alike.
func content(size int) []byte {
	b := make([]byte, size)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// round puts, reads and deletes files of one and of several requests.
func round(ctx context.Context, s *Store) error {
	for _, size := range []int{1000, smallPart + 1000} {
		want := content(size)
		if err := put(ctx, s, "round/1", want); err != nil {
			return err
		}
		got, err := get(ctx, s, "round/1")
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return errors.New("other bytes came back")
		}
		for _, key := range []string{"round/2", "round/3", "round/4", "round/5"} {
			if err := put(ctx, s, key, nil); err != nil {
				return err
			}
		}
		if err := s.Delete(ctx, "round/"); err != nil {
			return err
		}
		if _, err := get(ctx, s, "round/1"); !errors.Is(err, storage.ErrNotFound) {
			return errors.New("it was not deleted")
		}
	}
	return nil
}

var operations = []string{
	"PutObject", "GetObject", "ListObjectsV2", "DeleteObjects", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload",
}

// What passes costs time only, whatever it strikes.
func TestPassingFaults(t *testing.T) {
	for name, f := range map[string]s3test.Fault{
		"slow down":             s3test.SlowDown("", 2),
		"internal error":        {Times: 2, Status: 500, Code: "InternalError"},
		"throttled":             {Times: 2, Status: 400, Code: "ThrottlingException"},
		"too many requests":     {Times: 1, Status: 429, Body: "<html>slow down</html>"},
		"bad gateway":           {Times: 1, Status: 502, Body: "<html>bad gateway</html>"},
		"request timeout":       {Times: 1, Status: 400, Code: "RequestTimeout"},
		"cut before the answer": {Times: 2, Drop: true},
		"answer lost":           {Times: 2, Lost: true},
		"no answer":             {Times: 1, Hang: true},
		"late":                  {Times: 1, Delay: 10 * time.Second},
		"answer cut":            {Times: 2, Cut: 100},
	} {
		for _, operation := range operations {
			t.Run(name+" at "+operation, func(t *testing.T) {
				bubble(t, func(t *testing.T, server *s3test.Server, s *Store) {
					s.patience = time.Minute
					f.Operation = operation
					server.Fail(f)
					if err := round(t.Context(), s); err != nil {
						t.Error(err)
					}
					server.Heal()
					if keys := server.Keys("files"); len(keys) != 0 {
						t.Errorf("%v are left", keys)
					}
					// Whether an upload was begun is not known when that answer is lost.
					if n := server.Uploads(); n != 0 && operation != "CreateMultipartUpload" {
						t.Errorf("%d uploads are left", n)
					}
					if n := server.Calls(operation); n < 2 && f.Delay == 0 {
						t.Errorf("%s was called %d times: the fault struck nothing", operation, n)
					}
				})
			})
		}
	}
}

// At the end of a long upload a status of 200 may still carry an error.
func TestErrorAfterStatus200(t *testing.T) {
	for _, operation := range []string{"CompleteMultipartUpload", "DeleteObjects"} {
		bubble(t, func(t *testing.T, server *s3test.Server, s *Store) {
			server.Fail(s3test.Fault{Operation: operation, Times: 2, Status: 200, Code: "InternalError"})
			if err := round(t.Context(), s); err != nil {
				t.Errorf("%s: %v", operation, err)
			}
		})
	}
}

// What does not pass ends in bounded time, says what it was, keeps no half of a
// file, and tells no secret.
func TestLastingFaults(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault s3test.Fault
		most  time.Duration
		want  string
	}{
		{"slow down", s3test.SlowDown("", -1), 35 * time.Second, "SlowDown (503)"},
		{"cut", s3test.Fault{Drop: true}, 35 * time.Second, "files.example.org does not answer: "},
		{"no answer", s3test.Fault{Hang: true}, 4 * time.Minute, "no answer in time"},
		{"denied", s3test.Fault{Status: 403, Code: "AccessDenied"}, time.Second, "AccessDenied (403)"},
		{"a word that could be anything", s3test.Fault{Status: 400, Code: "Signature=abc Credential=def"}, time.Second, "nothing that is known here (400)"},
		{"not a store", s3test.Fault{Status: 405, Body: "<html>Authorization: AWS4</html>"}, time.Second, "nothing that is known here (405)"},
	} {
		for _, operation := range operations {
			t.Run(tt.name+" at "+operation, func(t *testing.T) {
				bubble(t, func(t *testing.T, server *s3test.Server, s *Store) {
					f := tt.fault
					f.Operation, f.Times = operation, -1
					server.Fail(f)
					start := time.Now()
					err := round(t.Context(), s)
					if err == nil || !strings.Contains(err.Error(), tt.want) {
						t.Fatalf("got %v, want %q", err, tt.want)
					}
					if took := time.Since(start); took > tt.most {
						t.Errorf("gave up after %s, want at most %s", took, tt.most)
					}
					checkSecrets(t, err)
					server.Heal()
					wholeOrNothing(t, server, s)
				})
			})
		}
	}
}

func wholeOrNothing(t *testing.T, server *s3test.Server, s *Store) {
	t.Helper()
	got, err := get(t.Context(), s, "round/1")
	if !errors.Is(err, storage.ErrNotFound) && (err != nil || !slices.ContainsFunc([]int{1000, smallPart + 1000}, func(n int) bool { return bytes.Equal(got, content(n)) })) {
		t.Errorf("half a file is there: %d bytes, %v", len(got), err)
	}
	if n := server.Uploads(); n != 0 {
		t.Errorf("%d uploads are left", n)
	}
}

func checkSecrets(t *testing.T, err error) {
	t.Helper()
	for _, secret := range []string{s3test.SecretKey, s3test.AccessKey, sessionToken, "Signature", "Credential", "X-Amz", "AWS4"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells %q: %v", secret, err)
		}
	}
}

// A host that refuses connections.
func TestUnreachable(t *testing.T) {
	bubble(t, func(t *testing.T, server *s3test.Server, s *Store) {
		server.RefuseConnections(true)
		start := time.Now()
		err := put(t.Context(), s, "a", []byte("a"))
		if err == nil || !strings.Contains(err.Error(), "files.example.org does not answer: dial tcp: connection refused") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took < 20*time.Second || took > 35*time.Second {
			t.Errorf("gave up after %s, want about 30 s", took)
		}
		checkSecrets(t, err)
		go func() {
			time.Sleep(10 * time.Second)
			server.RefuseConnections(false)
		}()
		if err := round(t.Context(), s); err != nil {
			t.Errorf("back after 10 s: %v", err)
		}
	})
}

// A caller that gives up is told why, at once.
func TestCancelWhileWaiting(t *testing.T) {
	enough := errors.New("enough")
	for _, f := range []s3test.Fault{s3test.SlowDown("", -1), {Hang: true, Times: -1}, {Drop: true, Times: -1}} {
		for _, operation := range operations {
			bubble(t, func(t *testing.T, server *s3test.Server, s *Store) {
				f.Operation = operation
				server.Fail(f)
				ctx, cancel := context.WithCancelCause(t.Context())
				stop := time.AfterFunc(1234*time.Millisecond, func() { cancel(enough); server.Heal() })
				defer stop.Stop()
				start := time.Now()
				err := round(ctx, s)
				if !errors.Is(err, enough) {
					t.Errorf("%s: got %v, want the cause", operation, err)
				}
				if took := time.Since(start); took > 2*time.Second {
					t.Errorf("%s: gave up after %s", operation, took)
				}
				if n := server.Uploads(); n != 0 {
					t.Errorf("%s: %d uploads are left", operation, n)
				}
			})
		}
	}
}

// A download that is cut goes on where it stopped.
func TestDownloadResumes(t *testing.T) {
	want := content(1 << 20)
	for name, f := range map[string]s3test.Fault{
		"cut":          {Times: 12, Cut: 70_000},
		"stalled":      {Times: 3, Stall: 200_000},
		"cut at once":  {Times: 3, Cut: 1},
		"cut and busy": {Times: 1, Cut: 500_000},
	} {
		bubble(t, func(t *testing.T, server *s3test.Server, s *Store) {
			if err := put(t.Context(), s, "a", want); err != nil {
				t.Fatal(err)
			}
			f.Operation = "GetObject"
			server.Fail(f)
			server.Fail(s3test.SlowDown("GetObject", 2))
			got, err := get(t.Context(), s, "a")
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
			if n := server.Calls("GetObject"); n < f.Times+1 {
				t.Errorf("%s: %d calls", name, n)
			}
		})
	}
}

// The end of a file is told only when all of it came.
func TestDownloadFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after func(server *s3test.Server, s *Store) // once the first bytes were read
		want  string
	}{
		{"deleted meanwhile", func(_ *s3test.Server, s *Store) { _ = s.Delete(context.Background(), "a") }, "NoSuchKey"},
		{"changed meanwhile", func(_ *s3test.Server, s *Store) { _ = put(context.Background(), s, "a", content(2<<20)) }, "PreconditionFailed"},
		{"the store is gone", func(server *s3test.Server, _ *Store) { server.RefuseConnections(true) }, "does not answer"},
		{"denied meanwhile", func(server *s3test.Server, _ *Store) { server.Deny("GetObject") }, "AccessDenied"},
	} {
		bubble(t, func(t *testing.T, server *s3test.Server, s *Store) {
			if err := put(t.Context(), s, "a", content(1<<20)); err != nil {
				t.Fatal(err)
			}
			server.Fail(s3test.Fault{Operation: "GetObject", Cut: 300_000})
			r, err := s.Open(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			tt.after(server, s)
			_, err = io.ReadAll(r)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
			}
			if err := r.Close(); err != nil {
				t.Errorf("%s: Close: %v", tt.name, err)
			}
		})
	}
	// One that brings nothing is not asked for ever.
	bubble(t, func(t *testing.T, server *s3test.Server, s *Store) {
		if err := put(t.Context(), s, "a", content(1<<20)); err != nil {
			t.Fatal(err)
		}
		server.Fail(s3test.Fault{Operation: "GetObject", Times: -1, Stall: 1})
		r, err := s.Open(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		server.Heal()
		server.Fail(s3test.Fault{Operation: "GetObject", Times: -1, Status: 502})
		if n, err := io.Copy(io.Discard, r); err == nil || n > 10 {
			t.Errorf("%d bytes, %v", n, err)
		}
		_ = r.Close() // it has failed
	})
}

// flip damages the body of the first request that has one.
type flip struct {
	http.RoundTripper
	done bool
}

func (f *flip) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && !f.done {
		f.done = true
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		b[len(b)/2] ^= 1
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(b))
	}
	return f.RoundTripper.RoundTrip(r)
}

// Bytes that were damaged on the way are not kept.
func TestDamagedOnTheWay(t *testing.T) {
	for _, size := range []int{1000, PartSize + 1} {
		server, endpoint := emulator(t, s3test.Config{})
		cfg := config(endpoint)
		way := &flip{RoundTripper: http.DefaultTransport}
		cfg.Transport = way
		s := newStore(t, cfg)
		want := content(size)
		if err := put(t.Context(), s, "a", want); err != nil {
			t.Fatal(err)
		}
		if got, err := get(t.Context(), s, "a"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if !way.done || server.Calls("PutObject")+server.Calls("UploadPart") < 2 {
			t.Error("nothing was damaged")
		}
	}
}

// A store that deletes single keys only.
func TestDeleteOneByOne(t *testing.T) {
	bubble(t, func(t *testing.T, server *s3test.Server, s *Store) {
		server.Fail(s3test.Fault{Operation: "DeleteObjects", Times: -1, Status: 501, Code: "NotImplemented"})
		if err := round(t.Context(), s); err != nil {
			t.Error(err)
		}
		if server.Calls("DeleteObject") == 0 {
			t.Error("no key was deleted alone")
		}
	})
}

// More keys than one request deletes.
func TestDeleteMany(t *testing.T) {
	bubble(t, func(t *testing.T, server *s3test.Server, s *Store) {
		s.batch = 4
		for _, c := range "abcdefghijkl" {
			for _, key := range []string{"many/" + string(c), "more/" + string(c)} {
				if err := put(t.Context(), s, key, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		server.Fail(s3test.Fault{Operation: "ListObjectsV2", Skip: 2, Times: 2, Drop: true})
		if err := s.Delete(t.Context(), "many/"); err != nil {
			t.Fatal(err)
		}
		if keys := server.Keys("files"); len(keys) != 12 || !strings.HasPrefix(keys[0], "more/") {
			t.Errorf("%v are left", keys)
		}
		if n := server.Calls("DeleteObjects"); n != 3 {
			t.Errorf("%d requests deleted 12 keys, want 3", n)
		}
	})
}
