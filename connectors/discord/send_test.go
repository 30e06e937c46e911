package discord

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/discord/discordtest"
	"github.com/claybot/claybot/texts"
)

// shown are the texts of the bot in the chat with user 1.
func (b *bot) shown() (all []string) {
	for _, m := range b.Sent(directID(1)) {
		all = append(all, discordtest.Visible(m.Content))
	}
	return all
}

func (b *bot) wantShown(want ...string) {
	b.Helper()
	if got := b.shown(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		b.Errorf("the chat shows %q, want %q", got, want)
	}
}

// A send that is repeated within some minutes is not doubled, also by another process; a text
// that has grown since replaces the draft; a message that a person deleted is sent anew.
func TestNonce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		between func(b *bot, receipt string)
		text    string
		want    []string
	}{
		"repeated":              {func(*bot, string) {}, "one", []string{"one"}},
		"by another process":    {func(b *bot, _ string) { b.conn = b.connector() }, "one", []string{"one"}},
		"grown":                 {func(b *bot, _ string) { b.conn = b.connector() }, "one and two", []string{"one and two"}},
		"after the nonce ended": {func(b *bot, _ string) { b.pass(10 * time.Minute) }, "one", []string{"one", "one"}},
		"deleted": {func(b *bot, receipt string) {
			b.Delete(directID(1), receipt)
			o := out("o", "edited")
			o.Edit = receipt
			if _, err := b.conn.Send(b.Context(), o); !errors.Is(err, connectors.ErrEditGone) {
				b.Errorf("edit of a deleted message: %v", err)
			}
		}, "one", []string{"one"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, discordtest.Config{}, func(b *bot) {
				b.start()
				b.say("hello")
				b.pass(0)
				receipt, err := b.conn.Send(b.Context(), out("o", "one"))
				if err != nil {
					t.Fatal(err)
				}
				tt.between(b, receipt)
				if _, err := b.conn.Send(b.Context(), out("o", tt.text)); err != nil {
					t.Fatal(err)
				}
				b.wantShown(tt.want...)
			})
		})
	}
}

// TestFind looks up an ambiguous send, also in another process and among equal texts. While Discord
// knows the nonce, another process leaves it to the repeat, which shows no message twice.
func TestFind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		restarted, arrived bool
		before, after      time.Duration // of the message with the same text, and of the look-up
		copies             int
		found              bool
	}{
		{false, false, 10 * time.Second, 5 * time.Second, 0, false},
		{false, true, 10 * time.Second, 5 * time.Second, 0, true},
		{true, false, 10 * time.Second, 5 * time.Second, 0, false},
		{true, true, 10 * time.Second, 5 * time.Second, 0, false},
		{true, true, time.Minute, 5 * time.Second, 1, true},
		{true, false, time.Minute, 5 * time.Second, 1, false},
		{true, false, time.Minute, 3 * time.Minute, 0, false},
		{true, true, time.Minute, 3 * time.Minute, 0, true},
	} {
		inBubble(t, discordtest.Config{}, func(b *bot) {
			b.start()
			b.say("hello")
			b.pass(0)
			earlier, err := b.conn.Send(b.Context(), out("earlier", "ok"))
			if err != nil {
				t.Fatal(err)
			}
			b.pass(tt.before)
			o := out("later", "ok")
			o.Copies = tt.copies
			b.Server.Fail(discordtest.Fault{Route: "POST messages", Lost: tt.arrived, Drop: !tt.arrived})
			_, err = b.conn.Send(b.Context(), o)
			var lost *connectors.AmbiguousError
			if !errors.As(err, &lost) {
				t.Fatalf("lost answer: %v", err)
			}
			if tt.restarted {
				_ = b.end()
				b.conn = b.connector()
			}
			b.pass(tt.after)
			receipt, found, err := b.conn.Find(b.Context(), o)
			if err != nil || found != tt.found || receipt == earlier || found != (receipt != "") {
				t.Errorf("%+v: %q, %t, %v; the earlier one is %q", tt, receipt, found, err, earlier)
			}
			if !found {
				if _, err = b.conn.Send(b.Context(), o); err != nil {
					t.Fatal(err)
				}
				b.wantShown("ok", "ok")
			}
		})
	}
}

