package main

import (
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/tools"
)

func TestRulesCommands(t *testing.T) {
	t.Setenv("TZ", "UTC")
	id := strings.Repeat("a", 24)
	d := openDesk(t, map[string]string{
		"GET /rules":    `{"rules":[{"agent":"` + id + `","rule":"shell(git\nstatus)","by":"slack/U1","at":1780000000000},{"agent":"` + id + `","rule":"mail"}]}`,
		"DELETE /rules": "",
	})
	d.deals(t, []deal{
		{"rules", exitOK, "GET /rules", id + "  mail\n  set by an operator\n", ""},
		{"rules|list|--agent|a b", exitOK, "GET /rules?agent=a+b", "approved by slack/U1 ", ""},
		{"rules|remove|" + id + "|shell(git status; x)", exitOK, "DELETE /rules?agent=" + id + "&rule=shell%28git+status%3B+x%29", "Removed; the agent asks again.\n", ""},
		{"rules|remove|..|mail", exitUsage, "", "", "invalid agent ID"},
		{"rules|remove|" + id, exitUsage, "", "", "rule"},
	})
	d.wantJSON(t, `"rules"`, "rules", "--json")
	empty := openDesk(t, map[string]string{"GET /rules": `{"rules":[]}`})
	empty.deals(t, []deal{{"rules", exitOK, "GET /rules", "No standing approvals.\n", ""}})
}

// A profile becomes rules that ask at least as often as it says.
func TestRulesOfAProfile(t *testing.T) {
	p := configs.Profile{Care: configs.Care{
		Approve: []string{"mail_*"},
		Confirm: []configs.Confirming{{Tools: "shell", When: configs.ConfirmUnlessAllowed}}, Allow: []string{"shell(ls*)"},
		Approvals: configs.Approvals{Quorum: 2, Approvers: []string{"slack/U1", "slack/U2"}}, Limits: configs.CallLimits{Time: time.Minute, Output: 5, StepCalls: 3, RunCalls: 4},
	}}
	r := rulesOf(p, []string{"mail"})
	if len(r.Ask) != 1 || r.Confirm[0] != (tools.Confirming{Tools: "shell", When: tools.ConfirmUnlessAllowed}) || r.Allow[0] != "shell(ls*)" || r.Always[0] != "mail" || r.Quorum != 2 || len(r.Approvers) != 2 {
		t.Errorf("%+v", r)
	}
	if l := limitsOf(p); l != (tools.Limits{StepCalls: 3, RunCalls: 4, Time: time.Minute, Output: 5}) {
		t.Errorf("%+v", l)
	}
	for _, care := range []configs.Care{
		{Approvals: configs.Approvals{Quorum: 2, Approvers: []string{"slack/U1", "slack/U2"}}},
		{Approvals: configs.Approvals{Quorum: 2, Approvers: []string{"slack/U1"}}},
		{Approvals: configs.Approvals{Quorum: 2}},
		{Approvals: configs.Approvals{Quorum: 1}},
		{},
		{Approvals: configs.Approvals{Approvers: []string{"slack/U1"}}},
	} {
		care.NoApproval = true
		p := configs.Profile{Care: care, Engine: configs.Engine{Plan: &configs.Plan{Approvals: 2, Approvers: []string{"slack/U1", "slack/U2"}}}}
		all := []string{"operator", "slack/U1", "slack/U2"}
		r, plans := rulesOf(p, nil), policyOf(p)
		for _, who := range []tools.Approvers{{Need: r.Quorum, Named: r.Approvers, Owner: "slack/U1"}, {Need: plans.Approvals, Named: plans.Approvers, Owner: "slack/U1"}} {
			_, err := who.Left(nil)
			if err == nil || who.Enough(all) {
				t.Errorf("with a mistake in approvals these may approve: %+v", who)
				continue
			}
			if strings.Contains(err.Error(), "2147483647") {
				t.Errorf("%+v: %v", care, err)
			}
		}
	}
}
