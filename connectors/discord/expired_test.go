package discord

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/discord/discordtest"
)

// A press, a choice and a submitted form whose token has expired when they arrive count: the question
// stays answered, Discord's refusal of the response is no fault, and no log has the token. A button that
// opens a form opens none then, and the next press does.
func TestExpiredTokens(t *testing.T) {
	t.Parallel()
	yes := claybot.Question{ID: "q1", Type: claybot.QuestionBoolean, Text: "Shall I?", Required: true}
	text := claybot.Question{ID: "q1", Type: claybot.QuestionText, Text: "What?", Required: true}
	for name, tt := range map[string]struct {
		asks    claybot.Question
		before  func(b *bot, id string) error
		late    func(b *bot, id string) error
		answers int
	}{
		"a button":                   {yes, nil, press("Yes"), 1},
		"a form":                     {text, press("Answer…"), func(b *bot, _ string) error { return b.Submit(userID(1), "tea") }, 1},
		"a button that opens a form": {text, nil, press("Answer…"), 0},
		"a dead button": {yes, nil, func(b *bot, id string) error {
			b.inbox.asked = []claybot.Question{yes}
			b.inbox.taken = map[string]claybot.Answer{"q1": {Question: "q1"}}
			return b.Press(directID(1), userID(1), id, "Yes")
		}, 1},
	} {
		for _, outage := range []string{"the gateway was down", "the daemon was killed"} {
			t.Run(fmt.Sprint(name, ", ", outage), func(t *testing.T) {
				t.Parallel()
				inBubble(t, discordtest.Config{}, func(b *bot) {
					b.start()
					b.say("hello")
					b.pass(time.Second)
					o := out("q", tt.asks.Text)
					o.Question = &tt.asks
					id, err := b.conn.Send(b.Context(), o)
					if err == nil && tt.before != nil {
						err = tt.before(b, id)
						b.pass(time.Second)
					}
					if err != nil {
						t.Fatal(err)
					}
					if outage == "the daemon was killed" {
						b.kill()
					} else {
						b.Server.Down(true)
					}
					b.pass(time.Millisecond)
					if err := tt.late(b, id); err != nil {
						t.Fatal(err)
					}
					b.pass(10 * time.Second)
					if outage == "the daemon was killed" {
						b.start()
					}
					b.Server.Down(false)
					b.pass(time.Minute)
					if n := len(b.inbox.presses); n != tt.answers || b.Unanswered() != 1 || len(b.Whispers(userID(1))) != 0 {
						t.Errorf("%d answers, %d interactions without a response", n, b.Unanswered())
					}
					if log := b.logs.String(); strings.Contains(log, "failed to answer an interaction") || strings.Contains(log, "interaction-canary") {
						t.Errorf("log %s", log)
					}
					if err := b.Press(directID(1), userID(1), id, b.Sent(directID(1))[0].Buttons()[0]); err != nil {
						t.Fatal(err)
					}
					b.pass(time.Second)
					if b.Unanswered() != 1 || (tt.asks.Type == claybot.QuestionText) != (b.Form(userID(1)) != nil) {
						t.Errorf("the next press: %d interactions without a response, the form %+v", b.Unanswered(), b.Form(userID(1)))
					}
				})
			})
		}
	}
}