// mentioning are texts with what looks like a mention of a command where Discord shows none.
var mentioning = []string{"use `</plan:12>` now", "a list:\n```\n</svg:3>\n```", "see </why:99> and /why"}

// TestFindMentions looks up messages with mentions of commands after another process has lost their answers.
func TestFindMentions(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		b.pass(time.Second)
		for _, text := range mentioning {
			o := out(text, text)
			b.Server.Fail(discordtest.Fault{Route: "POST messages", Lost: true})
			if _, err := b.conn.Send(b.Context(), o); err == nil {
				t.Fatal("the answer is not lost")
			}
			other := b.connector()
			b.pass(3 * time.Minute)
			if receipt, found, err := other.Find(b.Context(), o); err != nil || !found || receipt == "" {
				t.Errorf("%q: %q, %t, %v", text, receipt, found, err)
			}
		}
	})
}

// TestFindDraft looks up an answer whose first send was a draft that a crash ended.
func TestFindDraft(t *testing.T) {
	t.Parallel()
	type texts struct{ begun, whole string }
	cases := map[texts]bool{{"The **ans", "The **answer** is 42"}: true, {"The **ans", "Another answer"}: false}
	for _, text := range mentioning {
		cases[texts{text, text + "\nand more"}] = true
	}
	for text, want := range cases {
		inBubble(t, discordtest.Config{}, func(b *bot) {
			draft := out("o", text.begun)
			draft.Progress = true
			b.start()
			b.pass(time.Second)
			if _, err := b.conn.Send(b.Context(), draft); err != nil {
				t.Fatal(err)
			}
			_ = b.end()
			b.conn = b.connector()
			b.pass(10 * time.Minute)
			draft.Text, draft.Progress = text.whole, false
			if receipt, found, err := b.conn.Find(b.Context(), draft); err != nil || found != want || want != (receipt == b.Sent(directID(1))[0].ID) {
				t.Errorf("%q: %q, %t, %v", text, receipt, found, err)
			}
			draft.Attempts = 1 // a send of the outbox was no draft
			if receipt, found, err := b.conn.Find(b.Context(), draft); err != nil || found {
				t.Errorf("%q: %q, %t, %v", text, receipt, found, err)
			}
		})
	}
}

// Without the permission Read Message History, replies go out without a reference, and a message
// whose fate is unknown counts as one that cannot be looked up.
func TestNoHistory(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		asked := b.Write(discordtest.Post{Channel: groupID(1), User: userID(1), Text: "<@" + discordtest.Bot + "> hello"})
		b.pass(time.Second)
		b.HideHistory(groupID(1))
		o := out("text", "answer")
		o.Route = claybot.Route{Connector: "discord", ChannelID: guildID + "/" + groupID(1), ReplyTo: asked, Group: true}
		if _, err := b.conn.Send(b.Context(), o); err != nil {
			t.Errorf("a reply: %v", err)
		}
		o.ID, o.Text, o.Question = "question", "Which?", &claybot.Question{ID: "01QUESTION", Type: claybot.QuestionConfirm, Required: true}
		if _, err := b.conn.Send(b.Context(), o); err != nil {
			t.Errorf("a question: %v", err)
		}
		b.pass(6 * time.Second) // of the rate limit
		o.ID, o.Question, o.File = "file", nil, &claybot.FileReference{Name: "a.txt", Size: 3}
		open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("abc")), nil }
		if _, err := b.conn.SendFile(b.Context(), o, open); err != nil {
			t.Errorf("a file: %v", err)
		}
		sent := b.Sent(groupID(1))
		if len(sent) != 3 || sent[0].ReplyTo != "" || !sent[1].Has("Approve") || len(sent[2].Files) != 1 {
			t.Errorf("the channel shows %+v", sent)
		}
		b.pass(6 * time.Second)
		o = out("lost", "lost")
		o.Route = claybot.Route{Connector: "discord", ChannelID: guildID + "/" + groupID(1), Group: true}
		b.Server.Fail(discordtest.Fault{Route: "POST messages", Lost: true})
		var lost *connectors.AmbiguousError
		if _, err := b.conn.Send(b.Context(), o); !errors.As(err, &lost) {
			t.Fatalf("lost answer: %v", err)
		}
		_ = b.end()
		b.pass(5 * time.Minute)
		var permanent *connectors.PermanentError
		if _, _, err := b.connector().Find(b.Context(), o); !errors.As(err, &permanent) {
			t.Errorf("a look-up in a channel without history: %v", err)
		}
	})
}

