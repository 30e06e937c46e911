package main

import (
	"bufio"
	"io"
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
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close() // it was only read
	for _, r := range constants(f, self) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, r.from, r.size, syscall.MADV_DONTNEED) // else they stay
	}
}

// mappedFiles is how many bytes of files are in the memory of the process; 0 where that is not known.
func mappedFiles() uint64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 3 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[2], 10, 64) // else 0
	return pages * uint64(os.Getpagesize())
}

// An addressRange is a part of the address space of the process.
type addressRange struct{ from, size uintptr }

// constants returns the ranges of /proc/self/smaps that are exactly what a part of a file
// contains: the process cannot write them, and none of their pages is private to it. The
// dynamic loader relocates pages before it makes them read-only, in a position-independent
// executable for one; the file does not have them.
func constants(smaps io.Reader, file string) (all []addressRange) {
	var current addressRange
	private, known := false, false // of the current range
	end := func() {
		if current.size > 0 && known && !private {
			all = append(all, current)
		}
	}
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		switch name {
		case "Anonymous:", "Swap:":
			private = private || strings.TrimSpace(value) != "0 kB"
			known = known || name == "Anonymous:"
			continue
		}
		if strings.HasSuffix(name, ":") {
			continue
		}
		end()
		private, known = false, false
		current, _ = constant(lines.Text(), file)
	}
	end()
	return all
}

// constant returns the range of a line of /proc/self/maps that maps a part of a file that the
// process cannot write.
func constant(line, file string) (r addressRange, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 6 || fields[5] != file || len(fields[1]) != 4 || fields[1][1] != '-' {
		return r, false
	}
	low, high, _ := strings.Cut(fields[0], "-")
	begin, err := strconv.ParseUint(low, 16, 64)
	if err != nil {
		return r, false
	}
	end, err := strconv.ParseUint(high, 16, 64)
	if err != nil || end <= begin {
		return r, false
	}
	return addressRange{uintptr(begin), uintptr(end - begin)}, true
}
