package dashboard

import (
	"cmp"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A taskView is one cron task as the page shows it.
type taskView struct {
	connectors.Task
	State string // on, off, paused, done
	Words string // why it does not fire; empty when it does
	When  string // in one phrase
	First time.Time
	Last  *firingView
	// Key makes two presses of one button one run.
	Key string
}

// A firingView is one instant of a task and what became of it.
type firingView struct {
	connectors.Firing
	Tone   string // good, bad, busy, calm
	Words  string
	Manual bool
	MS     int64 // how long it took; 0 while it has not ended
}

// A beatView is one task of the heartbeat.
type beatView struct {
	connectors.Beat
	State string // on, off, stopped
	Words string
	Key   string
}

func viewTask(t connectors.Task, key string) taskView {
	v := taskView{Task: t, When: timing(t.TaskSpec), Key: key}
	switch {
	case !t.Enabled:
		v.State, v.Words = "off", "Switched off; it fires only by hand."
	case t.Paused != "":
		v.State, v.Words = "paused", t.Paused
	case len(t.Next) == 0:
		v.State, v.Words = "done", "It has no time left at which it would fire."
	default:
		v.State, v.First = "on", t.Next[0]
	}
	if t.Last != nil {
		last := viewFiring(*t.Last)
		v.Last = &last
	}
	return v
}

// timing says when a task fires, in one phrase.
func timing(t connectors.TaskSpec) string {
	switch {
	case t.Every != "":
		return "every " + t.Every
	case t.At != "":
		return "once, at " + t.At
	case t.Schedule != "":
		return t.Schedule
	}
	return "no schedule"
}

func viewFiring(f connectors.Firing) firingView {
	v := firingView{Firing: f, Manual: strings.HasPrefix(f.Instant, "manual/")}
	if !f.Started.IsZero() && f.Ended.After(f.Started) {
		v.MS = f.Ended.Sub(f.Started).Milliseconds()
	}
	switch f.State {
	case "waiting":
		v.Tone, v.Words = "busy", "waits for its turn"
	case "skipped":
		v.Tone, v.Words = "calm", "skipped: "+skipWords(f.Reason)
	case string(claybot.RunPending), string(claybot.RunRunning):
		v.Tone, v.Words = "busy", "running"
	case string(claybot.RunAwaiting):
		v.Tone, v.Words = "busy", "waits for an answer"
	case string(claybot.RunSucceeded):
		v.Tone, v.Words = "good", "succeeded"
	case string(claybot.RunFailed):
		v.Tone, v.Words = "bad", "failed"
	case string(claybot.RunCanceled):
		v.Tone, v.Words = "calm", "canceled"
	default:
		v.Tone, v.Words = "calm", f.State
	}
	return v
}

// skipWords says in words why something did not run. Reasons that the store
// writes with a count, such as "missed (3)", keep it.
func skipWords(reason string) string {
	name, rest, _ := strings.Cut(reason, " ")
	words, ok := map[string]string{
		"missed":         "claybot was not running at that time",
		"overlap":        "the run before was still under way",
		"gate":           "its gate command said no",
		"command":        "it was a command, which claybot answers itself",
		"reset":          "the conversation was reset before its turn came",
		"inbox_full":     "too many messages were waiting already",
		"run_ended":      "the run that it was for had ended",
		"damaged":        "the files of its agent cannot be read",
		"stopped":        "it was stopped before its turn came",
		"canceled":       "it was canceled before its turn came",
		"operator":       "an operator dropped it",
		"agent_deleted":  "its agent was deleted",
		"token_rejected": "the platform refused the token of its connector",
		"revoked":        "whoever wrote it may not write any more",
	}[name]
	if !ok {
		return cmp.Or(reason, "no reason was recorded")
	}
	if rest != "" {
		words += " " + rest
	}
	return words
}

func viewBeat(b connectors.Beat, key string) beatView {
	v := beatView{Beat: b, State: "on", Key: key}
	switch {
	case !b.Enabled:
		v.State, v.Words = "off", "Switched off; it beats only by hand."
	case b.Stopped != "":
		v.State, v.Words = "stopped", b.Stopped
	}
	return v
}
