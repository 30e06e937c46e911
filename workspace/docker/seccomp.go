package docker

import (
	"encoding/json"
	"strings"
	"sync"
)

// The filter of system calls is shipped, as old engines bring old ones. It is derived from
// the default list of moby, seccomp/default.json of github.com/moby/profiles at
// seccomp/v0.2.3 (commit 3c28324, 2026-05-06, Apache-2.0), for amd64 and arm64 with their
// 32-bit forms. It allows less:
//
//   - What needs a capability is left out, as no container has one beyond the engine's
//     default set. So bpf, perf_event_open, mount, unshare and setns are refused whatever
//     capabilities the operator leaves.
//   - Sockets have the families that programs use: Unix, IPv4, IPv6, and of netlink the
//     routes alone. So there is no vsock, XFRM, AF_ALG, packet or Bluetooth, and nothing
//     makes the kernel load a module for a rare family.
//   - socketcall is refused, by which 32-bit programs on amd64 would get around that: a
//     filter does not see its arguments. Linux has single calls for them since 4.3. Its error
//     is not the default one, or else libseccomp would allow it together with socket.
//   - The x32 form of system calls is refused.
//
// What moby refuses by default stays refused: io_uring, the keys of the kernel, userfaultfd,
// kexec, modules, swap, clocks.
const allowedCalls = `
_llseek _newselect accept accept4 access adjtimex alarm bind brk cachestat capget capset chdir chmod chown chown32 clock_adjtime
clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 close close_range
connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait
epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fadvise64_64 fallocate fanotify_mark fchdir
fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64 fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat
fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake futimesat
get_robust_list get_thread_area getcpu getcwd getdents getdents64 getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32
getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresgid32 getresuid getresuid32 getrlimit getrusage
getsid getsockname getsockopt gettid gettimeofday getuid getuid32 getxattr getxattrat inotify_add_watch inotify_init inotify_init1
inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit ioctl ioprio_get ioprio_set ipc
kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lchown32 lgetxattr link linkat listen listmount listxattr
listxattrat llistxattr lremovexattr lseek lsetxattr lstat lstat64 madvise map_shadow_stack membarrier memfd_create memfd_secret mincore
mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mmap2 mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64
mq_timedsend mq_timedsend_time64 mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at
nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll
ppoll_time64 prctl pread64 preadv preadv2 prlimit64 process_mrelease pselect6 pselect6_time64 pwrite64 pwritev pwritev2 read readahead
readlink readlinkat readv recv recvfrom recvmmsg recvmmsg_time64 recvmsg remap_file_pages removexattr removexattrat rename renameat
renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
rt_sigtimedwait_time64 rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr sched_setparam sched_setscheduler
sched_yield seccomp select semctl semget semop semtimedop semtimedop_time64 send sendfile sendfile64 sendmmsg sendmsg sendto set_robust_list
set_thread_area set_tid_address setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setitimer setpgid setpriority
setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit setsid setsockopt setuid setuid32 setxattr
setxattrat shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 sigprocmask sigreturn socketpair splice stat stat64 statfs
statfs64 statmount statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun
timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime
timerfd_settime64 times tkill truncate truncate64 ugetrlimit umask uname unlink unlinkat uretprobe utime utimensat utimensat_time64 utimes
vfork vmsplice wait4 waitid waitpid write writev
`

// The families and protocols of sockets that are allowed, as the kernel counts them.
const (
	familyUnix    = 1
	familyIPv4    = 2
	familyIPv6    = 10
	familyNetlink = 16
	netlinkRoute  = 0
)

// newNamespaces are the flags of clone by which a process would get namespaces of its own.
const newNamespaces = 0x7e020000

// personalities are those that programs ask for: Linux, 32 bits of addresses or of the name
// of the machine, both, and which it is.
var personalities = []uint64{0, 0x8, 0x20000, 0x20008, 0xffffffff}

