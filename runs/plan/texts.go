package plan

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/claybot/claybot"
)

// Why a plan or a step is not run, behind "not run: ".
const (
	notApproved   = "not approved"
	whyExpired    = "not approved in time"
	whyNobody     = "not approved: no person can be asked"
	whyVoid       = "the approval is void: it was for another action"
	whyNoApprover = "not approved: who said yes may not approve it any more"
	whyTooFew     = "not approved by %d different people"
	whyPreview    = "plans are only shown here"
	whyQuiet      = "it is quiet until %s"
	whyNotNow     = "you did not want it during quiet hours"
	whyBudget     = "it may cost %s, and the budget is %s"
)

// Sentences for the person.
const (
	sayNoIntent    = "I could not find out what you want: %s. Please say it again in other words."
	sayCatalogue   = "That is none of the things that I do here. I do: %s."
	sayIntentGone  = "The settings changed meanwhile: there is no %s any more. Nothing was run; please ask again."
	sayBadPlan     = "The plan cannot be used: %s. Nothing was run; please ask again, perhaps in other words."
	sayNobodyKnows = "No person can be asked for what is missing: %s. Nothing was run."
	sayUnanswered  = "There is no answer to %s, so nothing was run. Please ask again when you know it."
	sayQuiet       = "It is quiet until %s, so nothing was run. Please ask again after that."
	sayNothing     = "There is nothing to do."
	sayNoneRan     = "Nothing was run."
	sayHeld        = "Nothing was run: %s."

	askNow = "It is quiet until %s. Run the plan now? Without an answer it runs at %s; with no, it is dropped."
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

// result is what a tool said, short enough for a list.
func result(text string) string {
	return clip(strings.TrimPrefix(text, "error: "), 300)
}

// effectName is what people call an effect.
func effectName(u claybot.Undo) string {
	if u.What == "" {
		return fmt.Sprintf("%s (%s)", u.Step, u.Tool)
	}
	return clip(u.What, maxWhat) + " (" + u.Tool + ")"
}

func effectNames(all []claybot.Undo) string {
	var names []string
	for _, u := range all {
		names = append(names, effectName(u))
	}
	return strings.Join(names, "; ")
}

// planText shows the steps of a plan.
func planText(steps []Step) string {
	lines := make([]string, len(steps))
	for i, st := range steps {
		line := st.ID + " " + st.Tool
		if st.What != "" {
			line += ": " + st.What
		}
		var notes []string
		if st.Risk == riskHigh {
			notes = append(notes, "high risk")
		}
		if len(st.DependsOn) > 0 {
			notes = append(notes, "after "+strings.Join(st.DependsOn, ", "))
		}
		if st.CostMicroUSD > 0 {
			notes = append(notes, "about "+usd(st.CostMicroUSD))
		}
		if len(notes) > 0 {
			line += " (" + strings.Join(notes, "; ") + ")"
		}
		lines[i] = line
	}
	return list("The plan:", lines)
}
