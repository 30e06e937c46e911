package explore

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/texts"
)

// report says in Markdown what was found.
func report(v texts.Voice, o Output, why string) string {
	if o.Reason == ReasonRefused {
		return why
	}
	var b strings.Builder
	b.WriteString(v.Explored(code(o.URL), len(o.Screens), o.Iterations, len(o.DeadEnds), len(o.Errors), ended(v, o, why)) + "\n")
	named := func(s FoundScreen) string { return name(v, s) }
	listed(&b, v, texts.ExploredScreens, o.Screens, func(s FoundScreen) string {
		line := named(s) + ", " + v.Actions(s.Actions)
		if s.Untried > 0 {
			line += ", " + v.Untried(s.Untried)
		}
		return line
	})
	titles := make(map[string]string)
	var dead []FoundScreen
	for _, s := range o.Screens {
		titles[s.ID] = named(s)
		if s.Dead {
			dead = append(dead, s)
		}
	}
	listed(&b, v, texts.ExploredDeadEnds, dead, named)
	listed(&b, v, texts.ExploredErrors, o.Errors, func(f Fault) string {
		line := plain(v.In(f.Text))
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

func listed[T any](b *strings.Builder, v texts.Voice, title string, all []T, line func(T) string) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n**%s**\n\n", v.In(title))
	for i, x := range all {
		if i == maxListed {
			fmt.Fprintf(b, "- %s\n", v.AndMore(len(all)-i))
			return
		}
		fmt.Fprintf(b, "- %s\n", line(x))
	}
}

func name(v texts.Voice, s FoundScreen) string {
	title := plain(s.Title)
	if title == "" {
		title = v.In(texts.ExploredUntitled)
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

// endings say why an exploration ended.
var endings = map[string]string{
	ReasonExhausted:  texts.ExploredExhausted,
	ReasonNoProgress: texts.ExploredNoProgress,
	ReasonIterations: texts.ExploredIterations,
	ReasonBudget:     texts.ExploredBudget,
	ReasonScreens:    texts.ExploredLimit,
	ReasonDevice:     texts.ExploredCrashes,
}

// ended says why a walk ended.
func ended(v texts.Voice, o Output, why string) string {
	if o.Reason == ReasonGoal {
		return v.Say(texts.ExploredGoal, plain(o.Goal), plain(why))
	}
	return v.In(cmp.Or(endings[o.Reason], o.Reason))
}