const (
	errPermission = 1
	errNoCall     = 38 // programs take the older call
)

type (
	seccompFilter struct {
		DefaultAction string        `json:"defaultAction"`
		DefaultErrno  uint          `json:"defaultErrnoRet"`
		Architectures []seccompArch `json:"archMap"`
		Calls         []seccompRule `json:"syscalls"`
	}
	seccompArch struct {
		Name string   `json:"architecture"`
		With []string `json:"subArchitectures"`
	}
	seccompRule struct {
		Names    []string          `json:"names"`
		Action   string            `json:"action"`
		Errno    uint              `json:"errnoRet,omitempty"`
		Args     []seccompArg      `json:"args,omitempty"`
		Includes *seccompCondition `json:"includes,omitempty"`
	}
	seccompArg struct {
		Index uint   `json:"index"`
		Value uint64 `json:"value"`
		Two   uint64 `json:"valueTwo,omitempty"`
		Op    string `json:"op"`
	}
	seccompCondition struct {
		Arches []string `json:"arches,omitempty"`
		Caps   []string `json:"caps,omitempty"`
		Kernel string   `json:"minKernel,omitempty"`
	}
)

// seccomp is the filter as the engine reads it.
var seccomp = sync.OnceValue(func() string {
	b, err := json.Marshal(filterOfCalls())
	if err != nil {
		panic("docker: the filter of system calls cannot be written as JSON: " + err.Error()) // plain values
	}
	return string(b)
})

func filterOfCalls() seccompFilter {
	allow := func(names ...string) seccompRule { return seccompRule{Names: names, Action: "SCMP_ACT_ALLOW"} }
	with := func(r seccompRule, args ...seccompArg) seccompRule { r.Args = args; return r }
	only := func(r seccompRule, c seccompCondition) seccompRule { r.Includes = &c; return r }
	is := func(index uint, value uint64) seccompArg {
		return seccompArg{Index: index, Value: value, Op: "SCMP_CMP_EQ"}
	}
	rules := []seccompRule{
		allow(strings.Fields(allowedCalls)...),
		// Older kernels let a process get around the filter by these.
		only(allow("process_vm_readv", "process_vm_writev", "ptrace"), seccompCondition{Kernel: "4.8"}),
		{Names: []string{"socketcall"}, Action: "SCMP_ACT_ERRNO", Errno: errNoCall},
		with(allow("socket"), is(0, familyUnix)),
		with(allow("socket"), is(0, familyIPv4)),
		with(allow("socket"), is(0, familyIPv6)),
		with(allow("socket"), is(0, familyNetlink), is(2, netlinkRoute)),
		// The first value is the mask, the second what is left of the argument by it.
		with(allow("clone"), seccompArg{Index: 0, Value: newNamespaces, Op: "SCMP_CMP_MASKED_EQ"}),
		{Names: []string{"clone3"}, Action: "SCMP_ACT_ERRNO", Errno: errNoCall}, // its flags are out of reach of a filter
		only(allow("chroot"), seccompCondition{Caps: []string{"CAP_SYS_CHROOT"}}),
		only(allow("arch_prctl", "modify_ldt"), seccompCondition{Arches: []string{"amd64"}}),
		only(allow("arm_fadvise64_64", "arm_sync_file_range", "sync_file_range2", "breakpoint", "cacheflush", "set_tls"), seccompCondition{Arches: []string{"arm64"}}),
	}
	for _, p := range personalities {
		rules = append(rules, with(allow("personality"), is(0, p)))
	}
	return seccompFilter{
		DefaultAction: "SCMP_ACT_ERRNO", DefaultErrno: errPermission,
		Architectures: []seccompArch{
			{"SCMP_ARCH_X86_64", []string{"SCMP_ARCH_X86"}},
			{"SCMP_ARCH_AARCH64", []string{"SCMP_ARCH_ARM"}},
		},
		Calls: rules,
	}
}
