package storagetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot/storage"
)

// TestBlobs checks that an implementation of storage.Blobs keeps the contract.
// open gives an empty store, once for each part.
func TestBlobs(t *testing.T, open func(t *testing.T) storage.Blobs) {
	for _, part := range []struct {
		name string
		test func(*testing.T, storage.Blobs)
	}{
		{"put and open", blobSizes},
		{"the same key twice", blobTwice},
		{"large content", blobLarge},
		{"broken content", blobBroken},
		{"odd keys", blobKeys},
		{"delete by prefix", blobDelete},
		{"canceled contexts", blobCanceled},
		{"concurrent puts", blobConcurrent},
		{"readers", blobReaders},
		{"check", blobCheck},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, open(t)) })
	}
}

// noise is content that does not compress, the same for the same seed.
func noise(seed byte, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b) // never fails
	return b
}

func putBlob(t *testing.T, b storage.Blobs, key string, content []byte) {
	t.Helper()
	if err := b.Put(t.Context(), key, bytes.NewReader(content), int64(len(content))); err != nil {
		t.Fatalf("Put(%q): %v", key, err)
	}
}

func getBlob(ctx context.Context, b storage.Blobs, key string) ([]byte, error) {
	r, err := b.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

// wantBlob requires that a key has a content.
func wantBlob(t *testing.T, b storage.Blobs, key string, want []byte) {
	t.Helper()
	got, err := getBlob(t.Context(), b, key)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%q has %d bytes, %v; want the %d that were put", key, len(got), err, len(want))
	}
}

// wantNoBlob requires that a key has nothing.
func wantNoBlob(t *testing.T, b storage.Blobs, key string) {
	t.Helper()
	if got, err := getBlob(t.Context(), b, key); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("%q has %d bytes, %v; want ErrNotFound", key, len(got), err)
	}
}

// The last of these are more than one request or row to most stores.
func blobSizes(t *testing.T, b storage.Blobs) {
	for _, size := range []int{0, 1, 4096, 1<<20 - 1, 1 << 20, 8 << 20, 8<<20 + 1} {
		key := fmt.Sprintf("sizes/%d", size)
		wantNoBlob(t, b, key)
		content := noise(1, size)
		// A reader that gives little at a time, without any further power.
		err := b.Put(t.Context(), key, &slowly{content: content}, int64(size))
		if err != nil {
			t.Fatalf("Put of %d bytes: %v", size, err)
		}
		wantBlob(t, b, key, content)
	}
}

// slowly gives a content in pieces of odd lengths.
type slowly struct {
	content []byte
	n       int
}

func (s *slowly) Read(p []byte) (int, error) {
	if len(s.content) == 0 {
		return 0, io.EOF
	}
	s.n = s.n%7919 + 1013
	n := copy(p[:min(len(p), s.n)], s.content)
	s.content = s.content[n:]
	return n, nil
}

func blobTwice(t *testing.T, b storage.Blobs) {
	for _, size := range []int{10, 9 << 20} {
		key, content := fmt.Sprintf("twice/%d", size), noise(2, size)
		for range 2 {
			putBlob(t, b, key, content)
			wantBlob(t, b, key, content)
		}
	}
}

const (
	largeBlob = 64 << 20
	// blobMemory is what a large content may cost in memory: far less than itself.
	blobMemory = 32 << 20
)

// A meter looks at the memory in use each time 4 MiB have gone by.
type meter struct {
	from    io.Reader
	hash    hash.Hash
	n, next int64
	base    uint64
	peak    uint64 // above base
}

func newMeter(from io.Reader) *meter {
	m := &meter{from: from, hash: sha256.New()}
	m.base = inUse()
	return m
}

// inUse is the memory that is reachable, in bytes.
func inUse() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	_, _ = m.hash.Write(p[:n]) // never fails
	m.n += int64(n)
	if m.n >= m.next {
		m.next = m.n + 4<<20
		if now := inUse(); now > m.base {
			m.peak = max(m.peak, now-m.base)
		}
	}
	return n, err
}

