//go:build !unix

package mcp

import "os/exec"

// group does nothing: there are no groups of processes.
func group(*exec.Cmd) {}

// endGroup ends the process; there is no other way here.
func endGroup(cmd *exec.Cmd, _ bool) { _ = cmd.Process.Kill() }
