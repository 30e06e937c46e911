package explore

import (
	"fmt"
	"strings"

	"github.com/claybot/claybot/devices"
)

// report says in Markdown what was found.
func report(o Output, why string) string {
	if o.Reason == ReasonRefused {
		return why
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**Explored %s**: %s, %s, %s, %s.\n\n", code(o.URL), count(len(o.Screens), "screen"),
		count(o.Iterations, "action"), count(len(o.DeadEnds), "dead end"), count(len(o.Errors), "error"))
	fmt.Fprintf(&b, "It ended because %s.\n", ended(o, why))
	listed(&b, "Screens", o.Screens, func(s FoundScreen) string {
		line := fmt.Sprintf("%s, %s", name(s), count(s.Actions, "action"))
		if s.Untried > 0 {
			line += fmt.Sprintf(", %d not tried", s.Untried)
		}
		return line
	})
	titles := make(map[string]string)
	var dead []FoundScreen
	for _, s := range o.Screens {
		titles[s.ID] = name(s)
		if s.Dead {
			dead = append(dead, s)
		}
	}
	listed(&b, "Dead ends", dead, name)
	listed(&b, "Errors", o.Errors, func(f Fault) string {
		line := plain(f.Text)
		if f.Action != "" {
			line = "“" + plain(f.Action) + "”: " + line
		}
		if t := titles[f.Screen]; t != "" {
			line = t + ", " + line
		}
		return line
	})
	return b.String()
}

// maxListed is how many lines a list of the report has.
const maxListed = 25

func listed[T any](b *strings.Builder, title string, all []T, line func(T) string) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n**%s**\n\n", title)
	for i, x := range all {
		if i == maxListed {
			fmt.Fprintf(b, "- … and %d more\n", len(all)-i)
			return
		}
		fmt.Fprintf(b, "- %s\n", line(x))
	}
}

func name(s FoundScreen) string {
	title := plain(s.Title)
	if title == "" {
		title = "(no title)"
	}
	if s.URL != "" {
		title += " " + code(devices.Plain(s.URL))
	}
	return title
}

// plain is a text from the application that Markdown takes as text.
func plain(s string) string {
	return markup.Replace(devices.Line(s, devices.MaxFault))
}

var markup = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "|", `\|`, "~", `\~`, "#", `\#`)

func code(s string) string {
	return "`" + strings.ReplaceAll(devices.Line(s, 200), "`", "'") + "`"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ended says why a walk ended.
func ended(o Output, why string) string {
	switch o.Reason {
	case ReasonGoal:
		return "the goal is reached: “" + plain(o.Goal) + "”, at “" + plain(why) + "”"
	case ReasonExhausted:
		return "everything that was found has been tried"
	case ReasonNoProgress:
		return "nothing new was found any more"
	case ReasonIterations:
		return "the limit of actions was reached"
	case ReasonBudget:
		return "the budget of the walk is spent"
	case ReasonScreens:
		return "the limit of screens was reached"
	case ReasonDevice:
		return "the application crashed again and again"
	}
	return o.Reason
}
