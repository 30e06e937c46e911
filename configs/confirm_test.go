package configs

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCare(t *testing.T) {
	c, warnings := load(t, `people: {ann: [slack/U1, telegram/5]}
agents:
  default:
    confirm: {shell: unless_allowed, "mail_*": always, "*": never}
    allow: ["shell(git status*)", read_file]
    approvals: {quorum: 2, approvers: [slack/U1, slack/U2]}
    limits: {tool_time: 90m, tool_output: 2MiB, step_calls: 5, run_calls: 300}
    dry_run: true
  other:
    match: web
    allow: []
    dry_run: false
`, nil)
	if len(warnings) != 1 || !strings.Contains(warnings[0].String(), "no command of the tool shell is approved") {
		t.Errorf("warnings %v", warnings)
	}
	got := c.Agents.Profiles["default"].Care
	if want := []Confirming{{Tools: "shell", When: "unless_allowed"}, {Tools: "mail_*", When: "always"}, {Tools: "*", When: "never"}}; !slices.Equal(got.Confirm, want) {
		t.Errorf("confirm is %v", got.Confirm)
	}
	if !slices.Equal(got.Allow, []string{"shell(git status*)", "read_file"}) || got.Quorum != 2 || len(got.Approvers) != 2 || got.NoApproval || !got.DryRun {
		t.Errorf("%+v", got)
	}
	if got.Limits != (CallLimits{Time: 90 * time.Minute, Output: 2 << 20, StepCalls: 5, RunCalls: 300}) {
		t.Errorf("limits are %+v", got.Limits)
	}
	other := c.Agents.Profiles["other"].Care
	if len(other.Allow) != 0 || other.DryRun || other.Quorum != 2 || len(other.Confirm) != 3 {
		t.Errorf("what a profile does not set is that of the default one: %+v", other)
	}
}

// What is not understood asks too often, and does too little.
func TestCareMistakes(t *testing.T) {
	always := func(c Care) bool {
		return len(c.Confirm) == 1 && c.Confirm[0] == Confirming{Tools: "*", When: "always"}
	}
	closed := func(c Care) bool { return c.NoApproval }
	for _, tt := range []struct {
		text, warning string
		holds         func(Care) bool
	}{
		{"confirm: never", "want patterns of tools with always, never or unless_allowed, found a single value; all tools ask", always},
		{"confirm: [shell]", "all tools ask", always},
		{`confirm: {"rm -rf": never}`, "is not the name of a tool, nor a pattern such as mail_*; all tools ask", always},
		{"confirm: {shell: naver}", `"naver" is not one of always, never, unless_allowed; using always`, func(c Care) bool {
			return len(c.Confirm) == 1 && c.Confirm[0] == Confirming{Tools: "shell", When: "always"}
		}},
		{"confirm: {shell: never, shell: always}", "all tools ask", always},
		{`allow: ["shell(", "shell()", "", "a b", "sh(x"]`, "is not a tool, nor a tool with a pattern", func(c Care) bool { return len(c.Allow) == 0 }},
		{"approvals: 2", "nothing can be approved", closed},
		{"approvals: {quorum: 0}", "nothing can be approved", closed},
		{"approvals: {quorum: 2}", "a quorum of 2 is named but no approvers: set approvers, at least 2 different people; nothing can be approved", closed},
		{"approvals: {quorum: 2, approvers: [telegram/1]}", "a quorum of 2 needs as many different people among the approvers, there are 1; nothing can be approved", closed},
		{"approvals: {approvers: [slak/U1]}", "nothing can be approved", closed},
		{"approvals: {qourum: 2}", "nothing can be approved", closed},
		{"limits: {tool_time: 0s}", "is not a duration such as 90s or 30m, from 1s to 168h", func(c Care) bool { return c.Limits.Time == 0 }},
		{"limits: {tool_output: 8Mib}", "is not a size from 1KiB to 1GiB", func(c Care) bool { return c.Limits.Output == 0 }},
		{"limits: {tool_output: -1}", "is not a size", func(c Care) bool { return c.Limits.Output == 0 }},
		{"limits: {step_calls: 65}", "65", func(c Care) bool { return c.Limits.StepCalls == 0 }},
		{"dry_run: maybe", "nothing is done, as with true", func(c Care) bool { return c.DryRun }},
	} {
		c, warnings := load(t, "agents:\n  default:\n    "+tt.text+"\n", nil)
		if len(warnings) == 0 || !slices.ContainsFunc(warnings, func(w Warning) bool { return strings.Contains(w.String(), tt.warning) }) {
			t.Errorf("%s: warnings are %v", tt.text, warnings)
		}
		if got := c.Agents.Profiles["default"].Care; !tt.holds(got) {
			t.Errorf("%s: %+v", tt.text, got)
		}
	}
}
