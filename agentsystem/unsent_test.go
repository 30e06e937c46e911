package agentsystem_test

import (
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/send"
)

// Where a profile sends no texts by themselves, people read what the agent sends with its tools, and a
// run that sent nothing says so. A failure is told.
func TestUnsent(t *testing.T) {
	t.Parallel()
	words := func(r llmtest.Reply, text string) llmtest.Reply { r.Text = text; return r }
	for name, tt := range map[string]struct {
		replies []llmtest.Reply
		want    []string // in the chat
		silence string
	}{
		"a reply":              {[]llmtest.Reply{llmtest.Say("CANARY, which is long enough to be shown while it grows")}, nil, claybot.SilenceAutoSend},
		"no reply":             {[]llmtest.Reply{llmtest.Say("NO_REPLY")}, nil, ""},
		"a text with a call":   {[]llmtest.Reply{words(calling("look", `{}`), "CANARY"), llmtest.Say("CANARY")}, nil, claybot.SilenceAutoSend},
		"a message":            {[]llmtest.Reply{calling("send_message", `{"text":"hi"}`), llmtest.Say("CANARY")}, []string{"hi"}, ""},
		"a message that fails": {[]llmtest.Reply{calling("send_message", `{"text":" "}`), llmtest.Say("CANARY")}, nil, claybot.SilenceAutoSend},
		"a failure":            {[]llmtest.Reply{{Err: errDead}}, []string{"The model didn't answer. Please try again later."}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.instances = map[string]string{"chat": "telegram"}
				r.profile.Unsent, r.profile.Progress = true, name == "a text with a call"
				r.more = func(s *agentsystem.AgentSystem) []tools.Tool { return send.Tools(s.Output, nil) }
				r.start()
				r.mind.plan("go", tt.replies...)
				r.say("go")
				after(time.Minute)
				r.unsent(tt.want, tt.silence)
			})
		})
	}
}

// Wherever the process dies, the run knows that its agent sent something, and nothing else is sent.
func TestUnsentCrash(t *testing.T) {
	t.Parallel()
	for k := 1; k < 40; k++ {
		bubble(t, func(r *rig) {
			r.instances = map[string]string{"chat": "telegram"}
			r.profile.Unsent = true
			r.more = func(s *agentsystem.AgentSystem) []tools.Tool { return send.Tools(s.Output, nil) }
			r.start()
			r.mind.plan("go", calling("send_message", `{"text":"hi"}`), llmtest.Say("CANARY"))
			r.fuse.blowIn(k)
			r.source("go")
			after(time.Minute)
			r.crash()
			r.start()
			r.source("go")
			after(time.Hour)
			if run := r.newest(); run.State != claybot.RunSucceeded || run.Silence != "" {
				t.Errorf("k=%d: the run is %s, silence %q", k, run.State, run.Silence)
			}
			if slices.Contains(r.chat.seen(), "CANARY") {
				t.Errorf("k=%d: the text was sent: %q", k, r.chat.seen())
			}
		})
	}
}

// unsent checks what the chat shows, with each text once, and why the newest run sent nothing.
func (r *rig) unsent(want []string, silence string) {
	r.Helper()
	got := make(map[string]bool)
	for _, s := range r.chat.sent() {
		got[s.out.Text] = true
	}
	for _, text := range want {
		if !got[text] {
			r.Errorf("the chat lacks %q: %v", text, got)
		}
	}
	if len(got) != len(want) {
		r.Errorf("the chat has %v, want %q", got, want)
	}
	if run := r.newest(); run.Silence != silence {
		r.Errorf("silence %q, want %q", run.Silence, silence)
	}
}

// newest is the newest run of Ann's agent.
func (r *rig) newest() claybot.Run {
	r.Helper()
	run, err := r.db.LastRun(r.Context(), r.agent(ann))
	if err != nil {
		r.Fatal(err)
	}
	return run
}
