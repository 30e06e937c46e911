package main

import "golang.org/x/sys/unix"

// Requests of the terminal: tcgetattr, tcsetattr, and tcsetattr with TCSAFLUSH, which drops the input.
const (
	getTermios   = unix.TCGETS
	setTermios   = unix.TCSETS
	flushTermios = unix.TCSETSF
)
