package documents

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// Filesystem keeps files in the folder of the machine that is named for a call.
// The folder is made when it is missing.
//
// Only regular files are seen: devices, pipes, sockets, symbolic links and files
// with a second name (hard links) are refused, and nothing that is swapped in
// meanwhile leads out of the folder.
func Filesystem(folder func(env tools.Env) (string, error)) Source {
	return func(env tools.Env) (Backend, error) {
		name, err := folder(env)
		if err != nil {
			return nil, broken("finding the folder", err)
		}
		return disk{folder: name, limit: MaxScope}, nil
	}
}

const (
	fileMode   = 0o600
	folderMode = 0o700
)

// staleAfter is when a file that is still being written has been forgotten by a
// crash.
const staleAfter = time.Hour

// undoFolder is where, in the folder, what runs have replaced is kept aside. The
// tools cannot name it.
const undoFolder = reserved + "undo"

// disk is a Backend on one folder. Each call opens it anew, so that it may be
// moved away in between.
type disk struct {
	folder string
	below  string // a folder in it, if that is the one
	limit  int64  // bytes of all files
}

func (d disk) aside(agent claybot.AgentID) (Backend, bool) {
	if !plainName.MatchString(string(agent)) || d.below != "" {
		return nil, false
	}
	return disk{d.folder, undoFolder + "/" + string(agent), keptBytes}, true
}

func (d disk) open() (*os.Root, error) {
	if err := os.MkdirAll(d.folder, folderMode); err != nil {
		return nil, broken("opening the folder", err)
	}
	root, err := os.OpenRoot(d.folder)
	if err != nil {
		return nil, broken("opening the folder", err)
	}
	if d.below == "" {
		return root, nil
	}
	defer root.Close()
	if err := root.MkdirAll(d.below, folderMode); err != nil {
		return nil, broken("opening the folder", err)
	}
	// What is kept aside lies where it was put, and not where a link leads.
	for _, part := range append(above(d.below), d.below) {
		info, err := root.Lstat(part)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a folder", part)
		}
		if err != nil {
			return nil, broken("opening the folder", err)
		}
	}
	inner, err := root.OpenRoot(d.below)
	if err != nil {
		return nil, broken("opening the folder", err)
	}
	return inner, nil
}

// within opens the folder for one use.
func (d disk) within(ctx context.Context, do func(root *os.Root) error) error {
	root, err := d.open()
	if err != nil {
		return err
	}
	defer root.Close()
	if err := ctx.Err(); err != nil {
		return err
	}
	return do(root)
}

func (d disk) Read(ctx context.Context, name string) (text string, err error) {
	err = d.within(ctx, func(root *os.Root) error {
		text, err = read(root, name)
		return err
	})
	return text, err
}

func read(root *os.Root, name string) (string, error) {
	if err := regular(root, name); err != nil {
		return "", err
	}
	// What regular has seen may be another thing by now: not blocking keeps a
	// pipe from holding us, and the open file is asked again.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", explain("reading", name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", explain("reading", name, err)
	}
	if err := ordinary(name, info); err != nil {
		return "", err
	}
	if info.Size() > MaxFile {
		return "", tooLong(name, info.Size())
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return "", explain("reading", name, err)
	}
	if len(b) > MaxFile {
		return "", tooLong(name, int64(len(b)))
	}
	return string(b), nil
}

func tooLong(name string, size int64) error {
	return fail(Invalid, "%.200q has %d bytes, the limit is %d", name, size, MaxFile)
}

func (d disk) Write(ctx context.Context, name, text string) error {
	return d.within(ctx, func(root *os.Root) error { return d.write(ctx, root, name, text) })
}

func (d disk) write(ctx context.Context, root *os.Root, name, text string) error {
	if err := regular(root, name); err != nil && !hasCode(err, NoEntry) {
		return err
	}
	all, err := walk(ctx, root, "", true)
	if hasCode(err, OverQuota) {
		return scopeFull()
	}
	if err != nil {
		return err
	}
	total, count := int64(len(text)), 1
	for _, f := range all {
		if f.Path != name {
			total += f.Size
			count++
		}
	}
	if total > d.limit || count > MaxFiles {
		return scopeFull()
	}
	if err := replace(root, name, text); err != nil {
		return explain("writing", name, err)
	}
	return nil
}

