package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	engineimage "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/strslice"

	"github.com/claybot/claybot/workspace"
)

// relayUser is the uid and gid of the unprivileged user "nobody".
const relayUser = "65534:65534"

// A tunnel carries connections from a workspace in network mode allow or full to claybot.
type tunnel struct {
	parent string // the container of the workspace
	conn   io.ReadWriteCloser
	done   chan struct{} // closed when it has ended
}

// tunnelled reports whether this process serves the relay of a container.
func (s *slot) tunnelled(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tunnel != nil && s.tunnel.parent == id && s.tunnel.alive()
}

func (t *tunnel) alive() bool {
	select {
	case <-t.done:
		return false
	default:
		return true
	}
}

// besideRelay makes sure that a workspace has a relay, which this process serves. It
// replaces the relay of another process, whose other end is gone. The caller holds the
// token of the slot.
func (p *Provider) besideRelay(ctx context.Context, e *engine, s *slot, b *box) error {
	if s.tunnelled(b.id) {
		return nil
	}
	p.drop(s)
	if err := p.removeSidecars(ctx, e, b.w.key, "", sidecarRelay); err != nil {
		return err
	}
	img, err := p.relay.image(ctx, p, e)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, slowTimeout)
	defer cancel()
	held := *b.w // what the operator gave up is for the commands, not for the relay
	held.Unsafe, held.User = nil, relayUser
	h := hardened(&held)
	h.NetworkMode = container.NetworkMode("container:" + b.id)
	h.Memory, h.MemorySwap = 128<<20, 128<<20
	made, err := e.api.ContainerCreate(call, &container.Config{
		Image: img, User: held.User, Labels: p.sidecarLabels(b, sidecarRelay), Entrypoint: strslice.StrSlice{"/relay"}, Cmd: strslice.StrSlice(p.cfg.Relay.Args),
		OpenStdin: true, StdinOnce: true, AttachStdin: true, AttachStdout: true, AttachStderr: true,
		Env: []string{"GOMEMLIMIT=64MiB", "GOMAXPROCS=1"},
	}, h, nil, nil, p.name(b.w.key)+"-relay")
	if err != nil {
		return e.fault(ctx, "make the relay of the workspace", err)
	}
	conn, err := p.attach(ctx, e, made.ID)
	if err == nil {
		err = e.api.ContainerStart(call, made.ID, container.StartOptions{})
	}
	if err == nil {
		if err = p.serve(s, b, conn); err == nil {
			return p.listens(ctx, e, s, b)
		}
	}
	if conn != nil {
		_ = conn.Close()
	}
	_ = p.remove(context.WithoutCancel(ctx), e, made.ID) // found by its key later
	return e.fault(ctx, "start the relay of the workspace", err)
}

// listenScript waits until something listens on the port of RelayAddress, as the
// kernel's table has it. Not every sleep knows parts of a second.
const listenScript = `i=0
until grep -q '^ *[0-9]*: 0100007F:0C38 00000000:0000 0A' /proc/net/tcp; do
	i=$((i+1)); [ $i -lt 200 ] || exit 1
	sleep 0.05 2>/dev/null || sleep 1
done`

// listens waits until the relay does, so that the first command is served.
func (p *Provider) listens(ctx context.Context, e *engine, s *slot, b *box) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	w := &Workspace{p: p, e: e, slot: s, want: b.w, box: b, still: true}
	if _, _, err := w.script(call, listenScript, nil, 64); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &workspace.Error{
			Code: workspace.Unavailable, Err: err,
			Text: "the relay of the workspace does not begin to listen; see the operator's log, or choose the network none or host-unsafe",
		}
	}
	return nil
}

// serve carries connections in the background until the relay ends or is dropped.
func (p *Provider) serve(s *slot, b *box, conn io.ReadWriteCloser) error {
	if !p.begin() {
		_ = conn.Close()
		return errClosed
	}
	t := &tunnel{parent: b.id, conn: conn, done: make(chan struct{})}
	s.mu.Lock()
	s.tunnel = t
	s.mu.Unlock()
	go func() {
		defer p.work.Done()
		defer close(t.done)
		defer conn.Close()
		stop := context.AfterFunc(p.ctx, func() { _ = conn.Close() })
		defer stop()
		if err := p.cfg.Tunnel(p.ctx, b.w.key, b.w.Network, conn); err != nil && p.ctx.Err() == nil {
			p.log.Info("workspace relay exited; the next command starts a new one", "key", b.w.key, "err", err)
		}
	}()
	return nil
}

func (p *Provider) drop(s *slot) {
	s.mu.Lock()
	t := s.tunnel
	s.tunnel = nil
	s.mu.Unlock()
	if t != nil {
		_ = t.conn.Close()
		<-t.done
	}
}

const (
	sidecarRelay  = "relay"
	sidecarEngine = "engine"
)

const labelKind = "kind"

func (p *Provider) sidecarLabels(b *box, kind string) map[string]string {
	l := p.labels(roleSidecar, b.w.key)
	l[p.label(labelParent)], l[p.label(labelKind)] = b.id, kind
	return l
}

// removeSidecars removes what is beside the workspace of a key: all, or what
// belongs to one container of it, or what is of one kind.
func (p *Provider) removeSidecars(ctx context.Context, e *engine, key workspace.Key, parent, kind string) error {
	f := p.filter(roleSidecar, key)
	if parent != "" {
		f.Add("label", p.label(labelParent)+"="+parent)
	}
	if kind != "" {
		f.Add("label", p.label(labelKind)+"="+kind)
	}
	return p.removeAll(ctx, e, f)
}

