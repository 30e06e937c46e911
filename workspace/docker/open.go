package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	dockercontainer "github.com/docker/docker/api/types/container"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/claybot/claybot/workspace"
)

type box struct {
	id    string
	w     *want
	older bool // it was made for another want, and is kept while a command runs
}

// halfMade ends the name of a container whose initial script has not ended yet.
const halfMade = "-new"

func (p *Provider) open(ctx context.Context, e *engine, w *want) (*box, error) {
	s := p.slot(w.key)
	if err := s.opening.Take(ctx); err != nil {
		return nil, err
	}
	defer s.opening.Give()
	found, err := p.find(ctx, e, w.key)
	if err != nil {
		return nil, err
	}
	var kept *box
	for _, one := range found {
		c, err := p.reuse(ctx, e, w, s, one, kept != nil)
		if err != nil {
			return nil, err
		}
		if c != nil {
			kept = c
		}
	}
	if kept != nil {
		return kept, nil
	}
	return p.create(ctx, e, w, s)
}

func (p *Provider) find(ctx context.Context, e *engine, key workspace.Key) ([]dockercontainer.Summary, error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := e.api.ContainerList(call, dockercontainer.ListOptions{All: true, Filters: p.filter(roleWorkspace, key)})
	if err != nil {
		return nil, e.fault(ctx, "list the workspaces", err)
	}
	slices.SortFunc(list, func(a, b dockercontainer.Summary) int { return int(b.Created - a.Created) })
	return list, nil
}

// reuse returns a found container if it is as it is wanted and runs. Otherwise it
// is removed, unless a command runs in it: then it is taken as it is.
func (p *Provider) reuse(ctx context.Context, e *engine, w *want, s *slot, one dockercontainer.Summary, have bool) (*box, error) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := e.api.ContainerInspect(call, one.ID)
	same := err == nil && !have && !half(one) && got.Config != nil &&
		got.Config.Labels[p.label(labelSpec)] == w.digest &&
		(w.Platform == "" || got.Config.Labels[p.label(labelPlatform)] == w.Platform)
	if same {
		c := &box{id: one.ID, w: w}
		if err = p.up(ctx, e, s, c); err == nil {
			return c, nil
		}
		if ctx.Err() != nil || workspace.Is(err, workspace.Refused) {
			return nil, err
		}
		p.log.Warn("failed to start workspace; recreating it", "key", w.key, "container", one.ID, "err", err)
	} else if err == nil && !have && !half(one) && got.State != nil && got.State.Running {
		s.measured(ctx)
		if busy := !s.using.TryLock(); busy || p.running(ctx, e, got.ExecIDs) {
			if !busy {
				s.using.Unlock()
			}
			p.log.Info("workspace settings changed while a command runs; replacing it later", "key", w.key)
			return &box{id: one.ID, w: w, older: true}, nil
		}
		defer s.using.Unlock()
	}
	return nil, p.discard(ctx, e, s, w.key, one.ID)
}

func half(one dockercontainer.Summary) bool {
	return !slices.ContainsFunc(one.Names, func(name string) bool { return !strings.HasSuffix(name, halfMade) })
}

// running reports whether one of a container's execs has not ended: another
// process may have started it.
func (p *Provider) running(ctx context.Context, e *engine, ids []string) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return slices.ContainsFunc(ids, func(id string) bool {
		got, err := e.api.ContainerExecInspect(ctx, id)
		return err == nil && got.Running
	})
}

// create makes a container with its volumes and all beside it, and prepares it.
// What is half made is removed.
func (p *Provider) create(ctx context.Context, e *engine, w *want, s *slot) (c *box, err error) {
	img, err := e.image(ctx, w.Image, w.Platform)
	if err != nil {
		return nil, err
	}
	if err := p.volumes(ctx, e, w, img); err != nil {
		return nil, err
	}
	if w.Network.Mode == workspace.NetworkHostUnsafe {
		if err := p.network(ctx, e); err != nil {
			return nil, err
		}
	}
	name := p.name(w.key)
	id, err := p.make(ctx, e, p.body(w, img), w, name+halfMade)
	if err != nil {
		return nil, err
	}
	c = &box{id: id, w: w}
	defer func() {
		if err == nil {
			return
		}
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), slowTimeout)
		defer cancel()
		if removed := p.discard(clean, e, s, w.key, id); removed != nil {
			p.log.Warn("failed to remove an incomplete workspace", "key", w.key, "container", id, "err", removed)
		}
	}()
	if err := p.up(ctx, e, s, c); err != nil {
		return nil, err
	}
	if err := p.initial(ctx, e, s, c); err != nil {
		return nil, err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := e.api.ContainerRename(call, id, name); err != nil {
		if errdefs.IsConflict(err) {
			return nil, refused("there is a container %s that claybot did not make; rename or remove it", name)
		}
		return nil, e.fault(ctx, "name the workspace", err)
	}
	return c, nil
}

