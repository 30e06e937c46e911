package agentsystem_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/send"
)

// TestSendMessage: an agent writes into the chats of its person, and into those that the operator
// lists; what other people would read then, its person approves.
func TestSendMessage(t *testing.T) {
	t.Parallel()
	direct, group := claybot.User("chat", "ann", "ann"), claybot.User("chat", "-100", "ann")
	for name, tt := range map[string]struct {
		from   claybot.Descriptor
		args   string
		asks   bool
		in     string // the channel of the message; empty: nothing is sent
		result string
	}{
		"here":              {direct, `{"text":"CANARY"}`, false, "ann", "the message to chat:ann is on its way"},
		"here by its name":  {direct, `{"to":"chat:ann","text":"CANARY"}`, false, "ann", "on its way"},
		"a listed group":    {direct, `{"to":"chat:-200","text":"CANARY"}`, true, "-200", "the message to chat:-200 is on its way"},
		"a listed person":   {direct, `{"to":"chat:bob","text":"CANARY"}`, true, "bob", "on its way"},
		"an own group":      {direct, `{"to":"chat:-100","text":"CANARY"}`, true, "-100", "on its way"},
		"from an own group": {group, `{"to":"chat:ann","text":"CANARY"}`, false, "ann", "on its way"},
		"group to a group":  {group, `{"to":"chat:-200","text":"CANARY"}`, true, "-200", "on its way"},
		"no listed chat":    {direct, `{"to":"chat:-300","text":"CANARY"}`, false, "", "you may not write to \"chat:-300\"; besides the chats of your person, you may write to: chat:-200, chat:bob, gone:1"},
		"another person":    {direct, `{"to":"chat:carol","text":"CANARY"}`, false, "", "you may not write to"},
		"no such connector": {direct, `{"to":"gone:1","text":"CANARY"}`, true, "", "there is no connector gone"},
		"an odd chat":       {direct, `{"to":"bob","text":"CANARY"}`, false, "", "want connector:channel"},
		"without a text":    {direct, `{"to":"chat:ann","text":" "}`, false, "", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.instances = map[string]string{"chat": "telegram"}
				r.profile.SendTo = []string{"chat:-200", "chat:bob", "gone:1"}
				r.more = func(s *agentsystem.AgentSystem) []tools.Tool { return send.Tools(s.Output, nil) }
				r.start()
				for i, d := range []claybot.Descriptor{direct, group, claybot.User("chat", "carol", "carol")} {
					r.post(d, msg("hello"+string(rune('a'+i)), "hello"))
				}
				synctest.Wait()
				r.mind.plan("go", calling("send_message", tt.args), llmtest.Say("done"))
				r.post(tt.from, msg("go", "go"))
				after(time.Minute)
				count := func() (n int, in string) {
					for _, s := range r.chat.sent() {
						if s.out.Text == "CANARY" {
							n, in = n+1, s.out.Route.ChannelID
						}
					}
					return n, in
				}
				if n, _ := count(); tt.asks && n > 0 {
					t.Errorf("%d messages before an approval", n)
				}
				if tt.asks {
					r.post(direct, command("yes", "approve"))
					after(time.Minute)
				}
				if n, in := count(); in != tt.in || n > 1 || n == 0 && tt.in != "" {
					t.Errorf("%d messages in %q, want %q", n, in, tt.in)
				}
				var got []string
				records, err := r.agents.Records(r.Context(), r.agent(tt.from))
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range records {
					if x.Type == claybot.RecordTool {
						got = append(got, x.Text)
					}
				}
				if len(got) != 1 || !strings.Contains(got[0], tt.result) {
					t.Errorf("the model reads %q, want %q", got, tt.result)
				}
			})
		})
	}
}

