package connectors_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/claybot/claybot/connectors"
)

// read reads a body of so many bytes.
func read(b *connectors.Bodies, n int, limit int64) (body []byte, release func(), err error) {
	r := httptest.NewRequest(http.MethodPost, "/", io.LimitReader(zeros{}, int64(n)))
	return b.Read(httptest.NewRecorder(), r, limit, n%2 == 0)
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// However many bodies arrive, those that are held at once have a limit, and what was released
// can be used again.
func TestBodies(t *testing.T) {
	const large = 16 << 20
	var b, other connectors.Bodies
	var releases []func()
	for range 4 {
		body, release, err := read(&b, large, large)
		if err != nil || !bytes.Equal(body, make([]byte, large)) {
			t.Fatalf("%d bytes, %v", len(body), err)
		}
		releases = append(releases, release)
	}
	_, release, err := read(&b, 1, large)
	if release(); !errors.Is(err, connectors.ErrBodies) {
		t.Errorf("with all memory in use: %v, want ErrBodies", err)
	}
	_, release, err = read(&other, large, large)
	if release(); err != nil {
		t.Errorf("another hook: %v", err)
	}
	releases[0]()
	releases[0]() // twice is as once
	var long *http.MaxBytesError
	_, release, err = read(&b, large+1, large)
	if release(); !errors.As(err, &long) {
		t.Errorf("a longer one: %v", err)
	}
	_, release, err = read(&b, large, large)
	if release(); err != nil {
		t.Errorf("after a release: %v", err)
	}
	for _, release := range releases[1:] {
		release()
	}
}
