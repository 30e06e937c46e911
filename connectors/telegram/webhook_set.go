package telegram

import (
	"context"
	"net/url"
	"strings"

	"github.com/claybot/claybot/connectors"
)

// A Webhook is what Telegram says of the webhook of a bot.
type Webhook struct {
	// Host is where Telegram sends updates; empty where no webhook is set, so that bots poll. The rest
	// of the address may be a secret.
	Host string
	// Ours: the address is that of this connector.
	Ours bool
	// Waiting is how many updates Telegram keeps, and Failure why it could not deliver one of them.
	Waiting int
	Failure string
}

// Webhook asks Telegram for the webhook of the bot. It takes no updates and changes nothing.
func (c *Connector) Webhook(ctx context.Context) (Webhook, error) {
	var info webhookInfo
	if err := c.send.call(ctx, "getWebhookInfo", nil, &info); err != nil || info.URL == "" {
		return Webhook{}, err
	}
	w := Webhook{Host: "an unknown address", Ours: c.cfg.Hook == info.URL, Waiting: info.Waiting}
	if c.cfg.Hook == "" {
		w.Ours = strings.HasSuffix(info.URL, hookPath+c.cfg.Name)
	}
	if u, err := url.Parse(info.URL); err == nil && u.Host != "" {
		w.Host = connectors.OneLine(u.Host, 100)
	}
	if info.FailedWhy != "" {
		w.Failure = connectors.OneLine(c.send.clean(info.FailedWhy), 200)
	}
	return w, nil
}

// removeWebhook removes the webhook of the bot, so that it can poll. Telegram keeps the updates that wait.
func (c *Connector) removeWebhook(ctx context.Context) error {
	var done bool
	return c.send.call(ctx, "deleteWebhook", map[string]any{"drop_pending_updates": false}, &done)
}
