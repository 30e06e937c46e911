package sqlite

import (
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/claybot/claybot/storage"
)

// TestWriteError lets writes to the log fail for real: the largest file size of
// the process is lowered. The connection is given up, nothing is confirmed, and
// with another connection the store goes on.
func TestWriteError(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ) // so that write returns EFBIG
	defer signal.Reset(syscall.SIGXFSZ)
	db := openFresh(t)
	post(t, db, "before")
	st, err := os.Stat(db.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	low := limit
	low.Cur = uint64(st.Size()) + 1000
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &low); err != nil {
		t.Fatal(err)
	}
	m := textMessage("refused")
	m.Text = strings.Repeat("x", 20_000)
	p := storage.Posting{To: theAgent.ID, Message: m}
	_, err = db.Post(t.Context(), p)
	if err2 := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err2 != nil {
		t.Fatal(err2)
	}
	if !errors.Is(err, storage.ErrFull) {
		t.Fatalf("got %v, want %v", err, storage.ErrFull)
	}
	if got := waitingIDs(t, db); len(got) != 1 || got[0] != "before" {
		t.Fatalf("waiting after the refusal: %v", got)
	}
	if posted, err := db.Post(t.Context(), p); err != nil || !posted.Added {
		t.Fatalf("with space again: %+v, %v", posted, err)
	}
	checkFigures(t, db)
}

// A file that cannot be opened for want of a descriptor is a fault of the process and
// not a full disk, wherever SQLite runs out of them.
func TestNoDescriptorIsOfTheMember(t *testing.T) {
	db := openFresh(t)
	post(t, db, "before")
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}()
	free, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(free.Fd())
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	bySQLite := 0
	for spare := range uint64(64) {
		low := limit
		low.Cur = next + spare
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
			t.Fatal(err)
		}
		c, err := connect(t.Context(), db.path, writerPragmas)
		if err == nil {
			if err := c.close(); err != nil {
				t.Error(err)
			}
			break
		}
		if e := coded(nil); errors.As(err, &e) {
			bySQLite++
		}
		if storage.ClassOf(err) != storage.ClassMember || errors.Is(err, storage.ErrFull) || !errors.Is(err, syscall.EMFILE) {
			t.Errorf("with %d descriptors: class %v: %v", spare, storage.ClassOf(err), err)
		}
		if !storeFailed(err) {
			t.Errorf("with %d descriptors: the batch would be tried call by call: %v", spare, err)
		}
	}
	if bySQLite == 0 {
		t.Error("SQLite never ran out of descriptors")
	}
}
