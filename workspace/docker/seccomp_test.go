package docker

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/workspace"
)

// refusedCalls are the system calls of amd64 and arm64 that the filter does not allow. One
// that a newer kernel brings must be put here, or into the filter.
const refusedCalls = `
_sysctl acct add_key afs_syscall bpf clock_settime create_module delete_module fanotify_init file_getattr file_setattr finit_module
fsconfig fsmount fsopen fspick get_kernel_syms get_mempolicy getpmsg init_module io_uring_enter io_uring_register io_uring_setup ioperm
iopl kcmp kexec_file_load kexec_load keyctl listns lookup_dcookie lsm_get_self_attr lsm_list_modules lsm_set_self_attr mbind
migrate_pages mount mount_setattr move_mount move_pages nfsservctl open_by_handle_at open_tree open_tree_attr perf_event_open
pidfd_getfd pivot_root process_madvise putpmsg query_module quotactl quotactl_fd reboot request_key rseq_slice_yield security
set_mempolicy set_mempolicy_home_node setdomainname sethostname setns settimeofday swapoff swapon sysfs syslog tuxcall umount2 unshare
uprobe uselib userfaultfd ustat vhangup vserver`

// oldCalls are of 32-bit forms that the tables of Go do not have, and of old kernels.
const oldCalls = `epoll_ctl_old epoll_wait_old get_thread_area getsid set_thread_area waitpid arm_sync_file_range breakpoint cacheflush set_tls
futimesat sync_file_range2 fstatat fadvise64_64 riscv_hwprobe`

// callsOf are the system calls of an architecture, as the tables of Go have them.
func callsOf(t *testing.T, arch string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "unix", "zsysnum_linux_"+arch+".go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\s+SYS_([A-Z0-9_]+)\s+= \d`).FindAllStringSubmatch(string(b), -1) {
		if name := strings.ToLower(m[1]); name != "arch_specific_syscall" {
			names = append(names, name)
		}
	}
	if len(names) < 280 {
		t.Fatalf("%s has %d system calls", arch, len(names))
	}
	return names
}

// TestSeccompNames judges each system call of both architectures, and knows each name of
// the filter.
func TestSeccompNames(t *testing.T) {
	t.Parallel()
	f := filterOfCalls()
	where := make(map[string][]string) // name: the architectures; all: none
	for _, r := range f.Calls {
		if r.Action != "SCMP_ACT_ALLOW" && !slices.Contains([]string{"clone3", "socketcall"}, r.Names[0]) {
			t.Errorf("the rule of %v: %s", r.Names, r.Action)
		}
		if r.Names[0] == "socketcall" {
			continue
		}
		for _, name := range r.Names {
			where[name] = nil
			if r.Includes != nil {
				where[name] = r.Includes.Arches
			}
		}
	}
	known := strings.Fields(oldCalls)
	denied := strings.Fields(refusedCalls)
	for _, arch := range []string{"amd64", "arm64"} {
		calls := callsOf(t, arch)
		known = append(known, calls...)
		for _, name := range calls {
			arches, listed := where[name]
			allowed := listed && (arches == nil || slices.Contains(arches, arch))
			if allowed == slices.Contains(denied, name) {
				t.Errorf("%s, %s: allowed %v, refused %v", arch, name, allowed, !allowed)
			}
		}
	}
	for _, arch := range []string{"386", "arm"} {
		known = append(known, callsOf(t, arch)...)
	}
	for name := range where {
		if !slices.Contains(known, name) {
			t.Errorf("no architecture has %q", name)
		}
	}
	for _, name := range []string{"socketcall", "syslog", "umount"} {
		if _, ok := where[name]; ok {
			t.Errorf("%s is allowed", name)
		}
	}
	if f.DefaultAction != "SCMP_ACT_ERRNO" || f.DefaultErrno != 1 || len(f.Architectures) != 2 ||
		f.Architectures[0].Name != "SCMP_ARCH_X86_64" || !slices.Equal(f.Architectures[0].With, []string{"SCMP_ARCH_X86"}) ||
		f.Architectures[1].Name != "SCMP_ARCH_AARCH64" || !slices.Equal(f.Architectures[1].With, []string{"SCMP_ARCH_ARM"}) {
		t.Errorf("%+v", f)
	}
}