// make creates a container. One of the same name and key, which a killed process
// left, is removed.
func (p *Provider) make(ctx context.Context, e *engine, b body, w *want, name string) (string, error) {
	for try := 0; ; try++ {
		call, cancel := context.WithTimeout(ctx, slowTimeout)
		made, err := e.api.ContainerCreate(call, b.config, b.host, b.network, platformOf(w.Platform), name)
		if err == nil {
			cancel()
			return made.ID, nil
		}
		if !errdefs.IsConflict(err) || try > 0 {
			cancel()
			return "", e.createFault(ctx, w, err)
		}
		old, seen := e.api.ContainerInspect(call, name)
		cancel()
		if seen == nil && (old.Config == nil || old.Config.Labels[p.label(labelNode)] != p.cfg.Node || old.Config.Labels[p.label(labelKey)] != string(w.key)) {
			return "", refused("there is a container %s that claybot did not make; rename or remove it", name)
		}
		if seen == nil {
			if err := p.remove(ctx, e, old.ID); err != nil {
				return "", err
			}
		}
	}
}

func platformOf(text string) *specs.Platform {
	system, arch, ok := strings.Cut(text, "/")
	if !ok {
		return nil
	}
	return &specs.Platform{OS: system, Architecture: arch}
}

func (e *engine) createFault(ctx context.Context, w *want, err error) error {
	text := err.Error()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case strings.Contains(text, "runtime"):
		return &workspace.Error{
			Code: workspace.Unavailable, Err: err,
			Text: fmt.Sprintf("the Docker engine does not have the runtime %s: install it, or choose none", w.Runtime),
		}
	case strings.Contains(text, "Range of CPUs"), strings.Contains(text, "platform"):
		return refused("Docker refuses the workspace: %s", short(err))
	}
	return e.fault(ctx, "make the workspace", err)
}

// The limits of an initial script, which are those of a command that says
// nothing else.
const (
	initialWall = time.Hour
	initialIdle = time.Minute
)

func (p *Provider) initial(ctx context.Context, e *engine, s *slot, c *box) error {
	if c.w.InitialScript == "" {
		return nil
	}
	ws := &Workspace{p: p, e: e, slot: s, want: c.w, box: c, still: true}
	r, err := ws.Exec(ctx, workspace.Command{Shell: c.w.InitialScript, Wall: initialWall, Idle: initialIdle})
	if err != nil {
		if known := new(workspace.Error); errors.As(err, &known) {
			return &workspace.Error{Code: known.Code, Text: "the initial script of the workspace: " + known.Text, Output: known.Output, Err: known.Err}
		}
		return err
	}
	if r.ExitCode != 0 {
		return &workspace.Error{
			Code: workspace.Failed, Output: r.Output,
			Text: fmt.Sprintf("the initial script of the workspace ended with exit code %d; correct it in the configuration", r.ExitCode),
		}
	}
	return nil
}

// up starts a container and what belongs beside it, where that does not run. The
// caller holds the token of the slot.
func (p *Provider) up(ctx context.Context, e *engine, s *slot, c *box) error {
	call, cancel := context.WithTimeout(ctx, slowTimeout)
	defer cancel()
	got, err := e.api.ContainerInspect(call, c.id)
	if err != nil {
		return e.goneOr(ctx, "look at the workspace", err)
	}
	if got.State == nil || !got.State.Running {
		p.drop(s)
		if err := e.api.ContainerStart(call, c.id, dockercontainer.StartOptions{}); err != nil {
			return e.startFault(ctx, c.w, err)
		}
		if err := e.lives(call, c); err != nil {
			return err
		}
		s.mu.Lock()
		s.ooms = 0
		s.mu.Unlock()
	}
	if c.w.Docker != "" {
		if err := p.besideEngine(ctx, e, c); err != nil {
			return err
		}
	}
	if c.w.Network.Proxied() {
		return p.besideRelay(ctx, e, s, c)
	}
	return nil
}

// lives reports an image whose programs cannot run here: its first process ends
// at once.
func (e *engine) lives(ctx context.Context, c *box) error {
	got, err := e.api.ContainerInspect(ctx, c.id)
	if err != nil {
		return e.goneOr(ctx, "look at the workspace", err)
	}
	if got.State == nil || got.State.Running {
		return nil
	}
	return &workspace.Error{
		Code: workspace.Refused,
		Text: fmt.Sprintf("the image %s does not run on this engine (exit code %d): it needs /bin/sh and sleep, and programs for the engine's processor", c.w.Image, got.State.ExitCode),
	}
}

func (e *engine) startFault(ctx context.Context, w *want, err error) error {
	text := err.Error()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errdefs.IsNotFound(err) && strings.Contains(text, "No such container"):
		return e.goneOr(ctx, "start the workspace", err)
	case strings.Contains(text, "exec format error"), strings.Contains(text, "executable file not found"), strings.Contains(text, "no such file or directory"):
		return &workspace.Error{
			Code: workspace.Refused, Err: err,
			Text: fmt.Sprintf("the image %s cannot be started: it needs /bin/sh and sleep, and programs for the engine's processor", w.Image),
		}
	}
	return e.fault(ctx, "start the workspace", err)
}

// goneOr is fault, for a container that may have been removed.
func (e *engine) goneOr(ctx context.Context, op string, err error) error {
	if ctx.Err() == nil && errdefs.IsNotFound(err) {
		return &workspace.Error{Code: workspace.Gone, Text: "the workspace was removed meanwhile; try again", Err: err}
	}
	return e.fault(ctx, op, err)
}
