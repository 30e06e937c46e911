package jsonlines_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/jsonlines"
)

func batch(run claybot.RunID, first, n int) []claybot.Event {
	var out []claybot.Event
	for i := range n {
		data := fmt.Appendf(nil, `{"by":"user %d"}`, first+i)
		out = append(out, claybot.Event{V: 1, Run: run, Seq: int64(first + i), Type: claybot.EventRunCanceled, At: 5, Data: data})
	}
	return out
}

func lines(events ...[]claybot.Event) string {
	var b strings.Builder
	for _, es := range events {
		for _, e := range es {
			b.Write(runs.Encode(e))
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func publish(t *testing.T, s *jsonlines.Sink, events []claybot.Event) {
	t.Helper()
	if err := s.Publish(t.Context(), events); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s holds\n%s\nwant\n%s", filepath.Base(path), got, want)
	}
}

func open(t *testing.T) (*jsonlines.Sink, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.jsonl")
	s := jsonlines.New(path)
	t.Cleanup(func() { s.Close() })
	return s, path
}

func TestAppends(t *testing.T) {
	s, path := open(t)
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was made before there was something to write")
	}
	publish(t, s, nil)
	publish(t, s, batch("a", 1, 2))
	publish(t, s, batch("b", 1, 1))
	check(t, path, lines(batch("a", 1, 2), batch("b", 1, 1)))
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	publish(t, s, batch("a", 3, 1))
	check(t, path, lines(batch("a", 1, 2), batch("b", 1, 1), batch("a", 3, 1)))
}

func TestRotation(t *testing.T) {
	s, path := open(t)
	publish(t, s, batch("a", 1, 2))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	publish(t, s, batch("a", 3, 1))
	check(t, path+".1", lines(batch("a", 1, 2)))
	check(t, path, lines(batch("a", 3, 1)))

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	publish(t, s, batch("a", 4, 1))
	check(t, path, lines(batch("a", 4, 1)))

	// Another file was put into its place.
	if err := os.Rename(path+".1", path); err != nil {
		t.Fatal(err)
	}
	publish(t, s, batch("a", 5, 1))
	check(t, path, lines(batch("a", 1, 2), batch("a", 5, 1)))

	// copytruncate keeps the file and empties it.
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	publish(t, s, batch("a", 6, 1))
	check(t, path, lines(batch("a", 6, 1)))
}

// TestTornAtEveryByte cuts the file where a crash could, and goes on.
func TestTornAtEveryByte(t *testing.T) {
	whole := lines(batch("a", 1, 2))
	first := lines(batch("a", 1, 1))
	for cut := range len(whole) + 1 {
		s, path := open(t)
		if err := os.WriteFile(path, []byte(whole[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		publish(t, s, batch("b", 1, 1))
		kept := ""
		if cut >= len(first)-1 { // a line that lacks its break alone is whole
			kept = first
		}
		if cut >= len(whole)-1 {
			kept = whole
		}
		check(t, path, kept+lines(batch("b", 1, 1)))
	}
}

func TestOddEnds(t *testing.T) {
	huge := `{"x":"` + strings.Repeat("y", 200<<10)
	tests := map[string]struct{ there, kept string }{
		"empty":             {"", ""},
		"no JSON":           {"some notes", ""},
		"a number":          {"{}\n12", "{}\n"},
		"zeros":             {"{}\n" + strings.Repeat("\x00", 70<<10), "{}\n"},
		"long torn line":    {"{}\n" + huge, "{}\n"},
		"long whole line":   {"{}\n" + huge + `"}`, "{}\n" + huge + `"}` + "\n"},
		"torn first line":   {huge, ""},
		"only a line break": {"\n", "\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, path := open(t)
			if err := os.WriteFile(path, []byte(tt.there), 0o600); err != nil {
				t.Fatal(err)
			}
			publish(t, s, batch("b", 1, 1))
			check(t, path, tt.kept+lines(batch("b", 1, 1)))
		})
	}
}

func TestEndlessLine(t *testing.T) {
	s, path := open(t)
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 9<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(t.Context(), batch("a", 1, 1)); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v", err)
	}
	if st, err := os.Stat(path); err != nil || st.Size() != 9<<20 {
		t.Errorf("the file was changed: %v %v", st, err)
	}
}

// TestComesBack writes again when what was in the way is gone.
func TestComesBack(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "later")
	path := filepath.Join(folder, "events.jsonl")
	s := jsonlines.New(path)
	defer s.Close()
	if err := s.Publish(t.Context(), batch("a", 1, 1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(t.Context(), batch("a", 1, 1)); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("with a folder in its place: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	publish(t, s, batch("a", 1, 1))
	check(t, path, lines(batch("a", 1, 1)))
}

func TestCanceled(t *testing.T) {
	s, path := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Publish(ctx, batch("a", 1, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

// TestWritersAndRotation publishes from several sides while the file is moved
// away under them: all lines are whole and none is lost.
func TestWritersAndRotation(t *testing.T) {
	const writers, batches, perBatch = 4, 25, 3
	s, path := open(t)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range batches {
				run := claybot.RunID(fmt.Sprintf("run%d", w))
				if err := s.Publish(t.Context(), batch(run, 1+i*perBatch, perBatch)); err != nil {
					t.Error(err)
				}
				// The others write meanwhile. Two move the file, as a sink that finds it gone
				// for the third time gives up.
				if w < 2 && i%3 == w {
					_ = os.Rename(path, fmt.Sprintf("%s.%d.%d", path, w, i)) // another one may have been first
				}
			}
		})
	}
	wg.Wait()
	seen := make(map[string]bool)
	files, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var e claybot.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil || !strings.HasSuffix(line, "\n") {
				t.Fatalf("%s: line %q: %v", filepath.Base(name), line, err)
			}
			seen[fmt.Sprintf("%s/%d", e.Run, e.Seq)] = true
		}
	}
	if len(seen) != writers*batches*perBatch {
		t.Errorf("%d of %d events are there", len(seen), writers*batches*perBatch)
	}
}
