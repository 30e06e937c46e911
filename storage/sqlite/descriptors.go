package sqlite

import (
	"os"
	"slices"
	"sync"
)

// descriptors are those by which this process reads main files beside SQLite. A process that closes any
// descriptor of a file gives up all of its POSIX locks on that file (fcntl(2)), those of SQLite's
// connections as well. Without them, another program that reads the database takes itself for the last
// one: when it ends, it writes the log into the main file and deletes it. So a descriptor stays open
// until no connection to its file is open.
var descriptors struct {
	mu  sync.Mutex
	all []*descriptor
}

// A descriptor reads one file. Its users share it.
type descriptor struct {
	*os.File
	spare []*os.File // of the same file; they are closed with it
	info  os.FileInfo
	users int
}

// describe opens the file at path for one more user.
func describe(path string) (*descriptor, error) {
	descriptors.mu.Lock()
	defer descriptors.mu.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if d := described(info); d != nil {
		d.users++
		return d, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err != nil {
		_ = f.Close() // it was not read
		return nil, err
	}
	d := described(info)
	if d == nil {
		d = &descriptor{File: f, info: info}
		descriptors.all = append(descriptors.all, d)
	} else { // another file came to the path just now
		d.spare = append(d.spare, f)
	}
	d.users++
	return d, nil
}

// described returns the open descriptor of a file; nil for none. The caller holds the lock.
func described(info os.FileInfo) *descriptor {
	if i := slices.IndexFunc(descriptors.all, func(d *descriptor) bool { return os.SameFile(d.info, info) }); i >= 0 {
		return descriptors.all[i]
	}
	return nil
}

// leave ends the use of one user, who has no connection to the file any more. d may be nil.
func (d *descriptor) leave() {
	if d == nil {
		return
	}
	descriptors.mu.Lock()
	defer descriptors.mu.Unlock()
	if d.users--; d.users > 0 {
		return
	}
	descriptors.all = slices.DeleteFunc(descriptors.all, func(x *descriptor) bool { return x == d })
	for _, f := range append(d.spare, d.File) {
		_ = f.Close() // they only read
	}
}
