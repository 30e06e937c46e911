package plan

import (
	"strings"
	"unicode"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/texts"
)

// list is a Markdown list of plain lines with a title above it; nothing for no
// lines.
func list(title string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	text := "\n\n" + title
	for _, line := range lines {
		text += "\n- " + plain(line)
	}
	return text
}

// plain is a text in one line, and without what Markdown would read into it.
func plain(s string) string {
	var b strings.Builder
	line := []rune(strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " "))
	at := func(i int) rune {
		if i < 0 || i >= len(line) {
			return ' '
		}
		return line[i]
	}
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
	for i, r := range line {
		switch {
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			continue
		case strings.ContainsRune("\\`*<~", r),
			r == '_' && !(word(at(i-1)) && word(at(i+1))),    // within a word it means nothing
			r == ']' && strings.ContainsRune("([:", at(i+1)), // of a link
			i == 0 && strings.ContainsRune(">#|+-=", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// result is what a tool said, short enough for a list. What claybot said in its place is in
// the language of the readers.
func result(v texts.Voice, text string) string {
	if why, held := strings.CutPrefix(text, notRun); held {
		return clip(v.Say(texts.PlanNotRun, v.PlanReason(why)), maxResult)
	}
	return clip(strings.TrimPrefix(v.In(text), "error: "), maxResult)
}

// maxResult is the longest result in a list.
const maxResult = 300

// effectNames are effects as people read them.
func effectNames(v texts.Voice, all []claybot.Undo) string {
	var names []string
	for _, u := range all {
		names = append(names, v.Effect(u))
	}
	return strings.Join(names, "; ")
}

// planText shows the steps of a plan.
func planText(v texts.Voice, steps []Step) string {
	lines := make([]string, len(steps))
	for i, st := range steps {
		notes := []string{st.does(v)}
		if st.Risk == riskHigh {
			notes = append(notes, v.In(texts.PlanHighRisk))
		}
		if len(st.DependsOn) > 0 {
			notes = append(notes, v.Say(texts.PlanAfter, strings.Join(st.DependsOn, ", ")))
		}
		if st.CostMicroUSD > 0 {
			notes = append(notes, v.Say(texts.PlanCost, v.Dollars(st.CostMicroUSD)))
		}
		lines[i] = st.ID + " (" + strings.Join(notes, "; ") + ")"
	}
	return list(v.In(texts.PlanSteps), lines)
}
