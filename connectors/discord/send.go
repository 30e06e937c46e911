package discord

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// suppressEmbeds is the flag of a message whose links show no preview.
const suppressEmbeds = 1 << 2

// A sending holds the parameters of Create Message and Edit Message.
//
// docs.discord.com/developers/resources/message (Create Message, Edit Message), read 2026-11-28:
// with enforce_nonce, a message of the same author with the same nonce within the past few
// minutes is returned, and no other one is created. A nonce has up to 25 characters.
type sending struct {
	Content string `json:"content"`
	Nonce   string `json:"nonce,omitempty"`
	Enforce bool   `json:"enforce_nonce,omitempty"`
	Flags   int    `json:"flags,omitempty"`
	Allowed struct {
		Parse []string `json:"parse"`
	} `json:"allowed_mentions"`
	Reference   *reference       `json:"message_reference,omitempty"`
	Components  *[]row           `json:"components,omitempty"`
	Attachments []map[string]any `json:"attachments,omitempty"`
}

// A reference names the message that another one answers.
type reference struct {
	Message string `json:"message_id"`
	Fail    bool   `json:"fail_if_not_exists"`
}

// target is the channel that a route leads to: its thread, if it has one.
func target(r claybot.Route) (id string, err error) {
	id = r.ChannelID[strings.LastIndexByte(r.ChannelID, '/')+1:]
	if isID(id) && r.ThreadID != "" {
		id = r.ThreadID
	}
	if !isID(id) {
		return "", &connectors.PermanentError{DeadRoute: true, Err: fmt.Errorf("discord: %.80q is not a channel", r.ChannelID)}
	}
	return id, nil
}

// nonceOf is the nonce of an outgoing message: the same for every attempt, in every process,
// unless the message that had it was deleted.
func (c *Connector) nonceOf(o claybot.Outgoing) string {
	nonce := connectors.FileID("nonce", o.ID, fmt.Sprint(o.Part))
	if c.own.burnt.get(nonce) {
		return connectors.FileID("nonce", nonce)
	}
	return nonce
}

// sending returns the parameters of o.
func (c *Connector) sending(ctx context.Context, o claybot.Outgoing) sending {
	v := texts.Of(ctx)
	if o.Progress {
		o.Text = fitting(o.Text)
	}
	m := sending{Content: c.contents(ctx, o), Flags: suppressEmbeds}
	m.Allowed.Parse = []string{}
	if rows := c.buttons(v, o); rows != nil || o.Edit != "" {
		if rows == nil {
			rows = []row{}
		}
		m.Components = &rows
	}
	if o.Edit != "" {
		return m
	}
	m.Nonce, m.Enforce = c.nonceOf(o), true
	if isID(o.Route.ReplyTo) && o.Part <= 1 {
		m.Reference = &reference{Message: o.Route.ReplyTo}
	}
	return m
}

// Send sends o, or edits the message it names. The receipt is the message's id. A failed edit
// is never ambiguous, since it can be repeated.
func (c *Connector) Send(ctx context.Context, o claybot.Outgoing) (receipt string, err error) {
	if err := c.check(); err != nil {
		return "", err
	}
	channel, err := target(o.Route)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(o.Text) == "" {
		return "", &connectors.PermanentError{Err: errors.New("discord: there is no text to send")}
	}
	grown := o.Route.ChannelID + "/" + o.Edit
	if !o.Progress {
		c.calls.Spend(grown)
	} else if d := c.calls.Progress(grown, connectors.Members(c.cfg.Nodes)); d > 0 {
		return "", &connectors.RetryError{After: d, GivesWay: true, Err: errors.New("discord: others have the calls of this second")}
	}
	m := c.sending(ctx, o)
	receipt, err = c.post(ctx, o, channel, m)
	if m.Reference != nil && refusedWith(err, 0, codeNoHistory) {
		c.log.Warn("discord rejected the reply, sending without a reference", "outgoing", o.ID, "err", err)
		m.Reference = nil
		receipt, err = c.post(ctx, o, channel, m)
	}
	if m.Components != nil && len(*m.Components) > 0 && refusedWith(err, http.StatusBadRequest) {
		c.log.Warn("discord rejected the buttons, sending without", "outgoing", o.ID, "err", err)
		m.Components = &[]row{}
		receipt, err = c.post(ctx, o, channel, m)
	}
	return receipt, c.outcome(err, o)
}

// post makes the call of one attempt.
func (c *Connector) post(ctx context.Context, o claybot.Outgoing, channel string, m sending) (receipt string, err error) {
	if o.Edit != "" {
		if !isID(o.Edit) {
			return "", connectors.ErrEditGone
		}
		return o.Edit, c.edit(ctx, channel, o.Edit, m, o.Progress)
	}
	return c.created(ctx, o, channel, m, channelCall(http.MethodPost, "create message", channel, "/messages", m))
}

