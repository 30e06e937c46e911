//go:build !linux

package main

// unmapBinary does nothing: the system decides which pages of the program stay in memory.
func unmapBinary() {}
