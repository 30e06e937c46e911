package claybot

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Permissions limit what an agent may do with what its profile gives it. The zero value
// limits nothing, and no value gives more than the profile.
type Permissions struct {
	// WorkingDir is the directory of the workspace in which relative paths and commands
	// begin; empty: that of the workspace.
	WorkingDir string `json:"workingDir,omitempty"`
	// ReadDirs and WriteDirs are the directories of the workspace that the agent may read
	// and write; nil: all of them.
	ReadDirs  []string `json:"readDirs,omitzero"`
	WriteDirs []string `json:"writeDirs,omitzero"`
	// Web is false for an agent without the web; nil: as the profile says.
	Web *bool `json:"web,omitempty"`
	// Routes are the agents and conversations that the agent may send to: an agent ID, or
	// connector:channel; nil: all within its reach.
	Routes []string        `json:"routes,omitzero"`
	Tools  ToolPermissions `json:"tools,omitzero"`
}

// ToolPermissions say by name which tools an agent may use: those of Allow, or all when it
// is nil, without those of Deny.
type ToolPermissions struct {
	Allow []string `json:"allow,omitzero"`
	Deny  []string `json:"deny,omitempty"`
}

// The bounds of permissions.
const (
	maxPermissionDirs  = 100
	maxPermissionNames = 500
	maxPermissionPath  = 4096 // bytes
)

// IsZero reports whether p limits nothing.
func (p Permissions) IsZero() bool {
	return p.WorkingDir == "" && p.ReadDirs == nil && p.WriteDirs == nil && p.Web == nil && p.Routes == nil &&
		p.Tools.Allow == nil && len(p.Tools.Deny) == 0
}

// Clone returns a copy of p that shares nothing with it.
func (p Permissions) Clone() Permissions {
	p.ReadDirs, p.WriteDirs, p.Routes = slices.Clone(p.ReadDirs), slices.Clone(p.WriteDirs), slices.Clone(p.Routes)
	p.Tools.Allow, p.Tools.Deny = slices.Clone(p.Tools.Allow), slices.Clone(p.Tools.Deny)
	if p.Web != nil {
		p.Web = new(*p.Web)
	}
	return p
}

// Narrow returns what both p and q permit. The working directory is that of q, if it has
// one.
func (p Permissions) Narrow(q Permissions) Permissions {
	n, q := p.Clone(), q.Clone()
	if q.WorkingDir != "" {
		n.WorkingDir = q.WorkingDir
	}
	n.ReadDirs, n.WriteDirs = commonDirs(n.ReadDirs, q.ReadDirs), commonDirs(n.WriteDirs, q.WriteDirs)
	if n.Web == nil || q.Web != nil && !*q.Web {
		n.Web = q.Web
	}
	n.Routes, n.Tools.Allow = common(n.Routes, q.Routes), common(n.Tools.Allow, q.Tools.Allow)
	for _, name := range q.Tools.Deny {
		if !slices.Contains(n.Tools.Deny, name) {
			n.Tools.Deny = append(n.Tools.Deny, name)
		}
	}
	return n
}

// common returns what is in both lists; nil is a list of everything.
func common(a, b []string) []string {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return !slices.Contains(b, x) })
}

// commonDirs returns the directories that both lists cover; nil covers everything.
func commonDirs(a, b []string) []string {
	if a == nil || b == nil {
		return common(a, b)
	}
	both := []string{}
	for _, pair := range [][2][]string{{a, b}, {b, a}} {
		for _, dir := range pair[0] {
			if inDirs(pair[1], dir) && !slices.Contains(both, dir) {
				both = append(both, dir)
			}
		}
	}
	return both
}

func inDirs(dirs []string, name string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return dir == "." || name == dir || strings.HasPrefix(name, dir+"/") })
}

// Uses reports whether the agent may use a tool of this name.
func (p Permissions) Uses(tool string) bool {
	return (p.Tools.Allow == nil || slices.Contains(p.Tools.Allow, tool)) && !slices.Contains(p.Tools.Deny, tool)
}

// Offline reports whether the agent has no web.
func (p Permissions) Offline() bool { return p.Web != nil && !*p.Web }

// Confined reports whether the agent may read or write a part of its workspace only.
func (p Permissions) Confined() bool { return p.ReadDirs != nil || p.WriteDirs != nil }

// MayRead and MayWrite report whether the agent may read or write a file or directory of
// its workspace. The path is relative to the workspace and clean.
func (p Permissions) MayRead(name string) bool {
	return p.ReadDirs == nil || inDirs(p.ReadDirs, name)
}

// MayWrite is described at MayRead.
func (p Permissions) MayWrite(name string) bool {
	return p.WriteDirs == nil || inDirs(p.WriteDirs, name)
}