// TestOutcomes are the refusals of a send.
//
// docs.discord.com/developers/topics/opcodes-and-status-codes, JSON Error Codes, read 2026-11-28.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		for _, tt := range []struct {
			status, code int
			thread, edit bool
			want         string
		}{
			{403, 50001, false, false, "dead"},
			{403, 50013, false, false, "dead"},
			{403, 50007, false, false, "dead"},
			{403, 50278, false, false, "dead"},
			{404, 10003, false, false, "dead"},
			{404, 10003, true, false, "permanent"},
			{403, 50001, true, false, "permanent"},
			{403, 50013, true, false, "permanent"},
			{403, 20001, true, false, "permanent"},
			{400, 50083, true, false, "permanent"},
			{400, 50035, false, false, "permanent"},
			{413, 40005, false, false, "permanent"},
			{404, 10008, false, true, "gone"},
			{403, 50005, false, true, "gone"},
			{401, 0, false, false, "plain"},
			{500, 0, false, false, "ambiguous"},
			{502, 0, false, true, "plain"},
		} {
			o, channel, route := out(fmt.Sprint(tt), "text"), directID(1), "POST messages"
			if tt.thread {
				channel = "600000000000000001"
				o.Route = claybot.Route{Connector: "discord", ChannelID: guildID + "/" + groupID(1), ThreadID: channel, Group: true}
			}
			if tt.edit {
				o.Edit, route = "123456789012345678", "PATCH message"
			}
			b.Server.Fail(discordtest.Fault{Route: route, Channel: channel, Status: tt.status, Code: tt.code})
			_, err := b.conn.Send(b.Context(), o)
			var p *connectors.PermanentError
			var a *connectors.AmbiguousError
			got := "plain"
			switch {
			case err == nil:
				got = "sent"
			case errors.Is(err, connectors.ErrEditGone):
				got = "gone"
			case errors.As(err, &a):
				got = "ambiguous"
			case errors.As(err, &p) && p.DeadRoute:
				got = "dead"
			case errors.As(err, &p):
				got = "permanent"
			}
			if got != tt.want {
				t.Errorf("%+v: %s (%v)", tt, got, err)
			}
			b.pass(2 * time.Second)
		}
	})
}

// Unfinished text that grows beyond the limit when it is formatted is cut; the next one still comes.
func TestDraftThatGrowsByItsFormat(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		draft := out("o", "x ")
		draft.Progress = true
		for _, text := range []string{"x", strings.Repeat("a_b ", 440), strings.Repeat("snake_case ~ ", 138)} {
			draft.Text = text
			receipt, err := b.conn.Send(b.Context(), draft)
			if err != nil {
				t.Fatalf("%.20q: %v", text, err)
			}
			draft.Edit = receipt
			b.pass(5 * time.Second)
			shown, want := discordtest.Visible(b.Sent(directID(1))[0].Content), strings.TrimSpace(text)
			if begun, cut := strings.CutSuffix(shown, " …"); !strings.HasPrefix(want, begun) || len(begun) < len(want)*2/3 || cut != (begun != want) {
				t.Errorf("shown %d characters %q", len(shown), shown)
			}
		}
	})
}

