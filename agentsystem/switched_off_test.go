package agentsystem_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
)

// While a bad setting switches an agent off, /status says so; an operator also reads the
// cause, unless others read along.
func TestStatusOfASwitchedOffAgent(t *testing.T) {
	t.Parallel()
	const cause = "claybot.yaml:2: model.base_url is bad. Correct it, then restart claybot."
	bubble(t, func(r *rig) {
		var off *runs.Error
		r.off = func() *runs.Error { return off }
		r.profile.Model = "gpt-5"
		r.start()
		status := func(place, user string) string {
			m := command(place+user+string(claybot.NewID()), "status")
			m.Context.Group = place == "room"
			r.post(claybot.User("chat", place, user), m)
			synctest.Wait()
			seen := r.chat.seen(place)
			return seen[len(seen)-1]
		}
		if got := status("dm-ann", "ann"); !strings.HasPrefix(got, "I am waiting for you.\n\n- model: gpt-5\n") {
			t.Errorf("before: %q", got)
		}
		off = &runs.Error{Code: runs.CodeOff, Text: cause}
		const model = "The model is not configured correctly; the operator can see why with `claybot status`."
		if got := status("dm-ann", "ann"); !strings.HasPrefix(got, model+"\n\n- model: gpt-5, switched off\n") || strings.Contains(got, "model.base_url") {
			t.Errorf("ann reads %q", got)
		}
		if got := status("dm-boss", "boss"); !strings.HasPrefix(got, model+"\n\n"+cause+"\n\n- model") {
			t.Errorf("the operator reads %q", got)
		}
		if got := status("room", "boss"); !strings.HasPrefix(got, model) || strings.Contains(got, "model.base_url") {
			t.Errorf("where others read along: %q", got)
		}
		off = &runs.Error{Code: runs.CodeAgentOff, Text: cause}
		if got := status("dm-ann", "ann"); !strings.HasPrefix(got, "This agent is not configured correctly") || strings.Contains(got, "waiting for you") || strings.Contains(got, "switched off") {
			t.Errorf("ann reads %q", got)
		}
		off = &runs.Error{Code: runs.CodeBudget, Say: "A budget is not configured correctly."}
		if got := status("dm-ann", "ann"); !strings.HasPrefix(got, "A budget is not configured correctly.\n\n- model: gpt-5\n") {
			t.Errorf("ann reads %q", got)
		}
	})
}

// An operator reads in /why what made a run fail and what to do; other people do not.
func TestOperatorReadsTheCauseInWhy(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("bad", llmtest.Reply{Err: &llm.Error{Class: llm.Off, Text: "model.base_url is bad. Correct it, then restart claybot."}})
		r.start()
		for _, x := range []struct {
			user  string
			group bool
			want  string
		}{{"ann", false, ""}, {"boss", false, "\n\nmodel.base_url is bad. Correct it, then restart claybot."}, {"boss", true, ""}} {
			place := "dm-" + x.user
			if x.group {
				place = "room"
			}
			bad, why := msg("bad "+place, "bad"), command("why "+place, "why")
			bad.Context.Group, why.Context.Group = x.group, x.group
			r.post(claybot.User("chat", place, x.user), bad)
			synctest.Wait()
			r.post(claybot.User("chat", place, x.user), why)
			synctest.Wait()
			seen := r.chat.seen(place)
			got := seen[len(seen)-1]
			if !strings.Contains(got, "The model is not configured correctly") || !strings.HasSuffix(got, x.want) || x.want == "" && strings.Contains(got, "base_url") {
				t.Errorf("%s reads %q", place, got)
			}
		}
	})
}
