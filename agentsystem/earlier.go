package agentsystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

var _ tools.Chats = (*Chats)(nil)

// Chats read what was said in the chats of agents.
type Chats struct {
	work      *runs.AtWork
	connector func(name string) connectors.Connector
	overheard *overhearing
	masked    func(text string) string
	log       *slog.Logger
}

// Why what was said cannot be read, in words for models.
var (
	errUnread = errors.New("the messages of this chat cannot be read now; try again in a minute")
	errNoChat = errors.New("read_chat works only in a run that answers a message which its person wrote in a group or a channel")
	errUnkept = errors.New("this chat platform does not show earlier messages to bots, and no profile has claybot keep those of this group")
)

// read returns what was said in the chat of an agent, without secrets. kept is false where
// neither the platform nor claybot keeps it. The words of an error are for models.
func (c *Chats) read(ctx context.Context, agent claybot.Agent, s connectors.Span) (said []claybot.Said, more, kept bool, err error) {
	if from, ok := c.connector(agent.Descriptor.Connector).(connectors.Historian); ok {
		said, more, err = from.Said(ctx, s)
	} else if c.overheard.keeps(agent.Descriptor) {
		said, more, err = c.overheard.said(ctx, agent.Descriptor, s)
	} else {
		return nil, false, false, nil
	}
	if err != nil {
		c.log.Warn("failed to read the messages of a chat", "agent", agent.ID, "connector", agent.Descriptor.Connector, "err", err)
		return nil, false, true, unread(err)
	}
	for i := range said {
		said[i].Text = c.masked(said[i].Text)
	}
	return said, more, true, nil
}

// unread says why a Historian read nothing, in words for models.
func unread(err error) error {
	var refused *connectors.RefusedError
	var retry *connectors.RetryError
	switch {
	case errors.As(err, &refused):
		return errors.New(refused.Text)
	case errors.As(err, &retry):
		text := fmt.Sprintf("the chat platform asks to wait %s before more messages are read", retry.After)
		return &tools.Fault{Code: tools.FaultRate, Text: text, Retriable: true, After: retry.After}
	}
	return errUnread
}

// Said implements tools.Chats. Its person wrote in the chat, and so may read it; a run that
// another agent, a reminder or a task began reads nothing.
func (c *Chats) Said(ctx context.Context, env tools.Env, p tools.ChatPage) ([]claybot.Said, bool, error) {
	for _, m := range slices.Backward(c.work.Of(env.Run).Messages) {
		if m.Type != claybot.MessageUser || !m.Context.Group {
			continue
		}
		s := connectors.Span{
			Channel: env.Agent.Descriptor.ChannelID, Thread: m.Context.ThreadID,
			Before: cmp.Or(p.Before, m.Context.MessageID), Limit: p.Limit,
		}
		if p.Channel || s.Thread == m.Context.MessageID {
			s.Thread = ""
		}
		said, more, kept, err := c.read(ctx, env.Agent, s)
		if !kept {
			err = errUnkept
		}
		return said, more, err
	}
	return nil, false, errNoChat
}
