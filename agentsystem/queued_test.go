package agentsystem_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
)

const queued = "is waiting for others…"

// asked is a message of a person with the id that its platform gave it.
func asked(id, text string) claybot.AgentMessage {
	m := msg(id, text)
	m.Context.MessageID = id
	return m
}

// crowded starts a system with one worker, which another person's run has for a while.
func crowded(r *rig, lasts, work time.Duration) *board {
	b := &board{lasts: lasts}
	r.line, r.maxRuns = b.line(), 1
	r.mind.plan("begin", use("work"), llmtest.Say("done"))
	r.bench.work = func(ctx context.Context) { _ = rest(ctx, work) }
	r.start()
	r.post(bob, asked("b", "begin"))
	after(10 * time.Second)
	return b
}

// said are the statuses at a message, in order.
func (b *board) said(message string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.at[message])
}

// A message that waits for others says so within a second, again before the platform forgets it, and
// until its run says what it does. In the end nothing is left.
func TestQueuedStatus(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		b := crowded(r, 20*time.Second, time.Minute)
		r.slowModel(2 * time.Second)
		r.post(ann, asked("a1", "hello"))
		after(999 * time.Millisecond)
		if got := b.said("a1"); !slices.Equal(got, []string{queued}) {
			t.Errorf("after a second: %q", got)
		}
		after(5 * time.Minute)
		b.wants(t)
		if got, want := b.said("a1"), []string{queued, queued, queued, thinking, ""}; !slices.Equal(got, want) {
			t.Errorf("shown %q, want %q", got, want)
		}
		r.wants("done", "re: hello")
	})
}

// However the wait ends, nothing of it stays, also if the platform is slow.
func TestQueuedStatusEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(r *rig){
		"its run, at once over": func(*rig) {},
		"stop":                  func(r *rig) { r.post(ann, stop("s")) },
		"a reset": func(r *rig) {
			r.post(ann, claybot.AgentMessage{ID: "reset", Type: claybot.MessageReset, FirstHand: true, At: claybot.Now()})
		},
		"an operator":     func(r *rig) { _, _ = r.db.Drop(r.Context(), r.agent(ann), "operator") },
		"another message": func(r *rig) { r.post(ann, asked("a2", "and more")) },
		"a crash":         func(r *rig) { r.crash(); r.start() },
		"a shutdown":      func(r *rig) { r.shut() },
	} {
		for _, slow := range []time.Duration{0, 3 * time.Second} {
			t.Run(fmt.Sprint(name, slow), func(t *testing.T) {
				bubble(t, func(r *rig) {
					b := crowded(r, 20*time.Second, 30*time.Second)
					b.slow = slow
					r.post(ann, asked("a1", "hello"))
					after(5 * time.Second)
					if got := b.said("a1"); !slices.Equal(got, []string{queued}) {
						t.Errorf("shown %q", got)
					}
					end(r)
					after(3 * time.Minute)
					b.wants(t)
				})
			})
		}
	}
}

// A shutdown ends runs after the grace, also while a platform that hangs has not taken the sign of a message.
func TestShutdownDoesNotWaitForSigns(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		b := &board{lasts: 20 * time.Second}
		r.line, r.maxRuns, r.grace = b.line(), 1, time.Second
		var cut atomic.Int64 // by the clock, in ns
		r.mind.before = func(ctx context.Context, _ llm.Request) error {
			defer func() { cut.Store(time.Now().UnixNano()) }()
			return rest(ctx, time.Hour)
		}
		r.start()
		r.post(bob, asked("b", "begin"))
		after(10 * time.Second)
		b.slow = time.Hour
		r.post(ann, asked("a1", "hello"))
		after(time.Second) // the sign is on its way
		began := time.Now()
		r.shut()
		if after := time.Unix(0, cut.Load()).Sub(began); after < time.Second || after > 1100*time.Millisecond {
			t.Errorf("the run was cut after %v, want the grace of 1s", after)
		}
	})
}

// Where people see a typing indicator, it shows while a message waits; where neither others have the
// workers, nor the message waits for more than a moment, nothing shows.
func TestQueuedTyping(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var typed atomic.Int64
		r.line = func(l *line) connectors.Connector { return typingLine{muteLine{l}, &typed} }
		r.maxRuns = 1
		r.mind.plan("begin", use("work"), llmtest.Say("done"))
		r.bench.work = func(ctx context.Context) { _ = rest(ctx, 20*time.Second) }
		r.start()
		r.post(ann, asked("quick", "hello"))
		after(time.Minute)
		if n := typed.Load(); n != 0 {
			t.Errorf("typed %d times for a run that was over at once", n)
		}
		r.post(bob, asked("b", "begin"))
		after(time.Second)
		r.post(ann, asked("a1", "hello"))
		after(999 * time.Millisecond)
		if n := typed.Load(); n != 1 {
			t.Errorf("typed %d times within a second", n)
		}
		after(10 * time.Second)
		if n := typed.Load(); n < 3 || n > 4 {
			t.Errorf("typed %d times in 11 s", n)
		}
		after(time.Minute)
		n := typed.Load()
		after(time.Minute)
		if typed.Load() != n {
			t.Error("it goes on after the reply")
		}
	})
}

// A typingLine counts the typing indicators in Ann's chat.
type typingLine struct {
	muteLine
	typed *atomic.Int64
}

func (l typingLine) Typing(_ context.Context, r claybot.Route) error {
	if r.ChannelID == ann.ChannelID {
		l.typed.Add(1)
	}
	return nil
}
