package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/claybot/claybot/storage"
)

// migrateEnv makes the test binary a process that opens a file, while no file may grow beyond the size before the
// colon: SIZE:PATH. The write beyond it ends the process as a kill does.
const migrateEnv = "CLAYBOT_TEST_MIGRATE"

// migrateOnce is that process.
func migrateOnce(what string) error {
	size, path, _ := strings.Cut(what, ":")
	n, err := strconv.ParseUint(size, 10, 64)
	if err != nil {
		return err
	}
	if err := limitFiles(n); err != nil {
		return err
	}
	var byDefault [4]uint64 // the action of the kernel: programs in Go get an error instead
	if _, _, no := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGXFSZ), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0); no != 0 {
		return no
	}
	db, err := Open(context.Background(), path, Config{})
	if err != nil {
		return err
	}
	return db.Close()
}

func limitFiles(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	limit.Cur = min(n, limit.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}

// oldFile makes a file of version 4 without checksums, with values that fill some pages, and returns how large it is.
func oldFile(t *testing.T, path string) (size int64) {
	t.Helper()
	writeV4(t, path)
	c, err := connect(t.Context(), path, writerPragmas)
	if err != nil {
		t.Fatal(err)
	}
	for n := range oldValues {
		if _, err := c.exec("INSERT INTO marks VALUES (?, ?)", fmt.Sprint("old", n), oldValue); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// cutAt are sizes beyond which no file grows, in percent of that of the file.
var cutAt = []int64{1, 5, 15, 30, 50, 70, 90, 99, 120, 400}

const oldValues = 40

var oldValue = strings.Repeat("x", 2000)

// copyOld copies a file that is closed, and so has no log.
func copyOld(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// whole checks that a file has been upgraded and has everything.
func whole(t *testing.T, path, when string) {
	t.Helper()
	db := openAt(t, path)
	f, err := db.Stats(t.Context())
	if err != nil || f.Agents != 3 || f.Waiting != 1 {
		t.Errorf("%s: %+v, %v", when, f, err)
	}
	for n := range oldValues {
		if value, err := db.Checkpoint(t.Context(), fmt.Sprint("old", n)); err != nil || value != oldValue {
			t.Fatalf("%s: value %d is lost: %.20q, %v", when, n, value, err)
		}
	}
	if s, err := Look(t.Context(), path, false); err != nil || s.Version != len(migrations) || !s.Whole {
		t.Errorf("%s: %+v, %v", when, s, err)
	}
	if with, err := summed(path); err != nil || !with {
		t.Errorf("%s: checksums %v, %v", when, with, err)
	}
	checkFigures(t, db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// A process that dies anywhere in an upgrade leaves a file that the next one upgrades, with everything. It dies at
// the first write beyond a size, for sizes from the first page of the log to the end of the largest file.
func TestUpgradeKilledAtEachStep(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old.db")
	size := oldFile(t, old)
	killed := 0
	for _, part := range cutAt {
		limit := size * part / 100
		path := filepath.Join(dir, fmt.Sprint(limit, ".db"))
		copyOld(t, old, path)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d:%s", migrateEnv, limit, path))
		switch out, err := cmd.CombinedOutput(); {
		case err == nil:
		case strings.Contains(err.Error(), syscall.SIGXFSZ.String()):
			killed++
		default:
			t.Fatalf("%d: %v: %s", limit, err, out)
		}
		whole(t, path, fmt.Sprintf("killed at %d", limit))
	}
	if killed < 6 {
		t.Errorf("only %d processes were killed", killed)
	}
}

// A disk that is full anywhere in an upgrade is said, nothing is lost, and the next start with space finishes the
// upgrade. Where only the space for checksums is short, the file is used without them.
func TestUpgradeOnAFullDisk(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ) // so that write returns EFBIG
	defer signal.Reset(syscall.SIGXFSZ)
	dir := t.TempDir()
	old := filepath.Join(dir, "old.db")
	size := oldFile(t, old)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	full := 0
	for _, part := range cutAt {
		limit := size * part / 100
		path := filepath.Join(dir, fmt.Sprint(limit, ".db"))
		copyOld(t, old, path)
		if err := limitFiles(uint64(limit)); err != nil {
			t.Fatal(err)
		}
		db, err := Open(t.Context(), path, Config{})
		if err == nil {
			err = db.Close()
		}
		if rerr := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); rerr != nil {
			t.Fatal(rerr)
		}
		switch {
		case errors.Is(err, storage.ErrFull):
			full++
		case err != nil:
			t.Errorf("%d: %v, want %v", limit, err, storage.ErrFull)
		}
		whole(t, path, fmt.Sprintf("full at %d", limit))
	}
	if full < 3 {
		t.Errorf("the disk was full %d times", full)
	}
}
