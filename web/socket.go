package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	socketName = "claybot.sock"
	// pathName holds the socket's path when it is not in the data directory.
	pathName = "claybot.sock.path"
	// socketMax is the longest path that every system takes for a socket (104
	// bytes on macOS and the BSDs, 108 on Linux, with the final NUL).
	socketMax = 103
	tempGlob  = "claybot-sock-"
)

// dialTime bounds the check whether a daemon answers. If there is none, the check fails
// immediately.
const (
	dialTime  = 10 * time.Second
	dialAgain = 20 * time.Millisecond // on a full queue, Linux refuses immediately
)

// ErrNoDaemon reports that no daemon runs on a data directory.
var ErrNoDaemon = errors.New("no daemon is running")

// Dial returns a client for the daemon on the data directory dir and the base URL for its
// requests. It returns ErrNoDaemon if there is none, and another error if the daemon
// accepts no connection for a while.
func Dial(dir string) (*http.Client, string, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, "", err
	}
	dial := func(ctx context.Context) (net.Conn, error) { return reach(ctx, path) }
	conn, err := dial(context.Background())
	switch {
	case errors.Is(err, errBusy):
		return nil, "", fmt.Errorf("the daemon in %s: %w", dir, err)
	case err != nil:
		return nil, "", fmt.Errorf("%w in %s", ErrNoDaemon, dir)
	}
	if err := conn.Close(); err != nil {
		return nil, "", fmt.Errorf("close %s: %w", path, err)
	}
	tr := &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		IdleConnTimeout: time.Minute,
	}
	return &http.Client{Transport: tr}, "http://claybot", nil
}

// errBusy reports that the daemon is too busy to accept another connection.
var errBusy = errors.New("it is there, but takes no connection: it is very busy or hangs; try again, or see its log")

// reach connects to a socket. If the daemon's queue of connections is full, it retries for
// dialTime.
func reach(ctx context.Context, path string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	again := time.NewTicker(dialAgain)
	defer again.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		var network net.Error // EAGAIN of a full queue counts as a timeout
		late := ctx.Err() != nil || errors.As(err, &network) && network.Timeout()
		if err == nil || !late {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (%w)", errBusy, err)
		case <-again.C:
		}
	}
}

func socketPath(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, pathName))
	switch {
	case err == nil:
		return strings.TrimSpace(string(b)), nil
	case errors.Is(err, fs.ErrNotExist):
		return filepath.Join(dir, socketName), nil
	default:
		return "", fmt.Errorf("where the daemon listens: %w", err)
	}
}

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
	path, note := filepath.Join(dir, socketName), ""
	remove := func() {}
	if len(path) > socketMax {
		temp, err := os.MkdirTemp("", tempGlob) // 0700
		if err != nil {
			return socket{}, fmt.Errorf("the path of %s is too long for a socket, and: %w", dir, err)
		}
		path, note = filepath.Join(temp, socketName), filepath.Join(dir, pathName)
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
	path, err := socketPath(dir)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		conn, err := reach(ctx, path)
		if err == nil {
			_ = conn.Close() // only checks whether a process answers
			return fmt.Errorf("another daemon answers on %s", path)
		}
		if errors.Is(err, errBusy) {
			return fmt.Errorf("another daemon is at %s: %w", path, err)
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("stale socket: %w", err)
		}
	}
	if temp := filepath.Dir(path); temp != dir && strings.HasPrefix(filepath.Base(temp), tempGlob) {
		_ = os.Remove(temp) // empty, or not ours
	}
	if err := os.Remove(filepath.Join(dir, pathName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("stale path of the socket: %w", err)
	}
	return nil
}
