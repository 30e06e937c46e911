package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// skillCommands returns the commands that the skills of an agent declare. Engines other than that
// of chats use no skills.
func (a *assembly) skillCommands(ctx context.Context, agent claybot.Agent) ([]connectors.Command, error) {
	if a.Skills == nil || !agent.Descriptor.Foreground() || a.system.Profiles.Of(agent.ID, agent.Descriptor).Engine != claybot.EngineReact {
		return nil, nil
	}
	return a.Skills(ctx, agent)
}

// named returns a user message that begins with a command word that claybot does not have: as one
// that uses the skill of the agent that declares the command; otherwise as an unknown command,
// where it has a slash and is for the agent, or as any other text. It returns an error if the skills
// cannot be read at present, so that the message is kept. If their folder cannot be used, there are
// none: a model is called for no text that may be a command.
func (i *intake) named(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (claybot.AgentMessage, error) {
	if m.Command = ""; !m.FirstHand {
		return m, nil
	}
	all, err := i.skills(ctx, agent)
	if err != nil {
		if storage.Unavailable(err) || !errors.As(err, new(*fs.PathError)) {
			return m, fmt.Errorf("read the commands of skills: %w", err)
		}
		i.log.Warn("failed to read the commands of skills", "agent", agent.ID, "message", m.ID, "err", err)
	}
	word := connectors.Named(m.Text)
	if at := slices.IndexFunc(all, func(c connectors.Command) bool { return connectors.SameCommand(c.Name, word) }); at >= 0 {
		m.Skill = all[at].Name
		return m, nil
	}
	if strings.HasPrefix(strings.TrimSpace(m.Text), "/") && !m.Context.Unaddressed {
		m.Type, m.Command = claybot.MessageCommand, connectors.Unknown
	}
	return m, nil
}
