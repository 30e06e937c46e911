package mcp

import (
	"os/exec"
	"runtime"
	"syscall"
)

// The operations of prctl.
const (
	prCapBoundDrop  = 24
	prSetNoNewPrivs = 38
	lastCapability  = 63
)

// start starts a process without the rights that a user does not have by being
// one, and without the means to get any: as root, too, it cannot read the memory
// and the environment of claybot. Rights are those of a thread, so it is one that
// ends afterwards.
func start(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()                                // and never unlocks
		for capability := range uintptr(lastCapability + 1) { // fails for those that there are not, and without rights
			_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prCapBoundDrop, capability, 0)
		}
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0)
		started <- cmd.Start()
	}()
	return <-started
}
