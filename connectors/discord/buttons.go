package discord

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/texts"
)

// The types and styles of components.
//
// docs.discord.com/developers/components/reference, read 2026-11-28: a row has up to five
// buttons or one menu; a menu has up to 25 options; a custom_id has up to 100 characters.
const (
	componentRow    = 1
	componentButton = 2
	componentMenu   = 3
	componentInput  = 4
	componentLabel  = 18

	stylePrimary   = 1
	styleSecondary = 2
	styleSuccess   = 3
	styleDanger    = 4
	styleShort     = 1 // of an input
	styleParagraph = 2
)

// A row is a row of components below a message.
type row struct {
	Type       int         `json:"type"`
	Components []component `json:"components"`
}

// A component is a button, a menu or an input, or a label of a form with one of these.
type component struct {
	Type        int        `json:"type"`
	Style       int        `json:"style,omitempty"`
	Label       string     `json:"label,omitempty"`
	Description string     `json:"description,omitempty"` // of a label
	Inner       *component `json:"component,omitempty"`   // of a label
	CustomID    string     `json:"custom_id,omitempty"`
	Options     []option   `json:"options,omitempty"`
	Placeholder string     `json:"placeholder,omitempty"`
	Min         *int       `json:"min_values,omitempty"`
	Max         *int       `json:"max_values,omitempty"`
	Required    *bool      `json:"required,omitempty"`
	MinLength   int        `json:"min_length,omitempty"`
	MaxLength   int        `json:"max_length,omitempty"`
	Value       string     `json:"value,omitempty"`  // of an input, also when it was submitted
	Values      []string   `json:"values,omitempty"` // of a menu of a form that was submitted
}

type option struct {
	Label   string `json:"label"`
	Value   string `json:"value"`
	Default bool   `json:"default,omitempty"`
}

// What a component does: its custom_id is q:<question>:<verb>, or c:</command> for an offer. It
// is neither secret nor trusted: the system authorizes each answer, and a command counts as if
// the user had typed it.
const (
	verbYes     = "y" // yes, or approved
	verbSession = "s" // approved for this session
	verbNo      = "n" // no, or denied
	verbSkip    = "k" // no answer
	verbMenu    = "m" // what is chosen in a menu
	verbMenus   = "l" // the same, of one that takes several
	verbForm    = "f" // opens a form for the answer; in a form, what is written
	verbAll     = "a" // opens a form for all questions that are asked together
	verbReason  = "r" // opens a form for the reason of a denial
	verbEdit    = "e" // how to approve with other arguments

	questionPrefix = "q:"
	offerPrefix    = "c:"
)

var questionForm = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

// customID is what a component of a question carries.
func customID(question, verb string) string { return questionPrefix + question + ":" + verb }

// readCustomID decodes what customID encodes.
func readCustomID(s string) (question, verb string, ok bool) {
	rest, ok := strings.CutPrefix(s, questionPrefix)
	question, verb, found := strings.Cut(rest, ":")
	return question, verb, ok && found && len(verb) == 1 && questionForm.MatchString(question)
}

// buttons returns the rows below a message, nil for none. Questions that do not fit are answered
// with text.
func (c *Connector) buttons(v texts.Voice, o claybot.Outgoing) (rows []row) {
	if o.Question != nil && questionForm.MatchString(o.Question.ID) {
		rows = ask(v, *o.Question)
		if len(o.Round) > 1 && len(o.Round) <= maxInputs {
			rows = append(rows, inRows([]component{button(stylePrimary, v.In(texts.LabelAnswerAll), customID(o.Question.ID, verbAll))})...)
		}
	}
	var offers []component
	for _, f := range o.Offer {
		b := button(styleSecondary, f.Label, offerPrefix+f.Command)
		if b.Label == "" || !strings.HasPrefix(f.Command, "/") || utf8.RuneCountInString(b.CustomID) > maxCustomID {
			c.log.Warn("a button does not fit and was left out", "outgoing", o.ID, "label", b.Label)
			continue
		}
		offers = append(offers, b)
	}
	rows = append(rows, inRows(offers)...)
	return rows[:min(len(rows), maxRows)]
}

// inRows arranges buttons in rows.
func inRows(all []component) (rows []row) {
	for len(all) > 0 {
		n := min(len(all), maxRowButtons)
		rows = append(rows, row{componentRow, all[:n:n]})
		all = all[n:]
	}
	return rows
}

func button(style int, label, id string) component {
	return component{Type: componentButton, Style: style, Label: connectors.OneLine(label, maxLabel), CustomID: id}
}

// ask returns the rows with which people answer q.
func ask(v texts.Voice, q claybot.Question) (rows []row) {
	press := func(style int, label, verb string) component {
		return button(style, v.In(label), customID(q.ID, verb))
	}
	var all []component
	switch q.Type {
	case claybot.QuestionConfirm:
		all = append(all, press(styleSuccess, texts.LabelApprove, verbYes), press(styleDanger, texts.LabelDeny, verbNo))
		if q.Tool != "" && !q.Once {
			all = append(all, press(styleSecondary, texts.LabelSession, verbSession))
		}
		if q.Args != "" {
			all = append(all, press(styleSecondary, texts.LabelEdit, verbEdit))
		}
		return inRows(append(all, press(styleSecondary, texts.LabelDenyReason, verbReason)))
	case claybot.QuestionBoolean:
		all = append(all, press(stylePrimary, texts.LabelYes, verbYes), press(styleSecondary, texts.LabelNo, verbNo))
	case claybot.QuestionSelect, claybot.QuestionMultiselect:
		if m, ok := menu(v, q); ok {
			rows = append(rows, row{componentRow, []component{m}})
		}
	}
	if len(rows)+len(all) == 0 {
		all = append(all, press(stylePrimary, texts.LabelAnswer, verbForm))
	}
	if !q.Required {
		all = append(all, press(styleSecondary, texts.LabelSkip, verbSkip))
	}
	return append(rows, inRows(all)...)
}

// menu returns a menu of the options; ok is false if they do not fit.
func menu(v texts.Voice, q claybot.Question) (m component, ok bool) {
	if len(q.Options) == 0 || len(q.Options) > maxMenu {
		return m, false
	}
	m = component{
		Type: componentMenu, CustomID: customID(q.ID, verbMenu),
		Placeholder: connectors.OneLine(cmp.Or(q.Placeholder, v.In(texts.FormChooseOne)), maxOptionChars),
	}
	for _, o := range q.Options {
		label := connectors.OneLine(o, maxOptionChars)
		if label == "" || utf8.RuneCountInString(o) > maxOptionChars {
			return m, false
		}
		m.Options = append(m.Options, option{Label: label, Value: o})
	}
	if q.Type == claybot.QuestionMultiselect {
		least, most := 1, len(q.Options)
		if q.Min != nil && *q.Min >= 1 && *q.Min <= float64(most) {
			least = int(*q.Min)
		}
		if q.Max != nil && *q.Max >= float64(least) && *q.Max <= float64(most) {
			most = int(*q.Max)
		}
		m.CustomID, m.Placeholder = customID(q.ID, verbMenus), connectors.OneLine(cmp.Or(q.Placeholder, v.In(texts.FormChoose)), maxOptionChars)
		m.Min, m.Max = &least, &most
	}
	return m, true
}