func blobLarge(t *testing.T, b storage.Blobs) {
	in := newMeter(io.LimitReader(rand.NewChaCha8([32]byte{3}), largeBlob))
	if err := b.Put(t.Context(), "large", in, largeBlob); err != nil {
		t.Fatal(err)
	}
	r, err := b.Open(t.Context(), "large")
	if err != nil {
		t.Fatal(err)
	}
	out := newMeter(r)
	n, err := io.Copy(io.Discard, out)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	if n != largeBlob || !bytes.Equal(in.hash.Sum(nil), out.hash.Sum(nil)) {
		t.Errorf("%d bytes came back, the same: %t; want the %d that were put", n, bytes.Equal(in.hash.Sum(nil), out.hash.Sum(nil)), largeBlob)
	}
	for what, m := range map[string]*meter{"Put": in, "reading": out} {
		if m.peak > blobMemory {
			t.Errorf("%s of %d MiB held %d MiB, want at most %d", what, largeBlob>>20, m.peak>>20, blobMemory>>20)
		}
	}
}

var errBrokenBlob = errors.New("the content broke")

// Whatever is wrong with a content, its key stays as it was.
func blobBroken(t *testing.T, b storage.Blobs) {
	small, large := noise(4, 1000), noise(4, 20<<20)
	for i, tt := range []struct {
		what    string
		content io.Reader
		size    int64
		want    error
	}{
		{"fails at once", io.MultiReader(failing{}), 1000, errBrokenBlob},
		{"fails midway", io.MultiReader(bytes.NewReader(small[:500]), failing{}), 1000, errBrokenBlob},
		{"fails at the end", io.MultiReader(bytes.NewReader(small), failing{}), 1000, errBrokenBlob},
		{"fails late", io.MultiReader(bytes.NewReader(large[:19<<20]), failing{}), 20 << 20, errBrokenBlob},
		{"ends early", bytes.NewReader(small[:999]), 1000, nil},
		{"ends early, large", bytes.NewReader(large[:17<<20]), 20 << 20, nil},
		{"does not end", bytes.NewReader(small), 999, nil},
		{"does not end, large", bytes.NewReader(large), 20<<20 - 1, nil},
		{"has a size below 0", bytes.NewReader(small), -1, nil},
	} {
		fresh, old := fmt.Sprintf("broken/%d", i), fmt.Sprintf("old/%d", i)
		err := b.Put(t.Context(), fresh, tt.content, tt.size)
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("a content that %s: %v", tt.what, err)
		}
		wantNoBlob(t, b, fresh)
		putBlob(t, b, old, small)
		if err := b.Put(t.Context(), old, failing{}, 1000); !errors.Is(err, errBrokenBlob) {
			t.Errorf("a content that fails over another one: %v", err)
		}
		wantBlob(t, b, old, small)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBrokenBlob }

func blobKeys(t *testing.T, b storage.Blobs) {
	putBlob(t, b, "kept/1", []byte("kept"))
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", "a/../b", "../a", "./a", "a/.", "..", ".", "a b", "a\x00b", "a\nb", `a\b`, "a?b=c", "a#b", "a%2Fb", "a*",
		"ä", "a\xff", "'; drop table blobs; --", strings.Repeat("k", storage.MaxBlobKey+1),
	} {
		if err := b.Put(t.Context(), key, strings.NewReader("x"), 1); err == nil {
			t.Errorf("Put takes the key %q", key)
		}
		r, err := b.Open(t.Context(), key)
		if err == nil || errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Open of %q: %v, want an invalid key", key, err)
		}
		if r != nil {
			t.Errorf("Open of %q gives a reader", key)
		}
	}
	for _, prefix := range []string{"", "/", "/kept", "kept/*", "%", "kept/?", "k\x00"} {
		if err := b.Delete(t.Context(), prefix); err == nil {
			t.Errorf("Delete takes the prefix %q", prefix)
		}
	}
	wantBlob(t, b, "kept/1", []byte("kept"))
	for _, key := range []string{"a", "a.b", "-_.", "A/b/C.txt", "a/...", strings.Repeat("k", storage.MaxBlobKey)} {
		putBlob(t, b, key, []byte(key))
		wantBlob(t, b, key, []byte(key))
	}
}

