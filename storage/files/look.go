package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Look tells how Lock would find the data directory dir, and changes nothing of it:
// whether it is there, which process has it, empty for none, and in a sentence with
// the next step why Lock would refuse it.
func Look(dir string) (there bool, holder string, err error) {
	dir = filepath.Clean(dir)
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, "", nil
	}
	if err != nil {
		return false, "", fmt.Errorf("data directory: %w", err)
	}
	if err := refuse(dir, info); err != nil {
		return true, "", err
	}
	if err := checkFinished(dir); err != nil {
		return true, "", err
	}
	f, err := os.OpenFile(filepath.Join(dir, "claybot.lock"), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true, lookDir(dir), nil
	}
	if err != nil {
		return true, "", fmt.Errorf("lock of the data directory: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	if err := flock(f, syscall.LOCK_SH); errors.Is(err, syscall.EWOULDBLOCK) {
		return true, holderOf(f), nil
	}
	return true, lookDir(dir), nil
}

// lookDir names the process that has the directory itself; empty for none.
func lookDir(dir string) string {
	d, err := os.Open(dir)
	if err != nil {
		return ""
	}
	defer func() { _ = d.Close() }() // nothing was written
	if errors.Is(flock(d, syscall.LOCK_SH), syscall.EWOULDBLOCK) {
		return holderOfDir(d)
	}
	return ""
}
