package slack

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

var _ connectors.Statuser = (*Connector)(nil)

// Status shows a text below the thread of an answer, after the name of the app: in a thread,
// and in a conversation without one below the message that is answered, which Slack takes as
// well as a thread. The session of that thread says the same. Without the scope, and where there is no message, it shows none.
//
// Shapes: docs.slack.dev/reference/methods/assistant.threads.setStatus, read 2026-11-28: the
// scope is chat:write, and Slack removes a status after two minutes without a message.
func (c *Connector) Status(ctx context.Context, r claybot.Route, message, text string) (time.Duration, error) {
	_, channel, ok := strings.Cut(r.ChannelID, "/")
	thread := cmp.Or(r.ThreadID, message)
	if !ok || channel == "" || thread == "" {
		return 0, nil
	}
	if d := c.penalties.left(methodStatus, channel); d > 0 {
		return 0, &connectors.RetryError{After: d, Err: errors.New(methodStatus + ": slack asked for a pause")}
	}
	err := c.api.SetAssistantThreadsStatusContext(ctx, slackapi.AssistantThreadsSetStatusParameters{ChannelID: channel, ThreadTS: thread, Status: text})
	if err == nil {
		return statusLasts, c.session(ctx, channel, thread, text != "")
	}
	if d := waitFor(err); d > 0 {
		c.penalties.add(methodStatus, channel, d)
	}
	refused := c.refused(methodStatus, c.cfg.BotTokenName, err)
	if code, k := judge(err); code != "" && k != rate && k != server {
		c.log.Debug("slack shows no status here", "err", refused)
		return 0, nil
	}
	return 0, refused
}
