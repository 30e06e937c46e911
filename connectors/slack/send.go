package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// outType is the event type of the metadata by which Find recognizes a post.
const outType = "claybot_out"

// Split cuts a text into parts that Slack takes as one message each. A part has one table at most, with
// its headings.
func (c *Connector) Split(text string) (parts []string) {
	limit := maxTextChars - texts.ResentRoom()
	for _, part := range apart(text, limit) {
		parts = append(parts, connectors.Split(part, limit, escapedChars)...)
	}
	return parts
}

// Send posts o, or edits the message o.Edit. Every post carries o's id for Find. Questions
// and offers become buttons, and tables blocks; if Slack refuses those, Send sends only the text. An edit never
// ends as ambiguous, because it can be repeated. What claybot itself answers to a slash command goes to its
// person alone.
func (c *Connector) Send(ctx context.Context, o claybot.Outgoing) (string, error) {
	p := post{Outgoing: o, method: methodPost}
	if o.Edit != "" {
		p.method = methodUpdate
	}
	var ok bool
	if _, p.channel, ok = strings.Cut(o.Route.ChannelID, "/"); !ok || p.channel == "" {
		return "", &connectors.PermanentError{DeadRoute: true, Err: fmt.Errorf("%s: no slack channel: %q", p.method, o.Route.ChannelID)}
	}
	if key := c.answersSlash(o); key != "" {
		return c.sendPrivately(ctx, p, key)
	}
	if p.Edit == "" {
		if ts, tried, err := c.startStream(ctx, p); tried {
			return ts, err
		}
	} else if x := c.streams.get(p.channel + "/" + p.Edit); x != nil {
		if done, err := c.continueStream(ctx, p, x); done || err != nil {
			return p.Edit, err
		}
	}
	return c.write(ctx, p)
}

// write posts the text of p, or edits its message. What Slack refuses of its form is left out.
func (c *Connector) write(ctx context.Context, p post) (string, error) {
	o := p.Outgoing
	if d := c.wait(p); d > 0 {
		return "", &connectors.RetryError{After: d, Err: fmt.Errorf("%s: slack allows no more calls now", p.method)}
	}
	text := o.Text
	if o.Resent {
		text = texts.Of(ctx).Resent() + text
	}
	unformatted, formatted := escape(text), mrkdwn(text)
	if utf8.RuneCountInString(formatted) > maxTextChars {
		formatted = unformatted // markup must not make a text too long
	}
	var receipt string
	var err error
	for i, blocks := range c.layouts(texts.Of(ctx), o, text) {
		if i > 0 {
			c.log.Warn("slack rejected the blocks, sending simpler ones or none", "outgoing", o.ID, "err", err)
		}
		receipt, err = c.attempt(ctx, p, formatted, blocks)
		if errors.Is(err, errGrows) {
			if err := c.halt(ctx, p); err != nil {
				return "", err
			}
			receipt, err = c.attempt(ctx, p, formatted, blocks)
		}
		if !refusedContent(err) {
			return receipt, err
		}
	}
	if formatted != unformatted {
		receipt, err = c.attempt(ctx, p, unformatted, nil)
	}
	return receipt, err
}

// A post is one Outgoing for one channel.
type post struct {
	claybot.Outgoing
	method, channel string
	respond         string // by this response_url
}

// wait returns how long p has to wait for its call; 0 grants it.
func (c *Connector) wait(p post) time.Duration {
	switch {
	case p.Edit == "":
		return c.penalties.left(p.method, p.channel)
	case p.Progress:
		return c.edits.Progress(p.channel+"/"+p.Edit, connectors.Members(c.cfg.Nodes))
	}
	return c.edits.Spend(p.channel + "/" + p.Edit)
}

// errGrows is the cause of a refusal of an edit: the message is a stream, which an earlier process
// began.
var errGrows = errors.New("the message is a stream")

// errContent is the cause of a refusal of the text.
var errContent = errors.New("slack refuses the text")

func refusedContent(err error) bool { return errors.Is(err, errContent) }

