package local

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/claybot/claybot/workspace"
)

const (
	prSetDumpable   = 4
	prCapBoundDrop  = 24
	prSetNoNewPrivs = 38
	lastCapability  = 63
)

// Hide keeps other processes of the same user from reading the memory and the
// environment of this one, on Linux. A second call changes nothing.
func Hide() error {
	if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, prSetDumpable, 0, 0); err != 0 {
		return err
	}
	return nil
}

// restrict takes from this thread, and what it starts, all rights that a user
// does not have by being one, and the means to get any.
func restrict() {
	for capability := range uintptr(lastCapability + 1) { // fails for those that there are not, and without rights
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prCapBoundDrop, capability, 0)
	}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0)
}

// namespaces: this process may give a command a space of processes of its own.
// The kernel then ends all of them with the first, whatever they do meanwhile.
var namespaces = os.Geteuid() == 0

// startChild starts the child in a space of its own, or without one where the
// kernel refuses that.
func (p *process) startChild(args func(space bool) []string) (*os.Process, error) {
	attr := syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.attr.Sys = &attr
	if p.cage.user != 0 {
		id := uint32(p.cage.user)
		attr.Credential = &syscall.Credential{Uid: id, Gid: id, Groups: []uint32{}}
	}
	if namespaces {
		attr.Cloneflags = syscall.CLONE_NEWPID
		child, err := os.StartProcess("/bin/sh", args(true), &p.attr)
		if err == nil {
			p.space = true
			return child, nil
		}
		attr.Cloneflags = 0
	}
	return os.StartProcess("/bin/sh", args(false), &p.attr)
}

// userTasks is how many threads a user has; 0 for root, whom the kernel does not limit.
func userTasks(uid int) int {
	if uid == 0 {
		return 0
	}
	n := 0
	own := os.Getpid()
	if uid != os.Getuid() {
		own = -1
	}
	for _, pid := range append(pids(), os.Getpid()) {
		info, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/task")
		if err != nil {
			continue
		}
		sys, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(sys.Uid) != uid && pid != own { // what is hidden belongs to root there
			continue
		}
		tasks, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
		n += len(tasks)
	}
	return n
}

const watchEvery = 250 * time.Millisecond

func (p *process) watch(quit <-chan struct{}) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-quit:
			return
		case <-tick.C:
		}
		n := len(p.tree())
		if !p.space {
			n-- // its watchdog
		}
		if n > p.limit {
			p.stop(&workspace.Error{Code: workspace.Failed, Text: fmt.Sprintf("the command had more than %d processes and was ended", p.limit)})
		}
	}
}

// killTime bounds how long the end of a command is worked on. It takes milliseconds,
// but on a machine that is busy with just these processes much longer, and what is
// not found in this time lives on.
const killTime = 20 * time.Second

// kill ends the process and all that it started. The first of a space of
// processes takes all others with it. Elsewhere they are stopped first, so that
// none starts another meanwhile, and looked for until none is found twice.
func (p *process) kill() {
	p.killing.Lock()
	defer p.killing.Unlock()
	p.mu.Lock()
	if !p.reaped {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	p.mu.Unlock()
	if p.space {
		return // the kernel sees to the rest before the first has ended
	}
	killed := make(map[int]bool)
	begun := time.Now()
	for calm := 0; calm < 2 && time.Since(begun) < killTime; {
		found := p.tree()
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGSTOP) // it may be gone already
		}
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed[pid] = true
		}
		calm++
		if len(found) > 0 {
			calm = 0
		}
		time.Sleep(time.Millisecond) // for them to end
	}
	// Orphans are children of the first process, which claybot may be.
	delete(killed, p.pid)
	for pid := range killed {
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	}
}

type stat struct {
	pid, parent, group, session int
	dead                        bool
	born                        uint64
}

func (p *process) tree() []int {
	var all []stat
	for _, pid := range pids() {
		if s, ok := readStat(pid); ok && s.born >= p.born {
			all = append(all, s)
		}
	}
	p.mu.Lock()
	ours := map[int]bool{p.pid: !p.reaped}
	p.mu.Unlock()
	for _, s := range all {
		if s.group == p.pid || s.session == p.pid || p.marked(s) {
			ours[s.pid] = true
		}
	}
	for again := true; again; {
		again = false
		for _, s := range all {
			if !ours[s.pid] && ours[s.parent] {
				ours[s.pid], again = true, true
			}
		}
	}
	var found []int
	for _, s := range all {
		if ours[s.pid] && !s.dead {
			found = append(found, s.pid)
		}
	}
	return found
}

func (p *process) marked(s stat) bool {
	if s.dead {
		return false
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(s.pid) + "/environ")
	return err == nil && bytes.Contains(env, []byte(p.mark))
}

func pids() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var list []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid != os.Getpid() {
			list = append(list, pid)
		}
	}
	return list
}

// readStat reads what follows the name of the program, which may be anything.
func readStat(pid int) (stat, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	end := bytes.LastIndexByte(b, ')')
	if err != nil || end < 0 {
		return stat{}, false
	}
	fields := bytes.Fields(b[end+1:])
	if len(fields) < 20 {
		return stat{}, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i])) // the kernel writes numbers
		return n
	}
	born, err := strconv.ParseUint(string(fields[19]), 10, 64)
	dead := fields[0][0] == 'Z' || fields[0][0] == 'X'
	return stat{pid: pid, parent: number(1), group: number(2), session: number(3), dead: dead, born: born}, err == nil
}

// bornAt is when a process began, 0 when unknown.
func bornAt(pid int) uint64 {
	s, _ := readStat(pid)
	return s.born
}
