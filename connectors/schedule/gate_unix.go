//go:build unix

package schedule

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps the command and its children apart from the process, so that
// they can be ended together.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
