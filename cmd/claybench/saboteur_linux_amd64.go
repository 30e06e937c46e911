package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// canSabotage: ptrace(2) and seccomp(2) are there. The registers are those of this
// architecture.
const canSabotage = true

// The calls that are looked at, with their kinds.
var watched = map[uint64]struct {
	name string
	kind kind
	path int // which argument is a path; 0: the first is a descriptor
	at   int // which argument is the descriptor that the path is relative to; 0: none
}{
	syscall.SYS_WRITE: {"write", kindWrite, 0, 0}, syscall.SYS_PWRITE64: {"pwrite64", kindWrite, 0, 0},
	syscall.SYS_WRITEV: {"writev", kindWrite, 0, 0}, syscall.SYS_PWRITEV: {"pwritev", kindWrite, 0, 0},
	syscall.SYS_SENDTO: {"sendto", kindWrite, 0, 0}, syscall.SYS_SENDMSG: {"sendmsg", kindWrite, 0, 0},
	syscall.SYS_FSYNC: {"fsync", kindSync, 0, 0}, syscall.SYS_FDATASYNC: {"fdatasync", kindSync, 0, 0},
	syscall.SYS_FTRUNCATE: {"ftruncate", kindMeta, 0, 0}, syscall.SYS_TRUNCATE: {"truncate", kindMeta, 1, 0},
	syscall.SYS_RENAME: {"rename", kindMeta, 2, 0}, syscall.SYS_RENAMEAT: {"renameat", kindMeta, 4, 3},
	sysRenameat2: {"renameat2", kindMeta, 4, 3}, syscall.SYS_LINKAT: {"linkat", kindMeta, 4, 3},
	syscall.SYS_UNLINK: {"unlink", kindMeta, 1, 0}, syscall.SYS_UNLINKAT: {"unlinkat", kindMeta, 2, 1},
	syscall.SYS_RMDIR: {"rmdir", kindMeta, 1, 0},
	syscall.SYS_MKDIR: {"mkdir", kindMeta, 1, 0}, syscall.SYS_MKDIRAT: {"mkdirat", kindMeta, 2, 1},
	syscall.SYS_OPEN: {"open", kindOpen, 1, 0}, syscall.SYS_OPENAT: {"openat", kindOpen, 2, 1},
	syscall.SYS_READ: {"read", kindRead, 0, 0}, syscall.SYS_PREAD64: {"pread64", kindRead, 0, 0},
}

const (
	sysRenameat2 = 316

	prSetNoNewPrivs = 38
	prSetSeccomp    = 22
	seccompFilter   = 2
	retAllow        = 0x7fff0000
	retTrace        = 0x7ff00000
	archX8664       = 0xc000003e

	optTraceSeccomp = 0x80
	optExitKill     = 0x100000
	eventSeccomp    = 7
	atFDCWD         = -100
	pathMax         = 4096
)

// beTraced asks the kernel to stop at the watched calls, and becomes the command.
// The filter holds for the thread and what becomes of it.
func beTraced(args []string) error {
	runtime.LockOSThread()
	filter := []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: 4}, // seccomp_data.arch
		{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jt: 1, K: archX8664},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: retAllow},
		{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: 0}, // seccomp_data.nr
	}
	for nr := range watched {
		if os.Getenv(tracedEnv) == "writes" && watched[nr].kind == kindRead {
			continue
		}
		filter = append(filter,
			syscall.SockFilter{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jf: 1, K: uint32(nr)},
			syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K, K: retTrace})
	}
	filter = append(filter, syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K, K: retAllow})
	prog := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("no new privileges: %w", errno)
	}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetSeccomp, seccompFilter, uintptr(unsafe.Pointer(&prog)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, tracedEnv+"=") {
			env = append(env, v)
		}
	}
	return syscall.Exec(path, args, env)
}

// A tracer watches one command.
type tracer struct {
	*sabotage
	pid    int // of the command; its threads have others
	live   bool
	seen   map[int]bool // threads that have had their first stop
	ending map[int]bool // threads whose call is struck when it returns
	struck struck
	exit   int
	failed error
}

