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
