package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

const (
	// signAfter is how long the user sees nothing new before a sign of life.
	signAfter = 15 * time.Second
	// typedAfter is the same where the user sees a typing indicator, and the sign is a message.
	typedAfter = time.Minute
	// placeholderAgain is when a placeholder is tried again that had to wait for other messages.
	placeholderAgain = time.Second
	// signPrefix begins the id of a draft that was made for a sign, so that a
	// later pass recognizes it.
	signPrefix = "still/"
)

// A signOfLife is a short text that names what the run waits for, if a user waits and sees
// nothing new. It is a draft that the answer replaces, so a run creates at most one message
// for it before and after each question, and none where the platform has drafts.
type signOfLife struct {
	on    bool
	after time.Duration
	timer *time.Timer
	said  string // the sign that the reader sees; empty for none
	again bool   // it is not the first
}

// newSign decides whether a view shows signs of life: only if it shows no unfinished answer
// and can take the sign away. A status that works takes their place.
func newSign(c connectors.Connector, show powers, w runs.Work) signOfLife {
	_, edits := c.(connectors.Streamer)
	after := signAfter
	if show.typer != nil && show.drafter == nil {
		after = typedAfter
	}
	return signOfLife{on: edits && show.preview == nil && show.sender != nil && w.Person(), after: after, timer: time.NewTimer(after)}
}

// works records what the run waits for: a tool, or the model if tool is empty.
func (v *progressView) works(tool string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.text.tool = tool
	if v.status != nil {
		v.status.works(tool)
	}
}

// showSign shows the sign of life, or corrects it.
func (v *progressView) showSign(ctx context.Context) {
	v.draft.sign.timer.Reset(v.draft.sign.after)
	v.mu.Lock()
	sign := v.job.voice().StillWorking(v.text.tool)
	if v.show.stream.Placeholder && !v.draft.sign.again {
		sign = v.job.voice().In(texts.Working)
	}
	v.draft.sign.again = true
	v.mu.Unlock()
	before := v.draft.sent
	whole := strings.TrimSpace(before + "\n\n" + sign)
	switch {
	case !v.draft.sign.on, v.status != nil && !v.status.absent():
		return
	case v.show.drafter != nil && v.draft.current == nil: // again and again: the platform forgets drafts
		if v.showDraft(ctx, whole) {
			v.draft.sent, v.draft.sign.said = before, sign
		} else if v.show.typer != nil {
			v.draft.sign.after = typedAfter
			v.draft.sign.timer.Reset(typedAfter - signAfter)
		}
		return
	case sign == v.draft.sign.said:
		return
	case v.job.profile.Progress, v.job.unsent(): // there are no drafts
		v.draft.sign.on = !v.sendSign(ctx, sign)
		return
	case v.show.stream.Off || v.draft.current != nil && v.draft.sent == "" && v.draft.sign.said == "":
		return // an earlier pass has shown something, which is left as it is
	}
	v.draft.fresh = signPrefix + runs.NewID() // a run may have more: one before each question
	err := v.send(ctx, whole)
	v.draft.fresh = ""
	if err != nil && ctx.Err() == nil {
		v.job.log.Debug("failed to send a progress notice", "err", err)
	}
	if v.draft.sent == whole {
		v.draft.sent, v.draft.sign.said = before, sign
	}
	if err == nil && v.draft.current == nil && v.show.stream.Placeholder { // other messages come first
		v.draft.sign.again = false
		v.draft.sign.timer.Reset(placeholderAgain)
	}
}

// showPlaceholder shows the message that the answer replaces, also in a run that ends at once.
func (v *progressView) showPlaceholder(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), draftTimeout)
	defer cancel()
	v.showSign(ctx)
}

// showDraft shows a text as a draft of the platform, which nothing has to be recorded for. It
// reports false if the platform shows none here.
func (v *progressView) showDraft(ctx context.Context, text string) bool {
	if v.show.drafter == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), typingWait)
	defer cancel()
	shown, err := v.show.drafter.Draft(ctx, claybot.Outgoing{
		ID: fmt.Sprintf("%s%s/1", signPrefix, v.job.run.ID), Kind: claybot.OutgoingAnswer, Run: v.job.run.ID, Agent: v.job.agent.ID,
		Route: v.route, Text: text, Part: 1, Parts: 1, At: claybot.Now(), Progress: true,
	})
	var retry *connectors.RetryError
	switch {
	case errors.As(err, &retry):
		v.draft.quiet = time.Now().Add(retry.After)
		return true
	case err == nil && shown:
		v.draft.faint, v.draft.sent, v.draft.sign.said = true, text, ""
		return true
	case err != nil:
		v.job.log.Debug("failed to show a draft", "err", err)
	}
	v.show.drafter, v.draft.faint, v.draft.sent = nil, false, ""
	return false
}

// sendSign sends the sign as a separate message, once for each run, and reports
// whether it is stored.
func (v *progressView) sendSign(ctx context.Context, sign string) bool {
	o := claybot.Outgoing{
		ID: fmt.Sprintf("%s%s/1", signPrefix, v.job.run.ID), Kind: claybot.OutgoingNotice, Run: v.job.run.ID, Agent: v.job.agent.ID,
		Message: v.work.Of(v.job.run.ID).Newest().ID, Route: v.route, Text: sign, Part: 1, Parts: 1, At: claybot.Now(),
	}
	_, err := v.deliverer.Send(ctx, o)
	if err != nil {
		v.job.log.Debug("failed to update a progress notice", "err", err)
	}
	return err == nil
}

// leftover returns the final text of a draft if the run has no further text: what it
// shows without a sign of life or, if it shows nothing else, word. It is empty if this pass
// knows no text of it. Call it only after close.
func (v *progressView) leftover(word string) string {
	d := v.draft.current
	switch {
	case d == nil:
		return ""
	case v.draft.sent == "" && (v.draft.sign.said != "" || strings.HasPrefix(d.Outgoing, signPrefix)):
		return word
	}
	return v.draft.sent
}
