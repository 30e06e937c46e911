package docker

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/workspace"
)

const (
	defaultUser   = "10001:10001"
	defaultCPUs   = 1
	defaultMemory = 1 << 30
	defaultPIDs   = 256
	defaultDisk   = 4 << 30
)

// hardening changes when containers are made in another way, so that those of an
// older claybot are replaced.
const hardening = 4

const home = "/work"

// A want is a Spec that was checked and has no defaults left.
type want struct {
	workspace.Spec
	key      workspace.Key
	uid, gid int
	// digest is of all that cannot change in a container. The platform is not in
	// it: a wish for none takes what there is.
	digest string
}

func (w *want) unsafe(name string) bool { return slices.Contains(w.Unsafe, name) }

// want checks a Spec. Whatever cannot be, or must not, is refused and not
// ignored.
func (p *Provider) want(key workspace.Key, s workspace.Spec) (*want, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	s.Image = cmp.Or(s.Image, p.cfg.Image)
	s.User = cmp.Or(s.User, defaultUser)
	s.CPUs = cmp.Or(s.CPUs, defaultCPUs)
	s.Memory = cmp.Or(s.Memory, defaultMemory)
	s.PIDs = cmp.Or(s.PIDs, defaultPIDs)
	s.Disk = cmp.Or(s.Disk, defaultDisk)
	s.Network.Mode = cmp.Or(s.Network.Mode, workspace.NetworkNone)
	s.Unsafe = slices.Sorted(slices.Values(s.Unsafe))
	w := &want{Spec: s, key: key}
	for _, check := range []func(*want) error{
		checkUnsafe, checkImages, checkUser, checkLimits, p.checkVolumes, p.checkNetwork, checkEnv, checkScript,
	} {
		if err := check(w); err != nil {
			return nil, err
		}
	}
	w.digest = w.sum()
	return w, nil
}

// sum is the digest of a want. The order of lists counts, as it may for the
// container.
func (w *want) sum() string {
	s := w.Spec
	s.Platform, s.KeepOnTimeout = "", false
	b, err := json.Marshal(struct {
		Hardening int
		Spec      workspace.Spec
	}{hardening, s})
	if err != nil {
		panic("docker: a spec cannot be written as JSON: " + err.Error()) // only numbers that checkLimits refuses
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:16])
}

func checkKey(key workspace.Key) error {
	if key == "" || len(key) > 256 || !printable(string(key)) {
		return refused("the key of a workspace must have 1 to 256 readable characters")
	}
	return nil
}

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func checkUnsafe(w *want) error {
	for i, name := range w.Unsafe {
		if !slices.Contains(Unsafe(), name) {
			return refused("unknown protection %q; a workspace can give up: %s", clip(name, 40), strings.Join(Unsafe(), ", "))
		}
		if i > 0 && w.Unsafe[i-1] == name {
			return refused("the protection %q is given up twice", name)
		}
	}
	return nil
}

var imageName = lazyregexp.New(`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::[0-9]{1,5})?/)?` +
	`[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*` +
	`(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`)

