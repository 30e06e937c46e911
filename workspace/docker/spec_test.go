package docker

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/claybot/claybot/workspace"
)

// TestHostile refuses what cannot be, or must not, before the engine is asked.
func TestHostile(t *testing.T) {
	t.Parallel()
	p := New(Config{Host: "unix:///nowhere/docker.sock", Image: testImage})
	defer p.Close()
	volume := func(name, at string) workspace.Spec {
		return workspace.Spec{Volumes: []workspace.Volume{{Name: name, Path: at}}}
	}
	env := func(name, value string) workspace.Spec {
		return workspace.Spec{Env: []workspace.Var{{Name: name, Value: value}}}
	}
	network := func(mode string, allow ...string) workspace.Spec {
		return workspace.Spec{Network: workspace.Network{Mode: mode, Allow: allow}}
	}
	specs := map[string]workspace.Spec{
		"the engine's socket":               volume("/var/run/docker.sock", "/var/run/docker.sock"),
		"the root of the host":              volume("/", "/data"),
		"a folder of the host":              volume("/home/me/.config/claybot", "/data"),
		"a relative folder":                 volume("../x", "/data"),
		"a hidden folder":                   volume(".ssh", "/data"),
		"the home of the operator":          volume("~", "/data"),
		"the files of another workspace":    volume("claybot-other-000000000000-data", "/data"),
		"a volume over the programs":        volume("v", "/bin"),
		"a volume over the system":          volume("v", "/etc/ssl"),
		"a volume over the processes":       volume("v", "/proc"),
		"a volume over the root":            volume("v", "/"),
		"a volume over the workspace":       volume("v", "/work"),
		"a volume by a crooked path":        volume("v", "/data/../etc"),
		"a volume with options in its path": volume("v", "/data:rw"),
		"two volumes at one place":          {Volumes: []workspace.Volume{{Name: "a", Path: "/d"}, {Name: "b", Path: "/d"}}},
		"the network of the host":           network("host"),
		"the network of another":            network("container:abc"),
		"a bridge":                          network("bridge"),
		"allow without hosts":               network("allow"),
		"allow without a relay":             network("allow", "example.com"),
		"full without a relay":              network("full"),
		"hosts without allow":               network("none", "example.com"),
		"user root":                         {User: "0:0"},
		"group root":                        {User: "10001:0"},
		"user by name":                      {User: "root"},
		"user without a group":              {User: "10001"},
		"user with a sign":                  {User: "+1:1"},
		"user beyond":                       {User: "4294967295:1"},
		"negative memory":                   {Memory: -1},
		"no memory to speak of":             {Memory: 1 << 20},
		"all memory":                        {Memory: math.MaxInt64},
		"negative processors":               {CPUs: -1},
		"no number of processors":           {CPUs: math.NaN()},
		"infinite processors":               {CPUs: math.Inf(1)},
		"processes without a limit":         {PIDs: -1},
		"too many processes":                {PIDs: math.MaxInt64},
		"space without a limit":             {Disk: -1},
		"too much space":                    {Disk: math.MaxInt64},
		"an unknown platform":               {Platform: "linux/mips"},
		"another system":                    {Platform: "windows/amd64"},
		"an image with an option":           {Image: "--privileged"},
		"an image with a space":             {Image: "a b"},
		"an image of a path":                {Image: "../../etc"},
		"a runtime with a path":             {Runtime: "/tmp/evil"},
		"an engine without a name for it":   {Docker: "docker:dind"},
		"a protection that is not there":    {Unsafe: []string{"privileged"}},
		"the socket by a name":              {Unsafe: []string{"docker.sock"}},
		"a protection twice":                {Unsafe: []string{UnsafeRoot, UnsafeRoot}},
		"another engine":                    env("DOCKER_HOST", "tcp://1.2.3.4:2375"),
		"another proxy":                     env("HTTPS_PROXY", "http://evil"),
		"another proxy in small letters":    env("http_proxy", "http://evil"),
		"the mark of commands":              env(marker, "x"),
		"a file of every shell":             env("ENV", "/work/rc"),
		"a file of every bash":              env("BASH_ENV", "/work/rc"),
		"a variable without a name":         env("", "x"),
		"a variable with a sign":            env("A=B", "x"),
		"a variable with a NUL":             env("A", "x\x00y"),
		"a script with a NUL":               {InitialScript: "a\x00"},
		"a script that is too long":         {InitialScript: strings.Repeat("x", 1<<17)},
	}
	for name, s := range specs {
		_, err := p.Open(t.Context(), "agent/hostile", s)
		wantCode(t, name, err, workspace.Refused)
	}
	for _, key := range []workspace.Key{"", "a\nb", "a\x00", workspace.Key(strings.Repeat("k", 300)), "\xff"} {
		_, err := p.Open(t.Context(), key, workspace.Spec{})
		wantCode(t, "the key "+string(key), err, workspace.Refused)
	}
	t.Logf("%d hostile specs are refused", len(specs))
}

