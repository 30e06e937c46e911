//go:build unix

package skills

import "syscall"

// nonblock opens a file that was exchanged for a pipe without waiting for it.
const nonblock = syscall.O_NONBLOCK
