package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// tmpfs mounts a small disk of its own: tmpfs DIR SIZE. A script that may not
// mount is skipped, but with CI=true it fails.
func (r *rig) tmpfs(ts *testscript.TestScript, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: tmpfs DIR SIZE")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	if err := syscall.Mount("claybot", dir, "tmpfs", 0, "size="+args[1]+",mode=0700"); err != nil {
		if os.Getenv("CI") == "true" {
			ts.Fatalf("with CI=true the full disk must be tested, and only root may mount a small one: %v", err)
		}
		r.t.Skip("only root may mount a small disk: " + err.Error())
	}
	r.stops = append(r.stops, func() {
		_ = syscall.Unmount(dir, syscall.MNT_DETACH) // else the directory cannot be removed, which is told
	})
}

// fillDisk fills the disk of a directory with one file, except for some room, or empties it again:
// fill DIR [KIBIBYTES], ! fill DIR.
func fillDisk(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || len(args) > 2 || neg && len(args) == 2 {
		ts.Fatalf("usage: fill DIR [KIBIBYTES], ! fill DIR")
	}
	name := filepath.Join(ts.MkAbs(args[0]), "ballast")
	if neg {
		ts.Check(os.Remove(name))
		return
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	ts.Check(err)
	defer f.Close()
	for _, size := range []int{64 << 10, 4 << 10, 1} {
		block := []byte(strings.Repeat("x", size))
		for err = nil; err == nil; {
			_, err = f.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			ts.Fatalf("fill: %v", err)
		}
	}
	if len(args) == 2 {
		room, err := strconv.ParseInt(args[1], 10, 64)
		ts.Check(err)
		info, err := f.Stat()
		ts.Check(err)
		ts.Check(f.Truncate(info.Size() - room<<10))
	}
}
