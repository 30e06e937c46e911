package tools

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// RequestPermission is the name of the tool with which an agent asks its person for a right
// that its permissions take away.
const RequestPermission = "request_permission"

// Rights give agents what their permissions take away.
type Rights interface {
	// Grant stores a right of an agent; see claybot.Permissions.Widen. It may be called again.
	Grant(ctx context.Context, agent claybot.AgentID, right string) error
}

// A Permit returns why a call of a tool may not be made, in words for the model; nil if it
// may. nil args stand for every call of the tool. It is asked with its name alone about a tool that is not in
// the set, and may then say only that an operator has stopped it, with FaultStopped.
type Permit func(spec Spec, args json.RawMessage) error

// Permitted returns the set under the permissions of its agent. may is asked for them each
// time that the tools are listed, that a call is checked, and directly before a tool runs,
// so a change is in force at the next call. Undo is not subject to them.
func (s *Set) Permitted(may func() Permit) *Set {
	part := *s
	part.may = may
	return &part
}

// permits returns why a call may not be made; nil if it may.
func (s *Set) permits(spec Spec, args json.RawMessage) *Fault {
	if s.may == nil || spec.Name == Finish {
		return nil
	}
	err := s.may()(spec, args)
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return &Fault{Code: FaultForbidden, Text: spec.Name + " was not called: " + err.Error()}
}

// Tools are the descriptions for the model, in the order given to NewSet, so
// that requests stay equal byte for byte. They are those that are permitted now.
func (s *Set) Tools() []llm.Tool {
	all := slices.Clone(s.offered)
	if s.may == nil {
		return all
	}
	may := s.may()
	return slices.DeleteFunc(all, func(t llm.Tool) bool { return t.Name != Finish && may(s.entries[t.Name].spec, nil) != nil })
}

// Forbids returns what permissions say against every call of a tool; empty: nothing.
// network reports whether the commands of the agent have a network.
func Forbids(p claybot.Permissions, spec Spec, network bool) string {
	shell := slices.Contains(spec.Scopes, ScopeShell)
	switch {
	case spec.Name == RequestPermission && !p.Offline() && !p.Confined():
		return "nothing is left to ask for: this agent has the web and all directories of its workspace, as far as its profile goes"
	case !p.Uses(spec.Name):
		return "this agent is not permitted to use it"
	case p.Offline() && (slices.Contains(spec.Scopes, ScopeWeb) || slices.Contains(spec.Scopes, ScopeBrowser)):
		return "this agent has no permission for the web"
	case p.Offline() && shell && network:
		return "this agent has no permission for the web, which commands in its workspace reach"
	case p.Confined() && (shell || slices.Contains(spec.Scopes, ScopeBrowser)):
		return "this agent may use some directories only, and commands and browsers cannot be limited to them; use the file tools"
	}
	return ""
}
