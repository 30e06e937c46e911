package agentsystem_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
)

// A call is an Invoke under way.
type call struct {
	r       *rig
	mu      sync.Mutex
	done    bool
	results []inbox.Result
	err     error
}

// invoke starts an Invoke of messages with the texts as ids and waits until all
// is quiet.
func (r *rig) invoke(texts ...string) *call {
	r.Helper()
	c := &call{r: r}
	ms := make([]claybot.AgentMessage, len(texts))
	for i, text := range texts {
		ms[i] = msg(text, text)
	}
	go func() {
		results, err := r.system.Control.Invoke(r.Context(), ann, ms...)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.results, c.err, c.done = results, err, true
	}()
	synctest.Wait()
	return c
}

// after lets time pass and waits until all is quiet.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// pending requires that the call waits still.
func (c *call) pending(when string) {
	c.r.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		c.r.Errorf("%s: the call has returned: %+v, %v", when, c.results, c.err)
	}
}

// returned requires that the call has ended with these errors, one for each
// message; the first that is not nil is the call's.
func (c *call) returned(when string, want ...error) {
	c.r.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		c.r.Errorf("%s: the call has not returned", when)
		return
	}
	var first error
	for i, w := range want {
		if i >= len(c.results) {
			c.r.Errorf("%s: %d results, want %d", when, len(c.results), len(want))
			return
		}
		got := c.results[i]
		if !errors.Is(got.Err, w) && !(errors.Is(w, errFailed) && failedRun(got.Err)) || (w == nil) != (got.Err == nil) {
			c.r.Errorf("%s: message %s: error %v, want %v", when, got.Message, got.Err, w)
		}
		if first == nil {
			first = got.Err
		}
	}
	if !errors.Is(c.err, first) {
		c.r.Errorf("%s: the call's error is %v, want %v", when, c.err, first)
	}
}

// errFailed stands for the error of a failed run.
var errFailed = errors.New("a failed run")

func failedRun(err error) bool {
	var failed *inbox.RunFailedError
	return errors.As(err, &failed) && failed.Run != ""
}

// sameRun reports whether all messages were part of one run.
func (r *rig) sameRun(ids ...claybot.MessageID) bool {
	r.Helper()
	with := r.ranWith(ids[0])
	return !slices.ContainsFunc(ids, func(id claybot.MessageID) bool { return !slices.Contains(with, id) })
}

var (
	oneByOne = inbox.Policy{ProcessBuffer: inbox.OneByOne}
	together = inbox.Policy{ProcessBuffer: inbox.AllTogether}
	// A little debounce brings messages into one batch.
	batched   = inbox.Policy{Debounce: 100 * time.Millisecond}
	inject    = inbox.Policy{WhenBusy: inbox.InjectAfterTools}
	injectOne = inbox.Policy{WhenBusy: inbox.InjectAfterTools, ProcessBuffer: inbox.OneByOne}
	far       = inbox.Policy{Debounce: time.Minute}
)

