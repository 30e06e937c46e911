package agentsystem_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
)

// Hooks hear of the nodes of a run and its edges, and a hook that hangs keeps no reply back.
func TestHooks(t *testing.T) {
	bubble(t, func(r *rig) {
		var heard []string
		hang := make(chan bool)
		r.hooks = runs.Hooks{
			Enter: func(_ context.Context, _ claybot.RunID, node string, _ int) error {
				heard = append(heard, "+"+node)
				return nil
			},
			Exit: func(_ context.Context, _ claybot.RunID, node string, _ int, _ string) error {
				heard = append(heard, "-"+node)
				return nil
			},
			Edge: func(_ context.Context, _ claybot.RunID, from, to string) error {
				heard = append(heard, from+">"+to)
				if to == runs.End {
					<-hang
				}
				return nil
			},
		}
		r.start()
		r.mind.plan("go", calling("look", `{}`), llmtest.Say("seen"))
		r.say("go")
		r.wants("seen")
		if got := strings.Join(heard, " "); got != "+model -model model>tools +tools -tools tools>model +model -model model>END" {
			t.Errorf("heard %s", got)
		}
		r.say("more")
		synctest.Wait()
		if got := r.chat.seen(); len(got) != 2 {
			t.Errorf("people see %q", got)
		}
		close(hang)
	})
}