// run runs the command until it has ended, and returns its exit code: that of a
// shell, 128 and the signal, when a signal ended it.
func (s *sabotage) run(args []string) (int, error) {
	runtime.LockOSThread() // ptrace wants all requests from the thread that forked
	cmd, err := tracedCommand(args)
	if err != nil {
		return 125, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if s.Call != kindRead {
		cmd.Env[len(cmd.Env)-1] = tracedEnv + "=writes"
	}
	if err := cmd.Start(); err != nil {
		return 125, err
	}
	t := &tracer{sabotage: s, pid: cmd.Process.Pid, seen: make(map[int]bool), ending: make(map[int]bool)}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1)
	go func() {
		for sig := range signals {
			if sig == syscall.SIGUSR1 {
				sig = syscall.SIGKILL
			}
			_ = syscall.Kill(t.pid, sig.(syscall.Signal)) // it may have ended
		}
	}()
	t.watch()
	return t.exit, errors.Join(t.failed, s.writeReport(t.struck))
}

// watch handles stops until the command has ended.
func (t *tracer) watch() {
	for {
		var status syscall.WaitStatus
		tid, err := syscall.Wait4(-1, &status, syscall.WALL, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			if t.exit == 0 && !errors.Is(err, syscall.ECHILD) {
				t.failed = err
			}
			return
		case status.Exited() || status.Signaled():
			delete(t.seen, tid)
			if tid == t.pid {
				t.exit = status.ExitStatus()
				if status.Signaled() {
					t.exit = 128 + int(status.Signal())
				}
				return
			}
		case status.Stopped():
			t.stopped(tid, status)
		}
	}
}

// stopped lets a thread go on from a stop. A thread that is gone meanwhile needs
// nothing.
func (t *tracer) stopped(tid int, status syscall.WaitStatus) {
	sig, event := status.StopSignal(), int(status)>>16
	switch {
	case sig == syscall.SIGTRAP|0x80: // the return of a call that is to be struck
		if t.ending[tid] {
			t.kill(tid)
			return
		}
		t.resume(tid, 0)
	case sig == syscall.SIGTRAP && event == eventSeccomp:
		t.call(tid)
	case sig == syscall.SIGTRAP && event == syscall.PTRACE_EVENT_EXEC:
		t.live = true
		t.resume(tid, 0)
	case sig == syscall.SIGTRAP && event != 0:
		t.resume(tid, 0)
	case sig == syscall.SIGTRAP && tid == t.pid && !t.seen[tid]: // the child's first exec
		t.seen[tid] = true
		options := syscall.PTRACE_O_TRACECLONE | syscall.PTRACE_O_TRACEFORK | syscall.PTRACE_O_TRACEVFORK |
			syscall.PTRACE_O_TRACEEXEC | syscall.PTRACE_O_TRACESYSGOOD | optTraceSeccomp | optExitKill
		if err := syscall.PtraceSetOptions(tid, options); err != nil {
			t.failed = fmt.Errorf("ptrace options: %w", err)
			_ = syscall.Kill(t.pid, syscall.SIGKILL)
		}
		t.resume(tid, 0)
	case sig == syscall.SIGSTOP && !t.seen[tid]: // a new thread
		t.seen[tid] = true
		t.resume(tid, 0)
	default:
		t.resume(tid, int(sig))
	}
}

func (t *tracer) resume(tid, sig int) {
	_ = syscall.PtraceCont(tid, sig) // a thread that was killed meanwhile is none any more
}

