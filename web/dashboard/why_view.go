package dashboard

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs"
)

// stepRows is the most steps that are shown of one message; the page of the run
// has all.
const stepRows = 200

// A storyView is what became of one message.
type storyView struct {
	overview.Story
	Title   string // what it is and who it is from
	Preview string
	Tone    string // good, bad, busy, calm, warn
	Badge   string // the verdict in a word or two
	Verdict string // in a sentence or two
	Steps   []stepView
	Cut     int // steps that are left out between the first and the last ones
	Replies []deliveryView
	Advice  []advice
}

// A stepView is one line of the receipt.
type stepView struct {
	overview.Step
	Tone  string
	Title string
	// Gap is how long nothing happened before it, in milliseconds, where that
	// is long enough to be told.
	Gap int64
}

// An advice is what somebody can do about a message.
type advice struct {
	Text  string
	Label string // of the link
	URL   string
}

func viewStory(s overview.Story) storyView {
	v := storyView{Story: s, Title: storyTitle(s.Message), Preview: connectors.OneLine(wordsOf(s.Message), 280)}
	for _, o := range s.Receipt.Replies {
		v.Replies = append(v.Replies, viewDelivery(o))
	}
	sum := s.Verdict()
	v.Tone, v.Badge, v.Verdict = verdictTone(sum.Outcome), verdictBadge[sum.Outcome], sum.Text
	if s.Parked != "" {
		v.Tone, v.Badge = "warn", "parked"
	}
	if s.Fault != "" {
		v.Tone = "warn"
	}
	v.Steps, v.Cut = viewSteps(s)
	v.Advice = advise(s)
	return v
}

// storyTitle says what a message is and who wrote it. Names are what platforms
// showed, so they are no proof of anything.
func storyTitle(m claybot.AgentMessage) string {
	what := cmp.Or(map[claybot.MessageType]string{
		claybot.MessageUser: "Message", claybot.MessageSystem: "Note", claybot.MessageReset: "Reset",
		claybot.MessageCancel: "Stop", claybot.MessageCommand: "Command", claybot.MessageCompact: "Request to shorten the memory",
		claybot.MessageAnswer: "Answer",
	}[m.Type], "Message")
	if m.Type == claybot.MessageSystem {
		what = cmp.Or(map[claybot.SystemKind]string{
			claybot.KindTask: "Task for a subagent", claybot.KindFailure: "News of a failure", claybot.KindResult: "Report",
			claybot.KindReminder: "Reminder", claybot.KindCron: "Scheduled task", claybot.KindHeartbeat: "Heartbeat",
		}[m.Kind], what)
	}
	from := connectors.OneLine(m.From.Name, 60)
	switch {
	case from == "" && m.From.UserID != "":
		from = "user " + connectors.OneLine(m.From.UserID, 60)
	case from == "" && m.From.Agent != "":
		from = "agent " + string(m.From.Agent)
	}
	if from == "" {
		return what
	}
	return what + " from " + from
}

// verdictBadge names the outcomes of messages.
var verdictBadge = map[overview.Outcome]string{
	overview.OutcomeWaiting: "waiting", overview.OutcomeWorking: "at work", overview.OutcomePaused: "paused",
	overview.OutcomeHandled: "done", overview.OutcomeDropped: "dropped",
	overview.OutcomeAnswered: "answered", overview.OutcomeSilent: "no reply needed", overview.OutcomeSending: "being sent",
	overview.OutcomeUncertain: "uncertain", overview.OutcomeUndelivered: "not delivered",
	overview.OutcomeFailed: "failed", overview.OutcomeStopped: "stopped",
}

// verdictTone is the colour of an outcome.
func verdictTone(o overview.Outcome) string {
	switch o {
	case overview.OutcomeAnswered:
		return "good"
	case overview.OutcomeWaiting, overview.OutcomeWorking, overview.OutcomePaused, overview.OutcomeSending:
		return "busy"
	case overview.OutcomeUncertain:
		return "warn"
	case overview.OutcomeDropped, overview.OutcomeUndelivered, overview.OutcomeFailed:
		return "bad"
	}
	return "calm"
}

func tally(replies []claybot.Outgoing) (sent, lost, doubtful, open int) {
	for _, o := range replies {
		switch o.State {
		case claybot.SendSent:
			sent++
		case claybot.SendFailed:
			lost++
		case claybot.SendAmbiguous:
			doubtful++
		default:
			open++
		}
	}
	return sent, lost, doubtful, open
}

