package overview

import (
	"strings"

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

// A Hindrance is why the agent of a message does not work at present.
type Hindrance int

// The hindrances, as far as this member knows.
const (
	Free     Hindrance = iota
	Unusable           // its files cannot be used
	Stopped            // by an operator, or what it works with
)

// VerdictOf derives the outcome of a message, in the language of its reader, from its receipt and what hinders its
// agent at present. A failed run counts as failed even if its sender was notified: the
// state of the run takes precedence over that of its replies.
func VerdictOf(v texts.Voice, r storage.Receipt, h Hindrance) Verdict {
	switch {
	case h == Unusable && stillOpen(r):
		return Verdict{OutcomeWaiting, v.Say(texts.WaitsUnusable)}
	case r.Skipped != "":
		return verdictSkipped(v, r)
	case r.Run == nil:
		return Verdict{OutcomeWaiting, verdictWaiting(v, r, h)}
	case r.Run.State == claybot.RunAwaiting:
		return Verdict{OutcomePaused, v.Say(texts.RunPaused, v.WaitsFor(*r.Run))}
	case !r.Run.State.Ended():
		return Verdict{OutcomeWorking, v.Say(texts.RunAtWork)}
	}
	sent := tallyOf(r.Replies)
	switch r.Run.State {
	case claybot.RunFailed:
		return Verdict{OutcomeFailed, v.Say(texts.RunFailed) + causeOf(*r.Run) + ". " + sent.notified(v, silenceWords(*r.Run, r.Message))}
	case claybot.RunCanceled:
		text := sentence(v, silenceWords(*r.Run, r.Message))
		if r.Run.Output != "" {
			text += " " + v.Say(texts.KeptPart)
		}
		return Verdict{OutcomeStopped, text}
	}
	return sent.verdict(v, sentence(v, silenceWords(*r.Run, r.Message)))
}

// stillOpen reports whether an accepted message waits for its turn, or its run to go on.
func stillOpen(r storage.Receipt) bool {
	return r.Skipped == "" && r.Parked == "" && (r.Run == nil || r.Run.State == claybot.RunRunning)
}

func verdictSkipped(voice texts.Voice, r storage.Receipt) Verdict {
	v := Verdict{OutcomeDropped, connectors.Capital(skippedIn(voice, r.Skipped)) + "."}
	if strings.HasPrefix(r.Skipped, storage.SkippedFlow) {
		v.Outcome = OutcomeHandled
	}
	switch r.Skipped {
	case questions.SkippedAnswer, questions.SkippedUnfit, storage.SkippedEdit, storage.SkippedDeletion, storage.SkippedLate, storage.SkippedDeleted:
		v.Outcome = OutcomeHandled
	case "command", "reset", "canceled", "operator":
		v.Outcome = OutcomeHandled
		if sent := tallyOf(r.Replies); len(r.Replies) > 0 {
			return sent.verdict(voice, v.Text)
		}
	}
	return v
}

func verdictWaiting(v texts.Voice, r storage.Receipt, h Hindrance) string {
	switch {
	case r.Parked == storage.ParkedUnapproved:
		return v.Say(texts.WaitsApproval)
	case r.Parked != "":
		return v.Say(texts.WaitsParked)
	case r.Paused != nil:
		return v.Say(texts.AgentPaused, v.WaitsFor(claybot.Run{Awaiting: r.Paused}))
	case h == Stopped && r.Busy == "":
		return v.Say(texts.WaitsStopped)
	case r.Ahead > 0:
		return v.Count(int64(r.Ahead), texts.WaitsBehind)
	case r.Busy != "":
		return v.Say(texts.WaitsForRun)
	}
	return v.Say(texts.WaitsTurn)
}

// causeOf returns why a run failed, for operators.
func causeOf(run claybot.Run) string {
	if run.Error == nil || run.Error.Text == "" {
		return ""
	}
	return ": " + strings.TrimRight(connectors.OneLine(run.Error.Text, 300), ".")
}

// A tally counts the replies to a message by delivery state. It leaves out notices that
// another message was not delivered, and failed replies that were sent again; see resent.
type tally struct{ sent, lost, doubtful, open, rerouted int }

func tallyOf(replies []claybot.Outgoing) (t tally) {
	elsewhere, again := make(map[string]bool), make(map[string]bool) // ids of replies that went out on another route, or once more
	for _, o := range replies {
		if was, ok := strings.CutPrefix(o.ID, delivery.AgainPrefix); ok {
			again[was] = true
		}
		if rest, ok := strings.CutPrefix(o.ID, delivery.ReroutedPrefix); ok {
			if i := strings.LastIndexByte(rest, '/'); i > 0 {
				elsewhere[rest[:i]] = true
			}
		}
	}
	for _, o := range replies {
		switch {
		case strings.HasPrefix(o.ID, delivery.NoticePrefix), o.State == claybot.SendFailed && (again[o.ID] || o.Cause == delivery.CauseCrowded):
		case o.State == claybot.SendFailed && elsewhere[o.ID]:
			t.rerouted++
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
func (t tally) verdict(v texts.Voice, silence string) Verdict {
	switch {
	case t.lost > 0:
		return Verdict{OutcomeUndelivered, v.Count(int64(t.lost), texts.PartsLost)}
	case t.doubtful > 0:
		return Verdict{OutcomeUncertain, v.Say(texts.ReplyUnsure)}
	case t.open > 0:
		return Verdict{OutcomeSending, v.Say(texts.ReplyWaits)}
	case t.sent > 0 && t.rerouted > 0:
		return Verdict{OutcomeAnswered, v.Say(texts.ReplyElsewhere)}
	case t.sent > 0:
		return Verdict{OutcomeAnswered, v.Say(texts.ReplySent)}
	}
	return Verdict{OutcomeSilent, silence}
}

// notified returns whether the sender knows that a run failed, as a text.
func (t tally) notified(v texts.Voice, silence string) string {
	switch {
	case t.lost > 0:
		return v.Say(texts.NoticeLost)
	case t.doubtful > 0:
		return v.Say(texts.NoticeUnsure)
	case t.open > 0:
		return v.Say(texts.NoticeWaits)
	case t.sent > 0:
		return v.Say(texts.NoticeSent)
	case silence == texts.SilentFailed:
		return v.Say(texts.NoChat)
	}
	return sentence(v, silence)
}

// sentence makes a sentence of a text of the catalogue.
func sentence(v texts.Voice, text string) string {
	if text == "" {
		return ""
	}
	return connectors.Capital(v.In(text)) + "."
}

// textWhy describes in a chat what happened to a message, with a reference by which operators
// find the rest.
func textWhy(v texts.Voice, r storage.Receipt, h Hindrance) string {
	at := v.Moment(r.Message.At)
	text := ""
	switch {
	case r.Skipped == questions.SkippedAnswer:
		text = v.Say(texts.WhyAnswer, at)
	case r.Skipped == questions.SkippedUnfit:
		text = v.Say(texts.WhyUnfit, at)
	case r.Skipped != "":
		text = v.Say(texts.WhySkipped, at, skippedIn(v, r.Skipped))
	case r.Parked != "", r.Run == nil && h == Unusable:
		text = v.Say(texts.WhySafe, at, VerdictOf(v, r, h).Text)
	case r.Run == nil:
		text = v.Say(texts.WhyWaits, at, verdictWaiting(v, r, h))
	case !r.Run.State.Ended():
		text = v.Say(texts.WhyRuns, at, v.When(r.Run.Started), VerdictOf(v, r, h).Text)
	default:
		verdict := VerdictOf(v, r, h)
		if verdict.Outcome == OutcomeFailed { // operators see the cause on the page
			code := ""
			if r.Run.Error != nil {
				code = r.Run.Error.Code
			}
			verdict.Text = v.Failed(code)
		}
		text = v.Say(texts.WhyEnded, at, verdict.Text)
	}
	ref := string(r.Message.ID)
	if r.Run != nil {
		ref = string(r.Run.ID)
	}
	return text + "\n\n" + v.Say(texts.WhyReference, ref)
}
