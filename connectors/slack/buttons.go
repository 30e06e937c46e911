package slack

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// What the ids of buttons begin with; a number makes them different. What an
// action needs stands in its value, so that a tap is understood after a restart
// as well. Values are JSON, which survives that Slack escapes what it quotes.
const (
	actionAnswer = "answer" // a choice
	actionMenu   = "menu"   // of an option; the block names the question
	actionForm   = "form"   // a form to open
	actionOffer  = "offer"  // a command
)

// blockQuestion and the id of a question name the block it is answered in.
const blockQuestion = "question/"

// A choice is the value of a button that answers a question.
type choice struct {
	Question string                `json:"q"`
	Value    string                `json:"v"`
	Scope    claybot.ApprovalScope `json:"s,omitempty"`
}

// layout is a message with its text and what can be tapped below it, nil when
// there is nothing to tap. A question that fits into no button and no form has
// none: it is answered by writing.
func layout(o claybot.Outgoing, text string) []slackapi.Block {
	var below []slackapi.Block
	if o.Question != nil {
		if b := ask(*o.Question); b != nil {
			below = append(below, b)
		}
	}
	if b := offers(o.Offer); b != nil {
		below = append(below, b)
	}
	if len(below) == 0 {
		return nil
	}
	return append(sections(text), below...)
}

// sections show Markdown. They are never folded up: what is approved has to be
// seen.
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

// ask is the block by which q is answered, nil when there is none.
func ask(q claybot.Question) slackapi.Block {
	if q.ID == "" || utf8.RuneCountInString(blockQuestion+q.ID) > maxIDChars {
		return nil
	}
	var elements []slackapi.BlockElement
	switch q.Type {
	case claybot.QuestionConfirm:
		elements = approval(q)
	case claybot.QuestionBoolean:
		elements = buttons(q, "Yes", "No")
	case claybot.QuestionSelect:
		if elements = buttons(q, q.Options...); elements == nil {
			elements = menu(q)
		}
	}
	if elements == nil {
		if b := formButton(formOf(q), "Answer…"); b != nil {
			return slackapi.NewActionBlock(blockQuestion+q.ID, b.WithStyle(slackapi.StylePrimary))
		}
		return nil
	}
	if !q.Required && q.Type != claybot.QuestionConfirm {
		elements = append(elements, button(actionAnswer+"/skip", "Skip", choice{Question: q.ID}))
	}
	return slackapi.NewActionBlock(blockQuestion+q.ID, elements...)
}

// approval are the buttons of a question of type confirm.
func approval(q claybot.Question) []slackapi.BlockElement {
	all := []slackapi.BlockElement{
		button(actionAnswer+"/approve", "Approve", choice{Question: q.ID, Value: "approve"}).WithStyle(slackapi.StylePrimary),
		button(actionAnswer+"/deny", "Deny", choice{Question: q.ID, Value: "deny"}).WithStyle(slackapi.StyleDanger),
	}
	if q.Tool != "" && !q.Once {
		all = append(all, button(actionAnswer+"/session", "Approve for this session", choice{q.ID, "approve", claybot.ApproveSession}))
	}
	edit := form{Question: q.ID, Type: q.Type, Required: true, Edit: true, Default: q.Args}
	if q.Args != "" && utf8.RuneCountInString(compact(edit)) <= maxValueChars { // else it can be typed
		all = append(all, button(actionForm+"/edit", "Edit…", edit))
	}
	if b := formButton(form{Question: q.ID, Type: q.Type}, "Deny with a reason…"); b != nil {
		all = append(all, b)
	}
	return all
}

// buttons are a button for each option, nil when they do not fit.
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

// menu is a menu of the options, nil when they do not fit.
func menu(q claybot.Question) []slackapi.BlockElement {
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
	return []slackapi.BlockElement{slackapi.NewOptionsSelectBlockElement(slackapi.OptTypeStatic, placeholder(q.Placeholder, "Choose one"), actionMenu, all...)}
}

// option is one line of a menu. What is longer than a line goes on below it.
func option(name, value string) *slackapi.OptionBlockObject {
	head := []rune(connectors.OneLine(name, 2*maxLabelChars-2))
	if len(head) <= maxLabelChars {
		return slackapi.NewOptionBlockObject(value, plainText(string(head)), nil)
	}
	head, rest := head[:maxLabelChars-1], head[maxLabelChars-1:]
	return slackapi.NewOptionBlockObject(value, plainText(string(head)+"…"), plainText("…"+string(rest)))
}

// offers are buttons for commands, nil when there are none.
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

// formButton opens a form, nil when the form does not fit into a button.
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

// compact is x as JSON, in which <, > and & are escaped. What is given here
// always marshals.
func compact(x any) string {
	b, _ := json.Marshal(x)
	return string(b)
}

// plainText shows s as it is.
func plainText(s string) *slackapi.TextBlockObject {
	return slackapi.NewTextBlockObject(slackapi.PlainTextType, s, false, false)
}

// placeholder shows the first of some hints that is not empty.
func placeholder(hints ...string) *slackapi.TextBlockObject {
	for _, h := range hints {
		if h = connectors.OneLine(h, maxPlaceholderChars); h != "" {
			return plainText(h)
		}
	}
	return nil
}

// cut shortens s to a number of characters.
func cut(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}
