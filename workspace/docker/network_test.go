package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	engineimage "github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/workspace"
)

// insideProgram is what runs beside workspaces: the relay, and something that
// listens where an engine would.
const insideProgram = `package main

import (
	"context"
	"net"
	"os"
	"strings"

	"github.com/claybot/claybot/egress"
)

type stdio struct{}

func (stdio) Read(b []byte) (int, error)  { return os.Stdin.Read(b) }
func (stdio) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (stdio) Close() error                { return os.Stdin.Close() }

func main() {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "--host=unix://") {
		l, err := net.Listen("unix", strings.TrimPrefix(os.Args[1], "--host=unix://"))
		if err != nil {
			panic(err)
		}
		if err := os.Chmod(l.Addr().String(), 0o666); err != nil {
			panic(err)
		}
		for {
			if c, err := l.Accept(); err == nil {
				_, _ = c.Write([]byte("an engine"))
				_ = c.Close()
			}
		}
	}
	if err := egress.Relay(context.Background(), os.Args[1], stdio{}); err != nil {
		panic(err)
	}
}
`

func insidePath(t *testing.T) string { return buildProgram(t, insideProgram, runtime.GOARCH) }

// buildProgram builds a program for Linux, without the C library.
func buildProgram(t *testing.T, text, arch string) string {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "dockerd")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// TestAllow reaches one host through the relay and nothing else, also after
// another process took over and after the relay died.
func TestAllow(t *testing.T) {
	t.Parallel()
	served := func(text string) (url, address string) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, text) }))
		t.Cleanup(s.Close)
		return s.URL, s.Listener.Addr().String()
	}
	good, address := served("let in")
	bad, _ := served("must not be seen")
	tunnel := func(ctx context.Context, _ workspace.Key, network workspace.Network, conn io.ReadWriteCloser) error {
		d, err := egress.New(egress.Policy{Private: network.Allow})
		if err != nil {
			return err
		}
		proxy := egress.NewProxy(d)
		defer proxy.Close()
		return proxy.ServeTunnel(ctx, conn)
	}
	var p *Provider
	t.Cleanup(func() { removeImages(t, p) }) // after the containers
	p = provider(t, func(c *Config) {
		c.Relay, c.Tunnel = Relay{Path: insidePath(t), Args: []string{RelayAddress}}, tunnel
	})
	const key = "agent/allow"
	spec := workspace.Spec{
		Network: workspace.Network{Mode: workspace.NetworkAllow, Allow: []string{address}},
		// What is given up is for the commands, not for the relay.
		Unsafe: []string{UnsafeWritable, UnsafeExecutable, UnsafePrivileges, UnsafeSeccomp}, User: "12345:12345",
	}
	check := func(t *testing.T, w *Workspace) {
		t.Helper()
		if r := sh(t, w, "wget -q -O - "+good); r.Output != "let in" {
			t.Errorf("the host that is allowed: %+v", r)
		}
		for name, line := range map[string]string{
			"another host":               "wget -q -O - " + bad,
			"another host, by a name":    "wget -q -O - " + strings.Replace(bad, "127.0.0.1", "localhost", 1),
			"the host without the relay": "http_proxy= wget -T 2 -q -O - " + good,
			"the internet":               "nc -w 2 1.1.1.1 443 </dev/null",
			"a name":                     "nslookup example.com",
		} {
			if r := sh(t, w, line); r.ExitCode == 0 || strings.Contains(r.Output, "must not be seen") {
				t.Errorf("%s is reached: %+v", name, r)
			}
		}
	}
	w := opened(t, p, key, spec)
	check(t, w)
	relays := func() []string {
		list, err := raw(t).ContainerList(t.Context(), container.ListOptions{Filters: p.filter(roleSidecar, key)})
		if err != nil {
			t.Fatal(err)
		}
		ids := []string{}
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		return ids
	}
	first := relays()
	if len(first) != 1 {
		t.Fatalf("relays %v", first)
	}
	relay := inspect(t, first[0])
	h := relay.HostConfig
	if relay.Config.User != relayUser || !slices.Equal(h.SecurityOpt, []string{"no-new-privileges:true", "seccomp=" + seccomp()}) || !strings.Contains(h.Tmpfs["/tmp"], "noexec") {
		t.Errorf("the relay is run by %s with %s", relay.Config.User, asJSON(t, h))
	}
	if string(h.NetworkMode) != "container:"+w.box.id || h.Privileged || !h.ReadonlyRootfs || len(h.CapDrop) != 1 || len(h.Mounts) != 0 || len(h.Binds) != 0 {
		t.Errorf("the relay is %s", asJSON(t, h))
	}
	// The relay is killed: the next command has another.
	if err := raw(t).ContainerKill(t.Context(), first[0], "KILL"); err != nil {
		t.Fatal(err)
	}
	for w.slot.tunnelled(w.box.id) && t.Context().Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	check(t, w)
	// The process ends, and another takes over, in the same container.
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	next := provider(t, func(c *Config) { *c = p.cfg })
	taken := opened(t, next, key, spec)
	if taken.box.id != w.box.id {
		t.Error("the container was not taken over")
	}
	if now := relays(); len(now) != 1 || now[0] == first[0] {
		t.Errorf("relays %v, before %v", now, first)
	}
	check(t, taken)
	if err := next.Remove(t.Context(), key, true); err != nil {
		t.Fatal(err)
	}
	if left := relays(); len(left) != 0 {
		t.Errorf("relays are left: %v", left)
	}
}

