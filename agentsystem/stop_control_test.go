package agentsystem_test

import (
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

// A control that stops an answer is heard before the platform has said which message it made, reports
// whether anything stops, and stops the run once.
func TestStopControl(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.grow(streams, half1+half2)
		r.chat.judge = func(o claybot.Outgoing) verdict {
			if o.Progress && o.Edit == "" {
				return verdict{late: 3 * sendingWait / 4}
			}
			return verdict{}
		}
		r.start()
		r.say("begin")
		stop := emoji(ann, "p1", "")
		stop.Emoji, stop.Stop = nil, true
		for len(r.chat.seen()) == 0 {
			after(100 * time.Millisecond)
		}
		other := stop
		other.UserID = "bob"
		r.rates(other, false)
		r.rates(stop, true)
		after(time.Minute)
		if got := r.state("begin"); got != claybot.RunCanceled {
			t.Errorf("the run is %s, want it canceled", got)
		}
		r.rates(stop, false)
	})
}

// The end of a run completes the message in which its answer grew, also if nothing follows: its text
// stays, and what the platform shows beside an unfinished text goes.
func TestGrownMessageIsCompleted(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.line = streams
		first := calling("no_such_tool", `{}`)
		first.Text = half1 + half2
		r.mind.plan("begin", first, llmtest.Say("NO_REPLY"))
		r.mind.pace = 3 * time.Second
		r.start()
		r.say("begin")
		after(time.Minute)
		all := r.chat.sent()
		if n := len(all); n < 2 || all[n-1].out.Progress || all[n-1].out.Text != half1+half2 || all[n-1].out.Edit == "" {
			t.Errorf("sent are %+v", all)
		}
		r.wants(half1 + half2)
	})
}

// A control of a thread stops what works there for its person, and nothing that began after it was pressed.
func TestStopOfThread(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.grow(streams, half1+half2)
		r.mind.plan("next", llmtest.Say(half1+half2))
		r.start()
		stop := emoji(ann, "t1", "")
		stop.Emoji, stop.Stop, stop.Thread = nil, true, "t1"
		m := msg("begin", "begin")
		m.Context.ThreadID = "t1"
		r.post(ann, m)
		after(time.Second)
		stop.At = claybot.Now()
		other, elsewhere := stop, stop
		other.UserID, elsewhere.Thread, elsewhere.Message = "bob", "t2", "t2"
		r.rates(other, false)
		r.rates(elsewhere, false)
		r.rates(stop, true)
		after(time.Minute)
		if got := r.state("begin"); got != claybot.RunCanceled {
			t.Errorf("the run is %s, want it canceled", got)
		}
		m = msg("next", "next") // without a thread, its message is the first one
		m.Context.MessageID = "t1"
		r.post(ann, m)
		after(time.Second)
		r.rates(stop, false)
		stop.At = claybot.Now()
		r.rates(stop, true)
		after(time.Minute)
		if got := r.state("next"); got != claybot.RunCanceled {
			t.Errorf("the next run is %s, want it canceled", got)
		}
	})
}
