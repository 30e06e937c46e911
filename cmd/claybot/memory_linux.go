package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// unmapBinary drops the pages of the program's code and constants from the memory of the
// process: most of them are those of the start and of work that is over. What is needed is
// mapped again from the page cache. It is best effort.
func unmapBinary() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer f.Close() // it was only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if from, size, ok := constant(lines.Text(), self); ok {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, size, syscall.MADV_DONTNEED) // else they stay
		}
	}
}

// constant returns the range of a line of /proc/self/maps that maps a part of a file that the
// process cannot write.
func constant(line, file string) (from, size uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 6 || fields[5] != file || len(fields[1]) != 4 || fields[1][1] != '-' {
		return 0, 0, false
	}
	low, high, _ := strings.Cut(fields[0], "-")
	begin, err := strconv.ParseUint(low, 16, 64)
	if err != nil {
		return 0, 0, false
	}
	end, err := strconv.ParseUint(high, 16, 64)
	if err != nil || end <= begin {
		return 0, 0, false
	}
	return uintptr(begin), uintptr(end - begin), true
}