// The table of waiters, row by row. Each model call takes a second, and so does
// the tool work; messages that contain "bad" make their run fail.
func TestWaiters(t *testing.T) {
	const half, second = 500 * time.Millisecond, time.Second
	tests := []struct {
		row    string
		policy inbox.Policy
		test   func(r *rig)
	}{
		{"1 both run well", oneByOne, func(r *rig) {
			a, b := r.invoke("a"), r.invoke("b")
			after(second + half)
			a.returned("after run a", nil)
			b.pending("during run b")
			after(second)
			b.returned("after run b", nil)
		}},
		{"2 the first fails", oneByOne, func(r *rig) {
			a, b := r.invoke("a bad"), r.invoke("b")
			after(second + half)
			a.returned("after run a", errFailed)
			b.pending("during run b")
			after(second)
			b.returned("after run b", nil)
		}},
		{"3 the second of three fails", oneByOne, func(r *rig) {
			a := r.invoke("a", "b bad", "c")
			after(2*second + half)
			a.pending("after run 2")
			after(second)
			a.returned("after run 3", nil, errFailed, nil)
		}},
		{"4 one batch", batched, func(r *rig) {
			a, b := r.invoke("a"), r.invoke("b")
			after(second)
			a.pending("during the run")
			b.pending("during the run")
			after(half)
			a.returned("after the run", nil)
			b.returned("after the run", nil)
			if !r.sameRun("a", "b") {
				r.Error("two runs")
			}
		}},
		{"5 one batch fails", batched, func(r *rig) {
			a, b := r.invoke("a"), r.invoke("b bad")
			after(2 * second)
			a.returned("after the run", errFailed)
			b.returned("after the run", errFailed)
		}},
		{"6 posted during a run that fails", together, func(r *rig) {
			a := r.invoke("a bad")
			after(half)
			b := r.invoke("b")
			after(second)
			a.returned("after run a", errFailed)
			b.pending("during the next run")
			after(second)
			b.returned("after the next run", nil)
		}},
		{"7 injected", inject, func(r *rig) {
			a := r.invoke("a tool")
			after(second + half) // in the tool
			b := r.invoke("b")
			after(second)
			a.pending("during the last call")
			b.pending("during the last call")
			after(second)
			a.returned("after the run", nil)
			b.returned("after the run", nil)
			if !r.sameRun("a tool", "b") {
				r.Error("two runs")
			}
		}},
		{"8 injected, then it fails", inject, func(r *rig) {
			a := r.invoke("a tool")
			after(second + half)
			b := r.invoke("b bad")
			after(2 * second)
			a.returned("after the run", errFailed)
			b.returned("after the run", errFailed)
		}},
		{"9 injected one by one", injectOne, func(r *rig) {
			a := r.invoke("a tool")
			after(second + half)
			b, c, d := r.invoke("b tool"), r.invoke("c"), r.invoke("d")
			after(4 * second)
			a.returned("after run 1", nil)
			b.returned("after run 1", nil)
			c.returned("after run 1", nil)
			d.pending("during run 2")
			after(second)
			d.returned("after run 2", nil)
			if !r.sameRun("a tool", "b tool", "c") || r.sameRun("c", "d") {
				r.Errorf("run 1 took %q, run 2 %q", r.ranWith("a tool"), r.ranWith("d"))
			}
		}},
		{"10 during the last call", inject, func(r *rig) {
			a := r.invoke("a")
			after(half)
			b := r.invoke("b")
			after(second)
			a.returned("after run 1", nil)
			b.pending("during run 2")
			after(second)
			b.returned("after run 2", nil)
		}},
		{"11 one by one from now on", far, func(r *rig) {
			a := r.invoke("a", "b", "c")
			after(second)
			r.setPolicy(oneByOne)
			after(2*second + half)
			a.pending("during run 3")
			after(second)
			a.returned("after run 3", nil, nil, nil)
			if r.sameRun("a", "b") || r.sameRun("b", "c") {
				r.Error("not three runs")
			}
		}},
		{"12 and the second fails", far, func(r *rig) {
			a := r.invoke("a", "b bad", "c")
			r.setPolicy(oneByOne)
			after(2*second + half)
			a.returned("after run 2", nil, errFailed, inbox.ErrDropped)
			after(time.Minute)
			if got := r.receipt("c"); got.Run != nil || got.Skipped != "token_rejected" {
				r.Errorf("the third message: %+v", got)
			}
		}},
		{"13 debounce ends", far, func(r *rig) {
			a := r.invoke("a")
			after(10 * second)
			a.pending("debounced")
			r.setPolicy(together)
			after(second + half)
			a.returned("after the run", nil)
		}},
		{"14 reset", together, func(r *rig) {
			a := r.invoke("a")
			after(half)
			b := r.invoke("b")
			r.post(ann, typed("reset", claybot.MessageReset, ""))
			after(0)
			a.returned("after the reset", inbox.ErrReset)
			b.returned("after the reset", inbox.ErrReset)
			if got := r.receipt("b"); got.Skipped != "reset" {
				r.Errorf("the waiting message: %+v", got)
			}
		}},
		{"15 stop", together, func(r *rig) {
			a := r.invoke("a")
			after(half)
			b := r.invoke("b")
			r.post(ann, typed("stop", claybot.MessageCancel, ""))
			after(half)
			a.returned("after the stop", inbox.ErrCanceled)
			b.pending("during its run")
			after(second)
			b.returned("after its run", nil)
		}},
		{"16 the operator clears the inbox", together, func(r *rig) {
			a := r.invoke("a")
			after(half)
			b := r.invoke("b")
			dropped, err := r.system.Control.Drop(r.Context(), r.agent(ann))
			if err != nil || !slices.Equal(dropped, []claybot.MessageID{"b"}) {
				r.Errorf("dropped %q, %v", dropped, err)
			}
			after(0)
			b.returned("at once", inbox.ErrDropped)
			a.pending("it runs")
			after(second)
			a.returned("after its run", nil)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.row, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.setPolicy(tt.policy)
				r.mind.hold("", second)
				r.mind.plan("bad", llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Text: "no"}})
				r.mind.plan("tool", use("work"))
				r.bench.work = restALittle
				r.start()
				tt.test(r)
			})
		})
	}
}

func TestInvokeNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		c := r.invoke()
		c.returned("at once")
		if c.err != nil || len(r.mind.asked()) != 0 {
			t.Errorf("error %v, %d model calls", c.err, len(r.mind.asked()))
		}
	})
}

// A deadline of the caller ends the waiting, not the run (IN-35).
func TestInvokeDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.hold("", 10*time.Second)
		r.start()
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if _, err := r.system.Control.Invoke(ctx, ann, msg("a", "a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		after(10 * time.Second)
		r.wants("re: a")
	})
}

// At shutdown waiters return; their messages run after the restart (IN-36).
func TestInvokeShutdown(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.setPolicy(far)
		r.start()
		c := r.invoke("a", "b")
		r.shut()
		synctest.Wait()
		c.returned("at shutdown", inbox.ErrShutdown, inbox.ErrShutdown)
		if c := r.invoke("c", "d"); c.err == nil {
			t.Error("no error after the end")
		}
		r.start()
		r.setPolicy(together)
		after(0)
		if !r.sameRun("a", "b") {
			t.Error("the messages did not run")
		}
	})
}

// Messages in a run stay with it when their token is dropped (IN-37).
func TestDropLeavesTheRunAlone(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.hold("", time.Second)
		r.start()
		c := r.invoke("a")
		if dropped, err := r.system.Control.Drop(r.Context(), r.agent(ann), "a"); err != nil || len(dropped) != 0 {
			t.Errorf("dropped %q, %v", dropped, err)
		}
		after(2 * time.Second)
		c.returned("after its run", nil)
	})
}

// The messages of one call that still wait share its fate when the operator
// drops one of them (IN-32).
func TestDropTakesTheTokenAlong(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.setPolicy(far)
		r.start()
		c := r.invoke("a", "b", "c")
		if _, err := r.system.Control.Drop(r.Context(), r.agent(ann), "b"); err != nil {
			t.Fatal(err)
		}
		after(0)
		c.returned("at once", inbox.ErrDropped, inbox.ErrDropped, inbox.ErrDropped)
		after(time.Hour)
		if n := len(r.mind.asked()); n != 0 {
			t.Errorf("%d model calls", n)
		}
	})
}

// A second Invoke with the same messages, as a client makes it that lost its
// connection, gets the same outcome: during the run and after it.
func TestInvokeAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.hold("", time.Second)
		r.start()
		first, second := r.invoke("a"), r.invoke("a")
		after(2 * time.Second)
		first.returned("after the run", nil)
		second.returned("after the run", nil)
		third := r.invoke("a")
		third.returned("later", nil)
		for _, c := range []*call{first, second, third} {
			if c.results[0].Text != "re: a" || c.results[0].State != claybot.RunSucceeded {
				t.Errorf("result %+v", c.results[0])
			}
		}
		twice := r.invoke("b", "b")
		after(2 * time.Second)
		twice.returned("after the run", nil, nil)
		if n := len(r.mind.asked()); n != 2 {
			t.Errorf("%d model calls, want 2", n)
		}
	})
}

// What the system answers by itself settles, too.
func TestInvokeCommands(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		for _, m := range []claybot.AgentMessage{
			typed("reset", claybot.MessageReset, ""), typed("stop", claybot.MessageCancel, ""), command("help", "help"),
		} {
			if _, err := r.system.Control.Invoke(r.Context(), ann, m); err != nil {
				t.Errorf("%s: %v", m.ID, err)
			}
		}
		if _, err := r.system.Control.Invoke(r.Context(), ann, msg("blank", " \n")); !errors.Is(err, inbox.ErrDropped) {
			t.Errorf("a message without text: %v", err)
		}
	})
}
