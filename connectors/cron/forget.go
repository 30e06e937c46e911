package cron

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage"
)

// Forget erases the tasks of owners (OwnerID), also those that are over, and returns how many;
// dry only counts them. It may be cut short at any time: the next call goes on.
func (c *Cron) Forget(ctx context.Context, owners []string, dry bool) (n int, err error) {
	tasks, _, err := c.Tasks(ctx)
	if err != nil {
		return 0, err
	}
	for _, t := range tasks {
		if !slices.Contains(owners, t.Owner) {
			continue
		}
		if dry {
			n++
		} else if err := c.Remove(ctx, t.UID); err != nil { // it is counted where it went
			return n, err
		}
	}
	files, err := c.folder.tree.List(ctx, doneDir)
	if err != nil {
		return n, fmt.Errorf("erase tasks: %w", err)
	}
	for _, f := range files {
		if path.Base(f.Path) != taskFile || path.Dir(path.Dir(f.Path)) != doneDir {
			continue
		}
		of, err := c.doneOwner(ctx, f.Path)
		if err != nil {
			return n, err
		}
		if !slices.Contains(owners, of) {
			continue
		}
		n++
		if dry {
			continue
		}
		if err := c.folder.erase(ctx, path.Dir(f.Path), files); err != nil {
			return n, fmt.Errorf("erase task %s: %w", path.Base(path.Dir(f.Path)), err)
		}
	}
	return n, nil
}

// doneOwner returns the owner of a task that is over; empty if its file cannot be read.
func (c *Cron) doneOwner(ctx context.Context, file string) (string, error) {
	f, err := storage.ReadFile(ctx, c.folder.tree, file)
	if err != nil {
		return "", storage.Ignore(fmt.Errorf("read %s: %w", file, err), storage.ErrTooMany)
	}
	front, err := configs.ReadFrontmatter(string(f.Body))
	if err != nil {
		return "", nil
	}
	owner, _ := front.Get("owner")
	return owner.Value, nil
}

// erase removes all files of a folder, the one that names the owner last.
func (d *dir) erase(ctx context.Context, of string, files []storage.TreeFile) error {
	for _, f := range files {
		if strings.HasPrefix(f.Path, of+"/") && f.Path != path.Join(of, taskFile) {
			if err := d.tree.Remove(ctx, f.Path, 0); err != nil {
				return err
			}
		}
	}
	return d.tree.Remove(ctx, path.Join(of, taskFile), 0)
}
