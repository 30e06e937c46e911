package discord

import (
	"cmp"
	"context"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// A form has up to five labels, each with an input or a menu, and keeps no state: a custom_id has no
// room for questions, so those of a round are those that are open when the form is opened.
//
// docs.discord.com/developers/components/reference#label, …#text-input, …#string-select and
// …/interactions/receiving-and-responding#interaction-response-object-modal, read 2026-11-30: a label
// has up to 45 characters and a description of up to 100; a menu that need not be answered has
// min_values 0; a submitted form can open no other one.

// openedForm is the form for the answer of a question, or the reason of a denial. Its custom_id is
// that of the button.
func openedForm(v texts.Voice, i interaction, verb string) map[string]any {
	required, label := true, v.In(texts.FormAnswer)
	if verb == verbReason {
		label = v.In(texts.FormWhyNot)
	}
	return formOf(i, v.In(texts.FormTitle), labelOf(label, component{
		Type: componentInput, Style: styleParagraph, CustomID: "answer",
		Placeholder: connectors.OneLine(quotable(i.Message.Content), maxOptionChars), Required: &required, MaxLength: maxInput,
	}))
}

func formOf(i interaction, title string, labels ...component) map[string]any {
	return map[string]any{"custom_id": i.Data.CustomID, "title": connectors.OneLine(title, maxTitle), "components": labels}
}

// labelOf puts a text above a component; what it has no room for stands in the description.
func labelOf(text string, inner component) component {
	c := component{Type: componentLabel, Label: connectors.OneLine(text, maxTitle), Inner: &inner}
	if whole := connectors.OneLine(text, maxDescription); whole != c.Label {
		c.Description = whole
	}
	return c
}

// written is the text of a submitted form with one input.
func (i interaction) written() string {
	for _, c := range i.Data.Components {
		if c.Inner != nil {
			return c.Inner.Value
		}
	}
	return ""
}

// input is the component of a form that asks q.
func input(v texts.Voice, q claybot.Question) component {
	c := component{Type: componentInput, Style: styleShort, CustomID: customID(q.ID, verbForm), MaxLength: maxInput, Value: q.Default}
	switch q.Type {
	case claybot.QuestionBoolean:
		preset, _ := q.Check(q.Default, nil) // or none
		c = component{
			Type: componentMenu, CustomID: customID(q.ID, verbMenu), Placeholder: connectors.OneLine(v.In(texts.FormChooseOne), maxOptionChars),
			Options: []option{
				{Label: connectors.OneLine(v.In(texts.LabelYes), maxOptionChars), Value: "yes", Default: string(preset) == "true"},
				{Label: connectors.OneLine(v.In(texts.LabelNo), maxOptionChars), Value: "no", Default: string(preset) == "false"},
			},
		}
	case claybot.QuestionSelect, claybot.QuestionMultiselect:
		m, ok := menu(v, q)
		if !ok {
			c.Placeholder = v.In(texts.HintOption)
			break
		}
		for i := range m.Options {
			m.Options[i].Default = q.Type == claybot.QuestionSelect && m.Options[i].Value == q.Default
		}
		if none := 0; m.Min != nil && !q.Required {
			m.Min = &none
		}
		c = m
	case claybot.QuestionTextarea, claybot.QuestionEmailList:
		c.Style = styleParagraph
	}
	if q.Type == claybot.QuestionText || q.Type == claybot.QuestionTextarea {
		if q.Max != nil && *q.Max >= 1 && *q.Max < maxInput {
			c.MaxLength = int(*q.Max)
		}
		if q.Required && q.Min != nil && *q.Min >= 1 && *q.Min <= float64(c.MaxLength) {
			c.MinLength = int(*q.Min)
		}
	}
	if c.Type == componentInput {
		c.Placeholder = connectors.OneLine(cmp.Or(q.Placeholder, q.Example, c.Placeholder), maxOptionChars)
	}
	c.Required = &q.Required
	return c
}

// round opens the form of all questions that are asked together, or submits what it has.
func (r *receiver) round(ctx context.Context, i interaction, by connectors.Press) {
	voice := texts.To(ctx, claybot.User(by.Connector, by.ChannelID, by.UserID))
	rounds, ok := r.handler.(connectors.RoundHandler)
	if !ok {
		r.say(ctx, i, voice.In(texts.ButtonDead))
		return
	}
	if i.Type == interactionForm {
		r.submitted(ctx, i, by, rounds)
		return
	}
	open, err := rounds.Round(ctx, by)
	switch {
	case err != nil:
		r.log.Warn("failed to open the form of a round; the user must press again", "question", by.Answer.Question, "user", by.UserID, "err", err)
		return
	case len(open) == 0:
		r.say(ctx, i, voice.In(texts.Closed))
		return
	}
	var labels []component
	for _, q := range open[:min(len(open), maxInputs)] {
		labels = append(labels, labelOf(plainText(q.Text), input(voice, q)))
	}
	r.respond(ctx, i, respondForm, formOf(i, voice.In(texts.FormTitles), labels...))
}

// plainText is a question without the marks of Markdown: Discord shows a label as it is.
func plainText(md string) string { return connectors.Render(md, connectors.Style{}) }

// submitted stores the answers of a form, and says which of them do not fit: their questions stay open
// with their own buttons. If one cannot be stored, nothing is acknowledged, and the user
// sends the form again, which stays open.
func (r *receiver) submitted(ctx context.Context, i interaction, by connectors.Press, rounds connectors.RoundHandler) {
	voice := texts.To(ctx, claybot.User(by.Connector, by.ChannelID, by.UserID))
	unfit, refused, taken := make(map[string]string), "", false
	for _, c := range i.Data.Components {
		a, ok := c.answer()
		if !ok {
			r.say(ctx, i, voice.In(texts.ButtonDead))
			return
		}
		by.Answer = a
		said, err := r.handler.Answer(ctx, by)
		if err != nil {
			r.log.Warn("failed to store answer; the user must repeat it", "question", a.Question, "user", by.UserID, "err", err)
			return
		}
		taken = taken || said.OK
		if text := cmp.Or(said.Text, voice.In(texts.AnswerRejected)); said.Again {
			unfit[a.Question] = text
		} else if !said.OK {
			refused = cmp.Or(refused, text)
		}
	}
	switch {
	case len(unfit) > 0:
		open, err := rounds.Round(ctx, by)
		if err != nil {
			return
		}
		var lines []string
		for _, q := range open {
			if why := unfit[q.ID]; why != "" {
				lines = append(lines, connectors.OneLine(plainText(q.Text), maxDescription)+"\n"+why)
			}
		}
		r.say(ctx, i, cmp.Or(strings.Join(lines, "\n\n"), voice.In(texts.AnswerRejected)))
	case taken:
		r.respond(ctx, i, respondUpdate, nil)
	default:
		r.say(ctx, i, cmp.Or(refused, voice.In(texts.AnswerRejected)))
	}
}

// answer reads what a label of a submitted form has; ok is false if that answers nothing.
func (c component) answer() (a claybot.Answer, ok bool) {
	if c.Inner == nil {
		return a, false
	}
	question, verb, ok := readCustomID(c.Inner.CustomID)
	a.Question = question
	switch {
	case ok && verb == verbForm:
		a.Text = c.Inner.Value
	case ok && len(c.Inner.Values) > 0:
		ok = read(verb, c.Inner.Values, &a)
	}
	return a, ok
}