// A chat that asks for a pause holds up no other, and a pause of the whole bot holds up all.
// Unfinished text leaves the last call of a bucket to the final one.
func TestRates(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		var wait *connectors.RetryError
		receipt, err := b.conn.Send(b.Context(), out("o", "0"))
		if err != nil {
			t.Fatal(err)
		}
		edit := out("o", "")
		edit.Edit = receipt
		n := 0
		for ; n < 10; n++ {
			edit.Text, edit.Progress = fmt.Sprint("text ", n), true
			if _, err = b.conn.Send(b.Context(), edit); err != nil {
				break
			}
			b.pass(300 * time.Millisecond)
		}
		if !errors.As(err, &wait) || !wait.GivesWay || n == 0 {
			t.Errorf("edit %d: %v", n, err)
		}
		edit.Text, edit.Progress = "the end", false
		if _, err = b.conn.Send(b.Context(), edit); err != nil {
			t.Errorf("the final text: %v", err)
		}
		b.wantShown("the end")
		b.pass(10 * time.Second)
		b.Server.Fail(discordtest.Fault{Route: "POST messages", Channel: directID(1), RetryAfter: 3 * time.Second, Global: true})
		if _, err = b.conn.Send(b.Context(), out("global", "x")); !errors.As(err, &wait) || !wait.All || wait.After != 3*time.Second {
			t.Errorf("global: %v", err)
		}
		calls := b.Calls("POST messages")
		other := out("other", "x")
		other.Route.ChannelID = directID(2)
		if _, err = b.conn.Send(b.Context(), other); !errors.As(err, &wait) || !wait.All || b.Calls("POST messages") != calls {
			t.Errorf("another chat meanwhile: %v", err)
		}
	})
}

// A bot whose calls are refused again and again pauses long before Discord blocks its address.
func TestInvalidRequests(t *testing.T) {
	t.Parallel()
	r := newRates(func() int { return 1 })
	for range invalidLimit {
		r.invalid()
	}
	if wait, all := r.take(call{what: "get channel", major: "1"}); wait < invalidWindow-time.Minute || !all {
		t.Errorf("wait %v, all %t", wait, all)
	}
}

