package agentsystem

import (
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// Everything claybot itself says to people stands in this file.

func textPairing(code string) string {
	return "Hello! I do not know you yet. Your pairing code is **" + code + "**. " +
		"Ask the operator of this bot to run `claybot pair approve " + code + "`. The code is valid for one hour."
}

func textApproved() string {
	return "You are in. Write to me whenever you like; /help shows what I can do."
}

func textHelp() string {
	var b strings.Builder
	b.WriteString("Write to me and I answer. I also know these commands:\n\n")
	for _, c := range connectors.Commands {
		fmt.Fprintf(&b, "- `/%s`: %s\n", c.Name, c.Help)
	}
	b.WriteString("\nIn Slack, `!` works in place of `/`.")
	return b.String()
}

func textGreeting() string {
	return "Hello! Write to me and I answer. /help shows what I can do."
}

const (
	textReset       = "Done. I have forgotten our conversation; we start afresh."
	textStopped     = "Stopped."
	textNothingRuns = "Nothing is running."
	textEmpty       = "Your message has no text that I can read."
	textUndelivered = "A reply of mine could not be delivered here. /why tells what became of your last message."
	textMaybeLost   = "My previous reply may be missing: the connection broke while I sent it."
	textUnreadable  = "I did not take your message: my files about our conversation cannot be read. The operator has to look at them."
	markStopped     = "*(stopped)*"
)

func textTooLong(n int) string {
	return fmt.Sprintf("Your message has %d characters; I can read up to %d at once. Please send it in pieces.", n, maxText)
}

func textInboxFull() string {
	return "Too many of your messages are waiting; I did not take the last one. Please wait, or /stop what I am doing."
}

// textFailed is what a person hears of a failed run: a sentence and the run id,
// never the error itself.
func textFailed(run claybot.RunID, code string) string {
	var s string
	switch code {
	case "model_error":
		s = "The model did not answer. Please try again in a while."
	case "model_refused":
		s = "The model refused this request; the operator can see why."
	case "context_too_long":
		s = "Our conversation has become too long for the model. /new starts afresh."
	case "too_many_steps":
		s = "I stopped, because I needed more steps than I am allowed."
	case "repeating":
		s = "I stopped, because I was going round in circles."
	case "deadline":
		s = "I stopped, because this took longer than I am allowed."
	case "interrupted":
		s = "I was interrupted several times while working on this and gave up."
	default:
		s = "Something went wrong while I worked on this."
	}
	return s + " (run " + string(run) + ")"
}

// textWhy tells what became of a message.
func textWhy(r storage.Receipt) string {
	what := fmt.Sprintf("Your message of %s ", clock(r.Message.At))
	switch {
	case r.Skipped != "":
		return what + "was not handed to the agent: " + r.Skipped + "."
	case r.Run == nil:
		return what + "waits for its turn."
	}
	what += fmt.Sprintf("went into run %s, which ", r.Run.ID)
	switch r.Run.State {
	case claybot.RunSucceeded:
		what += "succeeded."
	case claybot.RunFailed:
		what += "failed"
		if r.Run.Error != nil {
			what += " (" + r.Run.Error.Code + ")"
		}
		what += "."
	case claybot.RunCanceled:
		what += "was canceled."
	default:
		return what + "is at work since " + clock(r.Run.Started) + "."
	}
	for _, o := range r.Replies {
		if strings.HasPrefix(o.ID, undeliveredPrefix) {
			continue // it tells of another reply
		}
		what += fmt.Sprintf(" Reply part %d of %d: %s", o.Part, o.Parts, o.State)
		if o.Cause != "" && o.State != claybot.SendSent {
			what += " (" + o.Cause + ")"
		}
		what += "."
	}
	if len(r.Replies) == 0 && r.Run.State == claybot.RunSucceeded {
		what += " It decided not to reply."
	}
	return what
}

func clock(t claybot.Time) string { return t.Time().UTC().Format(time.TimeOnly) + " UTC" }
