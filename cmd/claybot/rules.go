package main

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/shell"
	"github.com/claybot/claybot/web"
)

type rulesCmd struct {
	List   rulesListCmd   `cmd:"" default:"withargs" eg:"rules" help:"List standing approvals: actions that agents take without asking."`
	Remove rulesRemoveCmd `cmd:"" eg:"rules remove AGENT 'shell(git status)'" help:"Remove a standing approval."`
}

type (
	rulesListCmd struct {
		Agent string `placeholder:"ID" help:"ID of the agent. Default: all."`
		JSON  bool   `name:"json" help:"Print JSON."`
	}
	rulesRemoveCmd struct {
		Agent string `arg:"" help:"ID of the agent."`
		Rule  string `arg:"" help:"Rule to remove, as listed by rules, such as 'shell(git status)'."`
	}
)

// Run lists the rules.
func (c rulesListCmd) Run(e *env) error {
	return show(e, c.JSON, to("/rules").with(url.Values{"agent": {c.Agent}}), func(out web.RuleList) error {
		if len(out.Rules) == 0 {
			return e.text("No standing approvals.\n")
		}
		var b strings.Builder
		for _, r := range out.Rules {
			made := "set by an operator"
			if r.At != 0 {
				made = "approved by " + cmp.Or(r.By, "an unknown user") + " " + moment(r.At.Time())
			}
			fmt.Fprintf(&b, "%s  %s\n  %s\n", r.Agent, oneLine(r.Rule), made)
		}
		return e.text(b.String())
	})
}

// Run removes a rule.
func (c rulesRemoveCmd) Run(e *env) error {
	if err := claybot.AgentID(c.Agent).Validate(); err != nil {
		return usageError{fmt.Errorf("invalid agent ID %q; claybot rules lists them", c.Agent)}
	}
	path := "/rules?" + url.Values{"agent": {c.Agent}, "rule": {c.Rule}}.Encode()
	return e.does("DELETE", to(path), nil, "Removed; the agent asks again.\n")
}

// rulesOf returns which calls of an agent need approval, by its profile and its standing
// approvals.
func rulesOf(p configs.Profile, approved []string) tools.Rules {
	r := tools.Rules{Ask: p.Care.Approve, Allow: p.Care.Allow, Always: approved, Quorum: p.Care.Quorum, Approvers: p.Care.Approvers}
	for _, c := range p.Care.Confirm {
		r.Confirm = append(r.Confirm, tools.Confirming{Tools: c.Tools, When: tools.Confirm(c.When)})
		if c.Tools == shell.Name { // what is said of commands holds for what a running one is told
			r.Confirm = append(r.Confirm, tools.Confirming{Tools: shell.Commanding[1], When: tools.Confirm(c.When)})
		}
	}
	if slices.Contains(r.Ask, shell.Name) {
		r.Ask = append(slices.Clone(r.Ask), shell.Commanding[1])
	}
	if p.Care.NoApproval {
		r.Quorum = unreachable(p.Care)
	}
	return r
}

// unreachable returns a quorum that the approvers of a profile can never reach, for a
// profile whose approval settings are invalid: its own quorum if there are too few
// approvers, so that the refusal shows why.
func unreachable(c configs.Care) int {
	if c.Quorum > max(1, len(c.Approvers)) {
		return c.Quorum
	}
	return tools.NoQuorum
}

// limitsOf returns the limits on tool calls of a run.
func limitsOf(p configs.Profile) tools.Limits {
	l := p.Care.Limits
	return tools.Limits{StepCalls: l.StepCalls, RunCalls: l.RunCalls, Time: l.Time, Output: l.Output}
}