// A call that is made again after a crash sends its message once.
func TestSendMessageOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.instances = map[string]string{"chat": "telegram"}
		r.profile.SendTo = []string{"chat:-200"}
		r.start()
		r.post(claybot.User("chat", "ann", "ann"), msg("hello", "hello"))
		synctest.Wait()
		a, err := r.agents.Agent(r.Context(), r.agent(claybot.User("chat", "ann", "ann")))
		if err != nil {
			t.Fatal(err)
		}
		env := tools.Env{Agent: a, Run: "r1", CallID: "c1"}
		for range 3 {
			if _, err := r.system.Output.SendMessage(r.Context(), env, "chat:-200", "CANARY"); err != nil {
				t.Fatal(err)
			}
			r.crash()
			r.start()
		}
		r.profile.SendTo = nil // the message is out, whatever holds for later ones
		if got, err := r.system.Output.SendMessage(r.Context(), env, "chat:-200", "CANARY"); got != "chat:-200" || err != nil {
			t.Errorf("the call that is made again says %q, %v", got, err)
		}
		env.CallID = "c2"
		if _, err := r.system.Output.SendMessage(r.Context(), env, "chat:-200", "CANARY"); err == nil {
			t.Error("a message was sent to a chat that is listed no more")
		}
		after(time.Hour)
		if n := r.copies()["message/r1/c1/1"]; n < 1 || n > 2 { // the second is marked: the first attempt died in between
			t.Errorf("%d messages", n)
		}
	})
}

// In a channel with several threads of the person, a message goes where they wrote last; in a
// channel that the operator lists, to the channel itself.
func TestSendMessageAmongThreads(t *testing.T) {
	t.Parallel()
	for listed, want := range map[string]string{"": "t3", "chat:-100": ""} {
		t.Run(listed, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.instances, r.profile.SendTo = map[string]string{"chat": "telegram"}, []string{"gone:1", listed}
				r.start()
				direct := claybot.User("chat", "ann", "ann")
				r.post(direct, msg("hello", "hello"))
				for _, thread := range []string{"t1", "t2", "t3", "t2", "t1", "t3"} {
					d := claybot.User("chat", "-100", "ann")
					d.ThreadID = thread
					m := msg(thread+claybot.Now().Time().String(), "hi")
					m.Context = claybot.MessageContext{ThreadID: thread, Group: true}
					r.post(d, m)
					after(time.Minute)
				}
				a, err := r.agents.Agent(r.Context(), r.agent(direct))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := r.system.Output.SendMessage(r.Context(), tools.Env{Agent: a, Run: "r1", CallID: "c1"}, "chat:-100", "CANARY"); err != nil {
					t.Fatal(err)
				}
				after(time.Minute)
				for _, s := range r.chat.sent() {
					if got := s.out.Route.ThreadID; s.out.Text == "CANARY" && got != want {
						t.Errorf("the message is in thread %q, want %q", got, want)
					}
				}
				if n := r.copies()["message/r1/c1/1"]; n != 1 {
					t.Errorf("%d messages", n)
				}
			})
		})
	}
}

// What a webhook told its agent belongs to a program, so the approvers of the rules decide
// whether others read it.
func TestSendMessageOfProgram(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.instances = map[string]string{"ci": "webhook", "chat": "telegram"}
		r.profile.SendTo = []string{"chat:-200"}
		r.start()
		for d, want := range map[claybot.Descriptor]bool{claybot.User("ci", "nightly", "ci"): true, claybot.User("chat", "ann", "ann"): false} {
			r.post(d, msg("hello "+d.UserID, "hello"))
			synctest.Wait()
			a, err := r.agents.Agent(r.Context(), r.agent(d))
			if err != nil {
				t.Fatal(err)
			}
			if got := r.system.Output.Tells(r.Context(), tools.Env{Agent: a, Run: "r1", CallID: "c1"}, "chat:-200"); got == nil || got.Program != want || got.Owners[0] != d.OwnerID() {
				t.Errorf("%s discloses %+v", d.OwnerID(), got)
			}
		}
	})
}
