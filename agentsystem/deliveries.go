package agentsystem

import (
	"context"
	"log/slog"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/delivery"
)

// Deliveries change outgoing messages as operators order.
type Deliveries struct {
	outbox Outbox
	sender *delivery.Deliverer
	log    *slog.Logger
}

// RetryOutgoing sends a failed message again, or a waiting one at once. It returns
// storage.ErrNotFound or storage.ErrState where there is none such. Its route is revived
// first, so that no member refuses the message by the mark that the retry is to lift.
func (d *Deliveries) RetryOutgoing(ctx context.Context, id string) (claybot.Outgoing, error) {
	o, err := d.outbox.OutgoingByID(ctx, id)
	if err == nil && (o.State == claybot.SendFailed || o.State == claybot.SendWaiting) {
		_, err = d.sender.Routes.Revive(ctx, o.Route.Connector, o.Route.ChannelID)
	}
	if err == nil {
		o, err = d.outbox.Retry(ctx, id)
	}
	return d.changed(o, err, "retried")
}

// DropOutgoing drops a message that was not sent; errors as RetryOutgoing.
func (d *Deliveries) DropOutgoing(ctx context.Context, id string) (claybot.Outgoing, error) {
	o, err := d.outbox.Discard(ctx, id, delivery.CauseDropped)
	return d.changed(o, err, "dropped")
}

// changed makes the change of an outgoing message count.
func (d *Deliveries) changed(o claybot.Outgoing, err error, change string) (claybot.Outgoing, error) {
	if err == nil {
		d.log.Info("outgoing message changed", "outgoing", o.ID, "change", change)
		d.sender.Refresh(o)
	}
	return o, err
}
