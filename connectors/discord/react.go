package discord

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

var (
	_ connectors.Reactor = (*Connector)(nil)
	_ connectors.Marker  = (*Connector)(nil)
)

// variation makes a symbol an emoji. Discord names some emoji with it, and takes no other form.
const variation = "\ufe0f"

// React adds an emoji to a message.
func (c *Connector) React(ctx context.Context, r claybot.Route, message, emoji string) error {
	return c.reaction(ctx, http.MethodPut, r, message, emoji)
}

// Mark implements connectors.Marker: Discord keeps the emoji that were there before, so they
// are removed one by one.
func (c *Connector) Mark(ctx context.Context, r claybot.Route, m claybot.Mark) error {
	if m.Emoji != "" {
		if err := c.React(ctx, r, m.Message, m.Emoji); err != nil {
			return err
		}
	}
	for _, old := range m.Was {
		err := c.reaction(ctx, http.MethodDelete, r, m.Message, old)
		var refused *connectors.RefusedError
		if err != nil && !errors.As(err, &refused) { // else it is not there, nor is the message any more
			return err
		}
	}
	return nil
}

// reaction adds an emoji of the bot, or removes it.
func (c *Connector) reaction(ctx context.Context, method string, r claybot.Route, message, emoji string) error {
	channel, err := target(r)
	if err != nil || !isID(message) {
		return &connectors.RefusedError{Text: "there is no such message here"}
	}
	what := map[string]string{http.MethodPut: "add reaction", http.MethodDelete: "remove reaction"}[method]
	for _, form := range []string{emoji, strings.TrimSuffix(emoji, variation) + variation} {
		err = c.api.soon(ctx, channelCall(method, what, channel, "/messages/"+message+"/reactions/"+url.PathEscape(form)+"/@me", nil), nil)
		if !refusedWith(err, 0, codeUnknownEmoji) {
			break
		}
	}
	var refused *refusal
	switch {
	case !errors.As(err, &refused) || refused.status == http.StatusUnauthorized:
		return err
	case refused.code == codeUnknownEmoji:
		return &connectors.RefusedError{Text: fmt.Sprintf("Discord does not know the emoji %.40q", emoji), Err: err}
	case refused.code == codeUnknownMessage:
		return &connectors.RefusedError{Text: "the message is not there any more", Err: err}
	case refused.code == codeReactionBlocked:
		return &connectors.RefusedError{Text: "the user who wrote the message has blocked the bot", Err: err}
	}
	return &connectors.RefusedError{Text: "Discord does not allow it in this channel", Err: err}
}
