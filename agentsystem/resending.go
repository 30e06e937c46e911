package agentsystem

import (
	"context"
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// resend answers /resend: the last reply here that failed is stored again together with the
// command, so that a command which comes twice, and one whose process dies, sends it once.
func (i *intake) resend(ctx context.Context, agent claybot.Agent, p *storage.Posting) error {
	to, text := delivery.ReplyTo(agent, p.Message, claybot.OutgoingCommand), texts.Resending
	agents, err := i.reporting(ctx, agent)
	if err != nil {
		return err
	}
	again, err := i.sender.Again(ctx, agents, to.Route)
	if err != nil {
		return err
	}
	if len(again) == 0 {
		text = texts.ResendNothing
		waits, err := i.sender.Undelivered(ctx, agent.ID, to.Route)
		if err != nil {
			return err
		}
		if waits {
			text = texts.ResendWaits
		}
	}
	p.Replies = append(i.sender.Compose(to, texts.Of(ctx).In(text)), again...)
	return nil
}

// reporting lists the agents whose replies a person can have sent again in the conversation
// with agent: that agent, and those of the person's tasks and heartbeat, which answer there too.
func (i *intake) reporting(ctx context.Context, agent claybot.Agent) ([]claybot.AgentID, error) {
	ids := []claybot.AgentID{agent.ID}
	for _, owner := range i.people.Identities(agent.Descriptor.OwnerID()) {
		owned, err := i.owned.OwnedAgents(ctx, owner)
		if err != nil {
			return nil, fmt.Errorf("list the agents of %s: %w", owner, err)
		}
		for _, e := range owned {
			if t := e.Descriptor.Type; t == claybot.AgentCron || t == claybot.AgentHeartbeat {
				ids = append(ids, e.ID)
			}
		}
	}
	return ids, nil
}
