package slack

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// callbackForm is the callback id of claybot's forms.
const callbackForm = "claybot_question"

// A form asks a question in a modal, or all questions of a round. It is stored in the value of
// the button that opens it and then in the modal, so claybot keeps no state. With type confirm
// it asks for the reason of a denial.
type form struct {
	Question    string               `json:"q"`
	Type        claybot.QuestionType `json:"t"`
	Required    bool                 `json:"r,omitempty"`
	Options     []string             `json:"o,omitempty"`
	Min         *float64             `json:"a,omitempty"`
	Max         *float64             `json:"z,omitempty"`
	Placeholder string               `json:"p,omitempty"`
	Default     string               `json:"d,omitempty"`
	Channel     string               `json:"c,omitempty"` // where it was opened, with the workspace
	// Edit means that the form edits the arguments of an action, which are in
	// Default.
	Edit bool `json:"e,omitempty"`
	// Label is the question in words, in a form of several; More are those behind the first one.
	Label string `json:"l,omitempty"`
	More  []form `json:"m,omitempty"`
}

func formOf(q claybot.Question) form {
	return form{
		Question: q.ID, Type: q.Type, Required: q.Required, Options: q.Options, Min: q.Min, Max: q.Max,
		Placeholder: cmp.Or(q.Placeholder, q.Example), Default: q.Default,
	}
}

// roundOf returns the form that asks all of qs.
func roundOf(qs []claybot.Question) form {
	var all []form
	for _, q := range qs {
		f := formOf(q)
		f.Label = connectors.Render(q.Text, connectors.Style{}) // Slack shows it as it is
		all = append(all, f)
	}
	all[0].More = all[1:]
	return all[0]
}

// all returns a form for each question.
func (f form) all() []form {
	more := f.More
	f.More = nil
	return append([]form{f}, more...)
}

// without returns f after cut has changed the form of each question.
func (f form) without(cut func(*form)) form {
	f.More = slices.Clone(f.More)
	cut(&f)
	for i := range f.More {
		cut(&f.More[i])
	}
	return f
}

// fitted returns the form reduced to what a button can carry: first without
// hints, then without options, which users type instead. It reports whether the
// form is still usable.
func (f form) fitted() (form, bool) {
	if slices.ContainsFunc(f.all(), func(f form) bool { return f.text() && f.Min != nil && *f.Min > maxInputChars }) {
		return form{}, false
	}
	bare := f.without(func(f *form) { f.Placeholder, f.Default = "", "" })
	least := bare.without(func(f *form) { f.Options = nil })
	for _, f := range []form{f, bare, least} {
		if utf8.RuneCountInString(compact(f)) <= maxValueChars {
			return f, true
		}
	}
	return form{}, false
}

// text reports whether the answer is free text.
func (f form) text() bool {
	return f.Type == claybot.QuestionText || f.Type == claybot.QuestionTextarea
}

// view returns the modal, with the question above the input, or with each of several as the label of its input.
func (f form) view(v texts.Voice, asked string) slackapi.ModalViewRequest {
	title, send := texts.FormTitle, texts.FormSend
	if f.Edit {
		send = texts.FormRunEdited
	}
	var blocks []slackapi.Block
	switch {
	case len(f.More) > 0:
		title = texts.FormTitles
	case strings.TrimSpace(asked) != "":
		blocks = append(blocks, section(slackapi.NewTextBlockObject(slackapi.MarkdownType, cut(asked, maxSectionChars), false, true)))
	}
	for _, f := range f.all() {
		blocks = append(blocks, f.block(v))
	}
	return slackapi.ModalViewRequest{
		Type: slackapi.VTModal, CallbackID: callbackForm, PrivateMetadata: compact(f),
		Title: modalText(v, title), Submit: modalText(v, send), Close: modalText(v, texts.FormCancel),
		Blocks: slackapi.Blocks{BlockSet: blocks},
	}
}

// block returns the input of a question.
func (f form) block(v texts.Voice) slackapi.Block {
	label, hint := v.In(texts.FormAnswer), ""
	switch f.Type {
	case claybot.QuestionConfirm:
		label = v.In(texts.FormWhyNot)
		if f.Edit {
			label, hint = v.In(texts.FormArguments), texts.HintArguments
		}
	case claybot.QuestionEmailList:
		hint = texts.HintEmails
	case claybot.QuestionDatetime:
		hint = texts.HintZone
	case claybot.QuestionSelect:
		if len(f.Options) == 0 {
			hint = texts.HintOption
		}
	case claybot.QuestionMultiselect:
		if len(f.Options) == 0 {
			hint = texts.HintOptions
		}
	}
	if f.Label != "" {
		label = cut(f.Label, maxInputLabel)
	}
	input := slackapi.NewInputBlock(blockQuestion+f.Question, plainText(label), nil, f.input(v))
	input.Optional = !f.Required
	if hint != "" {
		input.Hint = plainText(v.In(hint))
	}
	return input
}

