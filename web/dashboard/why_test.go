package dashboard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

func TestVerdict(t *testing.T) {
	run := func(s claybot.RunState, code string) *claybot.Run {
		r := &claybot.Run{ID: "r1", State: s}
		if code != "" {
			r.Error = &claybot.RunError{Code: code}
		}
		return r
	}
	replies := func(states ...claybot.SendState) (all []claybot.Outgoing) {
		for _, s := range states {
			all = append(all, claybot.Outgoing{State: s})
		}
		return all
	}
	for _, test := range []struct {
		name    string
		story   overview.Story
		tone    string
		verdict string
		advice  string // the address of the first one; "-" for none
	}{
		{"answered", overview.Story{Receipt: storage.Receipt{Run: run(claybot.RunSucceeded, ""), Replies: replies(claybot.SendSent)}}, "good", "It was answered, and the platform confirmed the reply.", "-"},
		{"lost", overview.Story{Receipt: storage.Receipt{Run: run(claybot.RunSucceeded, ""), Replies: replies(claybot.SendSent, claybot.SendFailed)}}, "bad", "1 part of the reply could not be delivered.", "/ui/deliveries?show=failed"},
		{"uncertain", overview.Story{Receipt: storage.Receipt{Run: run(claybot.RunSucceeded, ""), Replies: replies(claybot.SendAmbiguous)}}, "warn", "The reply is on its way; whether it arrived is being found out.", "/ui/health"},
		{"on its way", overview.Story{Receipt: storage.Receipt{Run: run(claybot.RunSucceeded, ""), Replies: replies(claybot.SendWaiting)}}, "busy", "The reply waits to be sent.", "/ui/health"},
		{"waits", overview.Story{}, "busy", "It waits for its turn.", "-"},
		{"behind a pause", overview.Story{Receipt: storage.Receipt{Ahead: 2, Busy: "r9", Paused: &claybot.Awaiting{}}}, "busy", "Its agent's run is paused: it waits for an answer.", "/ui/runs/r9"},
		{"parked", overview.Story{Receipt: storage.Receipt{Ahead: 2, Parked: "x"}}, "warn", "It is parked until its agent can be used again, and is retried until then.", "/ui/health"},
		{"of an agent that cannot be used", overview.Story{Fault: "x", Receipt: storage.Receipt{Run: run(claybot.RunRunning, "")}}, "warn", "It waits until its agent can be used again, and is retried until then.", "/ui/health"},
		{"behind", overview.Story{Receipt: storage.Receipt{Ahead: 2, Busy: "r9"}}, "busy", "It waits behind 2 other messages.", "/ui/runs/r9"},
		{"at work", overview.Story{Receipt: storage.Receipt{Run: run(claybot.RunRunning, "")}}, "busy", "The agent is at work on it.", "-"},
		{"asks", overview.Story{Receipt: storage.Receipt{Run: run(claybot.RunAwaiting, "")}}, "busy", "The run is paused: it waits for an answer.", "/ui/runs/r1"},
		{"no reply", overview.Story{Receipt: storage.Receipt{Run: run(claybot.RunSucceeded, "")}}, "calm", "The agent decided not to reply.", "-"},
		{"failed", overview.Story{Receipt: storage.Receipt{Run: run(claybot.RunFailed, runs.CodeModel)}}, "bad", "The run failed. There is no chat to notify.", "/ui/health"},
		{"failed, and its sender knows", overview.Story{Receipt: storage.Receipt{Run: run(claybot.RunFailed, runs.CodeModel), Replies: replies(claybot.SendSent)}}, "bad", "The run failed. The sender was notified.", "/ui/health"},
		{"stopped", overview.Story{Receipt: storage.Receipt{Run: run(claybot.RunCanceled, ""), Replies: replies(claybot.SendSent)}}, "calm", "The run was canceled.", "-"},
		{"full", overview.Story{Receipt: storage.Receipt{Agent: "a1", Skipped: "inbox_full"}}, "bad", "Too many messages waited already; the sender was told.", "/ui/agents/a1"},
		{"revoked", overview.Story{Receipt: storage.Receipt{Skipped: "revoked"}}, "bad", "Dropped, because its sender may not write any more.", "/ui/access"},
		{"command", overview.Story{Receipt: storage.Receipt{Skipped: "command", Replies: replies(claybot.SendSent)}}, "good", "It was answered, and the platform confirmed the reply.", "-"},
		{"dropped", overview.Story{Receipt: storage.Receipt{Skipped: "operator"}}, "calm", "Dropped by an operator.", ""},
	} {
		v := viewStory(test.story)
		if v.Tone != test.tone || v.Verdict != test.verdict {
			t.Errorf("%s: %s %q, want %s %q", test.name, v.Tone, v.Verdict, test.tone, test.verdict)
		}
		first := "-"
		if len(v.Advice) > 0 {
			first = v.Advice[0].URL
		}
		if first != test.advice {
			t.Errorf("%s: the first advice leads to %q, want %q", test.name, first, test.advice)
		}
	}
}

