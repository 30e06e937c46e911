package agentsystem

import (
	"context"
	"errors"
	"log/slog"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// chats read what was said in the chats of agents.
type chats struct {
	connector func(name string) connectors.Connector
	masked    func(text string) string
	log       *slog.Logger
}

// Why what was said cannot be read, in words for models.
var (
	errUnread  = errors.New("the messages of this chat cannot be read now; try again in a minute")
	errRefused = errors.New("the chat platform does not let claybot read the messages of this chat; the operator's log has the reason")
)

// said returns what was said in the chat of an agent, without secrets. kept is false where
// the platform does not keep it for claybot.
func (c chats) said(ctx context.Context, agent claybot.Agent, s connectors.Span) (said []claybot.Said, more, kept bool, err error) {
	from, ok := c.connector(agent.Descriptor.Connector).(connectors.Historian)
	if !ok {
		return nil, false, false, nil
	}
	said, more, err = from.Said(ctx, s)
	if err != nil {
		c.log.Warn("failed to read the messages of a chat", "agent", agent.ID, "connector", agent.Descriptor.Connector, "err", err)
		if errors.As(err, new(*connectors.PermanentError)) {
			return nil, false, true, errRefused
		}
		return nil, false, true, errUnread
	}
	for i := range said {
		said[i].Text = c.masked(said[i].Text)
	}
	return said, more, true, nil
}
