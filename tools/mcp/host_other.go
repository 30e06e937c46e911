//go:build !unix

package mcp

import "os/exec"

func group(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd, _ bool) { _ = cmd.Process.Kill() }
