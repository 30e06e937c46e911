package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// sending is the content of the n-th file of a test, of several pieces.
func sending(n int) []byte { return bytes.Repeat([]byte{byte(n), 'x'}, 600*(n+1)) }

// sendFiles makes an agent and keeps files for it; it returns those confirmed.
// Each is tried as often as tries says.
func sendFiles(ctx context.Context, fsys FS, index *memoryIndex, tries int) (id claybot.AgentID, kept []claybot.FileReference, err error) {
	s, err := Open(Config{Dir: "d", Index: index, FS: fsys})
	if err != nil {
		return "", nil, err
	}
	a, err := s.AgentFor(ctx, someone)
	if err != nil {
		return "", nil, err
	}
	for n := range 3 {
		var f claybot.FileReference
		for range tries {
			// A reader of pieces, as a network is.
			f, err = s.SaveFile(ctx, a.ID, claybot.FileReference{Name: "f", Sent: true}, iotest.HalfReader(bytes.NewReader(sending(n))), 1<<20)
			if err == nil {
				break
			}
		}
		if err != nil {
			return a.ID, kept, err
		}
		kept = append(kept, f)
		// What is counted in memory is what is stored.
		counted, err := s.SentBytes(ctx, a.ID)
		if stored, whole, failed := s.countSent(a.ID); err == nil && failed == nil && whole && counted != stored {
			return a.ID, kept, fmt.Errorf("%d bytes count as sent, and %d are stored", counted, stored)
		}
	}
	return a.ID, kept, nil
}

// checkSent opens what is left on fsys: what was confirmed is there, whole.
// Without waste nothing else is.
func checkSent(t *testing.T, what string, fsys *modelFS, index *memoryIndex, id claybot.AgentID, kept []claybot.FileReference, waste bool) {
	t.Helper()
	fsys.fail = nil
	s, err := Open(Config{Dir: "d", Index: index, FS: fsys})
	if err != nil {
		t.Fatalf("%s: open: %v", what, err)
	}
	for _, name := range fsys.list("d/agents") {
		if strings.HasPrefix(name, newPrefix) {
			t.Errorf("%s: %s was left", what, name)
		}
	}
	total := int64(0)
	for n, want := range kept {
		total += want.Size
		got, r, err := s.OpenFile(t.Context(), id, want.ID)
		if err != nil {
			t.Fatalf("%s: file %d: %v", what, n, err)
		}
		data, err := io.ReadAll(r)
		if err != nil || got != want || !bytes.Equal(data, sending(n)) {
			t.Fatalf("%s: file %d is %+v with %d bytes, %v", what, n, got, len(data), err)
		}
	}
	if got, err := s.SentBytes(t.Context(), id); err != nil || got < total || !waste && got != total {
		t.Errorf("%s: %d bytes count as sent, %v; want %d", what, got, err, total)
	}
	if waste {
		return
	}
	if names := fsys.list("d/agents/" + string(id) + "/attachments"); len(names) != 2*len(kept) {
		t.Errorf("%s: %d files are confirmed and there are %q", what, len(kept), names)
	}
}

// TestAttachmentIOErrorSweep lets the k-th operation fail, for every k, once
// and from then on.
func TestAttachmentIOErrorSweep(t *testing.T) {
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		for k, begun, done := 1, false, false; !done; k++ {
			for _, forever := range []bool{false, true} {
				sc, fsys := newScenario()
				first := fsys.ops
				fsys.fail = func(op int) error {
					if op == first+k || forever && op > first+k {
						return fault
					}
					return nil
				}
				what := fmt.Sprintf("operation %d fails with %v, forever %v", k, fault, forever)
				id, kept, err := sendFiles(t.Context(), fsys, sc.index, 2)
				if id == "" {
					continue // before the first file; see TestIOErrorSweep
				}
				begun, done = true, fsys.ops < first+k
				if err != nil && (!forever || !errors.Is(err, fault) || errors.Is(err, storage.ErrFull) != full(fault)) {
					t.Fatalf("%s: %v", what, err)
				}
				checkSent(t, what, fsys, sc.index, id, kept, forever)
			}
			if k > 1000 || done && !begun {
				t.Fatal("no file was sent")
			}
		}
	}
}

