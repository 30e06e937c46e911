package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The values of Workspace.Provider, beside Off.
const (
	WorkspaceDocker = "docker"
	WorkspaceLocal  = "local" // folders of this machine
)

// The values of Workspace.Per.
const (
	PerAgent  = "agent"
	PerThread = "thread"
	PerOwner  = "owner" // all agents of one person share one
)

// DefaultWorkspaceTTL is how long a workspace lives after its last use.
const DefaultWorkspaceTTL = 24 * time.Hour

// A Workspace is where an agent's commands run. The zero value of a limit and
// of Container is the provider's default.
type Workspace struct {
	Provider      string // docker, local or off
	Container     Container
	InitialScript string // runs once in a new workspace
	Env           []WorkspaceVar
	CPUs          float64
	Memory        int64 // bytes
	PIDs          int64
	Disk          int64         // bytes
	Network       string        // none, allow or full
	Hosts         []string      // that may be reached with allow: host, *.host or host:port
	TTL           time.Duration // 0: it stays until somebody removes it
	Per           string        // agent, thread or owner
	Volumes       []WorkspaceVolume
	// KillOnTimeout: a command that passes its time stops the whole workspace.
	KillOnTimeout bool
	Browser       bool // of a profile: there is one in its workspace, whose image has Chromium
}

// A Container is what a workspace of the provider docker runs in.
type Container struct {
	Image    string
	Platform string // linux/amd64, linux/arm64
	User     string // uid:gid, neither of them 0
	Runtime  string
	Docker   string   // the image of a Docker engine of its own; empty: none
	Unsafe   []string // protections that are given up; the provider knows them
}

// A WorkspaceVar is a variable that commands see. Its value may be a secret.
type WorkspaceVar struct {
	Name  string
	Value Secret
}

// A WorkspaceVolume is data that outlives a workspace.
type WorkspaceVolume struct {
	Name string
	Path string // absolute, in the workspace
	Read bool   // cannot be written
}

// plainWorkspace is the Workspace in which nothing was set.
func plainWorkspace() Workspace {
	return Workspace{Provider: WorkspaceDocker, Network: NetworkNone, TTL: DefaultWorkspaceTTL, Per: PerAgent, KillOnTimeout: true}
}

// closed ends a warning after which there is no workspace: a setting that was not
// understood may have been a protection.
const closed = "no workspace"

// setWorkspace reads a group, or a provider alone. What it changes are copies, as
// profiles begin with the common one. Any mistake leaves no workspace, and
// nothing of the group.
func setWorkspace(r *reader, at place, n *yaml.Node, w *Workspace) {
	before := len(r.warnings)
	next := *w
	switch n.Kind {
	case yaml.MappingNode:
		group(r, at, n, &next, workspaceKeys())
	case yaml.ScalarNode:
		r.workspaceProvider(at, strings.TrimSpace(n.Value), &next)
	default:
		r.warn(at, "want a group of keys (%s), found %s; ignored", strings.Join(names(workspaceKeys()), ", "), kind(n))
	}
	if len(r.warnings) == before {
		*w = next
		return
	}
	instead(r, before, closed)
	*w = plainWorkspace()
	w.Provider = Off
}

func (r *reader) workspaceProvider(at place, v string, w *Workspace) {
	if v == "false" {
		v = Off
	}
	word, ok := r.word(at, v, WorkspaceDocker, WorkspaceLocal, Off)
	store(&w.Provider, word, ok)
}

