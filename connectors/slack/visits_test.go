package slack

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/texts"
)

// legacy is the manifest of an app with an assistant_view.
var legacy = strings.NewReplacer("agent_view:", "assistant_view:", "agent_description:", "assistant_description:", "- app_home_opened", "- assistant_thread_started").Replace(Manifest)

// People with access who open the app see what they may ask; nothing of it becomes a message.
func TestSuggestedPrompts(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.inbox.strangers = []string{"U2"}
		w.start(t)
		for _, user := range []string{"U1", "U2", "T2/U3"} {
			w.slack.OpenTab(user, slacktest.TabMessages)
			w.slack.OpenTab(user, slacktest.TabHome)
		}
		w.settled(t)
		synctest.Wait()
		got := w.slack.Prompts("DU1", "")
		if len(got) != len(texts.Prompts) || got[0].Title != "What can you do?" {
			t.Errorf("U1 sees %+v", got)
		}
		for _, channel := range []string{"DU2", "DU3"} {
			if got := w.slack.Prompts(channel, ""); got != nil {
				t.Errorf("%s, which is that of a stranger: %+v", channel, got)
			}
		}
		if n := len(w.slack.Calls(methodPrompts)); n != 1 || len(w.inbox.all()) != 0 || len(w.slack.Calls(methodHome)) != 1 {
			t.Errorf("%d calls, messages %q", n, w.inbox.texts())
		}
	})
}

// An app with an assistant_view gets its prompts in each new thread, and answers there.
func TestAssistantThread(t *testing.T) {
	inWorld(t, slacktest.Config{Manifest: legacy}, func(t *testing.T, w *world) {
		w.start(t)
		channel, thread := w.slack.OpenAssistant("U1")
		w.settled(t)
		synctest.Wait()
		if got := w.slack.Prompts(channel, thread); len(got) != len(texts.Prompts) {
			t.Errorf("prompts %+v", got)
		}
		w.slack.Write(slacktest.Post{Channel: channel, User: "U1", Text: "hello", Thread: thread})
		w.settled(t)
		synctest.Wait()
		if all := w.inbox.all(); len(all) != 1 || all[0].message.Context.ThreadID != thread {
			t.Errorf("got %+v", all)
		}
	})
}

// What goes wrong with prompts is no fault of the connector, and a pause is obeyed.
func TestPromptsRefused(t *testing.T) {
	for _, fault := range []slacktest.Fault{{Error: "missing_scope", Needed: "assistant:write"}, {Error: "channel_not_found"}, {Error: "internal_error"}, {Status: 502}, {Lost: true}} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.start(t)
			w.slack.Fail(methodPrompts, fault)
			w.slack.OpenTab("U1", slacktest.TabMessages)
			w.settled(t)
			synctest.Wait()
			if got := w.slack.Prompts("DU1", ""); got != nil && !fault.Lost {
				t.Errorf("%+v: %+v", fault, got)
			}
			w.slack.DM("U1", "hello")
			w.settled(t)
			synctest.Wait()
			if h := w.Health(); len(w.inbox.all()) != 1 || strings.Contains(h.Err, "assistant:write") != (fault.Needed != "") {
				t.Errorf("%+v: got %q, health %+v", fault, w.inbox.texts(), h)
			}
			w.slack.OpenTab("U1", slacktest.TabMessages)
			w.settled(t)
			synctest.Wait()
			if got := w.slack.Prompts("DU1", ""); got == nil {
				t.Errorf("after %+v: no prompts", fault)
			}
		})
	}
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		w.slack.Fail(methodPrompts, slacktest.Fault{RetryAfter: 1e10})
		for range 5 {
			w.slack.OpenTab("U1", slacktest.TabMessages)
			w.settled(t)
			synctest.Wait()
		}
		if n := len(w.slack.Calls(methodPrompts)); n != 1 {
			t.Errorf("%d calls in a pause", n)
		}
	})
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.cfg.Without = []Feature{Panel}
		w.Connector = New(w.cfg)
		w.start(t)
		w.slack.OpenTab("U1", slacktest.TabMessages)
		w.settled(t)
		synctest.Wait()
		if n := len(w.slack.Calls(methodPrompts)); n != 0 {
			t.Errorf("%d calls although the panel is off", n)
		}
	})
}

// The Home tab shows people with access their own page, anew with each visit. A stranger sees
// nothing, and one whose access is gone sees that.
func TestHome(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.inbox.strangers = []string{"U2"}
		w.start(t)
		open := func(user string) []string {
			w.slack.OpenTab(user, slacktest.TabHome)
			w.settled(t)
			synctest.Wait()
			return w.slack.Home(strings.TrimPrefix(user, "T2/"))
		}
		if got := open("U1"); len(got) < 4 || got[0] != "Your tasks" || !strings.Contains(got[1], "*tea* of U1") || !strings.Contains(got[1], "&lt;!channel&gt;") {
			t.Errorf("U1 reads %.300q", got)
		}
		for _, stranger := range []string{"U2", "T2/U3"} {
			if got := open(stranger); got != nil {
				t.Errorf("%s reads %q", stranger, got)
			}
		}
		w.inbox.strangers = []string{"U1"}
		if got := open("U1"); len(got) != 1 || got[0] != texts.HomeNoAccess {
			t.Errorf("without access, U1 reads %.300q", got)
		}
		w.inbox.strangers = nil
		w.slack.Fail(methodHome, slacktest.Fault{Error: "internal_error"}, slacktest.Fault{Status: 502}, slacktest.Fault{RetryAfter: 1e9})
		for range 4 { // the last one in the pause
			if got := open("U1"); got[0] != texts.HomeNoAccess {
				t.Errorf("after a failure: %.300q", got)
			}
		}
		if n := len(w.slack.Calls(methodHome)); n != 5 {
			t.Errorf("%d calls", n)
		}
		time.Sleep(time.Second)
		w.inbox.homeless = errors.New("disk full")
		open("U1")
		w.inbox.homeless = nil
		if got := open("U1"); got[0] != "Your tasks" || len(w.inbox.all()) != 0 {
			t.Errorf("at last U1 reads %.300q, messages %q", got, w.inbox.texts())
		}
	})
	inWorld(t, slacktest.Config{Manifest: App{Without: []Feature{Home}}.YAML()}, func(t *testing.T, w *world) {
		w.start(t)
		w.slack.OpenTab("U1", slacktest.TabHome)
		w.settled(t)
		synctest.Wait()
		if h := w.Health(); w.slack.Home("U1") != nil || h.Err != "" {
			t.Errorf("without the tab: %+v", h)
		}
	})
}
