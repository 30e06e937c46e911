package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
)

// lookTime bounds how long it may take to look for links.
const lookTime = 10 * time.Second

// Confine returns w within permissions, for one call of a tool. Commands and lists begin in
// the working directory. With directories to read or write, files outside of them are
// neither read, written nor listed, links are not followed, and paths must be relative.
// Commands are not limited to them: run none that a model wrote.
func Confine(w Workspace, p claybot.Permissions) Workspace {
	if p.WorkingDir == "" && !p.Confined() {
		return w
	}
	return &confined{Workspace: w, may: p, plain: make(map[string]bool)}
}

// A confined workspace knows the paths that are no links, from a list or from a look.
type confined struct {
	Workspace
	may claybot.Permissions

	mu    sync.Mutex
	plain map[string]bool
}

func (c *confined) Exec(ctx context.Context, cmd Command) (Result, error) {
	if cmd.Dir == "" {
		cmd.Dir = c.may.WorkingDir
	}
	return c.Workspace.Exec(ctx, cmd)
}

func (c *confined) Pipe(ctx context.Context, cmd Command) (Process, error) {
	if cmd.Dir == "" {
		cmd.Dir = c.may.WorkingDir
	}
	return c.Workspace.Pipe(ctx, cmd)
}

func (c *confined) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	name, err := c.permitted(ctx, "reading", name, c.may.ReadDirs, c.may.MayRead)
	if err != nil {
		return nil, err
	}
	return c.Workspace.ReadFile(ctx, name, limit)
}

func (c *confined) WriteFile(ctx context.Context, name string, content []byte) error {
	name, err := c.permitted(ctx, "writing", name, c.may.WriteDirs, c.may.MayWrite)
	if err != nil {
		return err
	}
	return c.Workspace.WriteFile(ctx, name, content)
}

// Remove implements Remover.
func (c *confined) Remove(ctx context.Context, name string) error {
	name, err := c.permitted(ctx, "deleting", name, c.may.WriteDirs, c.may.MayWrite)
	if err != nil {
		return err
	}
	return remove(ctx, c.Workspace, name)
}

// List lists what may be read below a folder, and the folders that lead there.
func (c *confined) List(ctx context.Context, dir string, limit int) ([]File, bool, error) {
	if dir == "" {
		dir = c.may.WorkingDir
	}
	if !c.may.Confined() {
		return c.Workspace.List(ctx, dir, limit)
	}
	clean, err := relative(dir)
	if err != nil {
		return nil, false, err
	}
	if !c.leads(clean) {
		return nil, false, notPermitted("listing", dir, c.may.ReadDirs)
	}
	if err := c.look(ctx, clean); err != nil {
		return nil, false, err
	}
	files, more, err := c.Workspace.List(ctx, clean, limit)
	if err != nil {
		return nil, false, err
	}
	files = slices.DeleteFunc(files, func(f File) bool {
		return !c.may.MayRead(f.Path) && (!f.Dir || !c.leads(f.Path))
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range files {
		if !f.Link {
			c.plain[f.Path] = true
		}
	}
	return files, more, nil
}

// permitted returns the clean form of a path that is in one of the directories.
func (c *confined) permitted(ctx context.Context, doing, name string, dirs []string, may func(string) bool) (string, error) {
	if !c.may.Confined() {
		return name, nil
	}
	clean, err := relative(name)
	if err != nil {
		return "", err
	}
	if !may(clean) {
		return "", notPermitted(doing, name, dirs)
	}
	return clean, c.look(ctx, clean)
}

func relative(name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return "", &Error{Code: Refused, Text: fmt.Sprintf("%.200q is absolute; give a path relative to the workspace", name)}
	}
	return Clean("/", name)
}

func notPermitted(doing, name string, dirs []string) error {
	where := "no directory"
	if len(dirs) > 0 {
		where = strings.Join(dirs, ", ")
	}
	return &Error{Code: Refused, Text: fmt.Sprintf("%s %.200q is not permitted; permitted: %.1000s", doing, name, where)}
}

// leads reports whether a directory may be read, or is above one that may.
func (c *confined) leads(name string) bool {
	return c.may.MayRead(name) || slices.ContainsFunc(c.may.ReadDirs, func(dir string) bool {
		return name == "." || strings.HasPrefix(dir, name+"/")
	})
}

// noLinks fails with 65 if a part of a path is a link.
const noLinks = `set -f; IFS=/; p=.; for part in $1; do p=$p/$part; [ -L "$p" ] && exit 65; done; exit 0`

// look refuses a path with a link in it: what is permitted is known of names, and a link
// leads to another one.
func (c *confined) look(ctx context.Context, clean string) error {
	c.mu.Lock()
	plain := clean == "." || c.plain[clean]
	c.mu.Unlock()
	if plain {
		return nil
	}
	r, err := c.Workspace.Exec(ctx, Command{Args: []string{"/bin/sh", "-c", noLinks, "sh", clean}, Wall: lookTime})
	switch {
	case err != nil:
		return err
	case r.ExitCode == 65:
		return &Error{Code: Refused, Text: fmt.Sprintf("%.200q has a link in it, and links are not followed with limited directories", clean)}
	case r.ExitCode != 0:
		return &Error{Code: Failed, Text: fmt.Sprintf("%.200q cannot be checked: %.200s", clean, r.Output)}
	}
	return nil
}
