package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// probe finds the best confinement that this machine has, by a command that does nothing.
// Empty: none.
func probe() confinement {
	dir, err := os.MkdirTemp("", "claybot-probe-")
	if err != nil {
		return ""
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, c := range []confinement{byUser, byLandlock} {
		p := probing(c, dir)
		if c == byUser && (os.Geteuid() != 0 || os.Lchown(dir, firstUser, firstUser) != nil) {
			continue
		}
		if err := p.start(func(bool) []string { return []string{"/bin/sh", "-c", ":"} }); err != nil {
			continue
		}
		<-p.done
		if p.exit == 0 {
			return c
		}
	}
	return ""
}

// probing is a process with a confinement in a folder that is empty.
func probing(how confinement, dir string) *process {
	p := &process{done: make(chan struct{}), limit: defaultPIDs, cage: cage{how: how, files: dir, around: dir}, attr: os.ProcAttr{Dir: dir, Files: []*os.File{nil, nil, nil}}}
	if how == byUser {
		p.cage.user = firstUser
	}
	return p
}

// enter confines this thread, and what it starts, for good.
func (c cage) enter() error {
	switch c.how {
	case byUser:
		return c.view()
	case byLandlock:
		if err := landlock(c.files); err != nil {
			return err
		}
		return noUnixSockets()
	}
	return nil
}

// view gives this thread mounts of its own, in which an empty folder covers the first one
// that the user may not enter on the way to the files, and the files are at their place.
func (c cage) view() error {
	if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	cover, err := closedBy(c.files)
	if err != nil {
		return err
	}
	if cover == "" {
		cover = c.around
	}
	if cover == c.files {
		return nil
	}
	files, err := os.Open(c.files)
	if err != nil {
		return err
	}
	defer files.Close()
	if err := syscall.Mount("tmpfs", cover, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, "mode=0711,size=64k"); err != nil {
		return fmt.Errorf("cover %s: %w", cover, err)
	}
	if err := mkdirs(cover, c.files); err != nil {
		return err
	}
	if err := syscall.Mount("/proc/self/fd/"+strconv.Itoa(int(files.Fd())), c.files, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", c.files, err)
	}
	return nil
}

// mkdirs makes the folders below one, which everybody may enter, whatever the umask.
func mkdirs(below, name string) error {
	if name == below {
		return nil
	}
	if err := mkdirs(below, filepath.Dir(name)); err != nil {
		return err
	}
	if err := os.Mkdir(name, 0o711); err != nil {
		return err
	}
	return os.Chmod(name, 0o711) // #nosec G302: nothing is in it but the way on
}

// The rights of Landlock, as the kernel numbers them.
const (
	llExecute = 1 << iota
	llWriteFile
	llReadFile
	llReadDir
	llRemoveDir
	llRemoveFile
	llMakeChar
	llMakeDir
	llMakeReg
	llMakeSock
	llMakeFifo
	llMakeBlock
	llMakeSym
	llRefer
	llTruncate
	llIoctl // from version 5

	llProgram = llExecute | llReadFile | llReadDir
	llDevice  = llReadFile | llWriteFile | llTruncate | llIoctl
	llForFile = llExecute | llReadFile | llWriteFile | llTruncate | llIoctl
	llAll     = llIoctl<<1 - 1

	llScopes = 3 // no signal to others, and no abstract socket of theirs; from version 6

	sysCreateRuleset = 444
	sysAddRule       = 445
	sysRestrictSelf  = 446

	pathBeneath = 1
)

// programs are what commands may read: the system's programs and what these need. The
// folder /etc is not among them as a whole, as it may hold secrets that claybot's user reads.
var programs = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/proc", "/sys",
	"/etc/alternatives", "/etc/bash.bashrc", "/etc/ca-certificates", "/etc/fonts", "/etc/gai.conf", "/etc/group", "/etc/host.conf",
	"/etc/hosts", "/etc/inputrc", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types",
	"/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/pki", "/etc/profile", "/etc/profile.d", "/etc/protocols",
	"/etc/resolv.conf", "/etc/services", "/etc/shells", "/etc/ssl", "/etc/terminfo", "/etc/timezone", "/run/systemd/resolve/stub-resolv.conf",
}