// octal is bytes as printf of a shell takes them.
func octal(b ...byte) (text string) {
	for _, c := range b {
		text += fmt.Sprintf("\\%03o", c)
	}
	return text
}

// TestFull reaches the web through the door, by HTTP and by SOCKS, and nothing of this
// machine, its networks or its cloud.
func TestFull(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "let in") }))
	t.Cleanup(s.Close)
	var p *Provider
	t.Cleanup(func() { removeImages(t, p) }) // after the containers
	modes := make(chan string, 8)
	p = provider(t, func(c *Config) {
		c.Relay = Relay{Path: insidePath(t), Args: []string{RelayAddress}}
		c.Tunnel = func(ctx context.Context, _ workspace.Key, network workspace.Network, conn io.ReadWriteCloser) error {
			modes <- network.Mode
			// The server stands for the web, which a test does not have.
			d, err := egress.New(egress.Policy{Public: true, AnyPort: true, Private: []string{s.Listener.Addr().String()}})
			if err != nil {
				return err
			}
			proxy := egress.NewProxy(d)
			defer proxy.Close()
			return proxy.ServeTunnel(ctx, conn)
		}
	})
	w := opened(t, p, "agent/full", workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkFull}})
	if mode := <-modes; mode != workspace.NetworkFull || string(inspect(t, w.box.id).HostConfig.NetworkMode) != "none" {
		t.Fatalf("tunnel %s, network %s", mode, inspect(t, w.box.id).HostConfig.NetworkMode)
	}
	at := s.Listener.Addr().(*net.TCPAddr)
	greeting := octal(5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, byte(at.Port>>8), byte(at.Port))
	socks := func(request string) string {
		return "printf '" + request + "GET / HTTP/1.0\\r\\n\\r\\n' | nc " + strings.ReplaceAll(RelayAddress, ":", " ")
	}
	for what, line := range map[string]string{"by HTTP": "wget -q -O - " + s.URL, "by SOCKS": socks(greeting)} {
		if r := sh(t, w, line); !strings.HasSuffix(r.Output, "let in") {
			t.Errorf("%s: %+v", what, r)
		}
	}
	tries := map[string]string{
		"without the proxy":     "http_proxy= wget -T 2 -q -O - " + s.URL,
		"the internet directly": "nc -w 2 1.1.1.1 443 </dev/null",
		"a name by UDP":         "nslookup example.com",
		"metadata directly":     "nc -w 2 169.254.169.254 80 </dev/null",
	}
	for _, host := range append(hostAddresses(t), "169.254.169.254", "168.63.129.16", "100.100.100.200", "192.168.0.1", "10.0.0.1", "localhost:22", "[fd00:ec2::254]") {
		tries[host+" by HTTP"] = "wget -q -O - http://" + host + "/"
	}
	for name, line := range tries {
		if r := sh(t, w, line); r.ExitCode == 0 {
			t.Errorf("%s is reached: %+v", name, r)
		}
	}
	for _, host := range [][]byte{{127, 0, 0, 1}, {169, 254, 169, 254}, {168, 63, 129, 16}, {172, 17, 0, 1}} {
		refusal := string([]byte{5, 0, 5, 2})
		request := octal(append(append([]byte{5, 1, 0, 5, 1, 0, 1}, host...), 0, 80)...)
		if r := sh(t, w, "printf '"+request+"' | nc "+strings.ReplaceAll(RelayAddress, ":", " ")+" | head -c 4 | od -An -tx1"); strings.TrimSpace(r.Output) != fmt.Sprintf("% x", refusal) {
			t.Errorf("%v by SOCKS: %+v", host, r)
		}
	}
}

