package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Welcome implements connectors.VisitHandler.
func (s *AgentSystem) Welcome(d claybot.Descriptor, outsider bool) bool {
	return s.receiver.people.Admits(d, visitor(d, outsider))
}

// visitor is a message that a person did not write.
func visitor(d claybot.Descriptor, outsider bool) claybot.AgentMessage {
	return claybot.AgentMessage{Type: claybot.MessageCommand, From: claybot.Sender{UserID: d.UserID, Outsider: outsider}, FirstHand: true, At: claybot.Now()}
}

// Home implements connectors.VisitHandler: the page has the answers to the commands that show a
// person their own work.
func (s *AgentSystem) Home(ctx context.Context, d claybot.Descriptor, outsider bool) ([]connectors.HomeSection, error) {
	if !s.Welcome(d, outsider) {
		return nil, nil
	}
	m := visitor(d, outsider)
	ctx = s.receiver.people.Speaking(ctx, d, m)
	v := texts.Of(ctx)
	agent := claybot.Agent{Descriptor: d}
	var err error
	switch agent.ID, err = s.receiver.index.IndexedAgent(ctx, d); {
	case errors.Is(err, storage.ErrNotFound): // the person has not written yet
		agent.ID = claybot.AgentID(runs.NewID())
	case err != nil:
		return nil, fmt.Errorf("find the agent of a visitor: %w", err)
	}
	conversations, err := s.conversationsOf(ctx, d, v)
	if err != nil {
		return nil, err
	}
	var page []connectors.HomeSection
	for _, part := range []struct{ title, command string }{
		{texts.HomeNow, "status"}, {texts.HomeTasks, "tasks"}, {texts.HomeUsage, "usage"}, {texts.HomePrivacy, "privacy"},
	} {
		m.Command = part.command
		text, err := s.Overview.Answer(ctx, agent, m)
		if err != nil {
			return nil, fmt.Errorf("answer /%s for a visitor: %w", part.command, err)
		}
		page = append(page, connectors.HomeSection{Title: v.In(part.title), Text: text})
	}
	page = append(page[:1], append([]connectors.HomeSection{{Title: v.In(texts.HomeConversations), Text: conversations}}, page[1:]...)...)
	return append(page, connectors.HomeSection{Title: v.In(texts.HomeSettings), Text: v.LanguageNow() + "\n\n" + v.TimezoneNow()}), nil
}

// maxHomeConversations is how many conversations of a person a page counts.
const maxHomeConversations = 500

// conversationsOf says how many conversations a person has on which connectors, and when they
// wrote there last.
func (s *AgentSystem) conversationsOf(ctx context.Context, d claybot.Descriptor, v texts.Voice) (string, error) {
	counts, last := make(map[string]int64), make(map[string]claybot.Time)
	var order []string
	left := maxHomeConversations
	for e, err := range s.receiver.index.Foreground(ctx, s.receiver.people.Identities(d.OwnerID())) {
		if err != nil {
			return "", fmt.Errorf("list the conversations of a visitor: %w", err)
		}
		name := e.Descriptor.Connector
		if counts[name]++; counts[name] == 1 {
			order, last[name] = append(order, name), e.LastUserAt
		}
		if left--; left == 0 {
			break
		}
	}
	var lines []string
	for _, name := range order {
		lines = append(lines, "- "+name+": "+v.Count(counts[name], texts.HomeConversation, v.When(last[name])))
	}
	if len(lines) == 0 {
		return v.In(texts.HomeNoConversations), nil
	}
	return strings.Join(lines, "\n"), nil
}
