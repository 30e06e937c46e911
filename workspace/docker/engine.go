package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/claybot/claybot/workspace"
)

const (
	dialTimeout = 5 * time.Second
	callTimeout = 30 * time.Second // most calls, to their end
	slowTimeout = 2 * time.Minute  // making, starting and stopping, on a loaded machine
	pullTimeout = 10 * time.Minute
)

type engine struct {
	host string
	api  *client.Client
	// streams makes the connections that carry the output of commands. The SDK
	// does not end such a call with its context, so the dialer puts a deadline on
	// the connection, which is taken off once the engine has answered. With TLS
	// the SDK dials itself, and only the context of the other calls counts.
	streams *client.Client

	mu     sync.Mutex
	agreed bool // on the version of the API
}

// agree settles the version of the API before calls go on at the same time: the
// SDK does it by itself, but reads meanwhile what it writes. An engine that is away
// is asked again by the next call.
func (e *engine) agree(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.agreed {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	ping, err := e.api.Ping(call)
	if err != nil {
		return e.fault(ctx, "answer", err)
	}
	e.api.NegotiateAPIVersionPing(ping)
	e.streams.NegotiateAPIVersionPing(ping)
	e.agreed = true
	return nil
}

func dial(host string) (*engine, error) {
	opts := []client.Opt{client.FromEnv, client.WithAPIVersionNegotiation()}
	if host != "" {
		opts = append(opts, client.WithHost(host))
	}
	api, err := client.NewClientWithOpts(opts...)
	if err != nil {
		return nil, fmt.Errorf("docker client: %w", err)
	}
	e := &engine{host: api.DaemonHost()}
	var plain, limited []client.Opt
	url, err := client.ParseHostURL(e.host)
	if err != nil || !slices.Contains([]string{"unix", "tcp", "http", "https", "npipe"}, url.Scheme) {
		return nil, fmt.Errorf("docker client: invalid engine address %.80q", e.host)
	}
	if url.Scheme == "unix" || url.Scheme == "tcp" {
		dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: callTimeout}
		connect := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, url.Scheme, url.Host)
		}
		plain = append(plain, client.WithDialContext(connect))
		limited = append(limited, client.WithDialContext(func(ctx context.Context, n, a string) (net.Conn, error) {
			conn, err := connect(ctx, n, a)
			if err != nil {
				return nil, err
			}
			return conn, conn.SetDeadline(time.Now().Add(callTimeout))
		}))
	}
	if e.api, err = client.NewClientWithOpts(slices.Concat(opts, plain)...); err != nil {
		return nil, fmt.Errorf("docker client: %w", err)
	}
	if e.streams, err = client.NewClientWithOpts(slices.Concat(opts, limited)...); err != nil {
		return nil, fmt.Errorf("docker client: %w", err)
	}
	return e, nil
}

// fault says what a failed call means. op is what was tried, in words that follow
// "Docker could not". The end of ctx is itself.
func (e *engine) fault(ctx context.Context, op string, err error) error {
	if known := new(workspace.Error); errors.As(err, &known) {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	text, code := "Docker could not "+op+"; the operator's log has the reason", workspace.Failed
	var network net.Error
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOENT), client.IsErrConnectionFailed(err) && !e.there():
		text, code = "there is no Docker engine at "+e.host+": install and start Docker, or choose another provider of workspaces", workspace.Unavailable
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EACCES):
		text, code = "this user may not speak with the Docker engine at "+e.host+": add it to the group docker and start claybot again", workspace.Unavailable
	case errors.Is(err, syscall.ECONNREFUSED), client.IsErrConnectionFailed(err):
		text, code = unreachable(e.host, err), workspace.Unavailable
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		text, code = "the Docker engine at "+e.host+" does not answer in time: see whether it is overloaded, or start it again", workspace.Unavailable
	case errdefs.IsInvalidArgument(err):
		text, code = "Docker refuses the workspace: "+short(err), workspace.Refused
	case strings.Contains(err.Error(), "API version"):
		text, code = "the Docker engine is too old or too new for claybot: "+short(err), workspace.Unavailable
	case cut(err):
		text, code = "the Docker engine ended the connection while it was to "+op+": see whether it runs, then try again", workspace.Unavailable
	}
	return &workspace.Error{Code: code, Text: text, Err: fmt.Errorf("docker: %s: %w", op, err)}
}

// there is false when the socket of the engine does not exist. The SDK does not
// tell that from a socket without a server.
func (e *engine) there() bool {
	file, ok := strings.CutPrefix(e.host, "unix://")
	if !ok {
		return true
	}
	_, err := os.Stat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// unreachable is the text for an engine that cannot be connected. The SDK hides
// the cause of some failures in words.
func unreachable(host string, err error) string {
	if strings.Contains(err.Error(), "permission denied") {
		return "this user may not speak with the Docker engine at " + host + ": add it to the group docker and start claybot again"
	}
	return "the Docker engine at " + host + " does not run: start it (systemctl start docker), or choose another provider of workspaces"
}

func cut(err error) bool {
	text := err.Error()
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.HasSuffix(text, "EOF") || strings.Contains(text, "use of closed network connection")
}

func short(err error) string {
	text, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "Error response from daemon: "), "\n")
	return clip(text, 300)
}

func clip(text string, n int) string {
	if len(text) > n {
		return strings.ToValidUTF8(text[:n], "") + "…"
	}
	return text
}

func unavailable(err error) error {
	return &workspace.Error{
		Code: workspace.Unavailable, Err: err,
		Text: "the address of the Docker engine cannot be used: see DOCKER_HOST and the configuration",
	}
}

func refused(format string, args ...any) error {
	return &workspace.Error{Code: workspace.Refused, Text: fmt.Sprintf(format, args...)}
}
