package main

import (
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/claybot/claybot/overview"
)

// What runs cost, measured with 1,000 runs that waited for a model (Linux, amd64):
// 240 KiB of heap and stacks each with the default garbage collection, about half of
// that live, and 2.1 descriptors. A run with a long conversation takes more, so the
// figures here are rounded up.
const (
	memoryIdle   = 40 << 20 // bytes, before the first run
	memoryPerRun = 256 << 10
	filesIdle    = 64
	filesPerRun  = 3
	leastRuns    = 4
	ofMemory     = 0.9 // Go's soft memory limit as a share of the process limit
)

// limits are the limits of this process; 0 is no limit.
type limits struct {
	memory int64 // bytes
	files  int64 // descriptors
}

// readLimits reads the limits of this process.
func readLimits() limits {
	var l limits
	l.memory = memoryLimit(os.DirFS("/"))
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		l.files = int64(min(files.Cur, math.MaxInt32)) //nolint:gosec // it fits now
	}
	return l
}

// memoryLimit returns the smallest limit of the control groups of the process, version 2 or
// 1, in the file system root.
func memoryLimit(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0 // there are none on this system
	}
	least := int64(0)
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		top, file := "sys/fs/cgroup", "memory.max"
		switch {
		case parts[1] == "memory":
			top, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case parts[1] != "":
			continue
		}
		for at := path.Join(top, parts[2]); ; at = path.Dir(at) { // a container sees its own group at the top
			if n := bytesIn(root, path.Join(at, file)); n > 0 && (least == 0 || n < least) {
				least = n
			}
			if len(at) <= len(top) {
				break
			}
		}
	}
	return least
}

// bytesIn returns the number in a file; 0 if there is none, or if it means no limit.
func bytesIn(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n >= 1<<60 { // "max", and what version 1 has for it
		return 0
	}
	return n
}

// runs returns how many runs fit, at most as many as are configured.
func (l limits) runs(most int) int {
	fit := int64(most)
	if l.memory > 0 {
		fit = min(fit, (int64(ofMemory*float64(l.memory))-memoryIdle)/memoryPerRun)
	}
	if l.files > 0 {
		fit = min(fit, (l.files-filesIdle)/filesPerRun)
	}
	return min(most, max(leastRuns, int(fit)))
}

// apply sets the memory limit of the garbage collector, unless GOMEMLIMIT is set, and
// returns how many runs fit.
func (l limits) apply(log *slog.Logger, most int) overview.LimitStatus {
	if _, own := os.LookupEnv("GOMEMLIMIT"); l.memory > 0 && !own {
		debug.SetMemoryLimit(int64(ofMemory * float64(l.memory)))
	}
	st := overview.LimitStatus{MaxRuns: l.runs(most), Memory: l.memory, Files: l.files}
	if st.MaxRuns < most {
		log.Warn("fewer concurrent runs than configured", "maxRuns", st.MaxRuns, "configured", most, "limits", l.String())
	}
	return st
}

func (l limits) String() string {
	var all []string
	if l.memory > 0 {
		all = append(all, size(l.memory)+" of memory")
	}
	if l.files > 0 {
		all = append(all, fmt.Sprintf("%d open files", l.files))
	}
	if len(all) == 0 {
		return "no limits"
	}
	return strings.Join(all, ", ")
}
