package webchat

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

var (
	// errNoMessage is also the answer for messages of other users.
	errNoMessage  = &problem{http.StatusNotFound, "not_found", "There is no such message of yours in this conversation."}
	errNoWords    = bad("The new text is empty. Delete the message instead.")
	errNotChanged = &problem{http.StatusConflict, "not_a_text", "This message is a command, which has been carried out. Only texts can be changed."}
	errUnchanged  = &problem{http.StatusUnprocessableEntity, "refused", "The message keeps its text. The chat says why."}
)

// An effect says what an edit or a deletion changed for the agent.
type effect string

const (
	effectInTime  effect = "in_time" // the agent had not read the message, and reads the new text or nothing
	effectStopped effect = "stopped" // the deletion stopped the run of the message
	effectNoted   effect = "noted"   // the agent had read the message, and reads of the edit with the next one
	effectLate    effect = "late"    // the agent had read the message, and reads of no change
	effectWaits   effect = "waits"   // not known yet: the agent cannot be used at the moment
)

// edit replaces the text of a message of the user. The answer is the message as a
// transcript shows it from now on.
func (c *Chat) edit(w http.ResponseWriter, r *http.Request, d claybot.Descriptor, t Transcripts) error {
	var in struct {
		ID   string `json:"id"` // of the edit: a retry with the same one is harmless
		Text string `json:"text"`
	}
	if err := decode(w, r, &in); err != nil {
		return err
	}
	if in.ID == "" {
		in.ID = rand.Text()
	}
	if !validID(in.ID) {
		return errID
	}
	text, err := readable(in.Text)
	switch {
	case err != nil:
		return err
	case strings.TrimSpace(text) == "":
		return errNoWords
	}
	return c.change(w, r, d, t, claybot.AgentMessage{ID: claybot.MessageID("/edit/" + in.ID), Type: claybot.MessageEdit, Text: text, FirstHand: true})
}

// remove deletes a message of the user. The answer is as that of edit.
func (c *Chat) remove(w http.ResponseWriter, r *http.Request, d claybot.Descriptor, t Transcripts) error {
	return c.change(w, r, d, t, claybot.AgentMessage{ID: deleted, Type: claybot.MessageDelete})
}

// deleted ends the id of a deletion, which begins with that of its message.
const deleted = claybot.MessageID("/deleted")

// change stores an edit or a deletion, whose ID is the end of its id, and shows it in all
// windows of the conversation. It answers when the change is durable.
func (c *Chat) change(w http.ResponseWriter, r *http.Request, d claybot.Descriptor, t Transcripts, m claybot.AgentMessage) error {
	id := r.PathValue("id")
	if !validID(id) {
		return errNoMessage
	}
	m.Amends = c.messageID(d, id)
	m.ID = m.Amends + m.ID
	m.From, m.Context, m.At = c.sender(r, d), claybot.MessageContext{MessageID: id}, claybot.Now()
	h, leave, err := c.enter(r.Context(), d) // behind the message itself, if that is on its way
	if err != nil {
		return err
	}
	defer leave()
	if err := c.changeable(r.Context(), d, t, m); err != nil {
		return err
	}
	if err := c.store(r.Context(), h, d, m); err != nil {
		return err
	}
	u, err := c.changed(r.Context(), t, m)
	if err != nil {
		return err
	}
	c.hub.publish(topic{d.ChannelID, d.UserID}, frame("user", "", u))
	writeJSON(w, http.StatusAccepted, u)
	return nil
}

// changeable returns why a message of d's user cannot be changed by m, nil if it can.
func (c *Chat) changeable(ctx context.Context, d claybot.Descriptor, t Transcripts, m claybot.AgentMessage) error {
	was, err := c.receipt(ctx, t, m.Amends)
	switch {
	case err != nil:
		return err
	case was.Message.From.UserID != d.UserID:
		return errNoMessage
	case was.Message.Type != claybot.MessageUser:
		return errNotChanged
	case m.Type == claybot.MessageDelete: // a second one is a duplicate
		return nil
	}
	switch _, err := c.receipt(ctx, t, m.Amends+deleted); {
	case err == nil:
		return errNoMessage
	case !errors.Is(err, errNoMessage):
		return err
	}
	return nil
}

// changed returns a message with its stored change m.
func (c *Chat) changed(ctx context.Context, t Transcripts, m claybot.AgentMessage) (u asked, err error) {
	change, err := c.receipt(ctx, t, m.ID)
	if err != nil {
		return u, err // of a user who lost access, nothing is stored
	}
	was, err := c.receipt(ctx, t, m.Amends)
	if err != nil {
		return u, err
	}
	u = userView(was.Message)
	switch {
	case change.Parked != "":
		u.change(change.Message, effectWaits)
	case !u.amend(change.Message, change.Skipped, was.Skipped):
		return u, errUnchanged
	}
	return u, nil
}

// receipt reads what became of a message; errNoMessage if it is not stored.
func (c *Chat) receipt(ctx context.Context, t Transcripts, id claybot.MessageID) (storage.Receipt, error) {
	rec, err := t.Receipt(ctx, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return rec, errNoMessage
	case err != nil:
		c.log.Warn("failed to read a message", "message", id, "err", err)
		return rec, errRead
	}
	return rec, nil
}

// amend shows an edit or a deletion of the message, which was skipped for wasSkipped. It
// returns false if the message stays as it is.
func (u *asked) amend(m claybot.AgentMessage, skipped, wasSkipped string) bool {
	switch {
	case m.Type == claybot.MessageSystem:
		m.Type, m.Text = claybot.MessageEdit, texts.EditedText(m.Text)
		if skipped == "" {
			u.change(m, effectNoted)
		} else {
			u.change(m, effectLate) // a later change withdrew the note
		}
	case skipped == storage.SkippedLate:
		u.change(m, effectLate)
	case skipped == storage.SkippedEdit, skipped == storage.SkippedDeletion && wasSkipped == storage.SkippedDeleted:
		u.change(m, effectInTime)
	case skipped == storage.SkippedDeletion:
		u.change(m, effectStopped)
	default:
		return false
	}
	return true
}

// change shows an edit or a deletion. What was deleted is shown no more.
func (u *asked) change(m claybot.AgentMessage, e effect) {
	if u.Deleted != 0 {
		return
	}
	u.Effect = e
	if m.Type == claybot.MessageDelete {
		u.Deleted, u.Text, u.Files = m.At, "", nil
		return
	}
	u.Edited, u.Text = m.At, m.Text
}

// sender is who writes by a request.
func (c *Chat) sender(r *http.Request, d claybot.Descriptor) claybot.Sender {
	once, always := c.may(r)
	return claybot.Sender{UserID: d.UserID, Program: !once, NoRules: !always}
}

// enter waits for the turn of a conversation. Without an error, the caller calls leave.
func (c *Chat) enter(ctx context.Context, d claybot.Descriptor) (h connectors.Handler, leave func(), err error) {
	h, leave, err = c.intake.Enter(ctx, d.ChannelID+"/"+d.UserID) // a channel has no slash
	if err != nil {
		return nil, nil, errStopped // or the client is gone
	}
	return h, leave, nil
}