// attempt makes one call and classifies its outcome. With blocks, the text is
// used for notifications only. An edit without blocks sends an empty list,
// because Slack would otherwise keep the buttons.
func (c *Connector) attempt(ctx context.Context, p post, text string, blocks []slackapi.Block) (string, error) {
	if p.respond != "" {
		return "", c.respond(ctx, p, text, blocks)
	}
	ctx, left := traced(ctx)
	options := []slackapi.MsgOption{
		slackapi.MsgOptionText(text, false),
		slackapi.MsgOptionParse(false),
		metadata(p.Outgoing),
	}
	if len(blocks) > 0 || p.Edit != "" {
		options = append(options, slackapi.MsgOptionBlocks(blocks...))
	}
	var ts string
	var err error
	if p.Edit != "" {
		_, ts, _, err = c.api.UpdateMessageContext(ctx, p.channel, p.Edit, options...)
	} else {
		options = append(options, slackapi.MsgOptionDisableLinkUnfurl(), slackapi.MsgOptionDisableMediaUnfurl())
		if p.Route.ThreadID != "" {
			options = append(options, slackapi.MsgOptionTS(p.Route.ThreadID))
		}
		_, ts, err = c.api.PostMessageContext(ctx, p.channel, options...)
	}
	if err == nil && ts == "" {
		err = errors.New("the answer names no message") // for the library that is a success
	}
	if err == nil {
		return ts, nil
	}
	return "", c.outcome(p, left(), err)
}

// metadata is how Find recognizes the post of an Outgoing.
func metadata(o claybot.Outgoing) slackapi.MsgOption {
	return slackapi.MsgOptionMetadata(slackapi.SlackMetadata{EventType: outType, EventPayload: map[string]any{"id": o.ID, "part": o.Part}})
}

// outcome converts a failed attempt to an error of connectors.Sender.
func (c *Connector) outcome(p post, left bool, err error) error {
	if d := waitFor(err); d > 0 {
		if p.Edit != "" {
			c.edits.Refused(d)
		} else {
			c.penalties.add(p.method, p.channel, d)
		}
		return paused(p.method, d, err)
	}
	if permanent(err) { // there are no new tokens: nothing was sent
		return err
	}
	code, k := judge(err)
	said := fmt.Errorf("%s: slack says %s", p.method, code)
	switch k {
	case route:
		return &connectors.PermanentError{DeadRoute: true, Fix: routeFix(code), Err: said}
	case content:
		return &connectors.PermanentError{Err: fmt.Errorf("%w: %w", errContent, said)}
	case account:
		err := c.accountError(p.method, c.cfg.BotTokenName, code, err)
		if code != "missing_scope" { // the rest works, and Health names the scope
			c.pulse.Fail(err.Error())
		}
		return err
	case gone:
		if p.Edit != "" {
			return connectors.ErrEditGone
		}
		return said
	case grows:
		return fmt.Errorf("%w: %w", errGrows, said)
	case server:
		return p.unanswered(said)
	}
	if code != "" {
		return said
	}
	var status slackapi.StatusCodeError
	if errors.As(err, &status) {
		err = fmt.Errorf("%s: HTTP status %d", p.method, status.Code)
		if status.Code < 500 {
			return err
		}
		return p.unanswered(err)
	}
	unsent := errors.As(err, new(*unsentError)) // before clean, which may keep only the text
	err = fmt.Errorf("%s: %w", p.method, c.clean(err, p.respond))
	if left && !unsent {
		return p.unanswered(err)
	}
	return err
}

// unanswered returns the error of an attempt with an unknown outcome.
func (p post) unanswered(err error) error {
	if p.Edit != "" {
		return err
	}
	return &connectors.AmbiguousError{Err: err}
}

func routeFix(code string) string {
	if code == "not_in_channel" {
		return "invite the bot: type /invite @claybot in the channel"
	}
	return ""
}

// Resend reports true unless a copy is worse than none: a post that cannot be looked
// up, for lack of a scope, is sent again with a mark.
func (c *Connector) Resend(o claybot.Outgoing) bool { return !o.Once }
