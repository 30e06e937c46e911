package discord

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

var (
	_ connectors.Finder   = (*Connector)(nil)
	_ connectors.Resender = (*Connector)(nil)
)

// epoch is the first second of 2015, in milliseconds.
const epoch = 1_420_070_400_000

// snowflake is the least id that something made at t can have, as messages are asked for after.
//
// docs.discord.com/developers/reference, "Snowflake IDs in Pagination", read 2026-11-28.
func snowflake(t time.Time) string {
	return strconv.FormatInt(max(0, t.UnixMilli()-epoch)<<22, 10)
}

// Find looks for the message of an ambiguous attempt: among the messages that the gateway or an
// answer has named, by its nonce, then in the channel around the time of the attempt. There
// Discord shows no nonce, so a message of the bot with the same content is taken, unless it is
// known to be another one, or else the only draft that the text continues. The first repeat
// needs no such guess while Discord knows the nonce: the message counts as not found, and
// Discord returns it to the repeat.
func (c *Connector) Find(ctx context.Context, o claybot.Outgoing) (receipt string, found bool, err error) {
	if o.Edit != "" {
		return "", false, nil // repeating an edit is harmless
	}
	channel, err := target(o.Route)
	if err != nil {
		return "", false, err
	}
	nonce := c.nonceOf(o)
	if receipt = c.own.ids.get(nonce); receipt != "" {
		return receipt, true, nil
	}
	tried := o.Tried.Time()
	if age := time.Since(tried); o.Copies == 0 && age > -nearBack && age < nonceSure {
		return "", false, nil
	}
	after, end := snowflake(tried.Add(-nearBack)), tried.Add(nearAhead)
	var begun []string // drafts that may be the beginning of o
	for range findPages {
		var all []message
		if err := c.api.do(ctx, messagesCall(channel, pageItems, "&after="+after), &all); err != nil {
			return "", false, unseen(err)
		}
		sortMessages(all)
		if len(all) == 0 && o.Route.Group {
			if err := c.readable(ctx, channel); err != nil {
				return "", false, err
			}
		}
		for _, m := range all {
			switch {
			case !m.sentAt().After(tried.Add(-nearBack)):
			case c.same(m, o, nonce):
				return m.ID, true, nil
			case c.begins(m, o):
				begun = append(begun, m.ID)
			}
		}
		if len(all) < pageItems || all[len(all)-1].sentAt().After(end) {
			break
		}
		after = all[len(all)-1].ID
	}
	if len(begun) == 1 {
		return begun[0], true, nil
	}
	return "", false, nil
}

// begins reports whether a message of a channel is a draft that was not completed, and the
// beginning of o. Only an answer whose first send is not one of the outbox began as a draft.
func (c *Connector) begins(m message, o claybot.Outgoing) bool {
	bare := func(text string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return r
			}
			return -1
		}, text)
	}
	begun, whole := bare(unlinked(m.Content)), bare(unlinked(content(texts.Voice{}, o)))
	return o.Attempts == 0 && o.Kind == claybot.OutgoingAnswer && o.Part == 1 && o.File == nil && m.Author.ID == c.bot && len(m.Attachments) == 0 &&
		c.own.nonces.get(m.ID) == "" && begun != "" && begun != whole && strings.HasPrefix(whole, begun)
}

// errNoHistory means that Discord shows no message of a channel.
var errNoHistory = errors.New("discord: the channel shows no message: give the bot the permission Read Message History there")

// readable returns a PermanentError if a channel of a server shows no message at all: without the
// permission Read Message History, Discord returns an empty page and no error.
//
// docs.discord.com/developers/resources/message, Get Channel Messages, read 2026-11-28.
func (c *Connector) readable(ctx context.Context, channel string) error {
	var newest []message
	if err := c.api.do(ctx, messagesCall(channel, 1, ""), &newest); err != nil {
		return unseen(err)
	}
	if len(newest) == 0 {
		return &connectors.PermanentError{Err: errNoHistory}
	}
	return nil
}

// unseen is a PermanentError where Discord refuses to show messages.
func unseen(err error) error {
	var r *refusal
	if errors.As(err, &r) {
		return &connectors.PermanentError{Err: err}
	}
	return err
}

// same reports whether a message of a channel is that of o.
func (c *Connector) same(m message, o claybot.Outgoing, nonce string) bool {
	if m.Author.ID != c.bot {
		return false
	}
	if shown, ok := m.Nonce.(string); ok && shown != "" {
		return shown == nonce
	}
	if known := c.own.nonces.get(m.ID); known != "" {
		return known == nonce
	}
	if (o.File != nil) != (len(m.Attachments) > 0) || o.File != nil && m.Attachments[0].Size != o.File.Size {
		return false
	}
	shows := func(v texts.Voice, o claybot.Outgoing) bool { // unlinked both: also what o has in code is like a mention
		return strings.TrimSpace(unlinked(m.Content)) == strings.TrimSpace(unlinked(content(v, o)))
	}
	plain := o
	plain.Resent = false
	if shows(texts.Voice{}, plain) {
		return true
	}
	plain.Resent = true
	return slices.ContainsFunc(texts.All(), func(l texts.Language) bool { return shows(texts.Voice{Language: l}, plain) })
}

// sentAt returns when a message was written.
func (m message) sentAt() time.Time { return at(m.Timestamp).Time() }

// Resend reports true: a message that cannot be looked up, because the bot may not read the
// channel, is sent again with a mark. Its nonce keeps Discord from doubling it for some minutes.
func (c *Connector) Resend(claybot.Outgoing) bool { return true }
