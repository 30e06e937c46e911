package slack

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// Prefixes of action ids; a number makes them unique. The value of an action
// has all that its handler needs, so actions work after a restart. Values are
// JSON, which survives Slack's escaping.
const (
	actionAnswer = "answer" // a choice
	actionMenu   = "menu"   // an option; the block names the question
	actionForm   = "form"   // a form to open
	actionOffer  = "offer"  // a command
	actionRate   = "rate"   // feedback
)

// blockQuestion and the id of a question name the block it is answered in.
const blockQuestion = "question/"

// A choice is the value of a button that answers a question.
type choice struct {
	Question string                `json:"q"`
	Value    string                `json:"v"`
	Scope    claybot.ApprovalScope `json:"s,omitempty"`
}

// controls returns the interactive elements of a message, nil if it has none. A question that fits
// neither buttons nor a form is answered with text.
func (c *Connector) controls(v texts.Voice, o claybot.Outgoing) (below []slackapi.Block) {
	if o.Question != nil {
		if b := ask(v, *o.Question); b != nil {
			below = append(below, b)
		}
		if b := askAll(v, o.Round); b != nil {
			below = append(below, b)
		}
	}
	if b := offers(o.Offer); b != nil {
		below = append(below, b)
	}
	if r := o.Route; c.cfg.Feedback != nil && c.cfg.Feedback(claybot.User(r.Connector, r.ChannelID, r.UserID)) {
		if b := rating(v, o); b != nil {
			below = append(below, b)
		}
	}
	return below
}

// sections returns blocks that show Markdown. They are always expanded, because
// users must see what they approve.
func sections(md string) []slackapi.Block {
	var all []slackapi.Block
	for _, part := range connectors.Split(md, maxSectionChars, escapedChars) {
		text := mrkdwn(part)
		if utf8.RuneCountInString(text) > maxSectionChars || strings.TrimSpace(text) == "" {
			text = escape(part)
		}
		if strings.TrimSpace(text) != "" {
			all = append(all, section(slackapi.NewTextBlockObject(slackapi.MarkdownType, text, false, true)))
		}
	}
	return all
}

func section(text *slackapi.TextBlockObject) *slackapi.SectionBlock {
	return slackapi.NewSectionBlock(text, nil, nil, slackapi.SectionBlockOptionExpand(true))
}

// ask returns the block with which users answer q, nil if there is none.
func ask(v texts.Voice, q claybot.Question) slackapi.Block {
	if q.ID == "" || utf8.RuneCountInString(blockQuestion+q.ID) > maxIDChars {
		return nil
	}
	var elements []slackapi.BlockElement
	switch q.Type {
	case claybot.QuestionConfirm:
		elements = approval(v, q)
	case claybot.QuestionBoolean:
		elements = yesOrNo(v, q)
	case claybot.QuestionSelect:
		if elements = buttons(q, q.Options...); elements == nil {
			elements = menu(v, q)
		}
	}
	if elements == nil {
		if b := formButton(formOf(q), v.In(texts.LabelAnswer)); b != nil {
			return slackapi.NewActionBlock(blockQuestion+q.ID, b.WithStyle(slackapi.StylePrimary))
		}
		return nil
	}
	if !q.Required && q.Type != claybot.QuestionConfirm {
		elements = append(elements, button(actionAnswer+"/skip", v.In(texts.LabelSkip), choice{Question: q.ID}))
	}
	return slackapi.NewActionBlock(blockQuestion+q.ID, elements...)
}

// askAll returns the block with the button whose form asks all of qs, nil if there is none.
func askAll(v texts.Voice, qs []claybot.Question) slackapi.Block {
	tooLong := func(q claybot.Question) bool {
		return q.ID == "" || utf8.RuneCountInString(blockQuestion+q.ID) > maxIDChars
	}
	if len(qs) < 2 || slices.ContainsFunc(qs, tooLong) {
		return nil
	}
	f, ok := roundOf(qs).fitted()
	if !ok {
		return nil
	}
	return slackapi.NewActionBlock("round", button(actionForm+"/all", v.In(texts.LabelAnswerAll), f))
}

