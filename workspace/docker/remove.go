package docker

import (
	"context"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/volume"

	"github.com/claybot/claybot/workspace"
)

// stopGrace is how long a container may take to end in order, in seconds.
const stopGrace = 10

// discard removes a container of a workspace and, before it, what is beside it.
// The caller holds the token of the slot.
func (p *Provider) discard(ctx context.Context, e *engine, s *slot, key workspace.Key, id string) error {
	s.mu.Lock()
	t := s.tunnel
	s.mu.Unlock()
	if t != nil && t.parent == id {
		p.drop(s)
	}
	if err := p.removeSidecars(ctx, e, key, id, ""); err != nil {
		return err
	}
	return p.remove(ctx, e, id)
}

// remove stops and removes a container. That it is stopped, gone, or going
// already is success.
func (p *Provider) remove(ctx context.Context, e *engine, id string) error {
	call, cancel := context.WithTimeout(ctx, slowTimeout)
	defer cancel()
	grace := stopGrace
	err := e.api.ContainerStop(call, id, container.StopOptions{Timeout: &grace})
	if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsNotModified(err) {
		return e.fault(ctx, "stop the workspace", err)
	}
	err = e.api.ContainerRemove(call, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if err == nil || errdefs.IsNotFound(err) {
		return nil
	}
	if strings.Contains(err.Error(), "already in progress") {
		return p.vanished(call, e, id)
	}
	return e.fault(ctx, "remove the workspace", err)
}

func (p *Provider) vanished(ctx context.Context, e *engine, id string) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := e.api.ContainerInspect(ctx, id); err != nil {
			if errdefs.IsNotFound(err) {
				return nil
			}
			return e.fault(ctx, "remove the workspace", err)
		}
		select {
		case <-ctx.Done():
			return e.fault(ctx, "remove the workspace", ctx.Err())
		case <-tick.C:
		}
	}
}

// Remove implements workspace.Provider. Commands that run in the workspace end.
func (p *Provider) Remove(ctx context.Context, key workspace.Key, data bool) error {
	if err := checkKey(key); err != nil {
		return err
	}
	e, err := p.engine(ctx)
	if err != nil {
		return err
	}
	s := p.slot(key)
	if err := s.opening.Take(ctx); err != nil {
		return err
	}
	defer s.opening.Give()
	found, err := p.find(ctx, e, key)
	if err != nil {
		return err
	}
	for _, one := range found {
		if err := p.discard(ctx, e, s, key, one.ID); err != nil {
			return err
		}
	}
	p.drop(s)
	for _, role := range []string{roleSidecar, roleHelper} { // whose workspace another process has removed
		if err := p.removeAll(ctx, e, p.filter(role, key)); err != nil {
			return err
		}
	}
	if !data {
		return nil
	}
	return p.removeData(ctx, e, key)
}

// removeData removes the volumes of a key; those that several share stay.
func (p *Provider) removeData(ctx context.Context, e *engine, key workspace.Key) error {
	call, cancel := context.WithTimeout(ctx, slowTimeout)
	defer cancel()
	list, err := e.api.VolumeList(call, volume.ListOptions{Filters: p.filter(roleData, key)})
	if err != nil {
		return e.fault(ctx, "list the files of the workspace", err)
	}
	for _, v := range list.Volumes {
		if err := e.api.VolumeRemove(call, v.Name, true); err != nil && !errdefs.IsNotFound(err) {
			return e.fault(ctx, "remove the files of the workspace", err)
		}
	}
	return nil
}

// List implements workspace.Provider. Those that were never finished are among
// them, so that they are removed.
func (p *Provider) List(ctx context.Context) ([]workspace.Info, error) {
	e, err := p.engine(ctx)
	if err != nil {
		return nil, err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := e.api.ContainerList(call, container.ListOptions{All: true, Filters: p.filter(roleWorkspace, "")})
	if err != nil {
		return nil, e.fault(ctx, "list the workspaces", err)
	}
	infos := make([]workspace.Info, 0, len(list))
	for _, one := range list {
		infos = append(infos, workspace.Info{
			Key: workspace.Key(one.Labels[p.label(labelKey)]), Provider: p.Name(), ID: one.ID[:min(12, len(one.ID))], Image: one.Image,
			Platform: one.Labels[p.label(labelPlatform)], State: one.State, Made: time.Unix(one.Created, 0).UTC(),
		})
	}
	return infos, nil
}

// EndLeftovers ends what an earlier process left running: commands, whose limits are not
// watched any more, and what commands left behind. It is called before the first command
// of this process. An engine that is not there has nothing to end.
func (p *Provider) EndLeftovers(ctx context.Context) error {
	e, err := p.connect()
	if err != nil {
		return unavailable(err)
	}
	if err := e.agree(ctx); err != nil { // others may ask the engine at the same time
		if workspace.Is(err, workspace.Unavailable) {
			return nil
		}
		return err
	}
	list, err := e.api.ContainerList(ctx, container.ListOptions{Filters: p.filter(roleWorkspace, "")})
	if err != nil {
		if err = e.fault(ctx, "list the workspaces", err); workspace.Is(err, workspace.Unavailable) {
			return nil
		}
		return err
	}
	for _, one := range list {
		got, err := e.api.ContainerInspect(ctx, one.ID)
		if err != nil {
			continue // gone
		}
		if n, _, err := e.tasks(ctx, one.ID); !p.running(ctx, e, got.ExecIDs) && (err != nil || n <= ownTasks) {
			continue // nothing runs
		}
		p.log.Info("stopped a command of an earlier process", "container", one.ID[:12], "key", one.Labels[p.label(labelKey)])
		if err := e.api.ContainerKill(ctx, one.ID, "KILL"); err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
			return e.fault(ctx, "end what was left", err)
		}
	}
	return nil
}
