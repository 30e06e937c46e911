package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// TestReseal gives the checksums back to a database whose log another program has moved into it, as one
// does that opens it after a crash.
func TestReseal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	db := openAt(t, path)
	if err := db.IndexAgents(t.Context(), theAgent); err != nil {
		t.Fatal(err)
	}
	var all []claybot.MessageID
	for i := range 50 {
		all = append(all, claybot.MessageID(fmt.Sprint("m", i)))
		if _, err := db.Post(t.Context(), storage.Posting{To: theAgent.ID, Message: textMessage(all[i])}); err != nil {
			t.Fatal(err)
		}
	}
	crashed, logged := copyStore(t, path, math.MaxInt64), copyStore(t, path, math.MaxInt64)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	none := path + ".none"
	if wrong, pages, err := Reseal(t.Context(), path, none); wrong != 0 || pages == 0 || err != nil {
		t.Fatalf("after an orderly end: %d of %d pages, %v", wrong, pages, err)
	}
	if _, err := Foreign(t.Context(), crashed, "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), crashed, Config{}); !errors.Is(err, storage.ErrDamaged) {
		t.Fatalf("opened with %v, want damage", err)
	}
	// A file with a log keeps it, and the copy has what the log has.
	before := readAll(t, logged)
	copy(before[pageSize-4:], "xxxx")
	if err := os.WriteFile(logged, before, 0o600); err != nil {
		t.Fatal(err)
	}
	log := readAll(t, logged+"-wal")
	if wrong, _, err := Reseal(t.Context(), logged, logged+".fresh"); wrong != 1 || err != nil {
		t.Fatalf("with a log: %d pages, %v", wrong, err)
	}
	if !bytes.Equal(readAll(t, logged), before) || !bytes.Equal(readAll(t, logged+"-wal"), log) {
		t.Error("the file or its log has changed")
	}
	if left, err := filepath.Glob(logged + "*"); err != nil || len(left) != 3 {
		t.Errorf("left are %v, %v", left, err)
	}
	withLog := openAt(t, logged+".fresh")
	if got := waitingIDs(t, withLog); !slices.Equal(got, all) {
		t.Errorf("with a log: got %v, want %v", got, all)
	}

	before = readAll(t, crashed)
	fresh := crashed + ".fresh"
	if wrong, pages, err := Reseal(t.Context(), crashed, fresh); wrong == 0 || wrong > pages || err != nil {
		t.Fatalf("%d of %d pages, %v", wrong, pages, err)
	}
	if !bytes.Equal(readAll(t, crashed), before) {
		t.Error("the file has changed")
	}
	if err := Verify(t.Context(), fresh); err != nil {
		t.Error(err)
	}
	db = openAt(t, fresh)
	if got := waitingIDs(t, db); !slices.Equal(got, all) {
		t.Errorf("got %v, want %v", got, all)
	}
	// What SQLite finds wrong is refused.
	torn := bytes.Clone(before)
	copy(torn[5*pageSize:], strings.Repeat("x", pageSize))
	if err := os.WriteFile(crashed, torn, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Reseal(t.Context(), crashed, none); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("a torn page: %v", err)
	}
	for _, text := range []string{"", "x", strings.Repeat("no database ", 1000)} {
		if err := os.WriteFile(crashed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Reseal(t.Context(), crashed, none); !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
	if _, err := os.Stat(none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy was made: %v", err)
	}
}

func readAll(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
