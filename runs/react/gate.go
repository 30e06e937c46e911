package react

import (
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/tools"
)

// interrupted is what the model reads about a call that may or may not have
// acted, and how the result of one begins that the budget of the run forbids.
const (
	notRunOver = "error: not run: "

	interrupted = "interrupted, outcome unknown: it may have taken effect and was not run again"
)

// A gate knows which calls may run at all, by the limits of the run and by what earlier
// passes have started, and what they may use.
type gate struct {
	turn  *runs.Turn
	talk  *conversation
	tools *tools.Set
	dry   bool
}

// verdict says why a call is not run, empty when it is.
func (g *gate) verdict(call pending) string {
	limits := g.talk.progress.limits
	switch over := g.talk.progress.spent.Over(limits); {
	case call.Name == tools.Finish && g.talk.progress.round > 1:
		return "error: not run: call " + tools.Finish + " alone, after you have read the results of the other calls"
	case call.Name == tools.Finish: // which ends what the limits bound
		return ""
	case call.inStep > limits.StepCalls:
		return fmt.Sprintf("error: not run: at most %d calls in one answer", limits.StepCalls)
	case call.inRun > limits.RunCalls:
		return fmt.Sprintf("error: not run: at most %d calls in one run", limits.RunCalls)
	case over != "":
		return notRunOver + over
	case g.talk.progress.only != nil && !g.talk.progress.only[call.Name]:
		return "error: not run: the skill that this run uses does not name this tool"
	case g.tools.Effect(call.Name) == tools.Once && g.turn.InDoubt(call.ID):
		return interrupted
	}
	return ""
}

// env is what a call may use, and what the run knows by now.
func (g *gate) env(call claybot.ToolCall) tools.Env {
	env := tools.Env{Agent: g.turn.Agent, Run: g.turn.Run.ID, CallID: call.ID, Route: g.turn.Route(), Place: g.turn.Place(), Save: g.turn.SaveResult(), Dry: g.dry}
	return env.Aware(g.talk.all())
}
