package slack

import (
	"context"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// The values of feedback buttons, and the emoji that mean the same as a reaction.
const (
	rateUp   = "up"
	rateDown = "down"
)

var rateEmoji = map[string]string{rateUp: "👍", rateDown: "👎"}

// rating returns the feedback buttons of a final reply, nil for any other message.
//
// Shapes: docs.slack.dev/reference/block-kit/blocks/context-actions-block and
// …/block-elements/feedback-buttons-element, read 2026-11-28.
func rating(v texts.Voice, o claybot.Outgoing) slackapi.Block {
	if o.Kind != claybot.OutgoingAnswer || o.Run == "" || o.Progress || o.Part != o.Parts || o.Question != nil {
		return nil
	}
	side := func(value, label string) *slackapi.FeedbackButton {
		return slackapi.NewFeedbackButton(plainText(rateEmoji[value]), value).WithAccessibilityLabel(v.In(label))
	}
	return slackapi.NewContextActionsBlock("", slackapi.NewFeedbackButtonsBlockElement(actionRate, side(rateUp, texts.LabelGood), side(rateDown, texts.LabelBad)))
}

// rate reads a press of a feedback button as a reaction to the message.
func (t *press) rate(p interactive, a action) bool {
	emoji, ok := rateEmoji[a.Value]
	if !ok || p.Message.TS == "" || a.At == "" {
		return false
	}
	t.kind = rated
	t.in.reaction = connectors.Reaction{
		Connector: t.press.Connector, ChannelID: t.press.ChannelID, UserID: t.press.UserID, Outsider: t.press.Outsider,
		Group: p.Channel.ID[0] != 'D', Message: p.Message.TS, Emoji: reactionNames(emojiNames[emoji]), At: at(a.At),
	}
	return true
}

// rated stores a feedback, in place of the opposite one of the same person, and reports whether it
// is stored.
func (r *receiver) rated(ctx context.Context, x connectors.Reaction) (bool, error) {
	opposite := x
	opposite.Removed = true
	for _, emoji := range rateEmoji {
		if opposite.Emoji = reactionNames(emojiNames[emoji]); opposite.Emoji[0] == x.Emoji[0] {
			continue
		}
		if _, err := r.reacted(ctx, opposite); err != nil {
			return false, err
		}
	}
	return r.reacted(ctx, x)
}