var (
	imageName = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9._/:@-]{0,254}$`)
	userForm  = regexp.MustCompile(`^[1-9][0-9]{0,8}:[1-9][0-9]{0,8}$`)
	plainWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	allowHost = regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)
)

// matching makes a key whose value has a form.
func matching(name string, form *regexp.Regexp, what string, to func(*Workspace) *string) key[Workspace] {
	return text(name, func(r *reader, at place, v string, w *Workspace) {
		if !form.MatchString(v) {
			r.warn(at, "%s is not %s; ignored", quote(v), what)
			return
		}
		*to(w) = v
	})
}

func workspaceKeys() []key[Workspace] {
	return []key[Workspace]{
		text("provider", func(r *reader, at place, v string, w *Workspace) { r.workspaceProvider(at, v, w) }),
		matching("image", imageName, "the name of an image", func(w *Workspace) *string { return &w.Container.Image }),
		text("platform", func(r *reader, at place, v string, w *Workspace) {
			word, ok := r.word(at, v, "linux/amd64", "linux/arm64")
			store(&w.Container.Platform, word, ok)
		}),
		text("initial_script", func(_ *reader, _ place, v string, w *Workspace) { w.InitialScript = v }),
		{"env", setWorkspaceEnv},
		text("cpus", func(r *reader, at place, v string, w *Workspace) {
			f, ok := decimal(v)
			if !ok || f < 0.01 || f > 1024 {
				r.warn(at, "%s is not a number of CPUs from 0.01 to 1024; ignored", quote(v))
				return
			}
			w.CPUs = f
		}),
		text("memory", func(r *reader, at place, v string, w *Workspace) { r.size(at, v, 16<<20, &w.Memory) }),
		text("pids", func(r *reader, at place, v string, w *Workspace) {
			n, ok := r.number(at, v, 8, 100_000)
			store(&w.PIDs, int64(n), ok)
		}),
		text("disk", func(r *reader, at place, v string, w *Workspace) { r.size(at, v, 1<<20, &w.Disk) }),
		{"network", setWorkspaceNetwork},
		text("ttl", func(r *reader, at place, v string, w *Workspace) {
			d, err := time.ParseDuration(v)
			if v != "0" && (err != nil || d != 0 && d < time.Minute || d > 366*24*time.Hour) {
				r.warn(at, "%s is not a time such as 24h, from 1m to 8784h, and not 0; ignored", quote(v))
				return
			}
			w.TTL = d
		}),
		text("per", func(r *reader, at place, v string, w *Workspace) {
			word, ok := r.word(at, v, PerAgent, PerThread, PerOwner)
			store(&w.Per, word, ok)
		}),
		matching("user", userForm, "a user such as 10001:10001, and not root", func(w *Workspace) *string { return &w.Container.User }),
		{"volumes", setWorkspaceVolumes},
		matching("runtime", plainWord, "the name of a runtime", func(w *Workspace) *string { return &w.Container.Runtime }),
		text("docker", func(r *reader, at place, v string, w *Workspace) {
			switch {
			case v == "false" || v == Off:
				w.Container.Docker = ""
			case v == "true" || !imageName.MatchString(v):
				r.warn(at, "%s is not the name of an image, and not off; ignored", quote(v))
			default:
				w.Container.Docker = v
			}
		}),
		text("kill_on_timeout", func(r *reader, at place, v string, w *Workspace) { r.truth(at, v, &w.KillOnTimeout) }),
		{"unsafe", setWorkspaceUnsafe},
	}
}

// Protections are what Workspace.Unsafe may name, as the provider docker knows them.
func Protections() []string {
	return []string{"capabilities", "docker", "exec-tmp", "new-privileges", "root", "seccomp", "writable-root"}
}

func setWorkspaceUnsafe(r *reader, at place, n *yaml.Node, w *Workspace) {
	items, _ := r.list(at, n)
	w.Container.Unsafe = nil
	for _, it := range items {
		if !slices.Contains(Protections(), it.text) {
			r.warn(it.at, "%s is not the name of a protection, which are %s; ignored", quote(it.text), strings.Join(Protections(), ", "))
			continue
		}
		w.Container.Unsafe = append(w.Container.Unsafe, it.text)
	}
}

// size reads a number of bytes such as 512m.
func (r *reader) size(at place, v string, least int64, to *int64) {
	digits := strings.TrimRight(strings.ToLower(v), "kmgtib")
	unit, known := map[string]int64{
		"": 1, "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20,
		"g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30, "t": 1 << 40, "tb": 1 << 40, "tib": 1 << 40,
	}[strings.ToLower(v)[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n < 1 || n > (1<<50)/unit || n*unit < least {
		r.warn(at, "%s is not a size such as 512m or 2g, of at least %d bytes; ignored", quote(v), least)
		return
	}
	*to = n * unit
}

// setWorkspaceNetwork reads none, full, or {allow: [...]}.
func setWorkspaceNetwork(r *reader, at place, n *yaml.Node, w *Workspace) {
	w.Network, w.Hosts = NetworkNone, nil
	if n.Kind != yaml.MappingNode {
		if v, ok := r.scalar(at, n); ok {
			if v == "false" || v == Off {
				v = NetworkNone
			}
			word, ok := r.word(at, v, NetworkNone, NetworkFull)
			store(&w.Network, word, ok)
		}
		return
	}
	group(r, at, n, w, []key[Workspace]{{"allow", func(r *reader, at place, n *yaml.Node, w *Workspace) {
		items, _ := r.list(at, n)
		for _, it := range items {
			name := strings.ToLower(it.text)
			if !allowHost.MatchString(name) || len(name) > 260 {
				r.warn(it.at, "%s is not a host such as example.org, *.example.org or example.org:443; ignored", quote(it.text))
				continue
			}
			if !slices.Contains(w.Hosts, name) {
				w.Hosts = append(w.Hosts, name)
			}
		}
		if len(w.Hosts) > 0 {
			w.Network = NetworkAllow
		}
	}}})
}

// setWorkspaceEnv reads a list of {name, value} and {name, secret}.
func setWorkspaceEnv(r *reader, at place, n *yaml.Node, w *Workspace) {
	if n.Kind != yaml.SequenceNode {
		r.warn(at, "want a list of {name, value} or {name, secret}, found %s; ignored", kind(n))
		return
	}
	w.Env = nil
	for i, e := range n.Content {
		where := place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i)}
		v, given := WorkspaceVar{}, 0
		if e.Kind != yaml.MappingNode {
			r.warn(where, "want name and value, or name and secret, found %s; ignored", kind(e))
			continue
		}
		group(r, where, e, &v, []key[WorkspaceVar]{
			text("name", func(_ *reader, _ place, s string, v *WorkspaceVar) { v.Name = s }),
			text("value", func(r *reader, at place, s string, v *WorkspaceVar) {
				given++
				if secretive(s) {
					r.warn(at, "a secret must not stand in the file; write secret: env:NAME or secret: file:path instead; ignored")
					return
				}
				v.Value = NewSecret(at.key, s)
			}),
			text("secret", func(r *reader, at place, s string, v *WorkspaceVar) {
				given++
				v.Value = r.reference(at, s)
			}),
		})
		switch {
		case !envName.MatchString(v.Name):
			r.warn(where, "%s is not the name of a variable; ignored", quote(v.Name))
		case given != 1:
			r.warn(where, "want one of value and secret; ignored")
		case slices.ContainsFunc(w.Env, func(o WorkspaceVar) bool { return o.Name == v.Name }):
			r.warn(where, "the variable %s is there twice; ignored", quote(v.Name))
		default:
			w.Env = append(w.Env, v)
		}
	}
}

// setWorkspaceVolumes reads a list of {name, path, read_only}.
func setWorkspaceVolumes(r *reader, at place, n *yaml.Node, w *Workspace) {
	if n.Kind != yaml.SequenceNode {
		r.warn(at, "want a list of {name, path, read_only}, found %s; ignored", kind(n))
		return
	}
	w.Volumes = nil
	for i, e := range n.Content {
		where := place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i)}
		var v WorkspaceVolume
		group(r, where, e, &v, []key[WorkspaceVolume]{
			text("name", func(_ *reader, _ place, s string, v *WorkspaceVolume) { v.Name = s }),
			text("path", func(_ *reader, _ place, s string, v *WorkspaceVolume) { v.Path = s }),
			text("read_only", func(r *reader, at place, s string, v *WorkspaceVolume) { r.truth(at, s, &v.Read) }),
		})
		switch {
		case !plainWord.MatchString(v.Name): // a path of this machine has a slash
			r.warn(where, "%s is not the name of a volume; folders of this machine cannot be one; ignored", quote(v.Name))
		case !strings.HasPrefix(v.Path, "/") || v.Path == "/" || strings.Contains(v.Path, ".."):
			r.warn(where, "%s is not an absolute path below /; ignored", quote(v.Path))
		default:
			w.Volumes = append(w.Volumes, v)
		}
	}
}
