package slack

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// interact handles an action. Each action has its own lane, because Slack waits
// only three seconds for the acknowledgement; a command shares the lane of its
// user's messages.
func (r *receiver) interact(ctx context.Context, s replier, f frame) {
	t, ok := readPress(r.name, r.self, f.Payload)
	if !ok {
		r.work.Do(ctx, "press\x00"+f.EnvelopeID, func() error { r.strange(ctx, s, f); return nil })
		return
	}
	lane, job := "press\x00"+f.EnvelopeID, func() error { return r.answer(ctx, s, f, t) }
	switch t.kind {
	case asks:
		job = func() error {
			r.ack(s, f.EnvelopeID, nil)
			r.chat.openForm(ctx, t)
			return nil
		}
	case rated:
		lane = r.lane(claybot.User(r.name, t.press.ChannelID, t.press.UserID), !strings.Contains(t.press.ChannelID, "/D"))
		job = func() error { return r.rate(ctx, s, f, t) }
	case shortcut:
		job = func() error {
			r.ack(s, f.EnvelopeID, nil)
			r.openAsk(ctx, t)
			return nil
		}
	case questioned:
		lane = r.lane(t.in.to, false)
		job = func() error { r.asked(ctx, s, f, t); return nil }
	case commanded:
		lane = r.lane(t.in.to, t.in.message.Context.Group)
		job = func() error { return r.post(ctx, s, f.EnvelopeID, t.in) }
	}
	r.work.Do(ctx, lane, job)
}

// answer submits an answer, or the answers of a form, and acknowledges them when they are
// durable or refused for good. Otherwise Slack shows an error, and the user tries again.
func (r *receiver) answer(ctx context.Context, s replier, f frame, t press) error {
	deciding, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var all []connectors.PressResult
	for _, a := range append([]claybot.Answer{t.press.Answer}, t.more...) {
		t.press.Answer = a
		said, err := r.handler.Answer(deciding, t.press)
		if err != nil {
			r.log.Warn("failed to store answer; the user must repeat it", "question", a.Question, "user", t.press.UserID, "err", err)
			return err
		}
		if !said.OK {
			r.log.Info("answer not taken", "question", a.Question, "user", t.press.UserID, "channel", t.press.ChannelID, "again", said.Again)
		}
		all = append(all, said)
	}
	voice := texts.To(ctx, claybot.User(t.press.Connector, t.press.ChannelID, t.press.UserID))
	if t.kind == submitted && f.Accepts {
		r.ack(s, f.EnvelopeID, shown(voice, t.form, all))
		return nil
	}
	r.ack(s, f.EnvelopeID, nil)
	if said := all[0]; !said.OK && t.channel != "" {
		r.chat.whisper(ctx, t, cmp.Or(said.Text, voice.In(texts.AnswerRejected)))
	}
	return nil
}

// rate stores a feedback, acknowledges it, and thanks the user or says that it is not stored.
func (r *receiver) rate(ctx context.Context, s replier, f frame, t press) error {
	said := texts.FeedbackNotTaken
	err := r.keep(ctx, s, f.EnvelopeID, "feedback", t.in.reaction.Message, func() error {
		rated, err := r.rated(ctx, t.in.reaction)
		if rated {
			said = texts.FeedbackThanks
		}
		return err
	})
	by := claybot.User(t.press.Connector, t.press.ChannelID, t.press.UserID)
	if err == nil && r.greets != nil && r.greets.Welcome(by, t.press.Outsider) {
		r.chat.whisper(ctx, t, texts.To(ctx, by).In(said))
	}
	return err
}

// shown returns the response to a submitted form: an error at each input whose answer is
// invalid; otherwise none, which closes it, if an answer was accepted, because the others had one
// already; or a notice why no answer is accepted.
func shown(voice texts.Voice, f form, said []connectors.PressResult) any {
	wrong, taken := make(map[string]string), false
	for i, f := range f.all() {
		if taken = taken || said[i].OK; said[i].Again {
			wrong[blockQuestion+f.Question] = cut(cmp.Or(said[i].Text, voice.In(texts.AnswerRejected)), maxErrorChars)
		}
	}
	switch {
	case len(wrong) > 0:
		return slackapi.NewErrorsViewSubmissionResponse(wrong)
	case taken:
		return nil
	}
	return slackapi.NewUpdateViewSubmissionResponse(notice(voice, cmp.Or(said[0].Text, voice.In(texts.AnswerRejected))))
}

// openForm opens the form of an action.
func (c *Connector) openForm(ctx context.Context, t press) {
	opening, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	voice := texts.To(ctx, claybot.User(t.press.Connector, t.press.ChannelID, t.press.UserID))
	_, err := c.api.OpenViewContext(opening, t.trigger, t.form.view(voice, t.asked))
	if err == nil {
		return
	}
	if code, _ := judge(err); code == "exchanged_trigger_id" {
		return // it is open: Slack redelivered the action
	}
	c.log.Warn("failed to open form", "question", t.form.Question, "err", c.refused(methodView, c.cfg.BotTokenName, err))
	c.whisper(ctx, t, voice.In(texts.SlackNoForm))
}

// whisper sends an ephemeral message to the user who acted: by the response_url of the action, else by the
// Web API, which needs the bot in the channel. It is not retried.
func (c *Connector) whisper(ctx context.Context, t press, text string) {
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	if u, err := url.Parse(t.respond); err == nil && t.respond != "" && c.own(u) {
		p := post{method: methodRespond, channel: t.channel, respond: t.respond}
		p.Route.ThreadID = t.thread
		err = c.respond(ctx, p, mrkdwn(text), nil)
		if err == nil || errors.As(err, new(*connectors.AmbiguousError)) {
			return
		}
		c.log.Info("slack refused an answer to an action by its response_url", "channel", t.channel, "user", t.user, "err", err)
	}
	options := []slackapi.MsgOption{slackapi.MsgOptionText(mrkdwn(text), false), slackapi.MsgOptionParse(false)}
	if t.thread != "" {
		options = append(options, slackapi.MsgOptionTS(t.thread))
	}
	if _, err := c.api.PostEphemeralContext(ctx, t.channel, t.user, options...); err != nil {
		c.log.Warn("failed to explain a rejected action to the user", "channel", t.channel, "user", t.user, "err", c.refused(methodWhisper, c.cfg.BotTokenName, err))
	}
}