func blobDelete(t *testing.T, b storage.Blobs) {
	all := []string{"a/1/x", "a/1/y/z", "a/1", "a/10/x", "a/10", "A/1/x", "a_1/x", "a.1/x", "a-1/x", "b/1/x", "ab"}
	for _, tt := range []struct{ prefix, gone string }{
		{"a/1/", "a/1/x a/1/y/z"},
		{"a/1", "a/1/x a/1/y/z a/1 a/10/x a/10"},
		{"a_", "a_1/x"},
		{"a.1/x", "a.1/x"},
		{"A/", "A/1/x"},
		{"a/1/x/", ""},
		{"none/", ""},
	} {
		for _, key := range all {
			putBlob(t, b, key, []byte(key))
		}
		for range 2 { // the second time there is nothing left to do
			if err := b.Delete(t.Context(), tt.prefix); err != nil {
				t.Errorf("Delete(%q): %v", tt.prefix, err)
			}
		}
		for _, key := range all {
			if strings.Contains(" "+tt.gone+" ", " "+key+" ") {
				wantNoBlob(t, b, key)
			} else {
				wantBlob(t, b, key, []byte(key))
			}
		}
	}
}

func blobCanceled(t *testing.T, b storage.Blobs) {
	putBlob(t, b, "kept/1", []byte("kept"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Put(ctx, "canceled", strings.NewReader("x"), 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v", err)
	}
	if _, err := getBlob(ctx, b, "kept/1"); !errors.Is(err, context.Canceled) {
		t.Errorf("Open: %v", err)
	}
	if err := b.Delete(ctx, "kept/"); !errors.Is(err, context.Canceled) {
		t.Errorf("Delete: %v", err)
	}
	if err := b.Check(ctx); err == nil {
		t.Error("Check says that all is well without having looked")
	}
	// The context ends while the content is read.
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	content := noise(5, 20<<20)
	r := io.MultiReader(bytes.NewReader(content[:12<<20]), &canceling{cancel}, bytes.NewReader(content[12<<20:]))
	if err := b.Put(ctx, "canceled", r, int64(len(content))); !errors.Is(err, context.Canceled) {
		t.Errorf("Put of what is canceled midway: %v", err)
	}
	wantNoBlob(t, b, "canceled")
	wantBlob(t, b, "kept/1", []byte("kept"))
}

// canceling cancels when it is read, and is empty.
type canceling struct{ cancel func() }

func (c *canceling) Read([]byte) (int, error) {
	c.cancel()
	return 0, io.EOF
}

func blobConcurrent(t *testing.T, b storage.Blobs) {
	small, large := noise(6, 2000), noise(6, 9<<20)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			key := fmt.Sprintf("concurrent/%d", i)
			if err := b.Put(t.Context(), key, bytes.NewReader(small), int64(len(small))); err != nil {
				t.Errorf("Put: %v", err)
			}
			wantBlob(t, b, key, small)
			// All of them put this blob; a reader sees nothing or everything.
			if got, err := getBlob(t.Context(), b, "concurrent/one"); !errors.Is(err, storage.ErrNotFound) && (err != nil || !bytes.Equal(got, large)) {
				t.Errorf("in between: %d bytes, %v", len(got), err)
			}
			if err := b.Put(t.Context(), "concurrent/one", bytes.NewReader(large), int64(len(large))); err != nil {
				t.Errorf("Put of the same key: %v", err)
			}
			wantBlob(t, b, "concurrent/one", large)
		})
	}
	all.Wait()
}

func blobReaders(t *testing.T, b storage.Blobs) {
	content := noise(7, 3<<20)
	putBlob(t, b, "read", content)
	var readers []io.ReadCloser
	for range 3 {
		r, err := b.Open(t.Context(), "read")
		if err != nil {
			t.Fatal(err)
		}
		readers = append(readers, r)
	}
	for i, r := range readers { // at the same time, each from the beginning
		got := make([]byte, 1000*(i+1))
		if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, content[:len(got)]) {
			t.Errorf("reader %d: %v", i, err)
		}
	}
	rest, err := io.ReadAll(readers[0])
	if err != nil || !bytes.Equal(rest, content[1000:]) {
		t.Errorf("the rest has %d bytes, %v", len(rest), err)
	}
	for _, r := range readers {
		if err := r.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if n, err := r.Read(make([]byte, 1)); n > 0 || err == nil {
			t.Errorf("a closed reader reads %d, %v", n, err)
		}
	}
}

func blobCheck(t *testing.T, b storage.Blobs) {
	putBlob(t, b, "kept", []byte("kept"))
	for range 2 {
		if err := b.Check(t.Context()); err != nil {
			t.Errorf("Check: %v", err)
		}
	}
	wantBlob(t, b, "kept", []byte("kept"))
}