var runtimeName = lazyregexp.New(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`)

func checkImages(w *want) error {
	if len(w.Image) > 255 || !imageName.MatchString(w.Image) {
		return refused("invalid image name %q; write one such as debian:bookworm-slim", clip(w.Image, 80))
	}
	switch w.Platform {
	case "", "linux/amd64", "linux/arm64":
	default:
		return refused("the platform %q is not known; write linux/amd64, linux/arm64 or nothing", clip(w.Platform, 40))
	}
	if w.Runtime != "" && !runtimeName.MatchString(w.Runtime) {
		return refused("invalid runtime name %q", clip(w.Runtime, 40))
	}
	if w.Docker == "" {
		return nil
	}
	if !w.unsafe(UnsafeDocker) {
		return refused("a Docker engine beside the workspace needs a privileged container; name %q among the unsafe settings to allow that", UnsafeDocker)
	}
	if len(w.Docker) > 255 || !imageName.MatchString(w.Docker) {
		return refused("invalid image name %q for the Docker engine", clip(w.Docker, 80))
	}
	return nil
}

func checkUser(w *want) error {
	u, g, _ := strings.Cut(w.User, ":")
	uid, err := strconv.ParseUint(u, 10, 31)
	gid, err2 := strconv.ParseUint(g, 10, 31)
	if err != nil || err2 != nil || fmt.Sprintf("%d:%d", uid, gid) != w.User {
		return refused("the user %q is not written as two numbers, such as %s", clip(w.User, 40), defaultUser)
	}
	if (uid == 0 || gid == 0) && !w.unsafe(UnsafeRoot) {
		return refused("the user of a workspace must not be root; name %q among the unsafe settings to allow that", UnsafeRoot)
	}
	w.uid, w.gid = int(uid), int(gid)
	return nil
}

func checkLimits(w *want) error {
	switch {
	case math.IsNaN(w.CPUs) || w.CPUs < 0.01 || w.CPUs > 1024:
		return refused("the limit of processors must be 0.01 to 1024")
	case w.Memory < 16<<20 || w.Memory > 1<<44:
		return refused("the limit of memory must be 16 MiB to 16 TiB")
	case w.PIDs < 8 || w.PIDs > 1<<20:
		return refused("the limit of processes must be 8 to 1048576")
	case w.Disk < 1<<20 || w.Disk > 1<<50:
		return refused("the limit of space must be 1 MiB to 1 PiB")
	}
	return nil
}

var volumeName = lazyregexp.New(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)

// kept are the places of a container that no volume may cover.
var kept = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var/run", engineDir,
}

// checkVolumes refuses whatever is a path of the host. The names of volumes are
// looked up below a prefix of their own, so that the files of another workspace,
// or of another program, have no name here.
func (p *Provider) checkVolumes(w *want) error {
	var paths []string
	for _, v := range w.Volumes {
		if strings.ContainsAny(v.Name, `/\`) || strings.HasPrefix(v.Name, ".") || strings.HasPrefix(v.Name, "~") {
			return refused("%q is a path: folders of this machine, and the Docker socket, are never given to a workspace; name a volume", clip(v.Name, 80))
		}
		if !volumeName.MatchString(v.Name) {
			return refused("invalid volume name %q; use letters, digits, dots and dashes", clip(v.Name, 80))
		}
		if strings.HasPrefix(v.Name, p.word()+"-") {
			return refused("the volume %q is not for this workspace: names beginning with %s- are claybot's own", clip(v.Name, 80), p.word())
		}
		if !printable(v.Path) || !path.IsAbs(v.Path) || path.Clean(v.Path) != v.Path || len(v.Path) > 255 || strings.ContainsAny(v.Path, ":,") {
			return refused("the path %q of the volume %s is not a clean absolute path", clip(v.Path, 80), v.Name)
		}
		if v.Path == "/" || v.Path == "/var" || v.Path == home || slices.ContainsFunc(kept, func(at string) bool { return below(v.Path, at) }) {
			return refused("a volume cannot be at %s; choose a place such as %s/shared or /data", clip(v.Path, 80), home)
		}
		if slices.Contains(paths, v.Path) {
			return refused("two volumes are to be at %s", v.Path)
		}
		paths = append(paths, v.Path)
	}
	return nil
}

func below(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

func (p *Provider) checkNetwork(w *want) error {
	n := w.Network
	switch n.Mode {
	case workspace.NetworkNone, workspace.NetworkFull, workspace.NetworkHostUnsafe:
		if len(n.Allow) > 0 {
			return refused("hosts are listed, but the network is %s; choose the network allow, or list none", n.Mode)
		}
	case workspace.NetworkAllow:
	default:
		return refused("the network %q is not known; write none, allow, full or host-unsafe. The network of another container is never given", clip(n.Mode, 40))
	}
	if n.Mode == workspace.NetworkAllow && len(n.Allow) == 0 {
		return refused("the network is allow, but no host is listed; list hosts, or choose none")
	}
	for _, host := range n.Allow {
		if !hostPattern(host) {
			return refused("invalid allow-list host %q; write example.com, *.example.com or example.com:443", clip(host, 80))
		}
	}
	if n.Proxied() && (p.cfg.Relay.Path == "" || p.cfg.Tunnel == nil) {
		return refused("the network %s needs claybot's relay, which this installation does not have; choose none or host-unsafe", n.Mode)
	}
	return nil
}

var hostName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\*\.)?[\p{L}\p{N}_](?:[\p{L}\p{N}_-]*[\p{L}\p{N}])?(?:\.[\p{L}\p{N}_](?:[\p{L}\p{N}_-]*[\p{L}\p{N}])?)*\.?$`)
})

