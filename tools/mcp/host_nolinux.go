//go:build !linux

package mcp

import "os/exec"

// start starts a process, with all rights of claybot's user.
func start(cmd *exec.Cmd) error { return cmd.Start() }
