package agentsystem_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// What a look-up found stays found: a refused edit and a restart after it make
// no second message.
func TestFoundStaysFound(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		verdicts []verdict
		end      func(*rig)
	}{
		{"silence, kill", []verdict{lost, slow(time.Hour, false)}, (*rig).crash},
		{"failures, restart", []verdict{lost, failing, failing, failing, failing}, (*rig).shut},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.line = func(l *line) connectors.Connector { return findingLine{l} }
				r.start()
				r.chat.will(tt.verdicts...)
				r.say("a")
				after(8 * time.Second)
				if len(r.chat.lookups) == 0 {
					t.Fatal("nothing was looked up")
				}
				tt.end(r)
				r.start()
				after(2 * time.Hour)
				r.wants("re: a")
			})
		})
	}
}

// finishing runs something in the moment before a run is finished.
type finishing struct {
	agentsystem.Runs
	before *func()
}

func (f finishing) Finish(ctx context.Context, l storage.Lease, id claybot.RunID, o storage.Outcome) ([]claybot.Outgoing, error) {
	if before := *f.before; before != nil {
		*f.before = nil
		before()
	}
	return f.Runs.Finish(ctx, l, id, o)
}

// Who was told that a run is stopped does not get its answer, however late he
// asked (CM-05).
func TestCanceledInTheLastMoment(t *testing.T) {
	t.Parallel()
	for _, kind := range []claybot.MessageType{claybot.MessageCancel, claybot.MessageReset} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var before func()
				r.decorate = func(s agentsystem.Stores) agentsystem.Stores { s.Runs = finishing{s.Runs, &before}; return s }
				r.start()
				before = func() { r.post(ann, typed("s", kind, "")) }
				r.say("a")
				after(time.Minute)
				if got := r.receipt("a").Run.State; got != claybot.RunCanceled {
					t.Errorf("the run is %s", got)
				}
				if seen := r.chat.seen(); len(seen) != 1 || strings.Contains(seen[0], "re: a") {
					t.Errorf("people see %q", seen)
				}
			})
		})
	}
}

// A connector that panics over a message loses that message, with a recorded
// cause, and nothing else.
func TestSendPanics(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.chat.judge = func(o claybot.Outgoing) verdict {
			if o.Text == "re: a" {
				panic("formatter")
			}
			return verdict{}
		}
		r.say("a")
		after(time.Minute)
		if o := r.reply("a"); o.State != claybot.SendFailed || o.Cause == "" {
			t.Errorf("the reply is %s: %q", o.State, o.Cause)
		}
		r.say("b")
		after(time.Minute)
		if seen := r.chat.seen(); len(seen) == 0 || seen[len(seen)-1] != "re: b" {
			t.Errorf("people see %q", seen)
		}
	})
}

// An agent whose files cannot be read does not hold up its source: the message is
// parked, its sender is notified once, and it runs when the files can be read again.
func TestUnreadableAgent(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.say("a")
		r.wants("re: a")
		id := r.agent(ann)
		r.shut()
		path := filepath.Join(r.dir, "agents", string(id), "descriptor.json")
		sound, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(`{"v":99}`), 0o600); err != nil {
			t.Fatal(err)
		}
		r.start()
		for range 2 { // the source repeats it
			if err := r.system.Post(r.Context(), ann, msg("b", "b")); err != nil {
				t.Fatal(err)
			}
		}
		after(time.Minute)
		if seen := r.chat.seen(); len(seen) != 2 || !strings.Contains(seen[1], "has to wait") {
			t.Errorf("people see %q", seen)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != `{"v":99}` {
			t.Errorf("the newer file became %q, %v", b, err)
		}
		if err := os.WriteFile(path, sound, 0o600); err != nil {
			t.Fatal(err)
		}
		after(2 * time.Minute)
		if seen := r.chat.seen(); len(seen) != 3 || seen[2] != "re: b" {
			t.Errorf("after the repair people see %q", seen)
		}
	})
}