// hostPattern reports whether a text can be in an allow-list. What it means is
// decided by the proxy.
func hostPattern(text string) bool {
	host := text
	if h, port, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return false
		}
		host = h
	}
	return len(text) <= 260 && (hostName().MatchString(host) || net.ParseIP(host) != nil)
}

var envName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// ownEnv are the variables that only claybot sets, in lower case.
var ownEnv = []string{"http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "no_proxy"}

func checkEnv(w *want) error { return checkVars(w.Env) }

// checkVars refuses variables that cannot be, are there twice, or would turn the
// workspace to another proxy or engine.
func checkVars(env []workspace.Var) error {
	seen := make(map[string]bool, len(env))
	for _, v := range env {
		upper := strings.ToUpper(v.Name)
		switch {
		case !envName.MatchString(v.Name):
			return refused("invalid variable name %q", clip(v.Name, 40))
		case seen[v.Name]:
			return refused("the variable %s is there twice", v.Name)
		case strings.HasPrefix(upper, "DOCKER_"), strings.HasPrefix(upper, "CLAYBOT_"), slices.Contains(ownEnv, strings.ToLower(v.Name)):
			return refused("the variable %s is set by claybot alone", v.Name)
		case slices.Contains(workspace.FileVars(), v.Name):
			return refused("the variable %s makes shells read a file of its own; leave it out", v.Name)
		case strings.ContainsRune(v.Value, 0) || len(v.Value) > 64<<10:
			return refused("the value of the variable %s has a NUL, or more than 64 KiB", v.Name)
		}
		seen[v.Name] = true
	}
	return nil
}

func checkScript(w *want) error {
	if len(w.InitialScript) > 64<<10 || strings.ContainsRune(w.InitialScript, 0) || !utf8.ValidString(w.InitialScript) {
		return refused("the initial script must be text of at most 64 KiB")
	}
	return nil
}

// The protections that an operator can give up, each by its name in Spec.Unsafe.
// Each loosens one line of what every container has. The engine's socket, the
// namespaces and folders of the host, and the volumes of other workspaces cannot
// be had by any name.
const (
	// UnsafeRoot allows a User of 0. Root has no capabilities even so.
	UnsafeRoot = "root"
	// UnsafeCapabilities leaves the capabilities that the engine gives by default.
	UnsafeCapabilities = "capabilities"
	// UnsafePrivileges lets programs gain rights when they start, as sudo does.
	UnsafePrivileges = "new-privileges"
	// UnsafeWritable makes the whole file system of the container writable, which
	// the limit of space does not cover.
	UnsafeWritable = "writable-root"
	// UnsafeExecutable lets programs run from /tmp.
	UnsafeExecutable = "exec-tmp"
	// UnsafeSeccomp allows all system calls.
	UnsafeSeccomp = "seccomp"
	// UnsafeDocker allows Spec.Docker: a privileged container beside the
	// workspace, whose user is as good as root on the machine.
	UnsafeDocker = "docker"
)

// Unsafe has all names that Spec.Unsafe may hold, in the order of the alphabet.
func Unsafe() []string {
	return []string{
		UnsafeCapabilities, UnsafeDocker, UnsafeExecutable, UnsafePrivileges, UnsafeRoot, UnsafeSeccomp, UnsafeWritable,
	}
}
