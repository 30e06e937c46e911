package workspace

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
)

// Check rejects what no provider supports: negative numbers, invalid platforms,
// modes and names, duplicate variables. The error has code Refused.
func (s Spec) Check() error {
	refuse := func(format string, args ...any) error {
		return &Error{Code: Refused, Text: fmt.Sprintf(format, args...)}
	}
	for _, n := range []struct {
		name  string
		value int64
	}{{"memory", s.Memory}, {"pids", s.PIDs}, {"disk", s.Disk}} {
		if n.value < 0 {
			return refuse("the %s of a workspace must not be below 0", n.name)
		}
	}
	switch {
	case s.CPUs < 0 || math.IsNaN(s.CPUs) || math.IsInf(s.CPUs, 0):
		return refuse("the cpus of a workspace must be a number above 0")
	case s.Platform != "" && s.Platform != "linux/amd64" && s.Platform != "linux/arm64":
		return refuse("the platform %.80q is not linux/amd64 or linux/arm64", s.Platform)
	case !slices.Contains([]string{"", NetworkNone, NetworkAllow, NetworkFull, NetworkHostUnsafe}, s.Network.Mode):
		return refuse("the network %.80q is not none, allow, full or host-unsafe", s.Network.Mode)
	case s.Network.Mode == NetworkAllow && len(s.Network.Allow) == 0:
		return refuse("the network allows no host; say none, or name hosts")
	case s.Network.Mode != NetworkAllow && len(s.Network.Allow) > 0:
		return refuse("hosts are allowed in the network mode allow alone")
	case hasNUL(s.InitialScript):
		return refuse("the initial script has a NUL character")
	}
	if err := checkVars(s.Env); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, v := range s.Env {
		if seen[v.Name] {
			return refuse("the variable %.80q is there twice", v.Name)
		}
		seen[v.Name] = true
	}
	for _, v := range s.Volumes {
		if !volumeName.MatchString(v.Name) || !strings.HasPrefix(v.Path, "/") {
			return refuse("the volume %.80q needs a name of a-z, 0-9, _ . - and an absolute path", v.Name)
		}
	}
	return nil
}

var volumeName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// ExitReason says in words what an exit code means that comes from a signal;
// empty for all others.
func ExitReason(code int) string {
	switch code {
	case 128 + 2:
		return "interrupted (signal 2)"
	case 128 + 6:
		return "aborted (signal 6)"
	case 128 + 9:
		return "killed (signal 9), which often means that memory ran out"
	case 128 + 11:
		return "crashed: it touched memory that is not its own (signal 11)"
	case 128 + 15:
		return "asked to end (signal 15)"
	case 128 + 25:
		return "a file became larger than allowed (signal 25)"
	}
	if code > 128 && code <= 128+64 {
		return fmt.Sprintf("ended by signal %d", code-128)
	}
	return ""
}

// Is reports whether err is an Error of a code.
func Is(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}
