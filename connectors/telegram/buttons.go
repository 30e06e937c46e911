package telegram

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// A keyboard is the buttons below a message, by rows.
type keyboard struct {
	Rows [][]button `json:"inline_keyboard"`
}

type button struct {
	Text string `json:"text"`
	Data string `json:"callback_data,omitempty"`
}

// noButtons removes the buttons of a message.
func noButtons() keyboard { return keyboard{Rows: [][]button{}} }

// A forceReply opens the answer to a message, with a hint where to write it.
// Telegram does not let a message that has it be edited.
type forceReply struct {
	ForceReply  bool   `json:"force_reply"`
	Placeholder string `json:"input_field_placeholder"`
}

// chosenMark is before a selected option.
const chosenMark = "✓ "

// markup returns the reply markup of o, nil for none. Questions without buttons
// are answered with text.
func (c *Connector) markup(v texts.Voice, o claybot.Outgoing) any {
	var k keyboard
	if o.Question != nil {
		var ok bool
		if k.Rows, ok = ask(v, *o.Question, toggler(o.Route)); !ok {
			c.log.Info("question sent without buttons: their labels would be ambiguous", "question", o.Question.ID)
			k.Rows = nil
		}
	}
	if row := c.offers(o); len(row) > 0 {
		k.Rows = append(k.Rows, row)
	}
	if o.Progress && o.Run != "" {
		k.Rows = append(k.Rows, []button{{Text: connectors.OneLine(v.In(texts.LabelStop), maxLabelRunes), Data: stopData(toggler(o.Route))}})
	}
	switch {
	case len(k.Rows) > 0:
		return k
	case o.Edit != "":
		return noButtons()
	case o.Question != nil && !shared(o.Route):
		return hint(*o.Question)
	}
	return nil
}

// shared reports whether r is a group or channel.
func shared(r claybot.Route) bool { return r.Group || strings.HasPrefix(r.ChannelID, "-") }

// toggler returns the id of the only user who may select options on r: the user
// who is asked. It is 0 in a private chat, which has no other users.
func toggler(r claybot.Route) int64 {
	if !shared(r) {
		return 0
	}
	id, err := strconv.ParseInt(r.UserID, 10, 64)
	if err != nil || id <= 0 {
		return 0
	}
	return id
}

// hint shows the expected form of the answer in the input field.
func hint(q claybot.Question) any {
	for _, text := range []string{q.Placeholder, q.Example} {
		if text = cutUTF16(text, maxPlaceholderUTF16); text != "" {
			return forceReply{ForceReply: true, Placeholder: text}
		}
	}
	return nil
}

// offers are the buttons of o that stand for commands.
func (c *Connector) offers(o claybot.Outgoing) (row []button) {
	for _, f := range o.Offer {
		b := button{Text: connectors.OneLine(f.Label, maxLabelRunes), Data: offerPrefix + f.Command}
		if _, ok := readOffer(b.Data); !ok || b.Text == "" || len(row) == maxRow {
			c.log.Warn("a button does not fit and was left out", "outgoing", o.ID, "label", b.Text)
			continue
		}
		row = append(row, b)
	}
	return row
}

// readOffer decodes the command from the data of an offer.
func readOffer(data string) (command string, ok bool) {
	command, ok = strings.CutPrefix(data, offerPrefix)
	ok = ok && len(data) <= maxDataBytes && strings.HasPrefix(command, "/") && utf8.ValidString(command) &&
		!strings.ContainsFunc(command, unicode.IsControl)
	return command, ok
}

// ask returns the buttons of q; none for a question that is answered with text.
// ok is false if the buttons do not fit. If user is set and fits, only that
// user may select options.
func ask(v texts.Voice, q claybot.Question, user int64) (rows [][]button, ok bool) {
	a := asking{Question: q, voice: v, user: user, fits: true}
	switch q.Type {
	case claybot.QuestionConfirm:
		rows = append(rows, []button{a.button(a.voice.In(texts.LabelApprove), verbYes), a.button(a.voice.In(texts.LabelDeny), verbNo)})
		if q.Tool != "" && !q.Once { // approval for the session covers the tool
			rows = append(rows, []button{a.button(a.voice.In(texts.LabelSession), verbSession)})
		}
		if q.Args != "" {
			rows = append(rows, []button{a.button(a.voice.In(texts.LabelEdit), verbEdit)})
		}
		return rows, a.fits
	case claybot.QuestionBoolean:
		rows = append(rows, []button{a.button(a.voice.In(texts.LabelYes), verbYes), a.button(a.voice.In(texts.LabelNo), verbNo)})
	case claybot.QuestionSelect, claybot.QuestionMultiselect:
		rows = a.choices()
	}
	if !q.Required {
		rows = append(rows, []button{a.button(a.voice.In(texts.LabelSkip), verbSkip)})
	}
	return rows, a.fits
}

// An asking makes the buttons of one question.
type asking struct {
	claybot.Question
	voice texts.Voice
	user  int64
	fits  bool // all of them, so far
}

func (a *asking) button(label string, v verb) button {
	return a.press(label, press{verb: v})
}

func (a *asking) press(label string, p press) button {
	p.question = a.ID
	data, ok := p.data()
	a.fits = a.fits && ok && label != ""
	return button{Text: label, Data: data}
}

// choices returns a button for each option, followed by Done if several may be
// selected.
func (a *asking) choices() [][]button {
	if len(a.Options) > maxOptions {
		a.fits = false
		return nil
	}
	several := a.Type == claybot.QuestionMultiselect
	named := !a.Numbered()
	p := press{verb: verbOption, named: named, option: maxOptions}
	if several {
		p.verb, p.user = verbToggle, a.user
		longest := p
		longest.question, longest.chosen = a.ID, 1<<maxOptions-1
		if _, ok := longest.data(); !ok { // Done is authorized when it is pressed
			p.user = 0
			longest.user = 0
			_, ok = longest.data()
			a.fits = a.fits && ok
		}
	}
	buttons := make([]button, len(a.Options))
	widest := 0
	for i, o := range a.Options {
		p.option = i + 1
		label := a.label(i, o, named)
		buttons[i] = a.press(label, p)
		widest = max(widest, utf8.RuneCountInString(label))
	}
	if several {
		widest += utf8.RuneCountInString(chosenMark)
	}
	rows := inRows(buttons, widest)
	if several {
		rows = append(rows, []button{a.press(a.voice.In(texts.LabelDone), press{verb: verbDone, named: named})})
	}
	return rows
}

// label returns the label of an option. If the label is also the value, it is
// the unchanged option; otherwise it may be truncated.
func (a *asking) label(i int, option string, named bool) string {
	if named {
		label := connectors.OneLine(option, maxOptionRunes)
		a.fits = a.fits && label == option
		return label
	}
	label := connectors.OneLine(option, maxLabelRunes)
	if label == "" { // no visible characters
		label = strconv.Itoa(i + 1)
	}
	return label
}

// inRows arranges short buttons side by side.
func inRows(buttons []button, widest int) (rows [][]button) {
	n := 1
	switch {
	case widest <= 10:
		n = 3
	case widest <= 18:
		n = 2
	}
	for len(buttons) > 0 {
		n = min(n, len(buttons))
		rows = append(rows, buttons[:n:n])
		buttons = buttons[n:]
	}
	return rows
}

// cutUTF16 returns s as one line of at most limit UTF-16 units.
func cutUTF16(s string, limit int) string {
	n := limit // characters, each of which is at least one unit
	s = connectors.OneLine(s, n)
	for n > 0 && connectors.UTF16Len(s) > limit {
		n--
		s = connectors.OneLine(s, n)
	}
	return s
}
