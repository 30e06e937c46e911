package docker

import (
	"context"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
)

func (p *Provider) fullNetwork() string { return p.word() + "-full-" + sum(p.cfg.Node) }

// network makes the network of mode full when it is missing: a bridge of its own
// on which containers cannot reach each other.
func (p *Provider) network(ctx context.Context, e *engine) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := e.api.NetworkInspect(call, p.fullNetwork(), network.InspectOptions{})
	if err == nil {
		if found.Labels[p.label(labelNode)] != p.cfg.Node || found.Options[noTraffic] != "false" {
			return refused("there is a network %s that claybot did not make; rename or remove it", p.fullNetwork())
		}
		return nil
	}
	if !errdefs.IsNotFound(err) {
		return e.fault(ctx, "look for the network", err)
	}
	_, err = e.api.NetworkCreate(call, p.fullNetwork(), network.CreateOptions{
		Driver: "bridge", Labels: p.labels(roleNetwork, ""), Options: map[string]string{noTraffic: "false"},
	})
	if err != nil && !errdefs.IsConflict(err) {
		return e.fault(ctx, "make the network", err)
	}
	return nil
}

// noTraffic is the option that, when false, keeps containers apart.
const noTraffic = "com.docker.network.bridge.enable_icc"
