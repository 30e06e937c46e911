package agentsystem_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/profiles"
)

// A wall has the emoji on messages. It outlives the processes of a test.
type wall struct {
	mu    sync.Mutex
	on    map[string][]string // by message
	calls []claybot.Mark
	errs  []error // of the next calls
}

func (w *wall) line() func(l *line) connectors.Connector {
	return func(l *line) connectors.Connector { return markLine{l, w} }
}

func (w *wall) wants(t *testing.T, message string, want ...string) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := w.on[message]; !slices.Equal(got, want) {
		t.Errorf("on %s are %q, want %q; calls %+v", message, got, want, w.calls)
	}
}

// A markLine keeps emoji until they are removed, like Slack.
type markLine struct {
	*line
	wall *wall
}

func (l markLine) Mark(_ context.Context, _ claybot.Route, m claybot.Mark) error {
	return l.fuse.step("mark", func() error {
		w := l.wall
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls = append(w.calls, m)
		if len(w.errs) > 0 {
			err := w.errs[0]
			w.errs = w.errs[1:]
			return err
		}
		if w.on == nil {
			w.on = make(map[string][]string)
		}
		now := slices.DeleteFunc(w.on[m.Message], func(e string) bool { return e == m.Emoji || slices.Contains(m.Was, e) })
		if m.Emoji != "" {
			now = append(now, m.Emoji)
		}
		w.on[m.Message] = now
		return nil
	})
}

var acknowledge = profiles.Acknowledge{Received: "👀", Working: "✍", Done: "👌", Failed: "💔"}

// write posts a message that has an id of the platform.
func (r *rig) write(id, text string) {
	r.Helper()
	m := claybot.AgentMessage{
		ID: claybot.MessageID(id), Type: claybot.MessageUser, Text: text, FirstHand: true, At: claybot.Now(),
		Context: claybot.MessageContext{MessageID: id},
	}
	r.post(ann, m)
}

// The marks of a message follow its run, replace each other, and are those of its end,
// however it ends.
func TestMarks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		plan []llmtest.Reply
		end  func(r *rig)
		want []string
	}{
		{"answer", []llmtest.Reply{llmtest.Say("x")}, func(*rig) {}, []string{"👌"}},
		{"silence", []llmtest.Reply{llmtest.Say("NO_REPLY")}, func(*rig) {}, []string{"👌"}},
		{"failure", []llmtest.Reply{{Err: &llm.Error{Class: llm.Permanent, Text: "no"}}}, func(*rig) {}, []string{"💔"}},
		{"stop", []llmtest.Reply{llmtest.Say("x")}, func(r *rig) { r.post(ann, stop("s")) }, nil},
		{"crash", []llmtest.Reply{llmtest.Say("x")}, func(r *rig) { r.crash(); r.start() }, []string{"👌"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				w := &wall{}
				r.line = w.line()
				r.profile.Acknowledge = acknowledge
				r.slowModel(20 * time.Second)
				r.mind.plan("begin", tt.plan...)
				r.start()
				r.write("m1", "begin")
				r.write("m2", "later")
				after(5 * time.Second)
				w.wants(t, "m1", "✍")
				w.wants(t, "m2", "👀")
				tt.end(r)
				after(2 * time.Minute)
				w.wants(t, "m1", tt.want...)
				w.wants(t, "m2", "👌")
			})
		})
	}
}

// What the platform does about marks holds up no answer: a pause is obeyed aside, a later
// mark replaces those that wait, and people read nothing of a refusal.
func TestMarksGiveWay(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		w := &wall{errs: []error{&connectors.RetryError{After: time.Minute}}}
		r.line = w.line()
		r.profile.Acknowledge = acknowledge
		r.start()
		r.write("m1", "begin")
		after(5 * time.Second)
		r.wants("re: begin")
		w.wants(t, "m1")
		after(time.Minute)
		w.wants(t, "m1", "👌")
		if n := len(w.calls); n != 2 {
			t.Errorf("%d calls: %+v", n, w.calls)
		}
		w.errs = []error{&connectors.RefusedError{Text: "no such emoji"}, &connectors.RefusedError{Text: "no such emoji"}, &connectors.RefusedError{Text: "no such emoji"}}
		r.write("m2", "again")
		after(2 * time.Minute)
		r.wants("re: begin", "re: again")
	})
}

// A kill at any step leaves the mark of the end, and an answer without a copy of it.
func TestMarksSurviveKills(t *testing.T) {
	t.Parallel()
	for n := range 14 {
		bubble(t, func(r *rig) {
			w := &wall{}
			r.line = w.line()
			r.profile.Acknowledge = acknowledge
			r.start()
			r.fuse.blowIn(n + 1)
			m := claybot.AgentMessage{
				ID: "m1", Type: claybot.MessageUser, Text: "begin", FirstHand: true, At: claybot.Now(), Context: claybot.MessageContext{MessageID: "m1"},
			}
			_ = r.system.Post(r.Context(), ann, m) // the process may die before it answers
			after(time.Minute)
			r.crash()
			r.start()
			_ = r.system.Post(r.Context(), ann, m)
			after(5 * time.Minute)
			w.wants(t, "m1", "👌")
			for _, text := range r.chat.seen() { // a lost answer is sent again, with its own notice or none
				if text == "👌" || text == "✍" || text == "👀" {
					t.Errorf("after %d steps: a mark was sent as a message", n+1)
				}
			}
		})
	}
}

// Without the setting, nothing is marked.
func TestMarksAreOff(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		w := &wall{}
		r.line = w.line()
		r.start()
		r.write("m1", "begin")
		after(time.Minute)
		r.wants("re: begin")
		if len(w.calls) > 0 {
			t.Errorf("calls %+v", w.calls)
		}
	})
}
