package postgrestest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// needed are the programs of which a server is made.
var needed = []string{"postgres", "initdb", "pg_basebackup"}

// programs are those of an installation, and who runs them.
type programs struct {
	dir   string
	owner owner
}

// findPrograms finds the newest installation: in Debian's place, else on the PATH.
func findPrograms() (programs, error) {
	o, err := findOwner()
	if err != nil {
		return programs{}, err
	}
	dirs := installations("/usr/lib/postgresql")
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, dir := range dirs {
		if !slices.ContainsFunc(needed, func(name string) bool {
			_, err := exec.LookPath(filepath.Join(dir, name))
			return err != nil
		}) {
			return programs{dir: dir, owner: o}, nil
		}
	}
	return programs{}, fmt.Errorf("%w: its programs are not installed; run scripts/postgres.sh", ErrNotHere)
}

// installations are the folders root/VERSION/bin, the newest first.
func installations(root string) []string {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	var versions []int
	for _, e := range entries {
		if v, err := strconv.Atoi(e.Name()); err == nil {
			versions = append(versions, v)
		}
	}
	slices.Sort(versions)
	slices.Reverse(versions)
	var dirs []string
	for _, v := range versions {
		dirs = append(dirs, filepath.Join(root, strconv.Itoa(v), "bin"))
	}
	return dirs
}

// environment is that of all programs: nothing of the caller's, in which settings
// of another server may stand.
func environment() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
}

// command is one of the programs, run by its owner.
func (p programs) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(p.dir, name), args...)
	cmd.Env, cmd.Dir = environment(), "/"
	p.owner.own(cmd)
	return cmd
}

// run runs one of the programs to its end.
func (p programs) run(ctx context.Context, name string, args ...string) error {
	out, err := p.command(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}

// writeFile writes a file that only the owner reads.
func (p programs) writeFile(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return p.owner.give(path)
}
