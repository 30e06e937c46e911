package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"path"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/strslice"
	"github.com/docker/docker/api/types/volume"
)

// volumes makes the volumes of a want that are not there yet, and gives those
// that claybot made to the want's user.
func (p *Provider) volumes(ctx context.Context, e *engine, w *want, img image) error {
	mounts := []mount.Mount{volumeAt(p.dataVolume(w.key), home, false)}
	if err := p.volume(ctx, e, volume.CreateOptions{Name: p.dataVolume(w.key), Labels: p.labels(roleData, w.key)}); err != nil {
		return err
	}
	for _, v := range w.Volumes {
		labels := p.labels(roleShared, "")
		labels[p.label(labelVolume)] = v.Name
		if err := p.volume(ctx, e, volume.CreateOptions{Name: p.sharedVolume(v.Name), Labels: labels}); err != nil {
			return err
		}
		if !v.Read {
			mounts = append(mounts, volumeAt(p.sharedVolume(v.Name), v.Path, false))
		}
	}
	if w.Docker != "" {
		o := volume.CreateOptions{
			Name: p.socketVolume(w.key), Labels: p.labels(roleData, w.key), Driver: "local",
			DriverOpts: map[string]string{"type": "tmpfs", "device": "tmpfs", "o": "size=1m,mode=0755"},
		}
		if err := p.volume(ctx, e, o); err != nil {
			return err
		}
	}
	return p.own(ctx, e, w, img, mounts)
}

// volume makes one. An existing one stays as it is, but must be this
// installation's.
func (p *Provider) volume(ctx context.Context, e *engine, o volume.CreateOptions) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	v, err := e.api.VolumeCreate(call, o)
	if err != nil {
		return e.fault(ctx, "make a volume", err)
	}
	for name, value := range o.Labels {
		if v.Labels[name] != value {
			return refused("there is a volume %s that claybot did not make; rename or remove it", o.Name)
		}
	}
	return nil
}

// own gives the tops of volumes to the user of the workspace.
//
// A new volume belongs to root, and nothing in a workspace may be root. So the
// engine itself writes the folder with its owner: it unpacks an archive into a
// container that has the volumes, and that is never started. No process runs for
// this, neither as root nor otherwise.
func (p *Provider) own(ctx context.Context, e *engine, w *want, img image, mounts []mount.Mount) error {
	call, cancel := context.WithTimeout(ctx, slowTimeout)
	defer cancel()
	// Away from the paths of the image, whose links could lead elsewhere.
	const at = "/claybot-volumes"
	for i := range mounts {
		mounts[i].Target = path.Join(at, string(rune('a'+i%26))+sum(mounts[i].Source))
	}
	var off int64 = 8
	id, err := p.make(call, e, body{
		config: &container.Config{Image: img.id, Entrypoint: strslice.StrSlice{"/never-started"}, Labels: p.labels(roleHelper, w.key)},
		host: &container.HostConfig{
			NetworkMode: "none", CapDrop: strslice.StrSlice{"ALL"}, SecurityOpt: []string{"no-new-privileges:true"},
			Mounts: mounts, LogConfig: container.LogConfig{Type: "none"}, Resources: container.Resources{PidsLimit: &off},
		},
	}, w, p.name(w.key)+"-volumes")
	if err != nil {
		return err
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		if err := e.api.ContainerRemove(clean, id, container.RemoveOptions{Force: true, RemoveVolumes: true}); err != nil && !errdefs.IsNotFound(err) {
			p.log.Warn("failed to remove a container that prepared a volume", "container", id, "err", err)
		}
	}()
	var archive bytes.Buffer
	t := tar.NewWriter(&archive)
	for _, m := range mounts {
		err = t.WriteHeader(&tar.Header{
			Typeflag: tar.TypeDir, Name: m.Target[1:] + "/", Mode: 0o700, Uid: w.uid, Gid: w.gid, ModTime: time.Now(),
		})
		if err != nil {
			return e.fault(ctx, "prepare the volumes", err)
		}
	}
	if err := t.Close(); err != nil {
		return e.fault(ctx, "prepare the volumes", err)
	}
	if err := e.api.CopyToContainer(call, id, "/", &archive, container.CopyToContainerOptions{}); err != nil {
		return e.fault(ctx, "prepare the volumes", err)
	}
	return nil
}

func (p *Provider) bridge() string { return p.word() + "-full-" + sum(p.cfg.Node) }

// network makes the network of mode host-unsafe when it is missing: a bridge of its own
// on which containers cannot reach each other.
func (p *Provider) network(ctx context.Context, e *engine) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := e.api.NetworkInspect(call, p.bridge(), network.InspectOptions{})
	if err == nil {
		if found.Labels[p.label(labelNode)] != p.cfg.Node || found.Options[noTraffic] != "false" {
			return refused("there is a network %s that claybot did not make; rename or remove it", p.bridge())
		}
		return nil
	}
	if !errdefs.IsNotFound(err) {
		return e.fault(ctx, "look for the network", err)
	}
	_, err = e.api.NetworkCreate(call, p.bridge(), network.CreateOptions{
		Driver: "bridge", Labels: p.labels(roleNetwork, ""), Options: map[string]string{noTraffic: "false"},
	})
	if err != nil && !errdefs.IsConflict(err) {
		return e.fault(ctx, "make the network", err)
	}
	return nil
}

// noTraffic is the option that, when false, keeps containers apart.
const noTraffic = "com.docker.network.bridge.enable_icc"
