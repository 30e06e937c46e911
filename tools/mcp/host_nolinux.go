//go:build !linux

package mcp

import "os/exec"

func start(cmd *exec.Cmd) error { return cmd.Start() }
