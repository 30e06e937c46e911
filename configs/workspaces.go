package configs

import (
	"fmt"
	"slices"
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
	Provider      string            `key:"provider" words:"docker,local,off"`
	Container     Container         `key:",inline"`
	InitialScript string            `key:"initial_script"` // runs once in a new workspace
	Env           []WorkspaceVar    `key:"env,leaf" kind:"workspace variables"`
	CPUs          float64           `key:"cpus" limits:"0.01..1024" words:"a number of CPUs"`
	Memory        int64             `key:"memory" kind:"size" limits:"16m..1024t"` // bytes
	PIDs          int64             `key:"pids" limits:"8..100000"`
	Disk          int64             `key:"disk" kind:"size" limits:"1m..1024t"` // bytes
	Network       string            `key:"network" kind:"network"`              // none, allow, full or host-unsafe
	Hosts         []string          // that may be reached with allow: host, *.host or host:port
	TTL           time.Duration     `key:"ttl" limits:"1m..8784h" words:"0"` // 0: it stays until it is removed by hand
	Per           string            `key:"per" words:"agent,thread,owner"`
	Volumes       []WorkspaceVolume `key:"volumes,leaf" kind:"volumes"`
	// KillOnTimeout: a command that passes its time stops the whole workspace.
	KillOnTimeout bool `key:"kill_on_timeout"`
	Browser       bool // of a profile: there is one in its workspace, whose image has Chromium
}

// A Container is what a workspace of the provider docker runs in.
type Container struct {
	Image    string   `key:"image" kind:"image"`
	Platform string   `key:"platform" words:"linux/amd64,linux/arm64"`
	User     string   `key:"user" kind:"user"` // uid:gid, neither of them 0
	Runtime  string   `key:"runtime" kind:"runtime"`
	Docker   string   `key:"docker" kind:"image or off" default:"off"` // the image of a Docker engine of its own; empty: none
	Unsafe   []string `key:"unsafe" kind:"protections"`                // protections that are given up; the provider knows them
}

// A WorkspaceVar is a variable that commands see. Its value may be a secret.
type WorkspaceVar struct {
	Name  string
	Value Secret
}

// A WorkspaceVolume is data that outlives a workspace.
type WorkspaceVolume struct {
	Name string `key:"name"`
	Path string `key:"path"`      // absolute, in the workspace
	Read bool   `key:"read_only"` // cannot be written
}

// plainWorkspace is the Workspace in which nothing was set.
func plainWorkspace() Workspace {
	return Workspace{Provider: WorkspaceDocker, Network: NetworkNone, TTL: DefaultWorkspaceTTL, Per: PerAgent, KillOnTimeout: true}
}

// closed ends a warning after which there is no workspace: a setting that was not
// understood may have been a protection.
const closed = "no workspace"

// noWorkspace is the Workspace after a setting that is not valid.
func noWorkspace() Workspace {
	w := plainWorkspace()
	w.Provider = Off
	return w
}

