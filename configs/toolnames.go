package configs

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// A toolRule is a name or pattern of tools in a rule of a profile.
type toolRule struct {
	item
	rule string // approve, confirm, allow, deny, tools or pin
}

// named notes a name or pattern of tools that a rule of a profile has.
func (r *reader) named(rule string, it item) { r.tools = append(r.tools, toolRule{it, rule}) }

// UnknownTools warns of names and patterns of tools in rules of profiles that fit
// none of the known tools of claybot itself: such a rule does nothing. Where it looks
// like the mistyped name of one, what the rule was to keep back is kept back for all
// tools. What may be tools of a server of the group mcp, whose names begin with that
// of the server, is not judged: its tools are known only once it was asked.
func (c *Config) UnknownTools(known []string) []Warning {
	var all []Warning
	for _, it := range c.Agents.toolNames {
		if it.rule == "pin" { // see UnknownGroups
			continue
		}
		fits := func(tool string) bool { ok, err := path.Match(it.text, tool); return ok && err == nil }
		if slices.ContainsFunc(known, fits) || slices.ContainsFunc(c.Tools.servers, func(s string) bool { return mayBegin(it.text, s+"_") }) {
			continue
		}
		w := Warning{
			File: it.at.file, Line: it.at.line, Key: it.at.key, Near: Nearest(it.text, known),
			Text: fmt.Sprintf("there is no tool %s, so this rule does nothing", quote(it.text)),
			Next: "correct it; `claybot tools` lists all names", code: CodeTool,
		}
		if w.Near != "" {
			now := c.keepBack(it)
			if w.Off = now != ""; w.Off {
				w.Text += "; " + now + until
			}
		}
		all = append(all, w)
	}
	return all
}

// UnknownGroups warns of pinned groups of tools that are none of the known ones and belong
// to no server of the group mcp.
func (c *Config) UnknownGroups(known []string) []Warning {
	var all []Warning
	for _, it := range c.Agents.toolNames {
		server, ofServer := strings.CutPrefix(it.text, "mcp:")
		if it.rule != "pin" || slices.Contains(known, it.text) || ofServer && slices.Contains(c.Tools.servers, server) {
			continue
		}
		all = append(all, Warning{
			File: it.at.file, Line: it.at.line, Key: it.at.key,
			Text: fmt.Sprintf("there is no group of tools %s, so it is not pinned", quote(it.text)),
			Next: "the groups are " + strings.Join(known, ", ") + ", and mcp:<server>", code: CodeTool,
		})
	}
	return all
}

// keepBack closes each profile that has a rule, own or inherited, and returns what
// holds now; empty where the rule only allows something.
func (c *Config) keepBack(it toolRule) (now string) {
	profiles := maps.Clone(c.Agents.Profiles)
	for name, p := range profiles {
		switch it.rule {
		case "approve":
			now = "all tools ask"
			if slices.Contains(p.Care.Approve, it.text) {
				p.Care.Approve = []string{"*"}
			}
		case "confirm":
			if slices.Contains(p.Care.Confirm, Confirming{it.text, ConfirmNever}) {
				continue
			}
			now = "all tools ask"
			if slices.ContainsFunc(p.Care.Confirm, func(x Confirming) bool { return x.Tools == it.text }) {
				p.Care.Confirm = []Confirming{{"*", ConfirmAlways}}
			}
		case "deny":
			now = usingPreview
			if p.Engine.Plan != nil && slices.Contains(p.Engine.Plan.Deny, it.text) {
				plan := *p.Engine.Plan
				plan.Mode, p.Engine.Plan = PlanPreview, &plan
			}
		case "tools":
			now = "the profile has no tools"
			if slices.Contains(p.Tools, it.text) {
				p.Tools = []string{}
			}
		}
		profiles[name] = p
	}
	c.Agents.Profiles = profiles
	return now
}

// mayBegin reports whether a pattern fits a text that begins with prefix and goes on
// behind it. Patterns are those of glob: * and ? alone mean something.
func mayBegin(pattern, prefix string) bool {
	before, _, star := strings.Cut(pattern, "*")
	if star && len(before) <= len(prefix) { // the star takes what is left, and more
		return fitsEach(before, prefix[:len(before)])
	}
	return len(before) > len(prefix) && fitsEach(before[:len(prefix)], prefix)
}

// fitsEach reports whether texts of one length are the same, character by character,
// where ? is any.
func fitsEach(pattern, text string) bool {
	for i := range len(pattern) {
		if pattern[i] != '?' && pattern[i] != text[i] {
			return false
		}
	}
	return true
}
