package docker

import (
	"fmt"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/strslice"
	"github.com/docker/go-units"

	"github.com/claybot/claybot/workspace"
)

type body struct {
	config  *container.Config
	host    *container.HostConfig
	network *network.NetworkingConfig
}

// tmpSize is the space of /tmp, which is memory.
const tmpSize = "268435456"

// body is the container of a want on an image: everything that SECURITY.md asks
// for, less what Unsafe names.
func (p *Provider) body(w *want, img image) body {
	labels := p.labels(roleWorkspace, w.key)
	labels[p.label(labelSpec)] = w.digest
	labels[p.label(labelImage)] = img.id
	if w.Platform != "" {
		labels[p.label(labelPlatform)] = w.Platform
	}
	host := hardened(w)
	host.Runtime = w.Runtime
	host.Mounts = p.mounts(w, img)
	b := body{
		config: &container.Config{
			Hostname:   "workspace",
			Image:      img.id,
			User:       w.initUser(),
			WorkingDir: "/", // which the first process may enter
			Env:        env(w),
			Labels:     labels,
			// A process that only waits. It is a child of the init process, so that
			// the end of the container is not delayed by it. Both have a user of
			// their own: no command can trace, stop or end them.
			Entrypoint:  strslice.StrSlice{"/bin/sh", "-c", "exec sleep 2147483647"},
			Cmd:         strslice.StrSlice{},
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
			StopSignal:  "SIGTERM",
		},
		host: host,
	}
	if w.Network.Mode == workspace.NetworkHostUnsafe {
		host.NetworkMode = container.NetworkMode(p.bridge())
		b.network = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{p.bridge(): {}}}
	}
	return b
}

// initUID is the user of the first two processes of a container, for no command to be.
const initUID = 10000

// initUser is initUID, or the next one where the operator gave that to the commands.
func (w *want) initUser() string {
	id := initUID
	if w.uid == id {
		id++
	}
	return fmt.Sprintf("%d:%d", id, id)
}

// hardened is what every container of a want is held to; the relay is one of a want
// without Unsafe.
func hardened(w *want) *container.HostConfig {
	yes := true
	pids := w.PIDs
	tmp := "rw,nosuid,nodev,mode=1777,size=" + tmpSize
	if !w.unsafe(UnsafeExecutable) {
		tmp += ",noexec"
	} else {
		tmp += ",exec"
	}
	h := &container.HostConfig{
		NetworkMode:    "none",
		IpcMode:        "private",
		CgroupnsMode:   "private",
		Init:           &yes,
		ReadonlyRootfs: !w.unsafe(UnsafeWritable),
		CapDrop:        strslice.StrSlice{"ALL"},
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		LogConfig:      container.LogConfig{Type: "none"},
		Tmpfs:          map[string]string{"/tmp": tmp},
		Resources: container.Resources{
			Memory:     w.Memory,
			MemorySwap: w.Memory, // the sum of both: no swap
			NanoCPUs:   int64(w.CPUs * 1e9),
			PidsLimit:  &pids,
			Ulimits: []*units.Ulimit{
				{Name: "nofile", Soft: 1024, Hard: 1024},
				{Name: "core"},
				{Name: "fsize", Soft: w.Disk, Hard: w.Disk},
			},
		},
	}
	if w.unsafe(UnsafeCapabilities) {
		h.CapDrop = nil
	}
	if !w.unsafe(UnsafePrivileges) {
		h.SecurityOpt = append(h.SecurityOpt, "no-new-privileges:true")
	}
	filter := seccomp()
	if w.unsafe(UnsafeSeccomp) {
		filter = "unconfined"
	}
	h.SecurityOpt = append(h.SecurityOpt, "seccomp="+filter)
	return h
}

func env(w *want) []string {
	// The mark tells the first process from those that commands leave.
	vars := []string{"HOME=" + home, "LANG=C.UTF-8", "TERM=dumb", marker + "=0"}
	vars = append(vars, workspace.FileVars()...) // without a value: those of the image are taken away
	if w.Network.Proxied() {
		for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
			vars = append(vars, name+"=http://"+RelayAddress)
		}
		vars = append(vars, "no_proxy=localhost,127.0.0.1,::1", "NO_PROXY=localhost,127.0.0.1,::1")
	}
	if w.Docker != "" {
		vars = append(vars, "DOCKER_HOST=unix://"+engineSocket)
	}
	for _, v := range w.Env {
		vars = append(vars, v.Name+"="+v.Value)
	}
	return vars
}

// mounts are the files of the workspace and the volumes of its Spec. What an
// image declares as a volume would be space on the host without a limit, so a
// small one in memory takes its place.
func (p *Provider) mounts(w *want, img image) []mount.Mount {
	list := []mount.Mount{volumeAt(p.dataVolume(w.key), home, false)}
	taken := map[string]bool{home: true, "/tmp": true}
	for _, v := range w.Volumes {
		list = append(list, volumeAt(p.sharedVolume(v.Name), v.Path, v.Read))
		taken[v.Path] = true
	}
	if w.Docker != "" {
		list = append(list, volumeAt(p.socketVolume(w.key), engineDir, true))
		taken[engineDir] = true
	}
	for _, path := range img.volumes {
		if !taken[path] {
			list = append(list, mount.Mount{
				Type: mount.TypeTmpfs, Target: path, TmpfsOptions: &mount.TmpfsOptions{SizeBytes: 16 << 20, Mode: 0o1777},
			})
		}
	}
	return list
}

func volumeAt(name, path string, read bool) mount.Mount {
	return mount.Mount{
		Type: mount.TypeVolume, Source: name, Target: path, ReadOnly: read,
		// Nothing of the image is copied into it, nor its owners.
		VolumeOptions: &mount.VolumeOptions{NoCopy: true},
	}
}