// approval returns the buttons of a question of type confirm.
func approval(v texts.Voice, q claybot.Question) []slackapi.BlockElement {
	all := []slackapi.BlockElement{
		button(actionAnswer+"/approve", v.In(texts.LabelApprove), choice{Question: q.ID, Value: "approve"}).WithStyle(slackapi.StylePrimary),
		button(actionAnswer+"/deny", v.In(texts.LabelDeny), choice{Question: q.ID, Value: "deny"}).WithStyle(slackapi.StyleDanger),
	}
	if q.Tool != "" && !q.Once {
		all = append(all, button(actionAnswer+"/session", v.In(texts.LabelSession), choice{q.ID, "approve", claybot.ApproveSession}))
	}
	edit := form{Question: q.ID, Type: q.Type, Required: true, Edit: true, Default: q.Args}
	if q.Args != "" && utf8.RuneCountInString(compact(edit)) <= maxValueChars { // otherwise users type it
		all = append(all, button(actionForm+"/edit", v.In(texts.LabelEditForm), edit))
	}
	if b := formButton(form{Question: q.ID, Type: q.Type}, v.In(texts.LabelDenyReason)); b != nil {
		all = append(all, b)
	}
	return all
}

// yesOrNo returns the buttons of a question of type boolean. Their values are English in every
// language.
func yesOrNo(v texts.Voice, q claybot.Question) []slackapi.BlockElement {
	var all []slackapi.BlockElement
	for i, value := range []string{texts.LabelYes, texts.LabelNo} {
		all = append(all, button(actionAnswer+"/"+strconv.Itoa(i), v.In(value), choice{Question: q.ID, Value: value}))
	}
	return all
}

// buttons returns a button for each option, nil if they do not fit.
func buttons(q claybot.Question, options ...string) []slackapi.BlockElement {
	if len(options) > fewOptions {
		return nil
	}
	var all []slackapi.BlockElement
	for i, o := range options {
		b := button(actionAnswer+"/"+strconv.Itoa(i), o, choice{Question: q.ID, Value: o})
		if b.Text.Text == "" || utf8.RuneCountInString(o) > maxLabelChars || utf8.RuneCountInString(b.Value) > maxValueChars {
			return nil
		}
		all = append(all, b)
	}
	return all
}

// menu returns a menu of the options, nil if they do not fit.
func menu(v texts.Voice, q claybot.Question) []slackapi.BlockElement {
	if len(q.Options) == 0 || len(q.Options) > maxMenu {
		return nil
	}
	var all []*slackapi.OptionBlockObject
	for _, o := range q.Options {
		line := option(o, compact(o))
		if line.Text.Text == "" || utf8.RuneCountInString(line.Value) > maxOptionValueChars {
			return nil
		}
		all = append(all, line)
	}
	return []slackapi.BlockElement{slackapi.NewOptionsSelectBlockElement(slackapi.OptTypeStatic, placeholder(q.Placeholder, v.In(texts.FormChooseOne)), actionMenu, all...)}
}

// option returns one line of a menu. A longer text continues in the
// description.
func option(name, value string) *slackapi.OptionBlockObject {
	head := []rune(connectors.OneLine(name, 2*maxLabelChars-2))
	if len(head) <= maxLabelChars {
		return slackapi.NewOptionBlockObject(value, plainText(string(head)), nil)
	}
	head, rest := head[:maxLabelChars-1], head[maxLabelChars-1:]
	return slackapi.NewOptionBlockObject(value, plainText(string(head)+"…"), plainText("…"+string(rest)))
}

// offers returns buttons for commands, nil if there are none.
func offers(all []claybot.Offer) slackapi.Block {
	var elements []slackapi.BlockElement
	for i, o := range all {
		b := button(actionOffer+"/"+strconv.Itoa(i), o.Label, o.Command)
		if b.Text.Text == "" || o.Command == "" || utf8.RuneCountInString(b.Value) > maxValueChars || len(elements) == maxButtons {
			continue // the command can be typed
		}
		elements = append(elements, b)
	}
	if len(elements) == 0 {
		return nil
	}
	return slackapi.NewActionBlock("offers", elements...)
}

// formButton returns a button that opens a form, nil if the form does not fit.
func formButton(f form, label string) *slackapi.ButtonBlockElement {
	f, ok := f.fitted()
	if !ok {
		return nil
	}
	return button(actionForm, label, f)
}

// button makes a button. Its value is JSON.
func button(action, label string, value any) *slackapi.ButtonBlockElement {
	return slackapi.NewButtonBlockElement(action, compact(value), plainText(connectors.OneLine(label, maxLabelChars)))
}

// compact returns x as JSON with <, > and & escaped. x must marshal without
// error.
func compact(x any) string {
	b, _ := json.Marshal(x)
	return string(b)
}

// plainText returns a text object that shows s unchanged.
func plainText(s string) *slackapi.TextBlockObject {
	return slackapi.NewTextBlockObject(slackapi.PlainTextType, s, false, false)
}

// placeholder returns the first hint that is not empty.
func placeholder(hints ...string) *slackapi.TextBlockObject {
	for _, h := range hints {
		if h = connectors.OneLine(h, maxPlaceholderChars); h != "" {
			return plainText(h)
		}
	}
	return nil
}

// cut truncates s to limit characters.
func cut(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}
