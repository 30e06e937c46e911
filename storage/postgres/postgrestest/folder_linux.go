package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const folderName = "claybot-postgres-"

// A folder is that of one server. Its lock tells others that its process lives.
type folder struct {
	path string
	lock *os.File // nil for a part of another folder
	log  *os.File
}

// newFolder makes a folder and locks it. A process that removes stale folders may take one
// in the moment before it is locked; then another one is made.
func newFolder(dir string, p programs) (*folder, error) {
	for range attempts {
		path, err := os.MkdirTemp(dir, folderName)
		if err != nil {
			return nil, err
		}
		lock, err := lockFolder(path)
		if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f := &folder{path: path, lock: lock}
		if err := f.fill(p); err != nil {
			return nil, errors.Join(err, f.remove())
		}
		return f, nil
	}
	return nil, fmt.Errorf("all new folders in %s were taken away", dir)
}

// fill makes what the programs of a server expect.
func (f *folder) fill(p programs) error {
	// Others go through the folder and do not look into it.
	if err := os.Chmod(f.path, 0o711); err != nil {
		return err
	}
	for _, name := range []string{"data", "run"} {
		part := filepath.Join(f.path, name)
		if err := os.Mkdir(part, 0o700); err != nil {
			return err
		}
		if err := p.owner.give(part); err != nil {
			return err
		}
	}
	var err error
	f.log, err = os.OpenFile(filepath.Join(f.path, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return err
}

// lockFolder takes the lock of a folder that is there still.
func lockFolder(path string) (*os.File, error) {
	name := filepath.Join(path, "lock")
	lock, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		_, err = os.Lstat(name)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// tail returns the end of the server's log.
func (f *folder) tail() string {
	const most = 2000
	b, err := os.ReadFile(f.log.Name())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b[max(0, len(b)-most):]))
}

// remove removes the folder. Twice is once.
func (f *folder) remove() error {
	err := os.RemoveAll(f.path)
	for _, file := range []*os.File{f.log, f.lock} {
		if file != nil {
			if closed := file.Close(); !errors.Is(closed, os.ErrClosed) {
				err = errors.Join(err, closed)
			}
		}
	}
	return err
}

// removeStale removes the folders of processes that were killed. Their servers
// have had a signal at that moment; one that is there all the same is ended.
func removeStale(ctx context.Context, dir string) {
	found, err := filepath.Glob(filepath.Join(dir, folderName+"*"))
	if err != nil {
		return
	}
	for _, path := range found {
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			continue
		}
		lock, err := lockFolder(path)
		if err != nil {
			continue // in use, or of another user
		}
		endLeftOver(ctx, path)
		_ = os.RemoveAll(path) // what stays is tried again by the next one
		_ = lock.Close()
	}
}

// endLeftOver ends the servers whose data are in a folder.
func endLeftOver(ctx context.Context, path string) {
	files, err := filepath.Glob(filepath.Join(path, "*", "postmaster.pid"))
	if err != nil {
		return
	}
	for _, file := range files {
		pid := serverOf(file)
		if pid == 0 {
			continue
		}
		p := &process{pid: pid}
		if errors.Join(p.signal(pid, syscall.SIGQUIT), p.thaw()) != nil {
			continue
		}
		tick := time.NewTicker(20 * time.Millisecond)
		for range int(closing / (20 * time.Millisecond)) {
			if len(alive([]int{pid})) == 0 || ctx.Err() != nil {
				break
			}
			<-tick.C
		}
		tick.Stop()
	}
}

// serverOf is the process that a postmaster.pid names, if that has its data: numbers
// of processes come back. 0 for none.
func serverOf(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil || pid <= 1 {
		return 0
	}
	command, err := os.ReadFile("/proc/" + first + "/cmdline")
	if err != nil || !strings.Contains(string(command), filepath.Dir(file)) {
		return 0
	}
	return pid
}
