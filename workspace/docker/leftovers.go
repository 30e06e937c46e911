package docker

import (
	"context"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/claybot/claybot/workspace"
)

// EndLeftovers ends commands of an earlier process, whose limits are not watched any
// more. It is called before the first command of this process.
// An engine that is not there has nothing to end.
func (p *Provider) EndLeftovers(ctx context.Context) error {
	e, err := p.connect()
	if err != nil {
		return unavailable(err)
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
		if err != nil || !p.running(ctx, e, got.ExecIDs) {
			continue // gone, or nothing runs
		}
		p.log.Info("a command of an earlier process is ended", "container", one.ID[:12], "key", one.Labels[p.label(labelKey)])
		if err := e.api.ContainerKill(ctx, one.ID, "KILL"); err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
			return e.fault(ctx, "end what was left", err)
		}
	}
	return nil
}