// viewSteps shows the steps of a message, of very many the first and the last
// ones.
func viewSteps(s overview.Story) (steps []stepView, cut int) {
	const toldGap = 2000 // ms
	all := s.Steps
	if cut = len(all) - stepRows; cut > 0 {
		all = slices.Concat(all[:stepRows/2], all[len(all)-stepRows/2:])
	}
	var before claybot.Time
	for i, step := range all {
		v := stepView{Step: step, Tone: stepTone(step.What), Title: strings.ReplaceAll(step.What, "_", " ")}
		if step.What == "end" && s.Run != nil {
			v.Tone = tone(s.Run.State)
		}
		skipped := cut > 0 && i == stepRows/2
		if gap := int64(step.At - before); before != 0 && gap >= toldGap && !skipped {
			v.Gap = gap
		}
		before = max(before, step.At) // what is still to come has no time
		steps = append(steps, v)
	}
	return steps, max(cut, 0)
}

// stepTone is the colour of a kind of step.
func stepTone(what string) string {
	switch what {
	case "sent", "answer":
		return "good"
	case "failed", "skipped":
		return "bad"
	case "waiting", "sending", "question":
		return "busy"
	case "ambiguous":
		return "warn"
	}
	return "calm"
}

// advise says what can be done about a message that was not answered.
func advise(s overview.Story) []advice {
	var all []advice
	agent := "/ui/agents/" + string(s.Agent)
	switch s.Skipped {
	case "inbox_full":
		all = append(all, advice{"Wait until the agent has caught up, or drop what waits, and write again.", "See its inbox", agent})
	case "damaged":
		all = append(all, advice{"The files of the agent have to be looked at; the log names them.", "See the agent", agent})
	case "revoked":
		all = append(all, advice{"Whoever wrote it was let out. Let the person in again, if that was a mistake.", "Who may write", "/ui/access"})
	case "token_rejected":
		all = append(all, advice{"Give the connector a token that works.", "See the connectors", "/ui/health"})
	case "reset", "stopped", "canceled", "operator", "agent_deleted", "run_ended":
		all = append(all, advice{Text: "It is gone for good. Whoever wrote it can write it again."})
	}
	behind := "/ui/runs/" + string(s.Busy)
	switch {
	case s.Fault != "":
		all = append(all, advice{"Repair what the log names; claybot goes on by itself.", "See what needs attention", "/ui/health"})
	case s.Run != nil:
		all = append(all, adviseRun(*s.Run, agent)...)
	case s.Skipped != "":
	case s.Parked != "":
		all = append(all, advice{"Repair what the log names; claybot retries the message by itself.", "See what needs attention", "/ui/health"})
	case s.Paused != nil:
		all = append(all, advice{"Answer what the run before it asks, or cancel that run.", "See the run", behind})
	case s.Busy != "":
		all = append(all, advice{"It goes on when the run before it has ended. You can look at that run, or cancel it.", "See the run", behind})
	}
	_, lost, doubtful, open := tally(s.Receipt.Replies)
	switch {
	case lost > 0:
		all = append(all, advice{"Send the reply again when what is in the way is gone.", "Failed deliveries", "/ui/deliveries?show=failed"})
	case doubtful > 0 || open > 0:
		all = append(all, advice{"If it takes long, see how its connector is doing.", "See the connectors", "/ui/health"})
	}
	return all
}

// adviseRun says what can be done about a run that paused or failed.
func adviseRun(r claybot.Run, agent string) []advice {
	run := "/ui/runs/" + string(r.ID)
	switch {
	case r.State == claybot.RunAwaiting:
		return []advice{{"Answer what it asks, or cancel it.", "See the run", run}}
	case r.State != claybot.RunFailed:
		return nil
	}
	code := ""
	if r.Error != nil {
		code = r.Error.Code
	}
	switch code {
	case runs.CodeModel:
		return []advice{{"See whether the model answers; then write again.", "How the model is doing", "/ui/health"}}
	case runs.CodeRefused:
		return []advice{{"The provider of the model refused: look at the key, the account and the limits there.", "How the model is doing", "/ui/health"}}
	case runs.CodeNoModel:
		return []advice{{Text: "Name a model in the configuration; docs/configuration.md says how."}}
	case runs.CodeContext:
		return []advice{{"The conversation is too long for the model: reset the agent, or give it a model with more room.", "See the agent", agent}}
	case runs.CodeTooMany:
		return []advice{{"Allow the agent more steps, or ask for less at once.", "Its settings", agent}}
	case runs.CodeRepeating, runs.CodeBadCalls:
		return []advice{{"The model went round in circles: see its calls, and put it another way or take another model.", "See the run", run}}
	case runs.CodeDeadline:
		return []advice{{"It took longer than it may: ask for less at once, or raise the limit in the configuration.", "See the run", run}}
	}
	return []advice{{"See what happened in the run; then write again.", "See the run", run}}
}
