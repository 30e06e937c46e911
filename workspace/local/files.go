package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/claybot/claybot/workspace"
)

const reserved = ".claybot-"

// kept is the folder of what claybot itself keeps in a workspace: outputs and, by Landlock,
// the short-lived files of commands. Lists leave it out.
const kept = ".claybot"

func (w *place) dir() string { return filepath.Join(w.base, filesName) }

// root opens the directory: no path that goes through it leads out, whatever is
// linked or moved meanwhile.
func (w *place) root() (*os.Root, error) {
	gone := func(err error) error {
		return &workspace.Error{Code: workspace.Gone, Text: "the workspace is gone", Err: err}
	}
	base, err := os.OpenRoot(w.base)
	if err != nil {
		return nil, gone(err)
	}
	defer base.Close()
	info, err := base.Lstat(filesName)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no longer a folder")
	}
	if err != nil {
		return nil, gone(err)
	}
	root, err := base.OpenRoot(filesName)
	if err != nil {
		return nil, gone(err)
	}
	return root, nil
}

func (w *place) at(ctx context.Context, name string) (*os.Root, string, error) {
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	clean, err := workspace.Clean(w.dir(), name)
	if err != nil {
		return nil, "", err
	}
	root, err := w.root()
	return root, clean, err
}

func (w *place) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	root, clean, err := w.at(ctx, name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	// Not blocking keeps a pipe from holding us; the open file is asked what it is.
	f, err := root.OpenFile(clean, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, explain(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, explain(name, err)
	}
	if err := ordinary(name, info); err != nil {
		return nil, err
	}
	big := &workspace.Error{Code: workspace.TooBig, Text: fmt.Sprintf("%.200q is larger than %d bytes", name, limit)}
	if info.Size() > limit {
		return nil, big
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, explain(name, err)
	case int64(len(b)) > limit:
		return nil, big
	}
	return b, nil
}

func ordinary(name string, info fs.FileInfo) error {
	why := ""
	switch {
	case info.IsDir():
		why = "is a folder, not a file"
	case !info.Mode().IsRegular():
		why = "is not a regular file"
	default:
		if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Nlink > 1 {
			why = "has a second name elsewhere (a hard link); such files are not touched"
		}
	}
	if why == "" {
		return nil
	}
	return &workspace.Error{Code: workspace.Failed, Text: fmt.Sprintf("%.200q %s", name, why)}
}

// WriteFile implements workspace.Workspace. A new content has a new file, so a
// link is replaced, not followed.
func (v *view) WriteFile(ctx context.Context, name string, content []byte) error {
	root, clean, err := v.at(ctx, name)
	if err != nil {
		return err
	}
	defer root.Close()
	if clean == "." {
		return &workspace.Error{Code: workspace.Failed, Text: fmt.Sprintf("%.200q is a folder, not a file", name)}
	}
	if err := v.room(ctx, int64(len(content))); err != nil {
		return err
	}
	if err := v.write(root, clean, content); err != nil {
		return explain(name, err)
	}
	return nil
}

func (w *place) write(root *os.Root, name string, content []byte) (err error) {
	folder := path.Dir(name)
	if err := w.mkdirAll(root, folder); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
		mode = info.Mode().Perm()
	}
	fresh := path.Join(folder, reserved+rand.Text())
	f, err := root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(fresh) // err says what matters
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, w.give(root, fresh), f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return root.Rename(fresh, name)
}

// List implements workspace.Workspace. What claybot keeps there itself is left out. Links are shown as files; what they lead
// to is not.
func (w *place) List(ctx context.Context, dir string, limit int) (files []workspace.File, more bool, err error) {
	root, clean, err := w.at(ctx, dir)
	if err != nil {
		return nil, false, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), clean, func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && name == clean:
			return err
		case err != nil:
			return nil // gone meanwhile, or not for us
		case name == clean && !e.IsDir():
			return &workspace.Error{Code: workspace.Failed, Text: fmt.Sprintf("%.200q is a file, not a folder", dir)}
		case name == clean || strings.HasPrefix(e.Name(), reserved):
			return nil
		case name == kept:
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // gone meanwhile
		}
		if len(files) >= limit {
			more = true
			return fs.SkipAll
		}
		f := workspace.File{Path: name, Dir: e.IsDir(), Link: e.Type()&fs.ModeSymlink != 0, At: info.ModTime()}
		if !f.Dir {
			f.Size = info.Size()
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		return nil, false, explain(dir, err)
	}
	return files, more, nil
}

func (w *place) Remove(ctx context.Context, name string) error {
	root, clean, err := w.at(ctx, name)
	if err != nil {
		return err
	}
	defer root.Close()
	if clean == "." {
		return &workspace.Error{Code: workspace.Refused, Text: "the directory of the workspace itself cannot be removed"}
	}
	if err := root.RemoveAll(clean); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain(name, err)
	}
	return nil
}

func (v *view) room(ctx context.Context, more int64) error {
	if v.spec.Disk <= 0 {
		return nil
	}
	total := more
	err := filepath.WalkDir(v.dir(), func(_ string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if total > v.spec.Disk {
		return &workspace.Error{Code: workspace.DiskLimit, Text: fmt.Sprintf("the files of the workspace may have %d bytes together; remove some first", v.spec.Disk)}
	}
	return nil
}

func explain(name string, err error) error {
	if _, ok := errors.AsType[*workspace.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	code, text := workspace.Failed, "cannot be used; see the operator's log"
	switch {
	case escapes(err):
		code, text = workspace.Outside, "leads out of the workspace"
	case errors.Is(err, fs.ErrNotExist):
		code, text = workspace.NotFound, "is not there"
	case errors.Is(err, syscall.ENOTDIR):
		code, text = workspace.NotFound, "is not there: a part of it is a file, not a folder"
	case errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist):
		text = "is a folder, not a file"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		code, text = workspace.DiskLimit, "cannot be written: there is no space left"
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		text = "leads nowhere or is too long"
	case errors.Is(err, fs.ErrPermission):
		text = "cannot be used: permission denied"
	}
	return &workspace.Error{Code: code, Text: fmt.Sprintf("%.200q %s", name, text), Err: err}
}

// escapes reports the error of an os.Root for a path that leads out of it, which
// the standard library does not name.
func escapes(err error) bool { return strings.Contains(err.Error(), "path escapes from parent") }
