package web_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A daemon that has no time to take one more connection is there all the same.
func TestBusySocketIsKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "claybot.sock")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for range 10 { // until its queue is full
		c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
		if err != nil {
			break
		}
		defer func() { _ = c.Close() }()
	}
	w, _ := start(t, dir, nil)
	if _, err := os.Lstat(path); err != nil || !strings.Contains(w.logged(), "another daemon") {
		t.Errorf("the socket: %v; logged %s", err, w.logged())
	}
}
