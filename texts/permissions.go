package texts

import (
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// ArgumentsOf ends why an approval is asked for, where people have changed the arguments.
const ArgumentsOf = "; the arguments are those of %s"

// maxLimit is how many characters of one limit are shown.
const maxLimit = 300

// NoLimits is said where the permissions of an agent cannot be read.
const NoLimits = "my permissions cannot be read now, so my tools are refused"

// NoWeb is said by an explorer whose agent has lost the web.
const NoWeb = "I have no permission for the web."

// Limits says what the permissions of an agent take away, one line for each; none when they
// take nothing away.
func (v Voice) Limits(p claybot.Permissions) (lines []string) {
	add := func(what string, list []string) {
		text := strings.Join(list, ", ")
		if text == "" {
			text = v.Say("nothing")
		}
		lines = append(lines, v.In(what)+connectors.OneLine(text, maxLimit))
	}
	if p.Offline() {
		lines = append(lines, v.Say("web: no"))
	}
	if p.WorkingDir != "" {
		add("working directory: ", []string{p.WorkingDir})
	}
	if p.ReadDirs != nil {
		add("can read only: ", p.ReadDirs)
	}
	if p.WriteDirs != nil {
		add("can write only: ", p.WriteDirs)
	}
	if p.Routes != nil {
		add("can write to its own chat, its subagents and: ", p.Routes)
	}
	if p.Tools.Allow != nil {
		add("allowed tools: ", p.Tools.Allow)
	}
	if len(p.Tools.Deny) > 0 {
		add("denied tools: ", p.Tools.Deny)
	}
	return lines
}
