package docker

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/workspace"
)

type escape struct{ name, line string }

// escapes are tries to leave a workspace or to gain rights in it. Each must end
// without success, for a reason that is not a program that is not there.
var escapes = []escape{
	{"mount a proc", `mkdir -p m && mount -t proc proc m`},
	{"mount a tmpfs", `mkdir -p m && mount -t tmpfs tmpfs m`},
	{"mount a cgroup", `mkdir -p m && mount -t cgroup -o memory cgroup m`},
	{"bind the root elsewhere", `mkdir -p m && mount --bind / m`},
	{"make the root writable", `mount -o remount,rw /`},
	{"unmask /proc/kcore", `umount /proc/kcore`},
	{"unmount the workspace", `umount /work`},
	{"write to the root", `echo x > /x`},
	{"write a user", `echo 'me::0:0::/:/bin/sh' >> /etc/passwd`},
	{"replace a program", `cp /bin/busybox /bin/sh`},
	{"make a block device", `mknod sda b 8 0`},
	{"make a memory device", `mknod mem c 1 1`},
	{"read a disk", `dd if=/dev/sda of=/dev/null count=1 || dd if=/dev/vda of=/dev/null count=1`},
	{"read the memory", `dd if=/dev/mem of=/dev/null count=1`},
	{"read the kernel's memory", `[ "$(head -c 1 /proc/kcore | wc -c)" = 1 ]`},
	{"read the keys of the kernel", `[ -s /proc/keys ]`},
	{"read the firmware", `[ -n "$(ls -A /sys/firmware)" ]`},
	{"read the kernel's log", `dmesg | grep -q .`},
	{"set the core pattern", `echo '|/work/x' > /proc/sys/kernel/core_pattern`},
	{"set the program for hot plugs", `echo /work/x > /proc/sys/kernel/hotplug || echo /work/x > /sys/kernel/uevent_helper`},
	{"use the magic key", `echo h > /proc/sysrq-trigger`},
	{"set a release agent", `echo /work/x > /sys/fs/cgroup/memory/release_agent || echo /work/x > /sys/fs/cgroup/release_agent`},
	{"make a control group", `mkdir /sys/fs/cgroup/pids/x || mkdir /sys/fs/cgroup/x`},
	{"raise the limit of processes", `echo max > /sys/fs/cgroup/pids/pids.max || echo max > /sys/fs/cgroup/pids.max`},
	{"raise the limit of memory", `echo -1 > /sys/fs/cgroup/memory/memory.limit_in_bytes || echo max > /sys/fs/cgroup/memory.max`},
	{"make a user namespace", `unshare -U -r true`},
	{"make a mount namespace", `unshare -m true`},
	{"make a network namespace", `unshare -n true`},
	{"enter the first process's namespaces", `nsenter -t 1 -m -n -p true`},
	{"change the root", `mkdir -p r/bin && cp /bin/busybox r/bin/sh && chroot r /bin/sh -c :`},
	{"become root by su", `su root -c :`},
	{"become root by a bit", `mkdir -p b && cp /bin/busybox b/busybox && chmod 4755 b/busybox && [ "$(./b/busybox id -u)" = 0 ]`},
	{"give a file away", `echo x > f && chown 0:0 f`},
	{"any capability", `! grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status`},
	{"any capability to be had", `! grep -q '^CapBnd:[[:space:]]*0*$' /proc/self/status`},
	{"new privileges", `! grep -q '^NoNewPrivs:[[:space:]]*1' /proc/self/status`},
	{"system calls without a filter", `! grep -q '^Seccomp:[[:space:]]*2' /proc/self/status`},
	{"load a module", `echo x > m.ko && insmod m.ko`},
	{"restart the machine", `reboot -f`},
	{"set the name of the machine", `hostname evil`},
	{"set the clock", `date -s 2001-01-01; [ "$(date +%Y)" = 2001 ]`},
	{"use swap", `dd if=/dev/zero of=s bs=4096 count=10 && mkswap s && swapon s`},
	{"be preferred", `renice -n -20 $$`},
	{"be spared when memory is short", `echo -1000 > /proc/self/oom_score_adj`},
	{"raise the limit of files", `ulimit -n 65536`},
	{"raise the limit of a file's size", `ulimit -f unlimited`},
	{"dump a core", `ulimit -c unlimited`},
	{"end the first process", `kill -9 1; sleep 1; ! [ -d /proc/1 ]`},
	{"be the user of the first process", `[ "$(stat -c %u /proc/1)" = "$(id -u)" ]`},
	{"stop the first process", `kill -STOP 1`},
	{"end the process that waits", `kill -9 $(pidof sleep)`},
	{"read the first process's environment", `cat /proc/1/environ`},
	{"read the first process's memory", `dd if=/proc/1/mem of=/dev/null bs=1 count=1`},
	{"see the first process's files", `ls /proc/1/fd/`},
	{"enter the first process's root", `ls /proc/1/root/`},
	{"run a program from /tmp", `cp /bin/busybox /tmp/busybox && /tmp/busybox true`},
	{"find the engine's socket", `ls /var/run/docker.sock /run/docker.sock /run/containerd`},
	{"see the processes of the machine", `cat /proc/[0-9]*/comm | grep -e dockerd -e containerd -e docker.test`},
	{"see another network card", `ls /sys/class/net | grep -v '^lo$'`},
	{"add an address", `ip addr add 10.1.2.3/24 dev lo`},
	{"open a raw socket", `ping -c 1 -W 1 127.0.0.1`},
	{"reach the internet", `nc -w 2 1.1.1.1 443 </dev/null`},
	{"ask for a name", `nslookup example.com`},
}

