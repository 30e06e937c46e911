package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claybot/claybot/storage"
)

// A DirLock is the right of this process to a data directory. The kernel
// releases it when the process ends. Keep the DirLock reachable until then,
// because a garbage-collected one is closed.
type DirLock struct {
	dir string
	f   *os.File // claybot.lock, which has the pid
	d   *os.File // the directory itself; nil where that cannot be locked
}

// Lock makes the data directory dir, mode 0700, when it does not exist and takes
// it for this process. When another process has it, Lock returns at once with an
// error that wraps storage.ErrLocked and names that process; it waits up to 5 s
// for one that is just releasing it. A directory that is a symlink or that group
// or others may write to is refused with an error that names the chmod.
//
// Lock takes two locks: claybot.lock, which earlier versions respect as well, and the
// directory itself, so that a removed claybot.lock lets no second process in. Where the
// file system cannot lock a directory, Lock takes claybot.lock alone. A claybot.lock that
// a refused Lock has created is removed again: earlier versions would take it.
func Lock(dir string) (*DirLock, error) {
	dir = filepath.Clean(dir) // a trailing slash would follow a symlink
	if err := prepare(dir); err != nil {
		return nil, err
	}
	if err := checkFinished(dir); err != nil {
		return nil, err
	}
	f, created, err := openLock(dir)
	if err != nil {
		return nil, failed("lock data directory", err)
	}
	if err := take(f); err != nil {
		defer func() { _ = f.Close() }() // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s is held by %s; end it with: claybot stop", storage.ErrLocked, dir, holderOf(f))
		}
		return nil, fmt.Errorf("lock data directory %s: %w", dir, err)
	}
	d, err := takeDir(dir)
	if err != nil {
		if created {
			err = errors.Join(err, os.Remove(f.Name()))
		}
		return nil, errors.Join(err, f.Close())
	}
	sign(f)
	return &DirLock{dir: dir, f: f, d: d}, nil
}

// openLock opens claybot.lock, and reports whether it was created.
func openLock(dir string) (f *os.File, created bool, err error) {
	name := filepath.Join(dir, lockName)
	for {
		f, err = os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, false, err
		}
		f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err == nil, err
		} // another process created it meanwhile
	}
}

// sign writes the pid into f. It is only informative, so a full disk does not prevent the
// start.
func sign(f *os.File) {
	_ = f.Chmod(0o600)
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
}

// Renew takes claybot.lock again after it was removed or replaced, so that earlier
// versions, which know no other lock, are kept out. Call it every few seconds, from one
// goroutine. An error that wraps storage.ErrLocked says that another process has the
// file: an earlier version that works here as well, or a start that is about to be
// refused.
func (l *DirLock) Renew() error {
	held, err := l.f.Stat()
	if err != nil {
		return fmt.Errorf("renew lock: %w", err)
	}
	there, err := os.Lstat(l.f.Name())
	if err == nil && os.SameFile(held, there) {
		return nil
	}
	f, _, err := openLock(l.dir)
	if err != nil {
		return failed("renew lock", err)
	}
	err = flock(f, syscall.LOCK_EX)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%w: %s is new and held by %s", storage.ErrLocked, f.Name(), holderOf(f))
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	sign(f)
	l.f, f = f, l.f
	return f.Close() // of the file that is gone
}

// takeDir locks the directory itself; nil where the file system has no such lock.
func takeDir(dir string) (*os.File, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, failed("lock data directory", err)
	}
	for end := time.Now().Add(letGo); ; time.Sleep(letGo / 500) {
		err := flock(d, syscall.LOCK_EX)
		if err == nil {
			return d, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, d.Close()
		}
		// claybot.lock was free: it was removed while its holder works, or the holder is
		// just letting go.
		if holder := holderOfDir(d); holder != unnamed || time.Now().After(end) {
			return nil, errors.Join(fmt.Errorf("%w: %s is held by %s, and its claybot.lock was removed; stop that process first",
				storage.ErrLocked, dir, holder), d.Close())
		}
	}
}

// holderOfDir names the process that has locked the directory d for itself, where the
// kernel tells. A process that only looks shares the lock for a moment, and is unnamed.
func holderOfDir(d *os.File) string {
	info, err := d.Stat()
	if err != nil {
		return unnamed
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return unnamed
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return unnamed
	}
	for line := range strings.Lines(string(locks)) { // 1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" || fields[3] != "WRITE" || !strings.HasSuffix(fields[5], ":"+strconv.FormatUint(st.Ino, 10)) {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return "process " + strconv.Itoa(pid)
		}
	}
	return unnamed
}

// letGo is the maximum wait for a lock without the pid of its holder.
const letGo = 5 * time.Second

// take locks f. A lock without a pid, or with that of a process that has ended, is being
// taken or was released: then a child that its holder was about to start has it until
// that child has begun.
func take(f *os.File) error {
	for end := time.Now().Add(letGo); ; time.Sleep(letGo / 500) {
		err := flock(f, syscall.LOCK_EX)
		if !errors.Is(err, syscall.EWOULDBLOCK) || alive(holderOf(f)) || time.Now().After(end) {
			return err
		}
	}
}

// Close releases the data directory.
func (l *DirLock) Close() error {
	_ = l.f.Truncate(0) // the pid is no longer true
	if l.d == nil {
		return l.f.Close()
	}
	return errors.Join(l.d.Close(), l.f.Close())
}

// prepare creates dir, or returns why it cannot be used.
func prepare(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
			return unmade(dir, err)
		}
		if err := (osFS{}).Mkdir(dir); err != nil {
			return unmade(dir, err)
		}
		return (osFS{}).SyncDir(filepath.Dir(dir))
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return refuse(dir, info)
}

// unmade returns why a data directory could not be created and, where this user may not, what to do.
func unmade(dir string, err error) error {
	err = failed("make data directory", err)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w; let this user write to %s, or set another directory with CLAYBOT_DATA_DIR", err, filepath.Dir(dir))
	}
	return err
}

// refuse returns why a directory cannot be a data directory.
func refuse(dir string, info fs.FileInfo) error {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("data directory %s is a symlink, which others could point elsewhere; "+
			"name the directory itself and run: chmod 700 %s", dir, target(dir))
	case !info.IsDir():
		return fmt.Errorf("data directory %s is a file", dir)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("data directory %s is writable by group or others (mode %04o); run: chmod 700 %s",
			dir, info.Mode().Perm(), dir)
	}
	return nil
}

func target(link string) string {
	if p, err := filepath.EvalSymlinks(link); err == nil {
		return p
	}
	return link
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// unnamed is a holder that has not left its pid.
const unnamed = "another process"

// alive reports whether a holder has a name and its process has not ended, as far as this
// process can see.
func alive(holder string) bool {
	pid, err := strconv.Atoi(strings.TrimPrefix(holder, "process "))
	return err == nil && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// holderOf names the process that wrote its pid into f.
func holderOf(f *os.File) string {
	var buf [32]byte
	n, _ := f.ReadAt(buf[:], 0) // short files end in io.EOF
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil || pid <= 0 {
		return unnamed
	}
	return "process " + strconv.Itoa(pid)
}