// call handles a thread that is about to make one of the watched calls.
func (t *tracer) call(tid int) {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(tid, &regs); err != nil || !t.live {
		t.resume(tid, 0)
		return
	}
	path, c, ok := t.subject(tid, &regs)
	w := watched[regs.Orig_rax]
	creates := w.kind == kindOpen && t.argument(&regs, w.path+1)&(syscall.O_CREAT|syscall.O_TRUNC) != 0
	if !ok || !t.about(w.kind, creates, c) {
		t.resume(tid, 0)
		return
	}
	t.struck.Matched++
	n := t.struck.Matched
	last := t.K + max(t.Times, 1)
	if n < t.K || t.Mode != modeError && n > t.K || t.Mode == modeError && t.Times > 0 && n >= last {
		t.resume(tid, 0)
		return
	}
	if !t.struck.Done {
		t.struck.Done, t.struck.Call, t.struck.Path, t.struck.Class = true, w.name, path, c
		_ = t.writeReport(t.struck) // the rig learns of it; written again at the end
	}
	t.strike(tid, &regs)
}

// strike lets the call of a thread go wrong.
func (t *tracer) strike(tid int, regs *syscall.PtraceRegs) {
	w := watched[regs.Orig_rax]
	switch t.Mode {
	case modeBefore:
		t.kill(tid)
		return
	case modeError:
		regs.Orig_rax = ^uint64(0) // no call: the result stands there already
		regs.Rax = uint64(-int64(t.Errno))
		_ = syscall.PtraceSetRegs(tid, regs)
		t.resume(tid, 0)
		return
	case modeHalf:
		if w.kind == kindWrite && regs.Rdx > 1 {
			regs.Rdx /= 2
			_ = syscall.PtraceSetRegs(tid, regs)
		}
	}
	t.ending[tid] = true
	_ = syscall.PtraceSyscall(tid, 0)
}

// kill ends the command, and the child of it that made the call, if one did.
func (t *tracer) kill(tid int) {
	_ = syscall.Kill(tid, syscall.SIGKILL)
	_ = syscall.Kill(t.pid, syscall.SIGKILL)
}

// subject is the file that a call is about.
func (t *tracer) subject(tid int, regs *syscall.PtraceRegs) (path string, c class, ok bool) {
	w, known := watched[regs.Orig_rax]
	if !known {
		return "", "", false
	}
	if w.path == 0 {
		path = t.descriptor(tid, int(int32(regs.Rdi)))
		if strings.HasPrefix(path, "socket:") {
			return path, classSocket, t.Port != 0 && t.toDatabase(path)
		}
	} else {
		path = t.text(tid, t.argument(regs, w.path))
		if !filepath.IsAbs(path) {
			dir := int32(atFDCWD)
			if w.at != 0 {
				dir = int32(t.argument(regs, w.at))
			}
			path = filepath.Join(t.descriptor(tid, int(dir)), path)
		}
	}
	c, ok = t.classOf(strings.TrimSuffix(path, " (deleted)"))
	return path, c, ok
}

func (t *tracer) argument(regs *syscall.PtraceRegs, n int) uint64 {
	return [...]uint64{regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8, regs.R9}[n-1]
}

// descriptor is what a descriptor of a thread is open on.
func (t *tracer) descriptor(tid, fd int) string {
	link := fmt.Sprintf("/proc/%d/fd/%d", tid, fd)
	if fd == atFDCWD {
		link = fmt.Sprintf("/proc/%d/cwd", tid)
	}
	path, err := os.Readlink(link)
	if err != nil {
		return ""
	}
	return path
}

// text reads a string that ends in NUL from the memory of a thread.
func (t *tracer) text(tid int, at uint64) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", tid))
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, pathMax)
	n, _ := f.ReadAt(b, int64(at)) // it may end at the end of a mapping
	text, _, _ := bytes.Cut(b[:n], []byte{0})
	return string(text)
}

// toDatabase reports whether a socket, as its link names it, is connected to the
// port of the database.
func (t *tracer) toDatabase(link string) bool {
	inode := strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")
	for _, table := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", t.pid, table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			fields := strings.Fields(line)
			if len(fields) < 10 || fields[9] != inode {
				continue
			}
			_, hex, _ := strings.Cut(fields[2], ":")
			port, err := strconv.ParseInt(hex, 16, 32)
			return err == nil && int(port) == t.Port
		}
	}
	return false
}
