package slack

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// A stream that was unfinished when the bot was removed from its channel ends as a dead route, in
// this process and in the next one, whatever Slack calls the removal. Nothing calls Slack for it
// afterwards; a stream that nothing continues is stopped once.
func TestStreamAfterRemoval(t *testing.T) {
	type calls int // of later stops
	for name, try := range map[string]func(t *testing.T, w *world, g *grown) (calls, error){
		"the final text": func(_ *testing.T, _ *world, g *grown) (calls, error) { return 0, g.end("word word word") },
		"another text":   func(_ *testing.T, _ *world, g *grown) (calls, error) { return 0, g.end("something else") },
		"a draft": func(_ *testing.T, _ *world, g *grown) (calls, error) {
			time.Sleep(10 * time.Second)
			return 0, g.step(1)
		},
		"the next process": func(t *testing.T, w *world, g *grown) (calls, error) {
			w.restart(t)
			return 0, g.end("word word word")
		},
		"a draft of the next process": func(t *testing.T, w *world, g *grown) (calls, error) {
			w.restart(t)
			return 0, g.step(1)
		},
		"no text": func(*testing.T, *world, *grown) (calls, error) {
			return 1, &connectors.PermanentError{DeadRoute: true, Err: errors.New("nothing is sent")}
		},
	} {
		for _, code := range []string{"not_in_channel", "channel_not_found"} {
			t.Run(name+", "+code, func(t *testing.T) {
				inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
					w.start(t)
					g := w.grow(t, "C1", "U1", "o1")
					must(t, g.step(1), g.step(1))
					w.slack.Leave("C1", true)
					for _, method := range []string{methodAppend, methodStop, methodUpdate} {
						w.slack.Fail(method, slacktest.Fault{Error: code}, slacktest.Fault{Error: code})
					}
					stops, err := try(t, w, g)
					var dead *connectors.PermanentError
					if !errors.As(err, &dead) || !dead.DeadRoute {
						t.Errorf("%v is no dead route", err)
					}
					before := len(w.slack.Journal())
					time.Sleep(time.Hour)
					for _, c := range w.slack.Journal()[before:] {
						if strings.HasPrefix(c.Method, "chat.") {
							stops--
						}
					}
					if stops != 0 {
						t.Errorf("%d more calls than wanted", -stops)
					}
				})
			})
		}
	}
}
