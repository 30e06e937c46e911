package chromium

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/claybot/claybot/lazyregexp"
)

// homePrefix begins the name of the folder of a browser. The id of this process
// and a number of its own follow.
const homePrefix = "claybot-chromium-"

func makeHome() (string, error) {
	return os.MkdirTemp(tempDir(), fmt.Sprintf("%s%d-*", homePrefix, os.Getpid()))
}

// tempDir is where the folder of a browser is: its sockets lie below, and their
// paths have a limit of about 100 bytes.
func tempDir() string {
	usual := os.TempDir()
	if len(usual) <= 32 {
		return usual
	}
	if info, err := os.Stat("/tmp"); err != nil || !info.IsDir() {
		return usual
	}
	return "/tmp"
}

// sweepOnce removes, once in the life of this process and before it makes a folder
// itself, what processes that were killed have left over.
var sweepOnce = sync.OnceFunc(func() { sweep(tempDir(), os.Getpid()) })

var homeName = lazyregexp.New(`^` + homePrefix + `([0-9]+)-[0-9]+$`)

// sweep removes the folders in dir that belong to processes that do not live any
// more. self has made none yet: one with its id is of a process before it, as in a
// container, where each has the same id. What cannot be removed stays.
func sweep(dir string, self int) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := homeName.FindStringSubmatch(e.Name())
		if name == nil || !e.IsDir() {
			continue
		}
		if pid, err := strconv.Atoi(name[1]); err == nil && (pid == self || over(pid)) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name())) // the next process tries again
		}
	}
}

// over reports whether there is certainly no process with an id.
func over(pid int) bool {
	if pid <= 0 {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }() // it is not ours
	return errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
