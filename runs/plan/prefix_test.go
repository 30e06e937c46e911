package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/plan"
)

// The requests of a later run begin as those of an earlier one: with the same system prompt,
// and the conversation that both know. The time stands behind it.
func TestRequestsBeginAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prompts := 0
		run := func(d *desk) []llm.Request {
			b := thinks(steps(step("step-01", "look", "a")))
			b.replies[llm.ClassifyRequest] = []string{`{"intent": "weather"}`}
			c := config(b, newHand().set(t), plan.Policy{})
			c.Intents = travel
			c.Prompt = func(*runs.Turn) (string, error) {
				prompts++
				return "You are a planner.", nil
			}
			if err := d.run(t, plan.New(c), yes); err != nil {
				t.Fatal(err)
			}
			return b.requests
		}
		first := newDesk("what is the weather?")
		before := run(first)
		for i := range first.records {
			first.records[i].Run = "earlier"
		}
		time.Sleep(49 * time.Hour)
		second := newDesk("and now?")
		second.records[0].MessageID, second.messages[0].ID = "m2", "m2"
		second.records = append(first.records, second.records...)
		after := run(second)
		if len(before) != 3 || len(after) != 3 || prompts == 0 {
			t.Fatalf("%d and %d requests, %d prompts", len(before), len(after), prompts)
		}
		known := llm.Transcript(claybot.Record{
			Type: claybot.RecordUser, At: 1, MessageID: "m1", Text: "what is the weather?", From: &claybot.Sender{UserID: "ann"},
		}, 4<<10)
		day := fmt.Sprint(time.Now().UTC().Year())
		for i, r := range after {
			if r.System != before[i].System || strings.Contains(r.System, day) || !strings.HasPrefix(r.System, "You are a planner.\n\n") {
				t.Errorf("request %d has the system prompt\n%s\nafter\n%s", i, r.System, before[i].System)
			}
			for _, r := range []llm.Request{before[i], r} {
				if text := r.Messages[0].Content; !strings.HasPrefix(text, known) {
					t.Errorf("request %d begins with %q, want %q", i, text, known)
				}
			}
		}
	})
}
