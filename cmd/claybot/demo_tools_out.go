package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/nodes"
)

// A wayOut is one try of a command to leave its container: shell that succeeds
// when it got somewhere. None of them does harm where it succeeds.
type wayOut struct{ to, shell string }

// The beginnings of the lines that a try comes to.
const (
	markIn      = "got in: "
	markRefused = "refused: "
)

// waysOut are the tries. Each is also a sensible one in an image with fewer
// programs.
func (t *toolsPlay) waysOut() []wayOut {
	host := fmt.Sprintf("/proc/%d/comm", os.Getpid())
	name, _ := os.ReadFile("/proc/self/comm") // none where the engine has a machine of its own
	return []wayOut{
		{"the internet", "reach 1.1.1.1 80"},
		{"the metadata of a cloud", "reach 169.254.169.254 80"},
		{"a server of this machine", "reach " + strings.Replace(t.host(), ":", " ", 1)},
		{"another network", "ls /sys/class/net | grep -v '^lo$' || { echo 'there is no device but its own lo'; false; }"},
		{"the socket of Docker", "ls /var/run/docker.sock || ls /run/docker.sock"},
		{"a file of another user", "cat " + nodes.ShellWord(t.secret) + " || cat " + nodes.ShellWord("/proc/1/root"+t.secret)},
		{"a process of this machine", "c=$(cat " + host + `); test -n "$c" && test "$c" = ` + nodes.ShellWord(strings.TrimSpace(string(name)))},
		{"a file system of its own", "mkdir -p mnt && mount -t tmpfs none mnt"},
		{"a disk of this machine", "rm -f disk; mknod disk b 8 0"},
		{"the memory of this machine", "head -c 1 /dev/mem || head -c 1 /dev/kmsg"},
		{"the rights of root", "su root -c true </dev/null || grep -E 'Cap(Prm|Eff|Bnd):.*[1-9a-f]' /proc/self/status"},
		{"other namespaces", "unshare -r true || unshare -m true"},
		{"the programs of the image", "echo x >/bin/claybot-was-here || echo x >>/etc/passwd"},
		{"a program in /tmp", `printf '#!/bin/sh\n' >/tmp/x && chmod +x /tmp/x && /tmp/x`},
		{"the settings of the kernel", `v=$(cat /proc/sys/kernel/core_pattern) && echo "$v" >/proc/sys/kernel/core_pattern`},
	}
}

// breakOutCommand is one command that tries all ways.
func (t *toolsPlay) breakOutCommand() string {
	var b strings.Builder
	b.WriteString(`reach() {
	if command -v nc >/dev/null; then
		nc -w 3 "$1" "$2" </dev/null
	else
		timeout 3 bash -c ": <>/dev/tcp/$1/$2"
	fi
}
try() {
	if said=$( (eval "$2") 2>&1 ); then
		echo "` + markIn + `$1"
	else
		said=$(echo "$said" | tail -n 1)
		echo "` + markRefused + `$1: ${said:-there is nothing}"
	fi
}
`)
	for _, w := range t.waysOut() {
		fmt.Fprintf(&b, "try %s %s\n", nodes.ShellWord(w.to), nodes.ShellWord(w.shell))
	}
	return b.String()
}

// breakOut shows a command that tries to leave its container, and what it met.
func (t *toolsPlay) breakOut(ctx context.Context, s *stage) error {
	if t.provider != configs.WorkspaceDocker {
		return nil
	}
	visits := t.visits.Load()
	if _, err := s.tell(ctx, saysBreakOut, 1); err != nil {
		return err
	}
	r, err := s.result(ctx, "shell")
	if err != nil {
		return err
	}
	refused := 0
	var in []string
	for line := range strings.SplitSeq(r.Text, "\n") {
		if to, ok := strings.CutPrefix(line, markIn); ok {
			in = append(in, to)
		}
		if what, ok := strings.CutPrefix(line, markRefused); ok {
			refused++
			s.say("refused", "%s", what)
		}
	}
	switch want := len(t.waysOut()); {
	case len(in) > 0:
		return fmt.Errorf("a command got out of its container, to: %s", strings.Join(in, ", "))
	case refused != want:
		return fmt.Errorf("%d of %d ways out were tried: %.500s", refused, want, r.Text)
	case strings.Contains(r.Text, secretWords), t.visits.Load() != visits:
		return errors.New("a command in a container reached this machine")
	}
	return nil
}
