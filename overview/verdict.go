package overview

import (
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// An Outcome is what happened to a message, in one word.
type Outcome string

// The outcomes of a message: open ones, those without a run, and those of a finished run.
const (
	OutcomeWaiting Outcome = "waiting" // for its turn
	OutcomeWorking Outcome = "working" // its run is active
	OutcomePaused  Outcome = "paused"  // its run waits for an answer, an approval, a budget or subagents

	OutcomeHandled Outcome = "handled" // without a run, as intended: a command, an answer to a question
	OutcomeDropped Outcome = "dropped" // no run will take it

	OutcomeAnswered    Outcome = "answered"    // the platform has the whole reply
	OutcomeSilent      Outcome = "silent"      // the run succeeded, and there is no reply to send
	OutcomeSending     Outcome = "sending"     // the reply waits in the outbox
	OutcomeUncertain   Outcome = "uncertain"   // delivery is unknown
	OutcomeUndelivered Outcome = "undelivered" // part of the reply could not be delivered
	OutcomeFailed      Outcome = "failed"      // the run failed, whether or not its sender was notified
	OutcomeStopped     Outcome = "stopped"     // the run was stopped
)

// A Verdict is the outcome of a message. The Why page, the API, the command line and /why
// all use it, so that they agree.
type Verdict struct {
	Outcome Outcome `json:"outcome"`
	Text    string  `json:"text"` // in one or two sentences
}

// VerdictOf derives the outcome of a message from its receipt and whether its agent is
// unusable at present. A failed run counts as failed even if its sender was notified: the
// state of the run takes precedence over that of its replies.
func VerdictOf(r storage.Receipt, unusable bool, zone *time.Location) Verdict {
	switch {
	case unusable && stillOpen(r):
		return Verdict{OutcomeWaiting, "It waits until its agent can be used again, and is retried until then."}
	case r.Skipped != "":
		return verdictSkipped(r)
	case r.Run == nil:
		return Verdict{OutcomeWaiting, verdictWaiting(r, zone)}
	case r.Run.State == claybot.RunAwaiting:
		return Verdict{OutcomePaused, "The run is paused: it waits for " + texts.WaitsFor(*r.Run, zone) + "."}
	case !r.Run.State.Ended():
		return Verdict{OutcomeWorking, "The agent is at work on it."}
	}
	sent := tallyOf(r.Replies)
	switch r.Run.State {
	case claybot.RunFailed:
		return Verdict{OutcomeFailed, "The run failed" + causeOf(*r.Run) + ". " + sent.notified(silenceWords(*r.Run, r.Message))}
	case claybot.RunCanceled:
		text := connectors.Capital(silenceWords(*r.Run, r.Message)) + "."
		if r.Run.Output != "" {
			text += " What it had written until then was kept."
		}
		return Verdict{OutcomeStopped, text}
	}
	return sent.verdict(connectors.Capital(silenceWords(*r.Run, r.Message)) + ".")
}

// stillOpen reports whether an accepted message waits for its turn, or its run to go on.
func stillOpen(r storage.Receipt) bool {
	return r.Skipped == "" && r.Parked == "" && (r.Run == nil || r.Run.State == claybot.RunRunning)
}

func verdictSkipped(r storage.Receipt) Verdict {
	v := Verdict{OutcomeDropped, connectors.Capital(skippedWords(r.Skipped)) + "."}
	switch r.Skipped {
	case questions.SkippedAnswer, questions.SkippedUnfit, storage.SkippedEdit, storage.SkippedDeletion, storage.SkippedLate, storage.SkippedDeleted:
		v.Outcome = OutcomeHandled
	case "command", "reset", "canceled", "operator":
		v.Outcome = OutcomeHandled
		if sent := tallyOf(r.Replies); len(r.Replies) > 0 {
			return sent.verdict(v.Text)
		}
	}
	return v
}

func verdictWaiting(r storage.Receipt, zone *time.Location) string {
	switch {
	case r.Parked != "":
		return "It is parked until its agent can be used again, and is retried until then."
	case r.Paused != nil:
		return "Its agent's run is paused: it waits for " + texts.WaitsFor(claybot.Run{Awaiting: r.Paused}, zone) + "."
	case r.Ahead == 1:
		return "It waits behind 1 other message."
	case r.Ahead > 1:
		return fmt.Sprintf("It waits behind %d other messages.", r.Ahead)
	case r.Busy != "":
		return "It waits until its agent has ended the run that it works on."
	}
	return "It waits for its turn."
}

// causeOf returns why a run failed, for operators.
func causeOf(run claybot.Run) string {
	if run.Error == nil || run.Error.Text == "" {
		return ""
	}
	return ": " + strings.TrimRight(connectors.OneLine(run.Error.Text, 300), ".")
}

// A tally counts the replies to a message by delivery state. It leaves out notices that
// another message was not delivered.
type tally struct{ sent, lost, doubtful, open int }

func tallyOf(replies []claybot.Outgoing) (t tally) {
	for _, o := range replies {
		switch {
		case strings.HasPrefix(o.ID, delivery.NoticePrefix):
		case o.State == claybot.SendSent:
			t.sent++
		case o.State == claybot.SendFailed:
			t.lost++
		case o.State == claybot.SendAmbiguous:
			t.doubtful++
		default:
			t.open++
		}
	}
	return t
}

// verdict returns the verdict on a successful run; silence is the text without a reply.
func (t tally) verdict(silence string) Verdict {
	switch {
	case t.lost == 1:
		return Verdict{OutcomeUndelivered, "1 part of the reply could not be delivered."}
	case t.lost > 1:
		return Verdict{OutcomeUndelivered, fmt.Sprintf("%d parts of the reply could not be delivered.", t.lost)}
	case t.doubtful > 0:
		return Verdict{OutcomeUncertain, "The reply is on its way; whether it arrived is being found out."}
	case t.open > 0:
		return Verdict{OutcomeSending, "The reply waits to be sent."}
	case t.sent > 0:
		return Verdict{OutcomeAnswered, "It was answered, and the platform confirmed the reply."}
	}
	return Verdict{OutcomeSilent, silence}
}

// notified returns whether the sender knows that a run failed, as a text.
func (t tally) notified(silence string) string {
	switch {
	case t.lost > 0:
		return "The notice about it could not be delivered."
	case t.doubtful > 0:
		return "The notice about it is on its way; whether it arrived is being found out."
	case t.open > 0:
		return "The notice about it waits to be sent."
	case t.sent > 0:
		return "The sender was notified."
	case silence == "the run failed":
		return "There is no chat to notify."
	}
	return connectors.Capital(silence) + "."
}

// textWhy describes what happened to a message.
func textWhy(r storage.Receipt, unusable bool, zone *time.Location) string {
	what := fmt.Sprintf("Your message of %s ", texts.Clock(r.Message.At, zone))
	switch {
	case r.Skipped == questions.SkippedAnswer:
		return what + "answered a question of mine."
	case r.Skipped == questions.SkippedUnfit:
		return what + "did not fit my question; I said so."
	case r.Skipped != "":
		return what + "was not handed to the agent: " + skippedWords(r.Skipped) + "."
	case r.Parked != "", r.Run == nil && unusable:
		return what + "is safe. " + VerdictOf(r, unusable, zone).Text
	case r.Run == nil:
		return what + "waits for its turn. " + verdictWaiting(r, zone)
	case !r.Run.State.Ended():
		what += fmt.Sprintf("went into run %s at %s. ", r.Run.ID, texts.Clock(r.Run.Started, zone))
	default:
		what += fmt.Sprintf("went into run %s. ", r.Run.ID)
	}
	v := VerdictOf(r, unusable, zone)
	if v.Outcome == OutcomeFailed { // operators see the cause on the page
		v.Text = "The run failed"
		if r.Run.Error != nil {
			v.Text += " (" + r.Run.Error.Code + ")"
		}
		v.Text += "."
	}
	what += v.Text
	for _, o := range r.Replies {
		if strings.HasPrefix(o.ID, delivery.NoticePrefix) {
			continue // about another reply
		}
		what += fmt.Sprintf(" Reply part %d of %d: %s", o.Part, o.Parts, o.State)
		if o.Cause != "" && o.State != claybot.SendSent {
			what += " (" + o.Cause + ")"
		}
		what += "."
	}
	return what
}
