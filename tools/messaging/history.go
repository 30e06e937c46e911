package messaging

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// Limits of a history that is read, in bytes.
const (
	maxHistory = 16 << 10
	maxRecord  = 600
)

// readable writes records as lines for a model, one for each, the newest last.
// What does not fit is left out at the beginning.
func readable(records []claybot.Record) string {
	records = slices.DeleteFunc(slices.Clone(records), func(r claybot.Record) bool { return r.Type == claybot.RecordIndex })
	if len(records) == 0 {
		return "(nothing yet)"
	}
	const room = 100 // for the line that says what is missing
	var lines []string
	size := 0
	for _, r := range slices.Backward(records) {
		l := recordLine(r)
		if size+len(l)+1 > maxHistory-room {
			break
		}
		lines = append(lines, l)
		size += len(l) + 1
	}
	if missing := len(records) - len(lines); missing > 0 {
		lines = append(lines, fmt.Sprintf("[%d older entries left out for length]", missing))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// recordLine is one record as one line. A text cannot begin a line of its own,
// so it cannot pass for another record.
func recordLine(r claybot.Record) string {
	stamp := "----"
	if r.At != 0 {
		stamp = r.At.Time().UTC().Format("2006-01-02 15:04:05Z")
	}
	return stamp + " " + tools.Short(speaker(r), 200) + ": " + tools.Short(content(r), maxRecord)
}

func speaker(r claybot.Record) string {
	switch r.Type {
	case claybot.RecordUser:
		if r.From != nil && r.From.Name != "" {
			return "user " + r.From.Name
		}
		return "user"
	case claybot.RecordSystem:
		who := "system"
		if r.Kind != "" {
			who += " " + string(r.Kind)
		}
		if r.Origin != "" {
			who += " from " + r.Origin
		}
		return who
	case claybot.RecordAssistant:
		return "assistant"
	case claybot.RecordTool:
		if r.OK {
			return "result of " + r.Name
		}
		return "failure of " + r.Name
	}
	return string(r.Type)
}

func content(r claybot.Record) string {
	switch r.Type {
	case claybot.RecordStart:
		return "the conversation begins"
	case claybot.RecordReset:
		return "all before is forgotten"
	case claybot.RecordTool:
		if r.Interrupted {
			return "(interrupted) " + r.Text
		}
	case claybot.RecordAssistant:
		var b strings.Builder
		b.WriteString(tools.Short(r.Text, maxRecord/2))
		for _, c := range r.ToolCalls {
			fmt.Fprintf(&b, " [calls %s %s]", tools.Short(c.Name, maxName), tools.Short(c.Args, maxLastText))
		}
		return b.String()
	}
	return r.Text
}
