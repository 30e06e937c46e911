package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/shell"
)

// permit returns what the permissions of an agent say about a call now.
func (b *toolbox) permit(a claybot.Agent) tools.Permit {
	p, err := b.permissions(a)
	return func(spec tools.Spec, _ json.RawMessage) error {
		if err != nil {
			return &tools.Fault{
				Code: tools.FaultForbidden, Retriable: true, After: time.Minute,
				Text: fmt.Sprintf("%s was not called: the permissions of this agent cannot be read now; try again later", spec.Name),
			}
		}
		if why := tools.Forbids(p, spec, b.online(a)); why != "" {
			return errors.New(why)
		}
		return nil
	}
}

// permissions returns what an agent may do now. Where they cannot be read, nothing is
// permitted.
func (b *toolbox) permissions(a claybot.Agent) (claybot.Permissions, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	p, err := b.system().Profiles.Permissions(ctx, a)
	if err != nil {
		b.log.Error("failed to read the permissions of an agent; its tools are refused", "agent", a.ID, "err", err)
	}
	return p, err
}

// online reports whether the commands of an agent have a network. Those on this machine
// have its network.
func (b *toolbox) online(a claybot.Agent) bool {
	w := b.config.profile(a).Workspace
	return w.Provider == configs.WorkspaceLocal || shell.LetsIn(w.Network)
}

// forbids returns what permissions say against the tools of an agent; empty: nothing.
func (b *toolbox) forbids(a claybot.Agent, p claybot.Permissions) func(tool string) string {
	set, online := b.given(a), b.online(a)
	return func(tool string) string {
		spec, ok := set.Spec(tool)
		if !ok {
			return ""
		}
		return tools.Forbids(p, spec, online)
	}
}
