package agentsystem_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm/llmtest"
)

// TestOnce: the output of a task, and the answer of a run with side effects, are not sent
// again by themselves if their fate is unknown, also after a crash; the person is told so, and
// /resend sends them, once. Other answers are sent again.
func TestOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		effects bool
		crash   bool
		act     func(r *rig)
		want    []string
	}{
		"an answer":         {act: func(r *rig) { r.say("a") }, want: []string{"re: a", "re: a", resendNone}},
		"a task":            {act: func(r *rig) { r.fire("t1", "count") }, want: []string{"counted", mayBeMissing, resending, "counted", resendNone}},
		"a task, killed":    {act: func(r *rig) { r.fire("t1", "count") }, crash: true, want: []string{"counted", mayBeMissing, resending, "counted", resendNone}},
		"side effects":      {effects: true, act: func(r *rig) { r.say("pay") }, want: []string{"done", mayBeMissing, resending, "done", resendNone}},
		"effects, and died": {effects: true, crash: true, act: func(r *rig) { r.say("pay") }, want: []string{"done", mayBeMissing, resending, "done", resendNone}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.line = func(l *line) connectors.Connector { return resendingLine{l, true} }
				r.mind.plan("count", llmtest.Say("counted"))
				if tt.effects {
					r.engine = engineFunc(effective)
				}
				r.chat.will(lost)
				r.start()
				tt.act(r)
				if tt.crash {
					synctest.Wait()
					r.crash()
					r.start()
				}
				after(10 * time.Minute)
				r.post(ann, command("c", "resend"))
				after(time.Minute)
				if len(tt.want) > 3 {
					r.post(ann, command("c2", "resend"))
					after(time.Minute)
				}
				r.wants(tt.want...)
			})
		})
	}
}