// TestQuestions answers questions of each kind by its components.
func TestQuestions(t *testing.T) {
	t.Parallel()
	many := make([]string, maxMenu+1)
	for i := range many {
		many[i] = fmt.Sprint("option ", i)
	}
	for name, tt := range map[string]struct {
		question claybot.Question
		answer   func(b *bot, receipt string) error
		want     string
		reason   string
		scope    claybot.ApprovalScope
	}{
		"approve": {claybot.Question{Type: claybot.QuestionConfirm, Required: true}, press("Approve"), "yes", "", ""},
		"session": {claybot.Question{Type: claybot.QuestionConfirm, Tool: "shell", Required: true}, press("Approve for this session"), "yes", "", claybot.ApproveSession},
		"deny":    {claybot.Question{Type: claybot.QuestionConfirm, Required: true}, press("Deny"), "no", "", ""},
		"reason":  {claybot.Question{Type: claybot.QuestionConfirm, Required: true}, submit("Deny with a reason…", "too late"), "deny", "too late", ""},
		"boolean": {claybot.Question{Type: claybot.QuestionBoolean, Required: true}, press("Yes"), "yes", "", ""},
		"skip":    {claybot.Question{Type: claybot.QuestionBoolean}, press("Skip"), "", "", ""},
		"select": {claybot.Question{Type: claybot.QuestionSelect, Options: []string{"tea", "3"}, Required: true}, func(b *bot, id string) error {
			return b.Choose(directID(1), userID(1), id, "3")
		}, "3", "", ""},
		"several": {claybot.Question{Type: claybot.QuestionMultiselect, Options: []string{"tea", "milk", "jam"}, Required: true}, func(b *bot, id string) error {
			return b.Choose(directID(1), userID(1), id, "tea", "jam")
		}, `["tea","jam"]`, "", ""},
		"too many": {claybot.Question{Type: claybot.QuestionSelect, Options: many, Required: true}, submit("Answer…", "option 25"), "option 25", "", ""},
		"text":     {claybot.Question{Type: claybot.QuestionText, Required: true}, submit("Answer…", "some words"), "some words", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, discordtest.Config{}, func(b *bot) {
				b.start()
				b.say("hello")
				b.pass(0)
				o := out("q", "What now?")
				tt.question.ID, tt.question.Text = "01QUESTION", "What now?"
				o.Question = &tt.question
				receipt, err := b.conn.Send(b.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if err := tt.answer(b, receipt); err != nil {
					t.Fatal(err)
				}
				b.pass(time.Second)
				if len(b.inbox.presses) != 1 {
					t.Fatalf("answers %+v", b.inbox.presses)
				}
				p := b.inbox.presses[0]
				if p.UserID != userID(1) || p.ChannelID != directID(1) || p.Answer.Question != "01QUESTION" || p.Answer.Text != tt.want || p.Answer.Reason != tt.reason || p.Answer.Scope != tt.scope {
					t.Errorf("answer %+v", p)
				}
				if n := b.Unanswered(); n != 0 {
					t.Errorf("%d interactions are not acknowledged", n)
				}
			})
		})
	}
}

func press(label string) func(*bot, string) error {
	return func(b *bot, id string) error { return b.Press(directID(1), userID(1), id, label) }
}

func submit(label, text string) func(*bot, string) error {
	return func(b *bot, id string) error {
		if err := b.Press(directID(1), userID(1), id, label); err != nil {
			return err
		}
		b.pass(time.Second)
		return b.Submit(userID(1), text)
	}
}

// Commands are registered once, and again only when they changed.
func TestCommandsAreRegisteredOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, discordtest.Config{}, func(b *bot) {
		b.start()
		b.pass(time.Second)
		_ = b.end()
		b.start()
		b.pass(time.Second)
		if n, puts := b.Commands(); n != len(connectors.Commands) || puts != 1 {
			t.Errorf("%d commands, registered %d times", n, puts)
		}
		b.Slash(directID(1), userID(1), "new", "what is tea?")
		b.pass(time.Second)
		if got := b.inbox.got; len(got) != 1 || got[0].Type != claybot.MessageReset || got[0].Text != "what is tea?" || b.Unanswered() != 0 {
			t.Errorf("stored %+v", got)
		}
	})
}

// A command that comes too late for its response is not done: Discord told its user that it
// failed, and a repeat must not do it twice.
func TestLateCommands(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		late func(b *bot)
		want int
	}{
		"in time": {func(b *bot) { b.Slash(directID(1), userID(1), "new", "tea") }, 2},
		"at the end of a quiet day": {func(b *bot) {
			b.pass(24 * time.Hour)
			b.Slash(directID(1), userID(1), "new", "tea")
		}, 2},
		"while the daemon was down": {func(b *bot) {
			b.kill()
			b.Slash(directID(1), userID(1), "new", "tea")
			b.pass(time.Minute)
			b.start()
		}, 1},
		"while the gateway was down": {func(b *bot) {
			b.Server.Down(true)
			b.pass(time.Millisecond)
			b.Slash(directID(1), userID(1), "new", "tea")
			b.pass(10 * time.Second)
			b.Server.Down(false)
		}, 1},
		"while nothing is stored": {func(b *bot) {
			b.inbox.fill(true)
			b.Slash(directID(1), userID(1), "new", "tea")
			b.pass(10 * time.Second)
			b.inbox.fill(false)
		}, 1},
		"while a gap is read": {func(b *bot) {
			b.kill()
			b.pass(10 * time.Minute)
			b.Expire()
			b.Server.Fail(discordtest.Fault{Route: "GET messages", Channel: directID(1), RetryAfter: 20 * time.Second})
			b.start()
			b.pass(7 * time.Second)
			b.Slash(directID(1), userID(1), "new", "tea")
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, discordtest.Config{}, func(b *bot) {
				b.start()
				b.say("hello")
				b.pass(time.Second)
				tt.late(b)
				b.pass(2 * time.Minute)
				b.Slash(directID(1), userID(1), "new", "tea")
				b.pass(time.Second)
				n := 0
				for _, m := range b.inbox.got {
					if m.Type == claybot.MessageReset {
						n++
					}
				}
				if n != tt.want {
					t.Errorf("the command was done %d times, want %d", n, tt.want)
				}
			})
		})
	}
}

