package client

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

// Where a daemon listens for its own machine. SocketName is a Unix socket in the data directory. If its path is
// too long for a socket, SocketNote is a file there with another one.
const (
	SocketName = "claybot.sock"
	SocketNote = "claybot.sock.path"
)

// dialTime bounds the check whether a daemon answers. If there is none, the check fails
// immediately.
const (
	dialTime  = 10 * time.Second
	dialAgain = 20 * time.Millisecond // on a full queue, Linux refuses immediately
)

// ErrNoDaemon reports that no daemon runs on a data directory.
var ErrNoDaemon = errors.New("no daemon is running")

// Dial returns a client for the daemon on the data directory dir, whose socket needs no token. It returns
// ErrNoDaemon if there is none, and another error if the daemon accepts no connection for a while.
func Dial(dir string) (*Client, error) {
	tr, err := Transport(dir)
	if err != nil {
		return nil, err
	}
	return New("http://claybot", "", &http.Client{Transport: tr}), nil
}

// Transport is Dial for requests of another kind: whatever their host, they reach that daemon.
func Transport(dir string) (*http.Transport, error) {
	path, err := Socket(dir)
	if err != nil {
		return nil, err
	}
	conn, err := Reach(context.Background(), path)
	switch {
	case errors.Is(err, ErrBusy):
		return nil, fmt.Errorf("the daemon in %s: %w", dir, err)
	case err != nil:
		return nil, fmt.Errorf("%w in %s", ErrNoDaemon, dir)
	}
	if err := conn.Close(); err != nil {
		return nil, fmt.Errorf("close %s: %w", path, err)
	}
	return &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return Reach(ctx, path) },
		IdleConnTimeout: time.Minute,
	}, nil
}

// ErrBusy reports that the daemon is too busy to accept another connection.
var ErrBusy = errors.New("it is there, but takes no connection: it is very busy or hangs; try again, or see its log")

// Reach connects to a socket. If the daemon's queue of connections is full, it retries for
// dialTime.
func Reach(ctx context.Context, path string) (net.Conn, error) {
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
			return nil, fmt.Errorf("%w (%w)", ErrBusy, err)
		case <-again.C:
		}
	}
}

// Socket returns the path of the socket of the daemon on a data directory.
func Socket(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, SocketNote))
	switch {
	case err == nil:
		return strings.TrimSpace(string(b)), nil
	case errors.Is(err, fs.ErrNotExist):
		return filepath.Join(dir, SocketName), nil
	default:
		return "", fmt.Errorf("where the daemon listens: %w", err)
	}
}
