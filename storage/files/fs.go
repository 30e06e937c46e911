package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/claybot/claybot/storage"
)

// An FS is the file system that this package uses. It exists for tests of
// failing disks; all others leave Config.FS nil.
type FS interface {
	// Open is os.OpenFile; a file that it creates has mode 0600. It never waits for
	// another process, and refuses what is neither a regular file nor a directory.
	Open(name string, flag int) (File, error)
	// Mkdir makes one directory of mode 0700.
	Mkdir(name string) error
	Rename(from, to string) error
	// Remove deletes a file or a whole tree; a missing name is no error.
	Remove(name string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	ReadDir(name string) ([]fs.DirEntry, error)
}

// A File is an open file of an FS. Write appends when the file was opened with
// os.O_APPEND.
type File interface {
	io.ReaderAt
	io.Writer
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
	Close() error
}

// osFS is the file system of the machine.
type osFS struct{}

func (osFS) Open(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600) // a FIFO must not block the agent
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = fmt.Errorf("open %s: neither a regular file nor a directory", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if flag&os.O_CREATE != 0 {
		if err := f.Chmod(0o600); err != nil { // a umask can take too much as well
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

func (osFS) Mkdir(name string) error {
	if err := os.Mkdir(name, 0o700); err != nil {
		return err
	}
	return os.Chmod(name, 0o700)
}

func (osFS) Rename(from, to string) error               { return os.Rename(from, to) }
func (osFS) Remove(name string) error                   { return os.RemoveAll(name) }
func (osFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// entriesAtOnce is how many entries of a large folder are in memory.
const entriesAtOnce = 256

// eachEntry calls fn for the entries of a folder in no order. Those that come or go meanwhile
// may be left out.
func eachEntry(fsys FS, name string, fn func(fs.DirEntry) error) error {
	if x, ok := fsys.(interface {
		Entries(name string, fn func(fs.DirEntry) error) error
	}); ok {
		return x.Entries(name, fn)
	}
	entries, err := fsys.ReadDir(name)
	for i := 0; i < len(entries) && err == nil; i++ {
		err = fn(entries[i])
	}
	return err
}

// Entries is eachEntry with few entries in memory.
func (osFS) Entries(name string, fn func(fs.DirEntry) error) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // nothing was written
	for {
		entries, err := d.ReadDir(entriesAtOnce)
		for _, e := range entries {
			if err := fn(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (osFS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// write makes a file with the content data and syncs it. The name of a new
// file is not durable before its directory is synced.
func write(fsys FS, name string, data []byte) error {
	f, err := fsys.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	if err := writeAll(f, data); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

// replace atomically replaces the content of the file name in dir. After an
// error the content is either the old or the new one.
func replace(fsys FS, dir, name string, data []byte) error {
	path := dir + "/" + name
	err := write(fsys, path+".new", data)
	if err == nil {
		err = fsys.Rename(path+".new", path)
	}
	if err != nil {
		_ = fsys.Remove(path + ".new") // only waste; the next replace overwrites it
		return err
	}
	return fsys.SyncDir(dir)
}

// read returns the content of a small file; one larger than limit is refused
// before it is read.
func read(fsys FS, name string, limit int64) (data []byte, err error) {
	f, err := fsys.Open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("%s: not a regular file of at most %d bytes", name, limit)
	}
	data = make([]byte, info.Size())
	if n, err := f.ReadAt(data, 0); n < len(data) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// exists reports whether name is there.
func exists(fsys FS, name string) (bool, error) {
	f, err := fsys.Open(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// writeAll turns a short write into an error.
func writeAll(w io.Writer, data []byte) error {
	n, err := w.Write(data)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	return err
}

// full reports whether err means that the disk is full or not writable.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

// failed wraps err with the failed operation, and as storage.ErrFull if it is a
// full disk.
func failed(what string, err error) error {
	if full(err) {
		return fmt.Errorf("%s: %w: %w", what, storage.ErrFull, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