// maxModalChars is the longest title of a modal, and text of its buttons
// (docs.slack.dev/surfaces/modals, read 2026-11-28).
const maxModalChars = 24

// modalText is a title or a button of a modal; an operator may have replaced it by a longer text.
func modalText(v texts.Voice, text string) *slackapi.TextBlockObject {
	return plainText(cut(v.In(text), maxModalChars))
}

// notice returns a modal that shows a text.
func notice(v texts.Voice, text string) *slackapi.ModalViewRequest {
	return &slackapi.ModalViewRequest{
		Type: slackapi.VTModal, Title: modalText(v, texts.FormTitle), Close: modalText(v, texts.FormClose),
		Blocks: slackapi.Blocks{BlockSet: []slackapi.Block{section(plainText(cut(text, maxSectionChars)))}},
	}
}

// input returns the input element of the answer.
func (f form) input(v texts.Voice) slackapi.BlockElement {
	hint := placeholder(f.Placeholder)
	switch f.Type {
	case claybot.QuestionEmail:
		e := slackapi.NewEmailTextInputBlockElement(hint, actionAnswer)
		e.InitialValue = f.initial()
		return e
	case claybot.QuestionNumber:
		e := slackapi.NewNumberInputBlockElement(hint, actionAnswer, true)
		e.InitialValue, e.MinValue, e.MaxValue = f.initial(), decimal(f.Min), decimal(f.Max)
		return e
	case claybot.QuestionDate:
		e := slackapi.NewDatePickerBlockElement(actionAnswer)
		e.Placeholder, e.InitialDate = hint, f.initial()
		return e
	case claybot.QuestionTime:
		e := slackapi.NewTimePickerBlockElement(actionAnswer)
		e.Placeholder, e.InitialTime = hint, f.initial()
		return e
	case claybot.QuestionDatetime:
		e := slackapi.NewDateTimePickerBlockElement(actionAnswer)
		e.InitialDateTime = f.instant()
		return e
	case claybot.QuestionBoolean:
		return f.one(v, []*slackapi.OptionBlockObject{option(v.In(texts.LabelYes), texts.LabelYes), option(v.In(texts.LabelNo), texts.LabelNo)}, "true", "false")
	case claybot.QuestionSelect:
		if lines := f.lines(); lines != nil {
			return f.one(v, lines, f.Options...)
		}
	case claybot.QuestionMultiselect:
		if lines := f.lines(); lines != nil {
			return f.several(v, lines)
		}
	}
	return f.written(hint)
}

// written returns a text input.
func (f form) written(hint *slackapi.TextBlockObject) slackapi.BlockElement {
	e := slackapi.NewPlainTextInputBlockElement(hint, actionAnswer)
	e.Multiline, e.MaxLength = f.Type != claybot.QuestionText && f.Type != claybot.QuestionSelect, maxInputChars
	switch {
	case f.Edit:
		e.InitialValue = f.Default
	case f.Type == claybot.QuestionConfirm:
		e.MaxLength = maxReasonChars
	case f.text():
		if f.Max != nil && *f.Max >= 1 && *f.Max < maxInputChars {
			e.MaxLength = int(*f.Max)
		}
		if f.Required && f.Min != nil && *f.Min >= 1 && *f.Min <= float64(e.MaxLength) {
			e.MinLength = int(*f.Min)
		}
		if v := f.initial(); e.Multiline || !strings.Contains(v, "\n") {
			e.InitialValue = v
		}
	case f.Type == claybot.QuestionEmailList:
		e.InitialValue = f.Default
	}
	return e
}

// lines returns the options as Slack shows them, nil if there are none. Their
// values are their indexes.
func (f form) lines() []*slackapi.OptionBlockObject {
	if len(f.Options) > maxMenu {
		return nil
	}
	var all []*slackapi.OptionBlockObject
	for i, o := range f.Options {
		line := option(o, strconv.Itoa(i))
		if line.Text.Text == "" {
			return nil
		}
		all = append(all, line)
	}
	return all
}

// one returns an element that selects one option; values are the answers that the options stand for.
func (f form) one(v texts.Voice, lines []*slackapi.OptionBlockObject, values ...string) slackapi.BlockElement {
	e := slackapi.NewOptionsSelectBlockElement(slackapi.OptTypeStatic, placeholder(f.Placeholder, v.In(texts.FormChooseOne)), actionAnswer, lines...)
	if i := slices.Index(values, f.initial()); i >= 0 {
		e.InitialOption = lines[i]
	}
	return e
}

