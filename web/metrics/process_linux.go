package metrics

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ticks are those of a second in /proc: a constant of the interface to programs
// on all architectures that Go knows.
const ticks = 100

// readProcess reads /proc; see proc(5).
func readProcess() process {
	p := unknownProcess
	if stat, err := os.ReadFile("/proc/self/stat"); err == nil {
		boot, _ := os.ReadFile("/proc/stat") // without it, the start is not known
		p.readStat(stat, boot)
	}
	if dir, err := os.Open("/proc/self/fd"); err == nil {
		if names, err := dir.Readdirnames(-1); err == nil {
			p.files = float64(len(names) - 1) // without the one that reads
		}
		_ = dir.Close() // only read from
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		p.mostFiles = float64(limit.Cur)
	}
	return p
}

// readStat reads the line of /proc/self/stat, and of /proc/stat when the system
// started. The name of the program stands in parentheses and may hold anything,
// so fields are counted from behind it.
func (p *process) readStat(stat, boot []byte) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return
	}
	fields := strings.Fields(string(stat[end+1:])) // the first one is the third of the line
	if len(fields) < 22 {
		return
	}
	field := func(n int) float64 {
		v, err := strconv.ParseFloat(fields[n-3], 64)
		if err != nil {
			return -1
		}
		return v
	}
	if user, system := field(14), field(15); user >= 0 && system >= 0 {
		p.cpu = (user + system) / ticks
	}
	p.virtual = field(23)
	if pages := field(24); pages >= 0 {
		p.resident = pages * float64(os.Getpagesize())
	}
	_, after, _ := strings.Cut(string(boot), "\nbtime ")
	line, _, _ := strings.Cut(after, "\n")
	if at, err := strconv.ParseFloat(line, 64); err == nil && field(22) >= 0 {
		p.started = at + field(22)/ticks
	}
}