// TestAttachmentPowerCutSweep cuts the power after the k-th operation, for
// every k.
func TestAttachmentPowerCutSweep(t *testing.T) {
	for k, done := 1, false; !done; k++ {
		for seed := range uint64(8) {
			sc, fsys := newScenario()
			first := fsys.ops
			fsys.fail = func(op int) error {
				if op > first+k {
					return errCut
				}
				return nil
			}
			id, kept, err := sendFiles(t.Context(), fsys, sc.index, 2) // what failed is sent again, and the disk stays away
			if err != nil && !errors.Is(err, errCut) {
				t.Fatalf("power cut after operation %d: %v", k, err)
			}
			if done = err == nil; id == "" {
				continue
			}
			checkSent(t, fmt.Sprintf("power cut after operation %d, seed %d", k, seed), fsys.cut(rand.New(rand.NewPCG(seed, uint64(k)))), sc.index, id, kept, true)
		}
	}
}

// A directory whose name did not become durable is made durable by the next
// file.
func TestAttachmentAfterFailedSync(t *testing.T) {
	for seed := range uint64(20) {
		sc, fsys := newScenario()
		s := open(t, Config{Dir: "d", Index: sc.index, FS: fsys})
		a := agentFor(t, s, someone)
		fsys.fail = func(int) error {
			if len(fsys.root.names["d"].names["agents"].names[string(a.ID)].names) == 4 { // the folder is there
				return syscall.EIO
			}
			return nil
		}
		save := func() (claybot.FileReference, error) {
			return s.SaveFile(t.Context(), a.ID, claybot.FileReference{Name: "f", Sent: true}, bytes.NewReader(sending(0)), 1<<20)
		}
		if _, err := save(); !errors.Is(err, syscall.EIO) {
			t.Fatalf("got %v, want the sync to fail", err)
		}
		fsys.fail = nil
		f, err := save()
		if err != nil {
			t.Fatal(err)
		}
		checkSent(t, fmt.Sprint("seed ", seed), fsys.cut(rand.New(rand.NewPCG(seed, 0))), sc.index, a.ID, []claybot.FileReference{f}, true)
	}
}

// A large file takes little memory, and what is cut off or too large nothing of
// the disk.
func TestAttachmentsAreStreamed(t *testing.T) {
	const size = 32 << 20
	dir := t.TempDir()
	s := open(t, Config{Dir: dir, FS: hastyFS{}})
	a := agentFor(t, s, someone)
	zeros := func(n int64) io.Reader { return io.LimitReader(zeroReader{}, n) }
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, err := s.SaveFile(t.Context(), a.ID, claybot.FileReference{Name: "f", Sent: true}, zeros(size), size)
	runtime.ReadMemStats(&after)
	if err != nil || f.Size != size {
		t.Fatalf("got %+v, %v", f, err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > size/8 {
		t.Errorf("%d bytes of memory for a file of %d", n, size)
	}
	if _, err := s.SaveFile(t.Context(), a.ID, claybot.FileReference{Name: "f", Sent: true}, zeros(size+1), size); !errors.Is(err, storage.ErrTooMany) {
		t.Errorf("too large: got %v", err)
	}
	if _, err := s.SaveFile(t.Context(), a.ID, claybot.FileReference{Name: "f", Sent: true}, io.MultiReader(zeros(1<<20), iotest.ErrReader(io.ErrUnexpectedEOF)), size); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut off: got %v", err)
	}
	for folder, want := range map[string]int{"/agents": 1, "/agents/" + string(a.ID) + "/attachments": 2} {
		if entries, err := os.ReadDir(dir + folder); err != nil || len(entries) != want {
			t.Errorf("%s has %v, %v; want %d", folder, entries, err, want)
		}
	}
}

type zeroReader struct{}

func (zeroReader) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// The longest text is kept as a text, one byte more is not.
func TestAttachedTextIsBounded(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir(), FS: hastyFS{}})
	a := agentFor(t, s, someone)
	for n, kept := range map[int]bool{1: true, storage.TextLimit - 1: true, storage.TextLimit: true, storage.TextLimit + 1: false, 3 * storage.TextLimit: false} {
		text := strings.Repeat("é", n/2) + strings.Repeat("e", n%2)
		f, err := s.SaveFile(t.Context(), a.ID, claybot.FileReference{Name: "f", Sent: true}, iotest.OneByteReader(strings.NewReader(text)), 1<<20)
		if err != nil || (f.Text == text) != kept || !kept && f.Text != "" || f.Size != int64(n) {
			t.Errorf("a text of %d bytes: %d of it are kept, %v", n, len(f.Text), err)
		}
	}
}