// Reaches reports whether the agent may send to another agent.
func (p Permissions) Reaches(id AgentID, d Descriptor) bool {
	return p.Routes == nil || slices.Contains(p.Routes, string(id)) || d.Foreground() && slices.Contains(p.Routes, d.Connector+":"+d.ChannelID)
}

// The rights that Widen adds.
const (
	RightWeb   = "@web"
	RightRead  = "@read:"  // and a directory
	RightWrite = "@write:" // and a directory
)

// Widen returns p with one right more. It is p if p has the right.
func (p Permissions) Widen(right string) (Permissions, error) {
	p = p.Clone()
	kind, dir, found := strings.Cut(right, ":")
	if right == RightWeb {
		if p.Offline() {
			p.Web = nil
		}
		return p, nil
	}
	if !found || kind+":" != RightRead && kind+":" != RightWrite {
		return p, fmt.Errorf("invalid permission %.200q; want @web, @read:DIRECTORY or @write:DIRECTORY", right)
	}
	dir, err := cleanDir(dir)
	switch {
	case err != nil:
		return p, err
	case kind+":" == RightRead && !p.MayRead(dir):
		p.ReadDirs = append(p.ReadDirs, dir)
	case kind+":" == RightWrite && !p.MayWrite(dir):
		p.WriteDirs = append(p.WriteDirs, dir)
	}
	if len(p.ReadDirs) > maxPermissionDirs || len(p.WriteDirs) > maxPermissionDirs {
		return p, fmt.Errorf("more than %d directories; ask for a directory above them", maxPermissionDirs)
	}
	return p, nil
}

// Cleaned returns p with each directory in its one form and nothing listed twice. The error
// says what is wrong, by the JSON name of the field.
func (p Permissions) Cleaned() (Permissions, error) {
	p = p.Clone()
	var err error
	if p.WorkingDir != "" {
		if p.WorkingDir, err = cleanDir(p.WorkingDir); err != nil {
			return p, fmt.Errorf("workingDir: %w", err)
		}
		if p.WorkingDir == "." {
			p.WorkingDir = ""
		}
	}
	for _, list := range []struct {
		field string
		dirs  *[]string
	}{{"readDirs", &p.ReadDirs}, {"writeDirs", &p.WriteDirs}} {
		if *list.dirs, err = each(*list.dirs, maxPermissionDirs, cleanDir); err != nil {
			return p, fmt.Errorf("%s: %w", list.field, err)
		}
	}
	if p.Routes, err = each(p.Routes, maxPermissionNames, cleanRoute); err != nil {
		return p, fmt.Errorf("routes: %w", err)
	}
	name := func(s string) (string, error) { return s, nil }
	if p.Tools.Allow, err = each(p.Tools.Allow, maxPermissionNames, name); err != nil {
		return p, fmt.Errorf("tools.allow: %w", err)
	}
	if p.Tools.Deny, err = each(p.Tools.Deny, maxPermissionNames, name); err != nil {
		return p, fmt.Errorf("tools.deny: %w", err)
	}
	if len(p.Tools.Deny) == 0 {
		p.Tools.Deny = nil
	}
	return p, nil
}

// each cleans a list; nil stays nil.
func each(list []string, most int, clean func(string) (string, error)) ([]string, error) {
	if list == nil {
		return nil, nil
	}
	if len(list) > most {
		return nil, fmt.Errorf("%d entries, the limit is %d", len(list), most)
	}
	all := make([]string, 0, len(list))
	for _, x := range list {
		x, err := clean(x)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all, nil
}

func cleanDir(dir string) (string, error) {
	switch {
	case dir == "" || len(dir) > maxPermissionPath || !utf8.ValidString(dir) || strings.ContainsFunc(dir, unicode.IsControl):
		return "", fmt.Errorf("invalid directory %.200q; want 1 to %d bytes without control characters", dir, maxPermissionPath)
	case strings.HasPrefix(dir, "/"):
		return "", fmt.Errorf("invalid directory %.200q; want a directory relative to the workspace, such as docs", dir)
	case slices.Contains(strings.Split(dir, "/"), ".."):
		return "", fmt.Errorf("invalid directory %.200q; .. is not allowed in it", dir)
	}
	return path.Clean(dir), nil
}

func cleanRoute(route string) (string, error) {
	connector, channel, found := strings.Cut(route, ":")
	if AgentID(route).Validate() == nil || found && connector != "" && channel != "" && len(route) <= 500 && !strings.ContainsFunc(route, unicode.IsSpace) {
		return route, nil
	}
	return "", fmt.Errorf("invalid route %.200q; want an agent ID, or a conversation such as telegram:1001", route)
}
