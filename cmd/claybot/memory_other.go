//go:build !linux

package main

// unmapBinary does nothing: the system decides which pages of the program stay in memory.
func unmapBinary() {}

// mappedFiles is not known.
func mappedFiles() uint64 { return 0 }
