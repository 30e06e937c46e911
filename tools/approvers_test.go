package tools_test

import (
	"slices"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// An approver is told how many more people must approve, and no person counts twice.
func TestLacking(t *testing.T) {
	people := func(id string) []string {
		if ann := []string{"slack/ann", "telegram/1"}; slices.Contains(ann, id) {
			return ann
		}
		return nil
	}
	who := tools.Approvers{Need: 3, Named: []string{"slack/ann", "slack/bob", "slack/cyd"}, People: people}
	asked := func(a tools.Approvers, by ...string) (q claybot.Question) {
		a.Tell(&q, by)
		return q
	}
	for name, tt := range map[string]struct {
		q      claybot.Question
		by     string
		edited bool
		want   int
	}{
		"one is enough":                    {asked(tools.Approvers{}), "operator", false, 0},
		"one who is named is enough":       {asked(tools.Approvers{Named: who.Named}), "slack/ann", false, 0},
		"the first":                        {asked(who), "slack/ann", false, 2},
		"the second":                       {asked(who, "slack/ann"), "slack/bob", false, 1},
		"the last":                         {asked(who, "slack/ann", "slack/bob"), "slack/cyd", false, 0},
		"the same person":                  {asked(who, "slack/ann"), "telegram/1", false, 2},
		"another operator":                 {asked(who, "operator"), "token:ci", false, 2},
		"one who may not any more":         {asked(who, "slack/eve"), "slack/ann", false, 2},
		"other arguments":                  {asked(who, "slack/ann", "slack/bob"), "slack/cyd", true, 2},
		"an unknown person":                {asked(who, "slack/ann"), "", false, 2},
		"a question of an earlier version": {claybot.Question{}, "operator", false, 0},
	} {
		if got := who.Lacking(tt.q, tt.by, tt.edited); got != tt.want {
			t.Errorf("%s: %d more, want %d", name, got, tt.want)
		}
	}
	if q := asked(who, "slack/ann"); q.Need != 3 || !slices.Equal(q.ApprovedBy, []string{"slack/ann"}) {
		t.Errorf("the question says %+v", q)
	}
}

// Too few approvers are never enough, no matter who approved while they were more.
func TestTooFewAreNamed(t *testing.T) {
	all := []string{"operator", "slack/ann", "slack/bob"}
	for name, tt := range map[string]struct {
		who    tools.Approvers
		enough bool
	}{
		"one":              {tools.Approvers{Owner: "slack/ann"}, true},
		"two of two":       {tools.Approvers{Need: 2, Named: all[1:]}, true},
		"two of one":       {tools.Approvers{Need: 2, Named: all[1:2], Owner: "slack/ann"}, false},
		"two, no approval": {tools.Approvers{Need: 2, Owner: "slack/ann"}, false},
		"no approvers":     {tools.Approvers{Need: tools.NoQuorum, Named: all[1:]}, false},
	} {
		if _, err := tt.who.Left(nil); tt.who.Enough(all) != tt.enough || (err == nil) != tt.enough {
			t.Errorf("%s: enough %t, %v", name, tt.who.Enough(all), err)
		}
	}
}
