package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/storage"
)

// invoices are the commands of an agent with a skill.
func invoices() ([]connectors.Command, error) { return []connectors.Command{{Name: "invoices"}}, nil }

// skillCommand is a message that begins with a command that claybot does not have.
func skillCommand(id, text string) claybot.AgentMessage {
	m := typed(id, claybot.MessageUser, text)
	m.Command = connectors.Unknown
	return m
}

// A fault that passes keeps the message: with its source, or parked. It is no unknown command. A
// folder that cannot be used has no skills.
func TestSkillsThatCannotBeRead(t *testing.T) {
	const unknown = "I don't know the command /invoices"
	for name, tt := range map[string]struct {
		err     error
		kept    bool // by the source
		unknown bool
	}{
		"the store is busy": {err: fmt.Errorf("read pins: %w", storage.ErrBusy), kept: true},
		"an unknown fault":  {err: errors.New("a row is damaged")},
		"no permission":     {err: &fs.PathError{Op: "open", Path: "skills", Err: fs.ErrPermission}, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.profile.Engine = claybot.EngineReact
				var passed atomic.Bool
				r.skills = func() ([]connectors.Command, error) {
					if !passed.Load() {
						return nil, tt.err
					}
					return invoices()
				}
				r.start()
				m := skillCommand("m1", "/invoices for March")
				err := r.system.Post(r.Context(), ann, m)
				synctest.Wait()
				if (err != nil) != tt.kept {
					t.Errorf("posted: %v", err)
				}
				if got := strings.Join(r.chat.seen(), ""); strings.Contains(got, unknown) != tt.unknown {
					t.Errorf("people see %q", got)
				}
				passed.Store(true)
				if tt.kept {
					r.post(ann, m)
				}
				after(10 * time.Minute)
				if x := r.receipt("m1"); (x.Run != nil && x.Run.State == claybot.RunSucceeded && x.Message.Skill == "invoices") == tt.unknown {
					t.Errorf("it became %+v", x)
				}
			})
		})
	}
}

// A command of a skill that kills the process is given up like any other message: no model sees
// it again, nor the use of the skill.
func TestPoisonousSkillCommand(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.skills, r.profile.Engine = invoices, claybot.EngineReact
		r.mind.plan("later", llmtest.Say("re: later"))
		r.mind.before = func(ctx context.Context, q llm.Request) error {
			if strings.Contains(fmt.Sprint(q.Messages), "poison") {
				return rest(ctx, time.Hour)
			}
			return nil
		}
		r.start()
		r.post(ann, skillCommand("p", "/invoices poison"))
		if deaths := r.dieOf("poison"); deaths > 12 {
			t.Errorf("the process died %d times", deaths)
		}
		after(10 * time.Minute)
		if run := r.receipt("p").Run; run == nil || run.State != claybot.RunFailed {
			t.Errorf("the poison ended as %+v", run)
		}
		r.say("later")
		after(time.Minute)
		asked := r.mind.asked()
		if last := fmt.Sprint(asked[len(asked)-1].Messages); !strings.Contains(last, "later") || strings.Contains(last, "poison") || strings.Contains(last, "use_skill") {
			t.Errorf("the model was asked %s", last)
		}
		if seen := r.chat.seen(); seen[len(seen)-1] != "re: later" {
			t.Errorf("people see %q", seen)
		}
	})
}
