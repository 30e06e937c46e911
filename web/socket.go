package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/claybot/claybot/client"
)

const (
	// socketMax is the longest path that every system takes for a socket (104
	// bytes on macOS and the BSDs, 108 on Linux, with the final NUL).
	socketMax = 103
	tempGlob  = "claybot-sock-"
)

type socket struct {
	net.Listener
	cleanup func()
}

// listenUnix opens the socket of a data directory, with mode 0600. It replaces the socket of
// a dead process, but not that of a live one.
func listenUnix(ctx context.Context, dir string) (socket, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return socket{}, err
	}
	if err := dropStale(ctx, dir); err != nil {
		return socket{}, err
	}
	path, note := filepath.Join(dir, client.SocketName), ""
	remove := func() {}
	if len(path) > socketMax {
		temp, err := os.MkdirTemp("", tempGlob) // 0700
		if err != nil {
			return socket{}, fmt.Errorf("the path of %s is too long for a socket, and: %w", dir, err)
		}
		path, note = filepath.Join(temp, client.SocketName), filepath.Join(dir, client.SocketNote)
		remove = func() { _, _ = os.Remove(note), os.Remove(temp) } // leftovers are harmless: the next start replaces them
		if err := os.WriteFile(note, []byte(path+"\n"), 0o600); err != nil {
			remove()
			return socket{}, err
		}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		remove()
		return socket{}, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close() // return the other error
		remove()
		return socket{}, err
	}
	return socket{Listener: l, cleanup: remove}, nil
}

func dropStale(ctx context.Context, dir string) error {
	path, err := client.Socket(dir)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		conn, err := client.Reach(ctx, path)
		if err == nil {
			_ = conn.Close() // only checks whether a process answers
			return fmt.Errorf("another daemon answers on %s", path)
		}
		if errors.Is(err, client.ErrBusy) {
			return fmt.Errorf("another daemon is at %s: %w", path, err)
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("stale socket: %w", err)
		}
	}
	if temp := filepath.Dir(path); temp != dir && strings.HasPrefix(filepath.Base(temp), tempGlob) {
		_ = os.Remove(temp) // empty, or not ours
	}
	if err := os.Remove(filepath.Join(dir, client.SocketNote)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stale path of the socket: %w", err)
	}
	return nil
}
