package cron

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// A shelf is where the tasks are: a directory, or a Tree that nodes share. Names
// are paths on it. It is used with Cron.edits held, but for read and stat.
type shelf interface {
	// names lists the folders of tasks, and perhaps more, sorted.
	names(ctx context.Context) ([]string, error)
	// stat is what is known of a file without reading it.
	stat(name string) (fs.FileInfo, error)
	// fetch makes ready what is going to be read.
	fetch(ctx context.Context, names []string) error
	// isFolder reports whether a name is that of a folder.
	isFolder(slug string) (bool, error)
	// read returns a file of at most limit bytes; more is cut off, and said so.
	read(ctx context.Context, name string, limit int64) (text string, cut bool, err error)
	// edit replaces a file by what change makes of it, whole or not at all. A file
	// that is not there is an error of change's choice.
	edit(ctx context.Context, name string, limit int64, change func(old string, cut bool, err error) (string, error)) error
	// make makes the folder of a new task, all of it or nothing, and returns its
	// name: slug, or slug with a number behind it when that is taken.
	make(ctx context.Context, slug, task string) (string, error)
	// done puts a task's folder aside. With seen, only when its TASK.md is still
	// that one; else the error is errMoved, as when the folder is gone.
	done(ctx context.Context, slug string, now time.Time, seen fs.FileInfo) error
	// workspace is where the gate of a task runs.
	workspace(slug string) (string, error)
	// shared tells whether other nodes use it; then facts are there.
	shared() bool
	close() error
}

// errMoved: somebody else has put a folder aside, or changed its task.
var errMoved = errors.New("another node was there before")

// versioned is what is known of a file by its version.
type versioned interface{ Version() int64 }

// readMemory reads MEMORY.md of a task; a task without one has no memory.
func readMemory(ctx context.Context, s shelf, slug string) (string, error) {
	text, cut, err := s.read(ctx, path.Join(slug, memoryFile), maxMemory)
	return memoryText(text, cut, err)
}

func memoryText(text string, cut bool, err error) (string, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return noMemory, nil
	}
	text = strings.TrimSpace(strings.ToValidUTF8(text, ""))
	if cut {
		text += "\n[the rest of MEMORY.md is left out: it is longer than 16 KiB]"
	}
	if text == "" {
		text = noMemory
	}
	return text, err
}

// readTask is the old text that an edit of TASK.md begins with.
func readTask(name, old string, cut bool, err error) (string, error) {
	if err == nil && cut {
		err = errors.New("the file is too long")
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return old, nil
}
