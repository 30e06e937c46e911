package agentsystem

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// resend answers /resend: the last reply here that failed is stored again together with the
// command, so that a command which comes twice, and one whose process dies, sends it once.
func (i *intake) resend(ctx context.Context, agent claybot.Agent, p *storage.Posting) error {
	to, text := delivery.ReplyTo(agent, p.Message, claybot.OutgoingCommand), texts.Resending
	again, err := i.sender.Again(ctx, agent.ID, to.Route)
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