// TestContainer compares containers that are really made with every line of what
// is promised of them.
func TestContainer(t *testing.T) {
	t.Parallel()
	var p *Provider
	t.Cleanup(func() { removeShared(t, p) }) // after the containers
	p = provider(t)
	const socket = "docker.sock"
	for _, tt := range []struct {
		name string
		spec workspace.Spec
	}{
		{"defaults", workspace.Spec{}},
		{"the user of the first process", workspace.Spec{User: "10000:10000"}},
		{"all that is allowed", workspace.Spec{
			CPUs: 0.5, Memory: 64 << 20, PIDs: 50, Disk: 1 << 30, User: "12345:12346", Network: workspace.Network{Mode: "host-unsafe"},
			Volumes: []workspace.Volume{{Name: "shared", Path: "/data"}, {Name: "read", Path: "/read", Read: true}},
			Env:     []workspace.Var{{Name: "A", Value: "b"}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := opened(t, p, workspace.Key("agent/"+tt.name), tt.spec)
			got := inspect(t, w.box.id)
			h, want := got.HostConfig, w.want
			ulimits := make(map[string][2]int64)
			for _, u := range h.Ulimits {
				ulimits[u.Name] = [2]int64{u.Soft, u.Hard}
			}
			binds := slices.ContainsFunc(got.Mounts, func(m container.MountPoint) bool { return m.Type != "volume" && m.Type != "tmpfs" })
			alien := slices.ContainsFunc(got.Mounts, func(m container.MountPoint) bool {
				return m.Type == "volume" && m.Name != p.dataVolume(want.key) && !strings.HasPrefix(m.Name, p.sharedVolume(""))
			})
			network := "none"
			if want.Network.Mode == workspace.NetworkHostUnsafe {
				network = p.bridge()
			}
			for line, ok := range map[string]bool{
				"user":            got.Config.User == want.initUser() && got.Config.User != want.User && !strings.HasPrefix(got.Config.User, "0"),
				"capabilities":    slices.Equal([]string(h.CapDrop), []string{"ALL"}) && len(h.CapAdd) == 0,
				"privileges":      slices.Equal(h.SecurityOpt, []string{"no-new-privileges:true", "seccomp=" + seccomp()}) && !h.Privileged,
				"pid namespace":   h.PidMode == "",
				"ipc namespace":   h.IpcMode == "private",
				"uts namespace":   h.UTSMode == "",
				"user namespace":  h.UsernsMode == "",
				"cgroups":         h.CgroupnsMode == "private" && h.CgroupParent == "",
				"root":            h.ReadonlyRootfs,
				"tmp":             strings.Contains(h.Tmpfs["/tmp"], "noexec") && strings.Contains(h.Tmpfs["/tmp"], "nosuid,nodev") && strings.Contains(h.Tmpfs["/tmp"], "size=268435456") && len(h.Tmpfs) == 1,
				"network":         string(h.NetworkMode) == network && len(h.PortBindings) == 0 && !h.PublishAllPorts && len(h.Links) == 0,
				"memory":          h.Memory == want.Memory && h.MemorySwap == want.Memory,
				"processors":      h.NanoCPUs == int64(want.CPUs*1e9),
				"processes":       h.PidsLimit != nil && *h.PidsLimit == want.PIDs,
				"files":           ulimits["nofile"] == [2]int64{1024, 1024},
				"core":            ulimits["core"] == [2]int64{},
				"size of files":   ulimits["fsize"] == [2]int64{want.Disk, want.Disk},
				"init":            h.Init != nil && *h.Init,
				"binds":           len(h.Binds) == 0 && !binds && !alien && len(h.VolumesFrom) == 0,
				"socket":          !strings.Contains(string(asJSON(t, got.HostConfig)), socket) && !strings.Contains(string(asJSON(t, got.Mounts)), socket),
				"devices":         len(h.Devices) == 0 && len(h.DeviceRequests) == 0 && len(h.DeviceCgroupRules) == 0,
				"groups":          len(h.GroupAdd) == 0,
				"kernel settings": len(h.Sysctls) == 0,
				"logs":            h.LogConfig.Type == "none",
				"restarts":        h.RestartPolicy.Name == "no",
				"label role":      got.Config.Labels["claybot.role"] == "workspace" && got.Config.Labels["claybot.agent"] == tt.name,
				"label node":      got.Config.Labels["claybot.node"] == p.cfg.Node && got.Config.Labels["claybot.spec"] == want.digest,
				"label image":     strings.HasPrefix(got.Config.Labels["claybot.image"], "sha256:") && strings.HasPrefix(got.Config.Image, "sha256:"),
				"env": !slices.ContainsFunc(got.Config.Env, func(v string) bool {
					return strings.HasPrefix(v, "DOCKER_") || strings.HasPrefix(v, "ENV=") || strings.Contains(strings.ToLower(v), "_proxy")
				}),
			} {
				if !ok {
					t.Errorf("%s: %s", line, asJSON(t, h))
				}
			}
			if r := sh(t, w, "id -u; id -g; touch /work/f && ulimit -n; cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null"); r.ExitCode > 1 || !strings.HasPrefix(r.Output, strings.Replace(want.User, ":", "\n", 1)+"\n") {
				t.Errorf("%+v", r)
			}
			for _, v := range want.Volumes {
				if r := sh(t, w, "echo x > "+v.Path+"/f"); (r.ExitCode == 0) == v.Read {
					t.Errorf("writing to the volume %s: %+v", v.Name, r)
				}
			}
		})
	}
}

// removeShared removes what a test's provider shares between workspaces, which a
// Provider never does by itself.
func removeShared(t *testing.T, p *Provider) {
	t.Helper()
	if p == nil {
		return // skipped
	}
	ctx := context.WithoutCancel(t.Context())
	c, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, i := range []string{"shared", "read"} {
		_ = c.VolumeRemove(ctx, p.sharedVolume(i), true)
	}
	_ = c.NetworkRemove(ctx, p.bridge())
}