// CheckLocal refuses workspaces on this machine while access is open: an unknown user could
// approve their own command and read what claybot keeps here. The text of the error ends
// with the next step, after a colon.
func (c Config) CheckLocal() error {
	if c.Access.Mode != AccessOpen {
		return nil
	}
	var names []string
	for name, p := range c.Agents.Profiles {
		if p.Workspace.Provider == WorkspaceLocal {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return &LocalError{names}
}

// A LocalError refuses that anyone can run commands on this machine.
type LocalError struct{ profiles []string }

// Error says so, with the next step after the last colon.
func (e *LocalError) Error() string {
	return fmt.Sprintf("access is open and workspaces are local (profiles: %s), so anyone could run commands on this machine: "+
		"set CLAYBOT_ACCESS=pairing, or workspaces.provider to docker or off", strings.Join(e.profiles, ", "))
}

// setWorkspace reads a group, or a provider alone. What it changes are copies, as
// profiles begin with the common one. Any mistake leaves no workspace, and
// nothing of the group.
func setWorkspace(r *reader, at place, n *yaml.Node, w *Workspace) {
	before := len(r.warnings)
	next := *w
	if n.Kind == yaml.ScalarNode {
		k, _ := keyAt("workspaces.provider")
		setterOf(k)(r, at, n, k, &next)
	} else {
		r.group(at, n, &next)
	}
	if *w = next; instead(r, before, closed) {
		*w = noWorkspace()
	}
}

// imageOrOff reads the name of an image, or off.
func imageOrOff(v string) (string, error) {
	if v == "false" || v == Off {
		return "", nil
	}
	if image, err := forms["image"].parse(v); err == nil && v != "true" {
		return image, nil
	}
	return "", fmt.Errorf("%s is not the name of an image, and not off", quote(v))
}

// Protections are what Container.Unsafe may name: unconfined for the provider local, the
// others for docker.
func Protections() []string {
	return []string{"capabilities", "docker", "exec-tmp", "new-privileges", "root", "seccomp", "unconfined", "writable-root"}
}

// setNetwork reads none, full, host-unsafe, or {allow: [...]}.
func setNetwork(r *reader, at place, n *yaml.Node, w *Workspace) {
	w.Network, w.Hosts = NetworkNone, nil
	if n.Kind != yaml.MappingNode {
		if v, ok := r.scalar(at, n); ok && v != "false" && v != Off {
			if word, err := oneOf(v, NetworkNone, NetworkFull, NetworkHostUnsafe); err != nil {
				r.refuse(at, err)
			} else {
				w.Network = word
			}
		}
		return
	}
	var hosts struct {
		Allow []string `key:"allow" kind:"workspace hosts"`
	}
	if r.group(at, n, &hosts); len(hosts.Allow) > 0 {
		w.Network, w.Hosts = NetworkAllow, hosts.Allow
	}
}

// setWorkspaceEnv reads a list of {name, value} and {name, secret}.
func setWorkspaceEnv(r *reader, at place, n *yaml.Node, env *[]WorkspaceVar) {
	type entry struct {
		Name   string `key:"name"`
		Value  string `key:"value" kind:"no secret"`
		Secret Secret `key:"secret"`
	}
	if n.Kind != yaml.SequenceNode {
		r.warn(at, "want a list of {name, value} or {name, secret}, found %s; ignored", kindOf(n))
		return
	}
	*env = nil
	for i, e := range n.Content {
		where := place{file: at.file, line: e.Line, key: fmt.Sprintf("%s[%d]", at.key, i)}
		if !isGroup[entry](r, where, e) {
			continue
		}
		var v entry
		r.group(where, e, &v)
		_, err := forms["variable"].parse(v.Name)
		switch {
		case err != nil:
			r.refuse(where, err)
		case has(e, "value") == has(e, "secret"):
			r.warn(where, "want one of value and secret; ignored")
		case slices.ContainsFunc(*env, func(o WorkspaceVar) bool { return o.Name == v.Name }):
			r.warn(where, "the variable %s is there twice; ignored", quote(v.Name))
		case has(e, "value"):
			*env = append(*env, WorkspaceVar{v.Name, NewSecret(where.key+".value", v.Value)})
		default:
			*env = append(*env, WorkspaceVar{v.Name, v.Secret})
		}
	}
}

// setVolumes reads a list of {name, path, read_only}.
func setVolumes(r *reader, at place, n *yaml.Node, volumes *[]WorkspaceVolume) {
	*volumes, _ = entries(r, at, n, "volume", func(v *WorkspaceVolume) string {
		switch {
		case !plainWord.MatchString(v.Name) || len(v.Name) > 64: // a path of this machine has a slash
			return quote(v.Name) + " is not the name of a volume; folders of this machine cannot be one"
		case !strings.HasPrefix(v.Path, "/") || v.Path == "/" || strings.Contains(v.Path, ".."):
			return quote(v.Path) + " is not an absolute path below /"
		}
		return ""
	}, func(WorkspaceVolume) string { return "" })
}