// created creates a message. Where Discord returns one that an earlier attempt created, or the
// draft of it, its text is completed.
func (c *Connector) created(ctx context.Context, o claybot.Outgoing, channel string, m sending, x call) (receipt string, err error) {
	var sent message
	if err := c.api.do(ctx, x, &sent); err != nil {
		return "", err
	}
	if !isID(sent.ID) {
		return "", &failure{what: x.what, left: true, err: errors.New("the answer names no message")}
	}
	c.own.note(m.Nonce, sent.ID)
	if o.File == nil && strings.TrimSpace(unlinked(sent.Content)) != strings.TrimSpace(unlinked(m.Content)) {
		m.Nonce, m.Enforce, m.Reference = "", false, nil
		err := c.edit(ctx, channel, sent.ID, m, false)
		if refusedWith(err, 0, codeUnknownMessage) { // a person deleted it
			c.own.burn(sent.ID)
			return "", err
		}
		if err != nil {
			return "", &failure{what: x.what, left: true, err: err}
		}
	}
	return sent.ID, nil
}

// edit replaces a message.
func (c *Connector) edit(ctx context.Context, channel, id string, m sending, progress bool) error {
	x := channelCall(http.MethodPatch, "edit message", channel, "/messages/"+id, m)
	if progress {
		x.reserve = reservedForLast
	}
	return c.api.do(ctx, x, nil)
}

// The codes of refusals that matter.
//
// docs.discord.com/developers/topics/opcodes-and-status-codes, JSON, read 2026-11-28.
const (
	codeUnknownChannel     = 10003
	codeUnknownMessage     = 10008
	codeUnknownEmoji       = 10014
	codeUnknownInteraction = 10062
	codeAcknowledged       = 40060
	codeMissingAccess      = 50001
	codeNotYours           = 50005
	codeNoDM               = 50007
	codeMissingPermission  = 50013
	codeThreadArchived     = 50083
	codeNoMutualGuild      = 50278
	codeReactionBlocked    = 90001
	codeNoHistory          = 160002 // a reply, without the permission Read Message History
)

// outcome converts the error of a call to an error of connectors.Sender.
func (c *Connector) outcome(err error, o claybot.Outgoing) error {
	var r *refusal
	var f *failure
	switch {
	case errors.As(err, &f) && f.left && o.Edit == "":
		return &connectors.AmbiguousError{Err: err}
	case !errors.As(err, &r):
		return err
	case r.status == http.StatusUnauthorized: // not sent; a valid token fixes it
		c.pulse.Fail(c.tokenRefused().Error())
		return err
	case o.Edit != "" && (r.code == codeUnknownMessage || r.code == codeNotYours):
		c.own.burn(o.Edit)
		return connectors.ErrEditGone
	case r.code == codeUnknownMessage:
		return err
	case o.Route.ThreadID != "" && (r.code == codeUnknownChannel || r.code == codeThreadArchived):
		return &connectors.PermanentError{Err: fmt.Errorf("discord: the thread is gone or closed: %w", err)}
	case r.code == codeMissingAccess || r.code == codeMissingPermission: // of a thread: its channel may be open
		return &connectors.PermanentError{
			DeadRoute: o.Route.ThreadID == "", Fix: "give the bot the permissions View Channel, Send Messages and Send Messages in Threads there", Err: err,
		}
	case o.Route.ThreadID != "" && r.status == http.StatusForbidden:
		return &connectors.PermanentError{Err: err}
	case r.code == codeUnknownChannel || r.code == codeNoDM || r.code == codeNoMutualGuild || r.status == http.StatusForbidden:
		return &connectors.PermanentError{DeadRoute: true, Err: err}
	}
	return &connectors.PermanentError{Err: err}
}

// Typing shows "is typing…" for ten seconds.
func (c *Connector) Typing(ctx context.Context, r claybot.Route) error {
	channel, err := target(r)
	if err != nil {
		return nil //nolint:nilerr // the send says it
	}
	return c.api.do(ctx, channelCall(http.MethodPost, "type", channel, "/typing", nil), nil)
}

// receipts are the recent messages of the bot and their nonces, from answers and from events. The zero
// value is ready to use.
type receipts struct {
	ids    memory[string] // by nonce
	nonces memory[string] // by id
	burnt  memory[bool]   // nonces of messages that were deleted
}

func (r *receipts) note(nonce, id string) {
	if nonce == "" || id == "" {
		return
	}
	r.nonces.keep(id, nonce, maxReceipts)
	r.ids.keep(nonce, id, maxReceipts)
}

// burn notes that a message was deleted: its nonce must not be used again.
func (r *receipts) burn(id string) {
	if nonce := r.nonces.get(id); nonce != "" {
		r.burnt.keep(nonce, true, maxReceipts)
		r.ids.keep(nonce, "", maxReceipts)
	}
}
