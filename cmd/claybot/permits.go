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
	questions "github.com/claybot/claybot/tools/ask"
	"github.com/claybot/claybot/tools/documents"
	"github.com/claybot/claybot/tools/shell"
	"github.com/claybot/claybot/workspace"
)

// permit returns what the permissions of an agent say about a call now.
func (b *toolbox) permit(a claybot.Agent) tools.Permit {
	p, err := b.permissions(a)
	online := b.online(a)
	return func(spec tools.Spec, args json.RawMessage) error {
		if err != nil {
			return &tools.Fault{
				Code: tools.FaultForbidden, Retriable: true, After: time.Minute,
				Text: fmt.Sprintf("%s was not called: the permissions of this agent cannot be read now; try again later", spec.Name),
			}
		}
		if why := tools.Forbids(p, spec, online); why != "" {
			return errors.New(why)
		}
		if fault := b.withheld(a, spec, args); fault != nil {
			return fault
		}
		if spec.Name == tools.RequestPermission && args != nil {
			return questions.Requestable(p, args)
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

// open opens the workspace of a call, within the permissions of its agent. Undo is not
// subject to them.
func (b *toolbox) open(ctx context.Context, env tools.Env) (workspace.Workspace, error) {
	var p claybot.Permissions
	if !env.Undo {
		var err error
		if p, err = b.permissions(env.Agent); err != nil {
			return nil, &workspace.Error{Code: workspace.Unavailable, Text: "the permissions of this agent cannot be read now; try again later"}
		}
	}
	w, err := b.tooling.workspaces.open(ctx, env)
	if err != nil {
		return nil, err
	}
	return workspace.Confine(w, p), nil
}

// limited returns a source of documents within the permissions of the agent of a call.
func (b *toolbox) limited(source documents.Source) documents.Source {
	return documents.Limited(source, func(env tools.Env) (claybot.Permissions, error) {
		if env.Undo {
			return claybot.Permissions{}, nil
		}
		return b.permissions(env.Agent)
	})
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
