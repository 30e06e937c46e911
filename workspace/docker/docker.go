// Package docker gives workspaces in containers of a Docker engine.
//
// One key has one container, found by its labels and by nothing else. What a
// model does in it cannot reach the machine: the container has no rights, no
// network and no part of the host's file system, unless its Spec names the
// protection that it gives up. Its files are in a volume that outlives it.
//
// All engines from 20.10 (API 1.41) on are spoken with. Every call of the engine
// has a deadline; an engine that is away is one clear error, and the next call
// retries.
//
// This folder alone imports the Docker SDK. It must not import another
// implementation.
//
// # Containers
//
//	claybot-<key>-<hash>         the workspace: init and a sleeping process, which have a user of
//	                             their own, and commands by exec; watched while anything runs
//	claybot-<key>-<hash>-relay   in its network, for the modes allow and full: carries connections to claybot
//	claybot-<key>-<hash>-engine  beside it: a Docker engine of its own
//
// A container is called <name>-new until its initial script has ended well, so
// that a daemon that was killed meanwhile leaves nothing that looks ready.
package docker

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/claybot/claybot/workspace"
)

// DefaultImage is the image of a Spec that names none.
const DefaultImage = "debian:bookworm-slim"

// A Config says which engine is used and how. Zero values are the defaults.
type Config struct {
	// Node is the id of this installation. Containers of another are never
	// touched. Empty: "default".
	Node string
	// Prefix begins the names and labels of all that is made. Empty: "claybot".
	Prefix string
	// Image is taken by a Spec without one. Empty: DefaultImage.
	Image string
	// Host is the address of the engine. Empty: DOCKER_HOST, or the usual socket.
	Host string
	// Relay and Tunnel are needed for the network modes allow and full.
	Relay Relay
	// Tunnel serves the connections that a workspace makes, which come through
	// conn, until ctx or conn ends: the daemon's side of the relay.
	Tunnel func(ctx context.Context, key workspace.Key, network workspace.Network, conn io.ReadWriteCloser) error
	Log    *slog.Logger // nil: nothing
}

// A Relay is the program inside the network of a workspace of mode allow or full. It
// listens on RelayAddress and carries each connection over its stdin and stdout.
type Relay struct {
	Path string   // a static Linux binary on this machine; empty: neither of these modes
	Args []string // without its name
}

// RelayAddress is where the relay listens, in the workspace's own network.
const RelayAddress = "127.0.0.1:3128"

// A Provider gives workspaces of one engine. It is safe for concurrent use.
type Provider struct {
	cfg     Config
	log     *slog.Logger
	connect func() (*engine, error)
	flights singleflight.Group
	// unprivileged is for tests on machines whose own engine may not give what an
	// engine beside a workspace needs.
	unprivileged bool
	entries      int64 // maxEntries, less in tests

	ctx  context.Context // of what outlives a call: openings and tunnels
	stop context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	closed bool
	slots  map[workspace.Key]*slot
	relay  relayImage
}

var _ workspace.Provider = (*Provider)(nil)

// A slot is what this process knows of one key, whatever container it has.
type slot struct {
	// opening holds one token: who has it may make, start and remove containers
	// of the key.
	opening workspace.Turn
	// using is read-locked by each command, and locked to replace the container.
	using sync.RWMutex

	mu     sync.Mutex
	ooms   int64    // how often the kernel ended something for memory, as seen last
	disk   disk     // what is known of the space
	tunnel *tunnel  // of the modes allow and full
	lost   []string // the marks of commands that could not be ended

	commands map[*context.CancelCauseFunc]bool // ends the commands that run
	watched  string                            // the container that a goroutine watches
}

// New returns a Provider. It does not speak with the engine yet. Close ends it.
func New(cfg Config) *Provider {
	cfg.Node = cmp.Or(cfg.Node, "default")
	cfg.Prefix = cmp.Or(cfg.Prefix, "claybot")
	cfg.Image = cmp.Or(cfg.Image, DefaultImage)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Provider{
		cfg: cfg, log: cfg.Log, ctx: ctx, stop: stop,
		connect: sync.OnceValues(func() (*engine, error) { return dial(cfg.Host) }),
		slots:   make(map[workspace.Key]*slot),
		entries: maxEntries,
	}
}

// Close ends what goes on in the background and waits for it. Containers stay: the next
// process finds them. Those in which something runs are stopped, as nothing would watch
// it. A second call does nothing.
func (p *Provider) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	p.work.Wait()
	if e, err := p.connect(); err == nil {
		return errors.Join(e.api.Close(), e.streams.Close())
	}
	return nil
}

func (p *Provider) engine(ctx context.Context) (*engine, error) {
	e, err := p.connect()
	if err != nil {
		return nil, unavailable(err)
	}
	if err := e.agree(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// Name implements workspace.Provider.
func (p *Provider) Name() string { return "docker" }

// Check implements workspace.Provider: it asks whether the engine answers.
func (p *Provider) Check(ctx context.Context) error {
	e, err := p.engine(ctx)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if _, err := e.api.Ping(call); err != nil {
		return e.fault(ctx, "answer", err)
	}
	return nil
}

// Versions are those of the client and of the engine, for a diagnosis.
func (p *Provider) Versions(ctx context.Context) (client, engine string, err error) {
	e, err := p.engine(ctx)
	if err != nil {
		return "", "", err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	v, err := e.api.ServerVersion(call)
	if err != nil {
		return "", "", e.fault(ctx, "answer", err)
	}
	return e.api.ClientVersion(), v.Version, nil
}

func (p *Provider) slot(key workspace.Key) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slots[key]
	if s == nil {
		s = &slot{opening: workspace.NewTurn()}
		p.slots[key] = s
	}
	return s
}

// begin counts work that Close waits for. It is false after Close.
func (p *Provider) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.work.Add(1)
	return true
}

var errClosed = &workspace.Error{Code: workspace.Unavailable, Text: "claybot is stopping; no workspace is opened now"}

// openTimeout is the longest that an opening may take: a pull and an initial
// script, with some room.
const openTimeout = pullTimeout + initialWall + 5*time.Minute

// Open implements workspace.Provider. Callers that want the same at the same time
// share one opening, which goes on when one of them gives up. A container that
// differs from s is kept while a command runs in it, and replaced by a later
// opening.
func (p *Provider) Open(ctx context.Context, key workspace.Key, s workspace.Spec) (workspace.Workspace, error) {
	w, err := p.want(key, s)
	if err != nil {
		return nil, err
	}
	e, err := p.engine(ctx)
	if err != nil {
		return nil, err
	}
	done := p.flights.DoChan(string(key)+"\x00"+w.digest+"\x00"+w.Platform, func() (any, error) {
		if !p.begin() {
			return nil, errClosed
		}
		defer p.work.Done()
		ctx, cancel := context.WithTimeout(p.ctx, openTimeout)
		defer cancel()
		return p.open(ctx, e, w)
	})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case r := <-done:
		if r.Err != nil {
			return nil, r.Err
		}
		c := r.Val.(*box)
		return &Workspace{p: p, e: e, slot: p.slot(key), want: w, box: c}, nil
	}
}