// TestBreakOut tries to leave a workspace, and says what was refused.
func TestBreakOut(t *testing.T) {
	t.Parallel()
	p := provider(t)
	w := opened(t, p, "agent/break out", workspace.Spec{})
	tries := append(slices.Clone(escapes), callTries(t, w)...)
	for _, address := range hostAddresses(t) {
		tries = append(tries, escape{"reach this machine at " + address, "nc -w 2 " + strings.ReplaceAll(address, ":", " ") + " </dev/null"})
	}
	started := inspect(t, w.box.id).State.StartedAt
	for _, tt := range tries {
		r, err := w.Exec(t.Context(), workspace.Command{Shell: "if { " + tt.line + "; } >said 2>&1; then echo OUT; fi; head -c 300 said | tr '\\n' ' '", Wall: 5 * time.Minute})
		switch {
		case err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case strings.HasPrefix(r.Output, "OUT"):
			t.Errorf("%s: NOT REFUSED: %s", tt.name, r.Output)
		case strings.Contains(r.Output, "applet not found"), strings.Contains(r.Output, ": not found"), strings.Contains(r.Output, "Usage:"):
			t.Errorf("%s: this was no try: %s", tt.name, r.Output)
		default:
			t.Logf("refused: %s: %s", tt.name, strings.TrimSpace(r.Output))
		}
	}
	for _, tt := range []struct {
		name string
		try  func() error
	}{
		{"read a file by a link", func() error { _, err := w.ReadFile(t.Context(), "link/passwd", 1<<10); return err }},
		{"read a process by a link", func() error { _, err := w.ReadFile(t.Context(), "one", 1<<10); return err }},
		{"write a file by a link", func() error { return w.WriteFile(t.Context(), "tmp/file", []byte("x")) }},
		{"list by a link", func() error { _, _, err := w.List(t.Context(), "link", 10); return err }},
		{"remove by a link", func() error { return w.Remove(t.Context(), "tmp/victim") }},
		{"run in a folder by a link", func() error { _, err := w.Exec(t.Context(), workspace.Command{Shell: "true", Dir: "link"}); return err }},
		{"read a file of the container", func() error { _, err := w.ReadFile(t.Context(), "/etc/passwd", 1<<10); return err }},
		{"read a file above", func() error { _, err := w.ReadFile(t.Context(), "../etc/passwd", 1<<10); return err }},
	} {
		sh(t, w, "ln -sfn /etc link; ln -sfn /proc/1/environ one; ln -sfn /tmp tmp; echo x > /tmp/victim")
		err := tt.try()
		if !workspace.Is(err, workspace.Outside) {
			t.Errorf("%s: NOT REFUSED: %v", tt.name, err)
			continue
		}
		t.Logf("refused: %s: %v", tt.name, err)
	}
	if r := sh(t, w, "cat /tmp/victim; ! [ -e /tmp/file ]"); r.Output != "x\n" || r.ExitCode != 0 {
		t.Errorf("a file outside was changed: %+v", r)
	}
	if inspect(t, w.box.id).State.StartedAt != started {
		t.Error("a try has ended the container")
	}
	t.Logf("%d tries", len(tries)+8)
}

// TestBreakOutSees proves that the tries would be seen to succeed: where a
// protection is given up, those that it forbids do.
func TestBreakOutSees(t *testing.T) {
	t.Parallel()
	w := opened(t, provider(t), "agent/sees", workspace.Spec{
		User:   "0:0",
		Unsafe: []string{UnsafeRoot, UnsafeCapabilities, UnsafePrivileges, UnsafeWritable, UnsafeExecutable, UnsafeSeccomp},
	})
	want := map[string]bool{
		"write to the root": true, "run a program from /tmp": true, "any capability": true, "any capability to be had": true,
		"new privileges": true, "system calls without a filter": true, "change the root": true, "give a file away": true, "make a memory device": true,
	}
	for _, tt := range escapes {
		if !want[tt.name] {
			continue
		}
		if r := sh(t, w, "{ "+tt.line+"; } >/dev/null 2>&1 && echo OUT"); r.Output != "OUT\n" {
			t.Errorf("%s: does not succeed without the protection: %+v", tt.name, r)
		}
	}
}

// hostAddresses listens on all addresses of this machine but the loopback.
func hostAddresses(t *testing.T) []string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	list := []string{"127.0.0.1:" + port}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			list = append(list, net.JoinHostPort(ip.IP.String(), port))
		}
	}
	return list
}
