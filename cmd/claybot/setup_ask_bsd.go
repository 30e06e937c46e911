//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package main

import "golang.org/x/sys/unix"

// Requests of the terminal: tcgetattr, tcsetattr, and tcsetattr with TCSAFLUSH, which drops the input.
const (
	getTermios   = unix.TIOCGETA
	setTermios   = unix.TIOCSETA
	flushTermios = unix.TIOCSETAF
)