func (p *Provider) removeAll(ctx context.Context, e *engine, f filters.Args) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := e.api.ContainerList(call, container.ListOptions{All: true, Filters: f})
	if err != nil {
		return e.fault(ctx, "list what is beside the workspace", err)
	}
	for _, one := range list {
		if err := p.remove(ctx, e, one.ID); err != nil {
			return err
		}
	}
	return nil
}

// A relayImage is the image of the relay, made of one program and nothing else.
type relayImage struct {
	mu  sync.Mutex
	ref string
}

func (r *relayImage) image(ctx context.Context, p *Provider, e *engine) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ref != "" {
		if _, err := e.inspect(ctx, r.ref); err == nil {
			return r.ref, nil
		}
	}
	ref, err := p.relayRef()
	if err != nil {
		return "", &workspace.Error{Code: workspace.Unavailable, Text: "the relay of claybot cannot be read; choose the network none or host-unsafe", Err: err}
	}
	if _, err := e.inspect(ctx, ref); err != nil {
		if err := p.importRelay(ctx, e, ref); err != nil {
			return "", e.fault(ctx, "make the image of the relay", err)
		}
	}
	r.ref = ref
	return ref, nil
}

func (p *Provider) relayRef() (string, error) {
	f, err := os.Open(p.cfg.Relay.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return p.word() + "-relay:" + hex.EncodeToString(h.Sum(nil)[:8]), nil
}

func (p *Provider) importRelay(ctx context.Context, e *engine, ref string) error {
	f, err := os.Open(p.cfg.Relay.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r, w := io.Pipe()
	go func() {
		t := tar.NewWriter(w)
		err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777})
		if err == nil {
			err = t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "relay", Mode: 0o755, Size: info.Size()})
		}
		if err == nil {
			_, err = io.Copy(t, f)
		}
		_ = w.CloseWithError(errors.Join(err, t.Close()))
	}()
	defer r.Close()
	call, cancel := context.WithTimeout(ctx, slowTimeout)
	defer cancel()
	out, err := e.api.ImageImport(call, engineimage.ImportSource{Source: r, SourceName: "-"}, ref, engineimage.ImportOptions{})
	if err != nil {
		return err
	}
	defer out.Close()
	return pulled(out)
}

// engineDir is where a workspace finds the socket of the engine beside it.
const (
	engineDir    = "/run/claybot-docker"
	engineSocket = engineDir + "/docker.sock"
	engineWait   = time.Minute // until it is ready
)

func (p *Provider) socketVolume(key workspace.Key) string { return p.name(key) + "-socket" }

// besideEngine makes sure that a workspace has a Docker engine of its own, and
// waits until that is ready. It is privileged, which the operator has asked for by
// name; it has the network of the workspace where that is host-unsafe and none otherwise,
// and nothing of the host's engine.
func (p *Provider) besideEngine(ctx context.Context, e *engine, b *box) error {
	name := p.name(b.w.key) + "-engine"
	call, cancel := context.WithTimeout(ctx, slowTimeout)
	defer cancel()
	got, err := e.api.ContainerInspect(call, name)
	ours := err == nil && got.Config != nil && got.Config.Labels[p.label(labelParent)] == b.id
	if ours && got.State != nil && got.State.Running {
		return nil
	}
	if err := p.removeSidecars(ctx, e, b.w.key, "", sidecarEngine); err != nil {
		return err
	}
	img, err := e.image(ctx, b.w.Docker, "")
	if err != nil {
		return err
	}
	mode := container.NetworkMode("none")
	if b.w.Network.Mode == workspace.NetworkHostUnsafe {
		if err := p.network(ctx, e); err != nil {
			return err
		}
		mode = container.NetworkMode(p.bridge())
	}
	memory := b.w.Memory
	made, err := e.api.ContainerCreate(call, &container.Config{
		Image: img.id, Labels: p.sidecarLabels(b, sidecarEngine),
		// Its image would open a port with certificates otherwise.
		Env: []string{"DOCKER_TLS_CERTDIR="},
		Cmd: strslice.StrSlice{"dockerd", "--host=unix://" + engineSocket, fmt.Sprintf("--group=%d", b.w.gid)},
	}, &container.HostConfig{
		Privileged: !p.unprivileged, NetworkMode: mode,
		LogConfig: container.LogConfig{Type: "none"}, Mounts: append(p.mounts(b.w, image{})[:1:1], volumeAt(p.socketVolume(b.w.key), engineDir, false)),
		Resources: container.Resources{Memory: memory, MemorySwap: memory, NanoCPUs: int64(b.w.CPUs * 1e9)},
	}, nil, nil, name)
	if err != nil {
		return e.fault(ctx, "make the engine beside the workspace", err)
	}
	if err := e.api.ContainerStart(call, made.ID, container.StartOptions{}); err != nil {
		return e.fault(ctx, "start the engine beside the workspace", err)
	}
	return p.ready(ctx, e, b)
}

func (p *Provider) ready(ctx context.Context, e *engine, b *box) error {
	ctx, cancel := context.WithTimeoutCause(ctx, engineWait, &workspace.Error{
		Code: workspace.Unavailable,
		Text: fmt.Sprintf("the Docker engine beside the workspace is not ready after %s; see whether %s is an image of one, such as docker:dind", engineWait, b.w.Docker),
	})
	defer cancel()
	w := &Workspace{p: p, e: e, slot: p.slot(b.w.key), want: b.w, box: b, still: true}
	_, _, err := w.script(ctx, `while [ ! -S "$1" ]; do sleep 1; done`, nil, 64, engineSocket)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}