// Discord's time is that of its responses, whatever the time here.
func TestClock(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{0, time.Hour, -time.Hour} {
		var c clock
		there := func() time.Time { return time.Now().Add(off) }
		c.heard(snowflake(there()))
		c.dated(http.Header{"Date": {there().UTC().Format(http.TimeFormat)}})
		c.heard(snowflake(there()))
		if age, sure := c.age(snowflake(there().Add(-time.Minute))); age < 59*time.Second || age > 70*time.Second || !sure {
			t.Errorf("off by %v: age %v, sure %t", off, age, sure)
		}
		c.dated(http.Header{"Date": {there().Add(-time.Minute).UTC().Format(http.TimeFormat)}})
		if age, _ := c.age(snowflake(there())); age > -50*time.Second {
			t.Errorf("off by %v: a clock that ran ahead is not set back: %v", off, age)
		}
	}
}

// TestFormat renders Markdown as Discord shows it.
func TestFormat(t *testing.T) {
	t.Parallel()
	for md, want := range map[string]string{
		"plain":                             "plain",
		"**bold** and _it_ and ~~no~~":      "**bold** and *it* and ~~no~~",
		"# Head\n\ntext":                    "# Head\n\ntext",
		"#### Small":                        "**Small**",
		"> quote":                           "> quote",
		"snake_case and 2*3":                `snake\_case and 2\*3`,
		"<@123> and @everyone":              `\<@123> and @everyone`,
		"[text](https://example.org/a_b)":   "[text](<https://example.org/a_b>)",
		"https://example.org/a_b":           "https://example.org/a_b",
		"`code_x`":                          "`code_x`",
		"```go\nx := 1\n```":                "```go\nx := 1\n```",
		"| a | b |\n|---|---|\n| 1 | 2 |\n": "```\na  b\n-  -\n1  2\n```",
	} {
		if got := format(md); got != want {
			t.Errorf("%q became %q, want %q", md, got, want)
		}
	}
}

// Every part of a text is one message, with the longest mark before it.
func FuzzSplit(f *testing.F) {
	f.Add("text", 3)
	f.Add("| a | b |\n|---|---|\n| x | y |\n", 300)
	f.Add("**_a_** <@1> `x`", 400)
	f.Fuzz(func(t *testing.T, s string, n int) {
		s = strings.Repeat(s, max(1, min(n, 500)))
		if begun := fitting(s); begun != s && connectors.UTF16Len(format(begun)) > maxTextUTF16 {
			t.Errorf("the beginning has %d characters", len(format(begun)))
		}
		for _, part := range (*Connector)(nil).Split(s) {
			o := claybot.Outgoing{Text: part, Resent: true}
			for _, l := range texts.All() {
				if n := connectors.UTF16Len(content(texts.Voice{Language: l}, o)); n > maxTextUTF16 {
					t.Errorf("a part has %d characters", n)
				}
			}
		}
	})
}