// Every way in which a run can fail has an advice.
func TestAdvice(t *testing.T) {
	for _, code := range []string{
		runs.CodeModel, runs.CodeRefused, runs.CodeContext, runs.CodeTooMany, runs.CodeRepeating, runs.CodeBadCalls,
		runs.CodeDeadline, runs.CodeNoModel, runs.CodeUnexpected, "interrupted", "",
	} {
		r := claybot.Run{State: claybot.RunFailed}
		if code != "" {
			r.Error = &claybot.RunError{Code: code}
		}
		all := adviseRun(r, "/ui/agents/a")
		if len(all) != 1 || !strings.HasSuffix(all[0].Text, ".") || (all[0].URL == "") != (all[0].Label == "") {
			t.Errorf("code %q: %+v", code, all)
		}
	}
}

func TestSteps(t *testing.T) {
	s := overview.Story{Receipt: storage.Receipt{Run: &claybot.Run{State: claybot.RunFailed}}, Steps: []overview.Step{
		{At: 1000, What: "received"}, {At: 1500, What: "stored"}, {At: 9000, What: "end"}, {At: 0, What: "sending"},
	}}
	steps, cut := viewSteps(s)
	if cut != 0 || len(steps) != 4 || steps[1].Gap != 0 || steps[2].Gap != 7500 || steps[3].Gap != 0 || steps[2].Tone != "bad" || steps[3].Tone != "busy" {
		t.Errorf("steps %+v", steps)
	}
	s.Steps = nil
	for i := range 1000 {
		s.Steps = append(s.Steps, overview.Step{At: claybot.Time(i + 1), What: "tool", Text: fmt.Sprint(i)})
	}
	steps, cut = viewSteps(s)
	if len(steps) != stepRows || cut != 1000-stepRows || steps[0].Text != "0" || steps[stepRows-1].Text != "999" || steps[stepRows/2].Gap != 0 {
		t.Errorf("%d steps, %d cut", len(steps), cut)
	}
}

func TestStoryTitle(t *testing.T) {
	for want, m := range map[string]claybot.AgentMessage{
		"Message from Ann <b>":    {Type: claybot.MessageUser, From: claybot.Sender{Name: "Ann\n<b>\u202e", UserID: "7"}},
		"Message from user 7":     {Type: claybot.MessageUser, From: claybot.Sender{UserID: "7"}},
		"Reminder":                {Type: claybot.MessageSystem, Kind: claybot.KindReminder},
		"Report from agent abc":   {Type: claybot.MessageSystem, Kind: claybot.KindResult, From: claybot.Sender{Agent: "abc"}},
		"Note":                    {Type: claybot.MessageSystem, Kind: claybot.KindNotice},
		"Stop":                    {Type: claybot.MessageCancel},
		"Answer":                  {Type: claybot.MessageAnswer},
		"Message from user other": {Type: "later", From: claybot.Sender{UserID: "other"}},
	} {
		if got := storyTitle(m); got != want {
			t.Errorf("%+v is called %q, want %q", m, got, want)
		}
	}
}
