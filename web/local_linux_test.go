package web_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/claybot/claybot/client"
)

// busySocket is the socket of a daemon that takes no connections, and whose queue of
// them is full: so many wait.
func busySocket(t *testing.T, dir string) (fd, waiting int) {
	t.Helper()
	path := filepath.Join(dir, "claybot.sock")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", path)
		if errors.Is(err, syscall.EAGAIN) {
			return fd, waiting
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		waiting++
	}
}

// A daemon that has no time to take one more connection is there all the same.
func TestBusySocketIsKept(t *testing.T) {
	t.Parallel() // it is waited for
	dir := t.TempDir()
	busySocket(t, dir)
	dialed := make(chan error)
	go func() {
		_, err := client.Dial(dir)
		dialed <- err
	}()
	w, _ := start(t, dir, nil)
	if _, err := os.Lstat(filepath.Join(dir, "claybot.sock")); err != nil || !strings.Contains(w.logged(), "another daemon") {
		t.Errorf("the socket: %v; logged %s", err, w.logged())
	}
	if err := <-dialed; err == nil || errors.Is(err, client.ErrNoDaemon) || !strings.Contains(err.Error(), "busy") {
		t.Errorf("dialed: %v", err)
	}
}

func TestDialWaitsForABusyDaemon(t *testing.T) {
	dir := t.TempDir()
	fd, waiting := busySocket(t, dir)
	dialed := make(chan error)
	go func() {
		_, err := client.Dial(dir)
		dialed <- err
	}()
	for range waiting {
		c, _, err := syscall.Accept(fd)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Close(c) }()
	}
	if err := <-dialed; err != nil {
		t.Error(err)
	}
}