// TestHostUnsafe has a network of its own, without a way to other containers.
func TestHostUnsafe(t *testing.T) {
	t.Parallel()
	var p *Provider
	t.Cleanup(func() { removeShared(t, p) })
	p = provider(t)
	a := opened(t, p, "agent/unsafe a", workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkHostUnsafe}})
	b := opened(t, p, "agent/unsafe b", workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkHostUnsafe}})
	net0 := inspect(t, a.box.id).NetworkSettings.Networks[p.bridge()]
	if net0 == nil || len(inspect(t, a.box.id).NetworkSettings.Networks) != 1 {
		t.Fatalf("networks %+v", inspect(t, a.box.id).NetworkSettings.Networks)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(net0.Gateway, "0"))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("with CI=true all tests run, and this engine is not on this machine")
		}
		t.Skipf("the engine's network is not of this machine: %v", err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello\n")
			_ = c.Close()
		}
	}()
	host, port, _ := net.SplitHostPort(l.Addr().String())
	if r := sh(t, a, "nc -w 120 "+host+" "+port+" </dev/null"); r.Output != "hello\n" {
		t.Errorf("the network does not work: %+v", r)
	}
	server, err := a.Pipe(t.Context(), workspace.Command{Shell: "echo a secret | nc -l -p 8080"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	sh(t, a, "until grep -q :1F90 /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done")
	if r := sh(t, b, "nc -w 2 "+net0.IPAddress+" 8080 </dev/null"); r.ExitCode == 0 || strings.Contains(r.Output, "secret") {
		t.Errorf("one workspace reaches another: %+v", r)
	}
}

// TestDocker has an engine of its own beside a workspace. The one of the test is
// no engine, but is waited for and reached as one.
func TestDocker(t *testing.T) {
	t.Parallel()
	var p *Provider
	t.Cleanup(func() { removeImages(t, p); removeShared(t, p) })
	p = provider(t, func(c *Config) { c.Relay.Path = insidePath(t) })
	e, err := p.engine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	image := engineImage(t, p, e)
	p.unprivileged = !privileged(t)
	const key = "agent/docker"
	_, err = p.Open(t.Context(), key, workspace.Spec{Docker: image})
	wantCode(t, "without its name", err, workspace.Refused, UnsafeDocker)
	w := opened(t, p, key, workspace.Spec{Docker: image, Unsafe: []string{UnsafeDocker}, InitialScript: "[ -S " + engineSocket + " ] && echo $DOCKER_HOST > before"})
	if r := sh(t, w, "cat before; nc local:"+engineSocket+" </dev/null 2>/dev/null; ls -l "+engineDir); !strings.HasPrefix(r.Output, "unix://"+engineSocket+"\n") {
		t.Errorf("the script ran before the engine was ready: %+v", r)
	}
	list, err := e.api.ContainerList(t.Context(), container.ListOptions{Filters: p.filter(roleSidecar, key)})
	if err != nil || len(list) != 1 {
		t.Fatalf("beside it: %+v, %v", list, err)
	}
	got := inspect(t, list[0].ID)
	if string(got.HostConfig.NetworkMode) != "none" || !slices.Contains(got.Config.Env, "DOCKER_TLS_CERTDIR=") || len(got.HostConfig.Binds) != 0 || strings.Contains(string(asJSON(t, got.Mounts)), "/var/run/docker.sock") {
		t.Errorf("the engine beside it: %s", asJSON(t, got.HostConfig))
	}
	if got.HostConfig.Privileged == p.unprivileged {
		t.Errorf("privileged %v", got.HostConfig.Privileged)
	}
	if ws := inspect(t, w.box.id); ws.HostConfig.Privileged || string(ws.HostConfig.NetworkMode) != "none" {
		t.Errorf("the workspace: %s", asJSON(t, ws.HostConfig))
	}
	if err := p.Remove(t.Context(), key, true); err != nil {
		t.Fatal(err)
	}
	if exists, _ := there(t, list[0].ID); exists {
		t.Error("the engine beside it is left")
	}
	opened(t, p, key, workspace.Spec{Docker: image, Unsafe: []string{UnsafeDocker}, Network: workspace.Network{Mode: workspace.NetworkHostUnsafe}})
	list, err = e.api.ContainerList(t.Context(), container.ListOptions{Filters: p.filter(roleSidecar, key)})
	if err != nil || len(list) != 1 || list[0].HostConfig.NetworkMode != p.bridge() {
		t.Errorf("with the network host-unsafe, beside it: %+v, %v", list, err)
	}
}

// privileged reports whether the engine may run privileged containers.
func privileged(t *testing.T) bool {
	t.Helper()
	c := raw(t)
	made, err := c.ContainerCreate(t.Context(), &container.Config{Image: testImage, Cmd: []string{"true"}}, &container.HostConfig{Privileged: true, NetworkMode: "none"}, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.ContainerRemove(context.WithoutCancel(t.Context()), made.ID, container.RemoveOptions{Force: true})
	if err := c.ContainerStart(t.Context(), made.ID, container.StartOptions{}); err != nil {
		t.Logf("the engine beside the workspace is not privileged here, as this machine's engine may not do that: %v", err)
		return false
	}
	return true
}

// engineImage is an image with the program as dockerd.
func engineImage(t *testing.T, p *Provider, e *engine) string {
	t.Helper()
	b, err := os.ReadFile(insidePath(t))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	a := tar.NewWriter(&archive)
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "run/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "work/", Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: "bin/dockerd", Mode: 0o755, Size: int64(len(b))},
	} {
		if err := a.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	_, err = a.Write(b)
	if err = errors.Join(err, a.Close()); err != nil {
		t.Fatal(err)
	}
	name := "claybot-test-engine:" + sum(p.cfg.Node)
	out, err := e.api.ImageImport(t.Context(), engineimage.ImportSource{Source: &archive, SourceName: "-"}, name, engineimage.ImportOptions{Changes: []string{"ENV PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := pulled(out); err != nil {
		t.Fatal(err)
	}
	return name
}

// removeImages removes the images that the tests of a provider have made.
func removeImages(t *testing.T, p *Provider) {
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
	names := []string{"claybot-test-engine:" + sum(p.cfg.Node)}
	p.relay.mu.Lock()
	if p.relay.ref != "" {
		names = append(names, p.relay.ref)
	}
	p.relay.mu.Unlock()
	for _, name := range names {
		_, _ = c.ImageRemove(ctx, name, engineimage.RemoveOptions{PruneChildren: true})
	}
}
