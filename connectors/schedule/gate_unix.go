//go:build unix

package schedule

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the command and its children into their own process group, so
// that they can be killed together.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