// callProgram makes the system call that it is asked for, and fails if the kernel refuses it
// as not permitted, which is what the filter says.
const callProgram = `package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

func main() {
	arm := runtime.GOARCH == "arm64"
	by := func(amd64, arm64 uintptr) uintptr {
		if arm {
			return arm64
		}
		return amd64
	}
	none := ^uintptr(0)
	type call [4]uintptr
	c, ok := map[string]call{
		"vsock":        {syscall.SYS_SOCKET, 40, 1, 0},
		"alg":          {syscall.SYS_SOCKET, 38, 5, 0},
		"packet":       {syscall.SYS_SOCKET, 17, 3, 0},
		"bluetooth":    {syscall.SYS_SOCKET, 31, 3, 0},
		"xfrm":         {syscall.SYS_SOCKET, 16, 3, 6},
		"netfilter":    {syscall.SYS_SOCKET, 16, 3, 12},
		"routes":       {syscall.SYS_SOCKET, 16, 3, 0},
		"unix":         {syscall.SYS_SOCKET, 1, 1, 0},
		"io_uring":     {425, 1, 0, 0},
		"io_uring use": {426, none, 1, 0},
		"keyctl":       {by(250, 219), 0, none - 2, 0},
		"add_key":      {by(248, 217), 0, 0, 0},
		"request_key":  {by(249, 218), 0, 0, 0},
		"bpf":          {by(321, 280), none, 0, 0},
		"userfaultfd":  {by(323, 282), 1, 0, 0},
		"perf":         {by(298, 241), 0, 0, none},
		"kexec":        {by(246, 104), 0, 0, 0},
		"clone":        {by(56, 220), 0x10000000 | 17, 0, 0},
		"trace":        {by(101, 117), 16, 1, 0},
		"trace all":    {by(101, 117), 0x4206, 1, 0},
		"personality":  {by(135, 92), 0x40000, 0, 0},
		"keep":         {by(304, 265), none, 0, 0},
		"memory":       {438, none, 0, 0},
	}[os.Args[1]]
	if !ok {
		fmt.Println("Usage: no such call")
		os.Exit(1)
	}
	_, _, err := syscall.RawSyscall6(c[0], c[1], c[2], c[3], 0, 0, 0)
	fmt.Println(err)
	if err == syscall.EPERM || err == syscall.EACCES {
		os.Exit(1)
	}
}
`

// oldProgram makes sockets as 32-bit programs do, by one system call for all.
const oldProgram = `package main

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

func main() {
	args := [3]uintptr{40, 1, 0}
	_, _, err := syscall.RawSyscall(102, 1, uintptr(unsafe.Pointer(&args)), 0)
	fmt.Println(err)
	if err == syscall.EPERM || err == syscall.ENOSYS {
		os.Exit(1)
	}
}
`

// place builds a program and puts it into a workspace.
func place(t *testing.T, w *Workspace, name, source, arch string) {
	t.Helper()
	b, err := os.ReadFile(buildProgram(t, source, arch))
	if err == nil {
		err = w.WriteFile(t.Context(), name, b)
	}
	if err != nil {
		t.Fatal(err)
	}
	sh(t, w, "chmod 755 "+name)
}

// callTries are tries of system calls that the filter refuses, by callProgram.
func callTries(t *testing.T, w *Workspace) (tries []escape) {
	t.Helper()
	place(t, w, "call", callProgram, runtime.GOARCH)
	for _, name := range []string{
		"vsock", "alg", "packet", "bluetooth", "xfrm", "netfilter", "io_uring", "io_uring use", "keyctl", "add_key", "request_key", "bpf",
		"userfaultfd", "perf", "kexec", "clone", "trace", "trace all", "personality", "keep", "memory",
	} {
		tries = append(tries, escape{"make the system call: " + name, "./call '" + name + "'"})
	}
	if runtime.GOARCH == "amd64" {
		place(t, w, "old", oldProgram, "386")
		tries = append(tries, escape{"make the system call: vsock, as a 32-bit program", "./old"})
	}
	return tries
}

// TestSeccompAllows has the calls that programs need, and sees the others succeed where the
// operator has given the filter up.
func TestSeccompAllows(t *testing.T) {
	t.Parallel()
	p := provider(t)
	w := opened(t, p, "agent/calls", workspace.Spec{})
	place(t, w, "call", callProgram, runtime.GOARCH)
	for _, name := range []string{"routes", "unix"} {
		if r := sh(t, w, "./call "+name); r.ExitCode != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	w = opened(t, p, "agent/all calls", workspace.Spec{Unsafe: []string{UnsafeSeccomp}})
	place(t, w, "call", callProgram, runtime.GOARCH)
	for _, name := range []string{"vsock", "alg", "xfrm", "bluetooth", "keyctl", "add_key", "request_key", "io_uring use", "personality", "memory"} {
		if r := sh(t, w, "./call '"+name+"'"); r.ExitCode != 0 {
			t.Errorf("%s is refused without the filter, so its try proves nothing: %+v", name, r)
		}
	}
	if runtime.GOARCH == "amd64" {
		place(t, w, "old", oldProgram, "386")
		if r := sh(t, w, "./old"); r.ExitCode != 0 {
			t.Errorf("as a 32-bit program: %+v", r)
		}
	}
}
