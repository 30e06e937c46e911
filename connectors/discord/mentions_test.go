package discord

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/discord/discordtest"
	"github.com/claybot/claybot/texts"
)

func TestLinkedCommands(t *testing.T) {
	t.Parallel()
	ids := map[string]string{"why": "71", "help": "72", "stop": "73", "new": "74"}
	for text, want := range map[string]string{
		"/why":                               "</why:71>",
		"Send /why, or /help.":               "Send </why:71>, or </help:72>.",
		"(/stop all) **/new** “/why”":        "(</stop:73> all) **</new:74>** “</why:71>”",
		"- /help: show what I can do\n- /x":  "- </help:72>: show what I can do\n- /x",
		"`/why` and ```\n/why\n``` and /why": "`/why` and ```\n/why\n``` and </why:71>",
		"cd \\~/new; /new/x /newer /new-x /help.txt https://a.example/why a/why": "cd \\~/new; /new/x /newer /new-x /help.txt https://a.example/why a/why",
		"[see /why](<https://a.example>) /why":                                   "[see /why](<https://a.example>) </why:71>",
		"\\</why:99> /why@bot":                                                   "\\</why:99> /why@bot",
	} {
		if got := linked(text, ids); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got := linked(text, nil); got != text {
			t.Errorf("without ids: %q", got)
		}
		if got := unlinked(want); !strings.Contains(want, `\<`) && got != text {
			t.Errorf("%q: back %q", want, got)
		}
	}
	i := interaction{}
	i.Message.Content = "Which? See </why:71>."
	if form, err := json.Marshal(openedForm(texts.Voice{}, i, verbNo)); err != nil || !strings.Contains(string(form), `"placeholder":"Which? See /why."`) {
		t.Errorf("the form of a question: %s, %v", form, err)
	}
	if got := unlinked("</plan all:12> <@1> </why:>"); got != "/plan <@1> </why:>" {
		t.Errorf("got %q", got)
	}
}

// Commands in texts can be pressed: by the member that registered them, by one that only sends, after
// a restart, and after an update from a version that kept no ids.
func TestCommandsCanBePressed(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		_ = b.marks.SetCheckpoint(b.Context(), (&Connector{bot: discordtest.Bot}).commandsKey(), "0123abcd")
		early := b.world.connector() // sends before any id is known
		send := func(c *Connector, text string) string {
			o := claybot.Outgoing{ID: text, Route: claybot.Route{Connector: "discord", ChannelID: directID(1)}, Text: text, Part: 1}
			if _, err := c.Send(b.Context(), o); err != nil {
				t.Fatal(err)
			}
			sent := b.Sent(directID(1))
			return sent[len(sent)-1].Content
		}
		if got := send(early, "early: /why"); got != "early: /why" {
			t.Errorf("without ids: %q", got)
		}
		b.start()
		b.pass(time.Second)
		why := "</why:" + b.CommandID("why") + ">"
		if got := send(b.conn, "See /why."); got != "See "+why+"." || b.CommandID("why") == "" {
			t.Errorf("got %q", got)
		}
		b.pass(lookAgain)
		if got := send(early, "later: /why"); got != "later: "+why {
			t.Errorf("a member that only sends: %q", got)
		}
		full := strings.Repeat("/why ", 5) + strings.Repeat("x", maxPartUTF16-25)
		if got := send(b.conn, full); got != full {
			t.Errorf("a full message: %d characters", len(got))
		}
		_ = b.end()
		b.start()
		b.pass(time.Second)
		if got := send(b.conn, "after a restart: /why"); got != "after a restart: "+why {
			t.Errorf("got %q", got)
		}
		if n, puts := b.Commands(); n != len(connectors.Commands) || puts != 1 {
			t.Errorf("%d commands, registered %d times", n, puts)
		}
		b.Write(discordtest.Post{Channel: directID(1), User: userID(1), Text: why})
		b.pass(time.Second)
		if got := b.inbox.got; len(got) != 1 || got[0].Type != claybot.MessageCommand || got[0].Command != "why" {
			t.Errorf("a person who wrote a mention of a command: %+v", got)
		}
	})
}
