package agentsystem_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
)

// A board is where people see statuses. It outlives the processes of a test.
type board struct {
	mu    sync.Mutex
	calls []string            // all texts, in order
	at    map[string][]string // the same, by message
	shown map[string]string
	lasts time.Duration
	err   error
	slow  time.Duration
}

func (b *board) line() func(l *line) connectors.Connector {
	return func(l *line) connectors.Connector { return statusLine{muteLine{l}, b} }
}

// now is what people see at the messages of a chat.
func (b *board) now() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.shown {
		all = append(all, text)
	}
	return all
}

// wants checks what people see.
func (b *board) wants(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := b.now(); !slices.Equal(got, want) {
		t.Errorf("status %q, want %q", got, want)
	}
}

// A statusLine shows statuses, like Slack.
type statusLine struct {
	muteLine
	board *board
}

func (l statusLine) Status(ctx context.Context, _ claybot.Route, message, text string) (time.Duration, error) {
	b := l.board
	if err := rest(ctx, b.slow); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.fuse.dead() {
		return 0, errDead
	}
	b.calls = append(b.calls, text)
	if b.at == nil {
		b.at = make(map[string][]string)
	}
	b.at[message] = append(b.at[message], text)
	if b.err != nil || b.lasts == 0 {
		return 0, b.err
	}
	if b.shown == nil {
		b.shown = make(map[string]string)
	}
	if b.shown[message] = text; text == "" {
		delete(b.shown, message)
	}
	return b.lasts, nil
}

const thinking = "is thinking…"

// A run shows a status within a second, says after a while what it waits for, shows it again
// before the platform forgets it, and clears it.
func TestStatusLine(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		b := &board{lasts: 90 * time.Second}
		r.line = b.line()
		r.mind.plan("begin", use("work"), llmtest.Say(half1+half2))
		r.bench.work = func(ctx context.Context) { _ = rest(ctx, 5*time.Minute) }
		r.start()
		r.say("begin")
		after(999 * time.Millisecond)
		b.wants(t, thinking)
		after(15 * time.Second)
		b.wants(t, "is still working: using work…")
		r.wants()
		after(4 * time.Minute)
		b.wants(t, "is still working: using work…")
		after(time.Minute)
		b.wants(t)
		r.wants(half1 + half2)
		want := []string{thinking, "is still working: using work…", "is still working: using work…", "is still working: using work…", "is still working: using work…", "is still working: waiting for the model…", ""}
		if !slices.Equal(b.calls, want) {
			t.Errorf("shown %q, want %q", b.calls, want)
		}
	})
}

// Text that grows takes the place of the status.
func TestStatusGivesWay(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		b := &board{lasts: 90 * time.Second}
		r.line = b.line()
		r.mind.pace = time.Second
		r.slowModel(2 * time.Second)
		r.mind.plan("begin", llmtest.Say(strings.Repeat("word ", 40)))
		r.start()
		r.say("begin")
		after(5 * time.Second)
		b.wants(t)
		if n := len(r.chat.posts); n != 1 {
			t.Errorf("%d messages", n)
		}
		after(time.Minute)
		b.wants(t)
		if !slices.Equal(b.calls, []string{thinking, ""}) {
			t.Errorf("shown %q", b.calls)
		}
	})
}

// However a pass ends, its status does not stay; also if Slack is slow, and if the process
// was killed while it stood there.
func TestStatusEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		plan []llmtest.Reply
		end  func(r *rig)
	}{
		{"answer", []llmtest.Reply{llmtest.Say("x")}, func(*rig) {}},
		{"silence", []llmtest.Reply{llmtest.Say("NO_REPLY")}, func(*rig) {}},
		{"stop", []llmtest.Reply{llmtest.Say("x")}, func(r *rig) { r.post(ann, stop("s")) }},
		{"reset", []llmtest.Reply{llmtest.Say("x")}, func(r *rig) {
			r.post(ann, claybot.AgentMessage{ID: "reset", Type: claybot.MessageReset, FirstHand: true, At: claybot.Now()})
		}},
		{"failure", []llmtest.Reply{{Err: &llm.Error{Class: llm.Permanent, Text: "no"}}}, func(*rig) {}},
		{"panic", []llmtest.Reply{use("work")}, func(*rig) {}},
		{"question", []llmtest.Reply{askColour(nil)}, func(*rig) {}},
		{"crash", []llmtest.Reply{llmtest.Say("x")}, func(r *rig) { r.crash(); r.start() }},
		{"crash, then stop", []llmtest.Reply{llmtest.Say("x")}, func(r *rig) {
			r.crash()
			r.slowModel(0)
			r.start()
			r.post(ann, stop("s"))
		}},
		{"crash, then an answer at once", []llmtest.Reply{llmtest.Say("x")}, func(r *rig) { r.crash(); r.slowModel(0); r.start() }},
		{"shutdown", []llmtest.Reply{llmtest.Say("x")}, func(r *rig) { r.shut() }},
	} {
		for _, slow := range []time.Duration{0, 3 * time.Second} {
			t.Run(tt.name+" "+slow.String(), func(t *testing.T) {
				bubble(t, func(r *rig) {
					b := &board{lasts: 90 * time.Second, slow: slow}
					r.line = b.line()
					r.slowModel(20 * time.Second)
					r.mind.plan("begin", tt.plan...)
					r.bench.work = func(context.Context) { panic("x") }
					r.start()
					r.say("begin")
					after(5 * time.Second)
					b.wants(t, thinking)
					tt.end(r)
					after(time.Minute)
					b.wants(t)
				})
			})
		}
	}
}

// If the platform asks to wait before a status is cleared, the next run does not.
func TestStatusHoldsUpNoRun(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		b := &board{lasts: 90 * time.Second}
		r.line = b.line()
		r.slowModel(5 * time.Second)
		r.start()
		r.say("begin")
		after(2 * time.Second)
		b.wants(t, thinking)
		b.err = &connectors.RetryError{After: 8 * time.Second}
		r.say("next")
		after(9 * time.Second)
		r.wants("re: begin", "re: next")
	})
}

// A run that is over at once shows no status.
func TestStatusOfAQuickRun(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		b := &board{lasts: time.Minute}
		r.line = b.line()
		r.start()
		r.say("begin")
		after(time.Minute)
		r.wants("re: begin")
		if len(b.calls) != 0 {
			t.Errorf("shown %q", b.calls)
		}
	})
}

// Without a status, by the platform or for an error, people see a sign of life, and nothing
// of the error.
func TestStatusThatIsNotThere(t *testing.T) {
	t.Parallel()
	t.Run("none", func(t *testing.T) {
		bubble(t, func(r *rig) {
			b := &board{}
			r.line = b.line()
			r.slowModel(time.Minute)
			r.start()
			r.say("begin")
			after(50 * time.Second)
			r.wants(stillModel)
			after(time.Minute)
			r.wants("re: begin")
			if !slices.Equal(b.calls, []string{thinking}) {
				t.Errorf("asked for %q", b.calls)
			}
		})
	})
	t.Run("429", func(t *testing.T) {
		bubble(t, func(r *rig) {
			b := &board{lasts: time.Minute, err: &connectors.RetryError{After: 10 * time.Second}}
			r.line = b.line()
			r.slowModel(35 * time.Second)
			r.start()
			r.say("begin")
			after(time.Minute)
			r.wants("re: begin")
			if n := len(b.calls); n > 6 {
				t.Errorf("%d calls", n)
			}
		})
	})
}