// replace writes a new file beside the old one and gives it its name, so that
// name has the old content or the new one, after a crash as well.
func replace(root *os.Root, name, text string) (err error) {
	dir := path.Dir(name)
	if err := root.MkdirAll(dir, folderMode); err != nil {
		return err
	}
	fresh := path.Join(dir, reserved+rand.Text())
	f, err := root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Remove(fresh))
		}
	}()
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := root.Rename(fresh, name); err != nil {
		return err
	}
	// The folders above may be new as well.
	for _, folder := range append([]string{"."}, above(name)...) {
		if err := syncFolder(root, folder); err != nil {
			return err
		}
	}
	return nil
}

func (d disk) Remove(ctx context.Context, name string) error {
	return d.within(ctx, func(root *os.Root) error { return remove(root, name) })
}

func remove(root *os.Root, name string) error {
	if err := regular(root, name); err != nil {
		if hasCode(err, NoEntry) {
			return nil
		}
		return err
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain("removing", name, err)
	}
	folders := above(name)
	for len(folders) > 0 && root.Remove(folders[len(folders)-1]) == nil { // the empty ones
		folders = folders[:len(folders)-1]
	}
	last := "."
	if len(folders) > 0 {
		last = folders[len(folders)-1]
	}
	if err := syncFolder(root, last); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain("removing", name, err)
	}
	return nil
}

func syncFolder(root *os.Root, folder string) error {
	f, err := root.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d disk) List(ctx context.Context, folder string) ([]File, error) {
	root, err := d.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if folder != "" {
		err := regular(root, folder)
		if err == nil {
			return nil, notFolder(folder)
		}
		if !hasCode(err, IsFolder) {
			return nil, err
		}
	}
	files, err := walk(ctx, root, folder, false)
	if err != nil {
		return nil, err
	}
	if folder != "" && len(files) == 0 {
		return nil, missing(folder)
	}
	return files, nil
}

// walk lists the ordinary files below a folder, without following links. With
// tidy it removes what writes have left behind that a crash cut off.
func walk(ctx context.Context, root *os.Root, folder string, tidy bool) ([]File, error) {
	var files []File
	start := folder
	if start == "" {
		start = "."
	}
	err := fs.WalkDir(root.FS(), start, func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if name != start && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
				return nil // gone meanwhile, or not for us
			}
			return err
		}
		if name != start && strings.HasPrefix(e.Name(), reserved) {
			if tidy {
				removeStale(root, name)
			}
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if name != start && !nameable(name) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !e.Type().IsRegular() {
			return nil
		}
		info, err := root.Lstat(name)
		if err != nil || ordinary(name, info) != nil {
			return nil // gone meanwhile, or no file for us
		}
		if len(files) == MaxFiles {
			return tooMany(folder)
		}
		files = append(files, File{name, info.Size()})
		return nil
	})
	if err != nil {
		return nil, explain("listing", folder, err)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// nameable reports whether the tools can name a file; others are not shown.
func nameable(name string) bool {
	p, err := clean(name)
	return err == nil && p == name
}

// removeStale removes a file without a writer. What cannot be
// removed is only waste.
func removeStale(root *os.Root, name string) {
	info, err := root.Lstat(name)
	if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > staleAfter {
		_ = root.Remove(name)
	}
}

// regular reports, as an error, why name is no file to read or to replace. No
// part of the way to it may be a link.
func regular(root *os.Root, name string) error {
	for _, folder := range above(name) {
		info, err := root.Lstat(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return missing(name)
		case err != nil:
			return explain("finding", folder, err)
		case info.Mode().IsRegular():
			return notFolder(folder)
		case !info.IsDir():
			return ordinary(folder, info)
		}
	}
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing(name)
	case err != nil:
		return explain("finding", name, err)
	}
	return ordinary(name, info)
}

// ordinary reports, as an error, what is no file that the tools touch.
func ordinary(name string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return isFolder(name)
	case mode&fs.ModeSymlink != 0:
		return fail(Invalid, "%.200q is a symbolic link; those are not followed", name)
	case !mode.IsRegular():
		return fail(Invalid, "%.200q is not a regular file", name)
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
		return fail(Invalid, "%.200q has a second name elsewhere (a hard link); such files are not touched", name)
	}
	return nil
}

func hasCode(err error, c Code) bool {
	var known *Error
	return errors.As(err, &known) && known.Code == c
}

func explain(doing, name string, err error) error {
	var known *Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return missing(name)
	case errors.Is(err, syscall.ENOTDIR):
		return fail(NotFolder, "a part of %.200q is a file, not a folder", name)
	case errors.Is(err, syscall.EISDIR):
		return isFolder(name)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &Error{OverQuota, "there is no space left to write", err}
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		return fail(Invalid, "%.200q leads nowhere or is too long", name)
	}
	return broken(fmt.Sprintf("%s %.200q", doing, name), err)
}
