package questions

import (
	"context"
	"errors"
	"log/slog"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// Buttons takes the answers that people give by a button or a form.
type Buttons struct {
	answers *Answers
	people  People
	routes  Routes
	log     *slog.Logger
}

// admits reports whether a person may press buttons at all.
func (b *Buttons) admits(t connectors.Press) bool {
	return b.people.MayWrite(claybot.User(t.Connector, t.ChannelID, t.UserID)) && (!t.Outsider || b.people.KnowsOutsider(t.Connector, t.UserID))
}

// Round returns the open questions that a form may ask of the person of t; see
// connectors.RoundHandler.
func (b *Buttons) Round(ctx context.Context, t connectors.Press) (qs []claybot.Question, err error) {
	asked, err := b.answers.Question(ctx, t.Answer.Question)
	if err != nil || !b.admits(t) {
		return nil, storage.Ignore(err, storage.ErrNotFound)
	}
	all, err := b.answers.OpenQuestions(ctx, asked.Agent)
	if err != nil {
		return nil, err
	}
	by := claybot.User(t.Connector, t.ChannelID, t.UserID).OwnerID()
	for _, q := range all {
		if q.Run != asked.Run || q.Type == claybot.QuestionConfirm {
			continue
		}
		err := b.answers.open(ctx, q, by, claybot.ViaButton)
		if err == nil {
			qs = append(qs, q.Question)
		} else if err = storage.Ignore(storage.Ignore(err, storage.ErrNotFound), storage.ErrState); err != nil {
			return nil, err
		}
	}
	return qs, nil
}

// Press answers a question by the press of a button. An error means that the answer was
// not stored.
func (b *Buttons) Press(ctx context.Context, t connectors.Press) (connectors.PressResult, error) {
	by := claybot.User(t.Connector, t.ChannelID, t.UserID)
	if !b.admits(t) {
		b.log.Warn("button press by unknown user", "connector", t.Connector, "user", t.UserID, "channel", t.ChannelID)
		return connectors.PressResult{Text: texts.Of(ctx).In(texts.NotYours)}, nil
	}
	// A person who presses reads there, as one who writes: before the answer is stored, so
	// that no crash leaves its run without a route.
	if _, err := b.routes.Revive(ctx, t.Connector, t.ChannelID); err != nil {
		return connectors.PressResult{}, err
	}
	a := t.Answer
	a.By, a.Via = by.OwnerID(), claybot.ViaButton
	q, err := b.answers.Question(ctx, a.Question)
	if err == nil {
		err = b.answers.AnswerQuestion(ctx, a.Question, a)
	}
	var unfit *AnswerError
	switch {
	case err == nil:
		return connectors.PressResult{OK: true, Text: texts.Of(ctx).In(texts.Taken)}, nil
	case errors.As(err, &unfit):
		for _, why := range unfit.Faults {
			return connectors.PressResult{Again: true, Text: why}, nil
		}
		return connectors.PressResult{Again: true, Text: unfit.Error()}, nil
	case errors.Is(err, ErrApproved):
		return connectors.PressResult{Again: true, Text: texts.Of(ctx).In(texts.YouApproved)}, nil
	case errors.Is(err, storage.ErrNotFound):
		b.log.Warn("button press by unauthorized user", "connector", t.Connector, "user", t.UserID, "question", a.Question)
		return connectors.PressResult{Text: texts.Of(ctx).In(texts.NotYours)}, nil
	case errors.Is(err, storage.ErrState):
		return connectors.PressResult{Text: b.closedText(ctx, q)}, nil
	}
	return connectors.PressResult{}, err
}

// closedText says why a question no longer accepts answers.
func (b *Buttons) closedText(ctx context.Context, q storage.OpenQuestion) string {
	a, err := b.answers.ledger.stored(ctx, q.Question)
	switch {
	case err != nil || a == nil && q.Expires > claybot.Now():
		return texts.Of(ctx).In(texts.Closed)
	case a == nil:
		return texts.Of(ctx).In(texts.Expired)
	case a.Via == claybot.ViaDefault:
		return texts.Of(ctx).In(texts.Expired)
	case a.Via == claybot.ViaLimit:
		return texts.Of(ctx).In(texts.Closed)
	}
	open, err := b.answers.OpenQuestions(ctx, q.Agent)
	if next, ok := NextApproval(q.Question, q.Run, open); ok && err == nil {
		return texts.Of(ctx).AlreadyNext(*a, next.Question)
	}
	return texts.Of(ctx).Already(*a)
}
