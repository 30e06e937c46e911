package configs

import (
	"slices"
	"strings"
	"testing"
)

// A rule of approvals that is about no tool does nothing, which is told with the
// name that was meant. Tools of servers are not known yet.
func TestUnknownTools(t *testing.T) {
	known := []string{"current_time", "read_file", "shell", "write_file"}
	const servers = "mcp:\n  mail:\n    url: https://mail.example.org/mcp\n  broken-one:\n    url: nowhere\n"
	for name, tt := range map[string]struct {
		rules string
		want  []string
	}{
		"nothing is said":          {"    max_steps: 3\n", nil},
		"known":                    {"    confirm: {shell: always, \"read_*\": never}\n    allow: [\"shell(git *)\", current_time]\n    approve: [\"*_file\", \"*\"]\n", nil},
		"confirm":                  {"    confirm:\n      shel: always\n", []string{`c.yaml:4: agents.default.confirm.shel: there is no tool "shel", so this rule does nothing; all tools ask until this is corrected; did you mean shell?`}},
		"confirm, which allows":    {"    confirm:\n      shel: never\n", []string{`c.yaml:4: agents.default.confirm.shel: there is no tool "shel", so this rule does nothing; did you mean shell?`}},
		"tools":                    {"    tools: [shel, current_time]\n", []string{`c.yaml:3: agents.default.tools: there is no tool "shel", so this rule does nothing; the profile has no tools until this is corrected; did you mean shell?`}},
		"deny":                     {"    plan: {deny: [shel]}\n", []string{`c.yaml:3: agents.default.plan.deny: there is no tool "shel", so this rule does nothing; using mode: preview until this is corrected; did you mean shell?`}},
		"allow, with a subject":    {"    allow:\n      - shell(git *)\n      - shall(git *)\n", []string{`c.yaml:5: agents.default.allow: there is no tool "shall", so this rule does nothing; did you mean shell?`}},
		"approve, like nothing":    {"    approve: [frobnicate]\n", []string{`c.yaml:3: agents.default.approve: there is no tool "frobnicate", so this rule does nothing`}},
		"capitals":                 {"    approve: ReadFile\n", []string{`c.yaml:3: agents.default.approve: there is no tool "ReadFile", so this rule does nothing; all tools ask until this is corrected; did you mean read_file?`}},
		"a pattern":                {"    approve: [\"calendar_*\"]\n", []string{`c.yaml:3: agents.default.approve: there is no tool "calendar_*", so this rule does nothing`}},
		"of a server":              {"    approve: [mail_send, \"mail_*\", \"m*\", \"?ail_send\", \"*_send\", \"mail*\"]\n", nil},
		"of one that was left out": {"    approve: [broken-one_look]\n", nil},
		"like a server's": {"    approve: [mail_, mail, mails_send, \"????_\", \"x*\"]\n", []string{
			`c.yaml:3: agents.default.approve: there is no tool "mail_", so this rule does nothing`,
			`c.yaml:3: agents.default.approve: there is no tool "mail", so this rule does nothing`,
			`c.yaml:3: agents.default.approve: there is no tool "mails_send", so this rule does nothing`,
			`c.yaml:3: agents.default.approve: there is no tool "????_", so this rule does nothing`,
			`c.yaml:3: agents.default.approve: there is no tool "x*", so this rule does nothing`,
		}},
		"not even a name": {"    approve: [\"a b\"]\n    confirm: {\"a/b\": never}\n", nil}, // told otherwise
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := load(t, "agents:\n  default:\n"+tt.rules+servers, nil)
			var got []string
			for _, w := range c.UnknownTools(known) {
				if w.File = "c.yaml"; !strings.Contains(w.Next, "claybot tools") {
					t.Errorf("%v: the next step is %q", w, w.Next)
				}
				got = append(got, w.String())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%q, want\n%q", got, tt.want)
			}
		})
	}
	empty := Default()
	if got := empty.UnknownTools(known); len(got) > 0 {
		t.Errorf("without a file: %v", got)
	}
}

// A mistyped name of a tool keeps back what the right one would, also in profiles that
// begin with the one that has it.
func TestMistypedToolsKeepBack(t *testing.T) {
	for rule, closed := range map[string]func(Profile) bool{
		"approve: [shel]":          func(p Profile) bool { return slices.Equal(p.Care.Approve, []string{"*"}) },
		"confirm: {shel: always}":  func(p Profile) bool { return slices.Equal(p.Care.Confirm, []Confirming{{"*", ConfirmAlways}}) },
		"plan: {deny: [shel]}":     func(p Profile) bool { return p.Engine.Plan.Mode == PlanPreview },
		"tools: [shel, read_file]": func(p Profile) bool { return p.Tools != nil && len(p.Tools) == 0 },
	} {
		c, _ := load(t, "agents: {default: {"+rule+"}, a: {match: web}}\n", nil)
		warnings := c.UnknownTools([]string{"shell", "read_file"})
		if len(warnings) != 1 || !warnings[0].Off || !closed(c.Agents.Profiles[DefaultProfile]) || !closed(c.Agents.Profiles["a"]) {
			t.Errorf("%s: %v", rule, warnings)
		}
		if c, _ := load(t, "agents: {default: {"+strings.Replace(rule, "shel", "shell", 1)+"}}\n", nil); len(c.UnknownTools([]string{"shell", "read_file"})) > 0 {
			t.Errorf("%s: a good name is refused", rule)
		}
	}
}