// several returns an element that selects any number of options.
func (f form) several(v texts.Voice, lines []*slackapi.OptionBlockObject) slackapi.BlockElement {
	var chosen []string
	if all, err := (claybot.Question{Type: f.Type, Options: f.Options}).Check(f.Default, nil); err == nil {
		_ = json.Unmarshal(all, &chosen) // null is none
	}
	var initial []*slackapi.OptionBlockObject
	for i, o := range f.Options {
		if slices.Contains(chosen, o) {
			initial = append(initial, lines[i])
		}
	}
	if len(lines) <= maxCheckboxes {
		e := slackapi.NewCheckboxGroupsBlockElement(actionAnswer, lines...)
		e.InitialOptions = initial
		return e
	}
	e := slackapi.NewOptionsMultiSelectBlockElement(slackapi.MultiOptTypeStatic, placeholder(f.Placeholder, v.In(texts.FormChoose)), actionAnswer, lines...)
	e.InitialOptions = initial
	if f.Max != nil && *f.Max >= 1 && *f.Max <= maxMenu && len(initial) <= int(*f.Max) {
		n := int(*f.Max)
		e.MaxSelectedItems = &n
	}
	return e
}

// initial returns the default as the input shows it, empty if there is none.
func (f form) initial() string {
	v, err := (claybot.Question{Type: f.Type, Options: f.Options, Min: f.Min, Max: f.Max}).Check(f.Default, nil)
	if err != nil || f.Default == "" {
		return ""
	}
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text
	}
	if (f.Type == claybot.QuestionNumber || f.Type == claybot.QuestionBoolean) && string(v) != "null" {
		return string(v)
	}
	return ""
}

// instant returns the default in Unix seconds, zero if there is none or if it
// depends on a time zone.
func (f form) instant() int64 {
	q := claybot.Question{Type: f.Type}
	here, err := q.Check(f.Default, time.UTC)
	there, err2 := q.Check(f.Default, time.FixedZone("", 3600))
	var text string
	if err != nil || err2 != nil || json.Unmarshal(here, &text) != nil || string(here) != string(there) {
		return 0
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Unix() < 1e9 || at.Unix() >= 1e10 { // Slack wants ten digits
		return 0
	}
	return at.Unix()
}

// decimal formats a bound for Slack, empty if there is none.
func decimal(x *float64) string {
	if x == nil || math.Abs(*x) > 1e15 {
		return ""
	}
	return strconv.FormatFloat(*x, 'f', -1, 64)
}

// A field is the state of an input.
type field struct {
	Value           string   `json:"value"`
	SelectedDate    string   `json:"selected_date"`
	SelectedTime    string   `json:"selected_time"`
	SelectedInstant int64    `json:"selected_date_time"` // seconds since 1970
	SelectedOption  chosen   `json:"selected_option"`
	SelectedOptions []chosen `json:"selected_options"`
}

type chosen struct {
	Value string `json:"value"`
}

// read returns the answer of a field in the form that claybot.Question.Check
// reads, empty if there is none. ok is false for options that the form does not
// have.
func (f form) read(in field) (value string, ok bool) {
	switch {
	case len(f.Options) > 0 && f.Type == claybot.QuestionMultiselect:
		var all []string
		for _, c := range in.SelectedOptions {
			o, ok := f.option(c)
			if !ok {
				return "", false
			}
			all = append(all, o)
		}
		if len(all) == 0 {
			return "", true
		}
		return compact(all), true
	case len(f.Options) > 0 && f.Type == claybot.QuestionSelect:
		if in.SelectedOption.Value == "" {
			return "", true
		}
		return f.option(in.SelectedOption)
	case f.Type == claybot.QuestionBoolean:
		return cmp.Or(in.SelectedOption.Value, in.Value), true // an older version has a text input
	case f.Type == claybot.QuestionDate:
		return in.SelectedDate, true
	case f.Type == claybot.QuestionTime:
		return in.SelectedTime, true
	case f.Type == claybot.QuestionDatetime:
		if in.SelectedInstant == 0 {
			return "", true
		}
		return time.Unix(in.SelectedInstant, 0).UTC().Format(time.RFC3339), true
	}
	return in.Value, true
}

func (f form) option(c chosen) (string, bool) {
	i, err := strconv.Atoi(c.Value)
	if err != nil || i < 0 || i >= len(f.Options) {
		return "", false
	}
	return f.Options[i], true
}
