//go:build !linux

package main

import "github.com/rogpeppe/go-internal/testscript"

// tmpfs skips the script: small disks are mounted on Linux only.
func (r *rig) tmpfs(_ *testscript.TestScript, _ []string) {
	r.t.Skip("small disks are mounted on Linux only")
}

// fillDisk comes after tmpfs in a script, which was skipped then.
func fillDisk(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Fatalf("fill: there is no small disk")
}