var deviceFiles = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// landlockVersion is that of the kernel; 0: it has no Landlock.
func landlockVersion() int {
	version, _, errno := syscall.RawSyscall(sysCreateRuleset, 0, 0, 1)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// landlock lets this thread use a folder, and read the programs.
func landlock(files string) error {
	version := landlockVersion()
	if version < 3 {
		return fmt.Errorf("this kernel has version %d of Landlock, want 3", version)
	}
	handled, scopes := uint64(llAll), uint64(0)
	if version < 5 {
		handled &^= llIoctl
	}
	if version >= 6 {
		scopes = llScopes
	}
	rules := [3]uint64{handled, 0, scopes}
	set, _, errno := syscall.RawSyscall(sysCreateRuleset, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return fmt.Errorf("confine by Landlock: %w", errno)
	}
	defer syscall.Close(int(set))
	allow := func(name string, rights uint64) error {
		fd, err := syscall.Open(name, 0x200000|syscall.O_CLOEXEC, 0) // O_PATH
		if errors.Is(err, syscall.ENOENT) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		defer syscall.Close(fd)
		var info syscall.Stat_t
		if err := syscall.Fstat(fd, &info); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if info.Mode&syscall.S_IFMT != syscall.S_IFDIR {
			rights &= llForFile
		}
		var rule [12]byte // packed
		*(*uint64)(unsafe.Pointer(&rule)) = rights & handled
		*(*int32)(unsafe.Pointer(&rule[8])) = int32(fd)
		if _, _, errno := syscall.RawSyscall6(sysAddRule, set, pathBeneath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
			return fmt.Errorf("allow %s by Landlock: %w", name, errno)
		}
		return nil
	}
	err := allow(files, llAll)
	for _, name := range programs {
		err = errors.Join(err, allow(name, llProgram))
	}
	for _, name := range deviceFiles {
		err = errors.Join(err, allow(name, llDevice))
	}
	if err != nil {
		return err
	}
	if _, _, errno := syscall.RawSyscall(sysRestrictSelf, set, 0, 0); errno != 0 {
		return fmt.Errorf("confine by Landlock: %w", errno)
	}
	return nil
}

// noUnixSockets refuses this thread, and what it starts, the sockets by which it could
// reach other programs of the same user, claybot among them: Landlock does not. A pair of
// sockets reaches no one else and stays allowed.
func noUnixSockets() error {
	const (
		load, equal, atLeast, give = 0x20, 0x15, 0x35, 0x06
		allowed, refused           = 0x7fff0000, 0x00050000 | uint32(syscall.EPERM)
		ioURing, familyUnix        = 425, 1
	)
	// Where struct seccomp_data has the number, the architecture and the first argument.
	const number, architecture, argument = 0, 4, 16
	arch, ok := map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7}[runtime.GOARCH]
	if !ok {
		return errors.New("no filter for this processor")
	}
	type step struct {
		code   uint16
		jt, jf uint8
		k      uint32
	}
	program := []step{
		{load, 0, 0, architecture},
		{equal, 0, 7, arch}, // another form of calls would have other numbers
		{load, 0, 0, number},
		{atLeast, 5, 0, 0x40000000}, // x32
		{equal, 4, 0, ioURing},      // makes sockets as well
		{equal, 0, 2, syscall.SYS_SOCKET},
		{load, 0, 0, argument},
		{equal, 1, 0, familyUnix},
		{give, 0, 0, allowed},
		{give, 0, 0, refused},
	}
	filter := struct {
		n     uint16
		steps *step
	}{uint16(len(program)), &program[0]}
	const setSeccomp, modeFilter = 22, 2
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setSeccomp, modeFilter, uintptr(unsafe.Pointer(&filter)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("filter of system calls: %w", errno)
	}
	runtime.KeepAlive(program)
	return nil
}
