package main

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
)

// A folder is a directory in which files are replaced. What is in it may belong to another
// user than this process, so no link leads out of it, and each new file gets the owner and
// group of a file that is there, or else of the directory.
type folder struct {
	*os.Root
	uid, gid int // -1: those of this process
}

// openFolder opens the directory of a file. New files get its owner and group.
func openFolder(path string) (folder, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return folder{}, err
	}
	info, err := root.Lstat(filepath.Base(path))
	if errors.Is(err, fs.ErrNotExist) && os.Geteuid() == 0 { // a service's user reads it
		info, err = root.Stat(".")
	} else if errors.Is(err, fs.ErrNotExist) {
		return folder{root, -1, -1}, nil
	}
	if err != nil {
		return folder{}, errors.Join(err, root.Close())
	}
	d := folder{root, -1, -1}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && (int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid()) {
		d.uid, d.gid = int(st.Uid), int(st.Gid)
	}
	return d, nil
}

func (d folder) close() { _ = d.Root.Close() } // nothing was written by it

// own gives a new file to the owner.
func (d folder) own(f *os.File) error {
	if d.uid < 0 {
		return nil
	}
	return f.Chown(d.uid, d.gid)
}

// folder returns a directory in this one, which it creates if it is missing, for its owner alone.
func (d folder) folder(name string) (folder, error) {
	err := d.Mkdir(name, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return folder{}, err
	}
	if err == nil && d.uid >= 0 {
		if err := d.Lchown(name, d.uid, d.gid); err != nil {
			return folder{}, err
		}
	}
	if info, err := d.Lstat(name); err != nil || !info.IsDir() {
		return folder{}, errors.Join(fmt.Errorf("%s is not a directory", name), err)
	}
	root, err := d.OpenRoot(name)
	return folder{root, d.uid, d.gid}, err
}

// nextName is the name of the file that replaces another one, from the time.
func nextName(name string) string {
	return "." + name + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
}

// leftovers are the files that a crash of replace has left of a name, or of any one where that is empty, and those of a
// replace that works. Their names are of nextName, and they were written at its time.
func (d folder) leftovers(name string) (all []string) {
	prefix := "."
	if name != "" {
		prefix += name + "-"
	}
	entries, _ := fs.ReadDir(d.FS(), ".") // else there is nothing to do
	for _, x := range entries {
		at := strings.LastIndexByte(x.Name(), '-')
		n, err := strconv.ParseInt(x.Name()[at+1:], 36, 64)
		if err != nil || !x.Type().IsRegular() || !strings.HasPrefix(x.Name(), prefix) {
			continue
		}
		if info, err := x.Info(); err == nil && info.ModTime().Sub(time.Unix(0, n)).Abs() < time.Hour {
			all = append(all, x.Name())
		}
	}
	return all
}

// replace replaces a file at once: a crash leaves the old text or the new one. A new file is
// for its owner alone; another one keeps its mode.
func (d folder) replace(name string, text []byte) (err error) {
	mode := fs.FileMode(0o600)
	if info, err := d.Lstat(name); err == nil {
		mode = info.Mode().Perm()
	}
	next := nextName(name)
	f, err := d.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Remove(next))
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, d.own(f), f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return d.Rename(next, name)
}
