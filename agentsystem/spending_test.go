package agentsystem_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/storage"
)

// A counter is a provider that counts what each call takes: 100 tokens and one
// for each call so far. It outlives the processes.
type counter struct {
	mu    sync.Mutex
	fail  int           // of the next calls
	takes time.Duration // each call
	calls int64
	taken int64
}

func (c *counter) Chat(ctx context.Context, _ llm.Request) (llm.Response, error) {
	stopped := rest(ctx, c.takes)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.taken += 100 + c.calls
	resp := llm.Response{Model: meteredModel, Usage: claybot.Usage{Input: 100, Output: c.calls}}
	if stopped != nil {
		return resp, stopped
	}
	if c.fail > 0 {
		c.fail--
		return resp, &llm.Error{Class: llm.Transient, Text: "the answer was cut off"}
	}
	resp.Text, resp.Stop = "hello", llm.StopEnd
	return resp, nil
}

// counted runs a test with agents that ask a counter.
func counted(t *testing.T, test func(r *rig, c *counter)) {
	bubble(t, func(r *rig) {
		c := new(counter)
		r.engine = &react.Loop{Model: func(claybot.Agent) llm.Model {
			return llm.Retried(llm.Metered(c, meteredPrices), llm.Retries{})
		}}
		test(r, c)
	})
}

// checkLedger compares the sums with what the provider counted.
func (r *rig) checkLedger(c *counter) {
	r.Helper()
	rows, err := r.db.Spent(r.Context(), storage.SpentQuery{By: []string{storage.ByModel}})
	if err != nil {
		r.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Model != meteredModel {
		r.Fatalf("the ledger has %+v, want one row of %s", rows, meteredModel)
	}
	u := rows[0].Usage
	if u.Input+u.Output != c.taken || u.LLMCalls != c.calls || u.CostMicroUSD != c.taken*perMillion || u.Estimated || u.Unpriced != 0 {
		r.Errorf("the provider counted %d tokens in %d calls, the ledger has %+v", c.taken, c.calls, u)
	}
}

// Every call that a provider counted is in the ledger, with its model, once:
// also those that failed, were stopped, or belong to a process that died.
func TestLedgerIsThatOfTheProvider(t *testing.T) {
	for _, tt := range []struct {
		name  string
		test  func(r *rig, c *counter)
		state claybot.RunState
		calls int64
	}{
		{"tried again", func(r *rig, c *counter) {
			c.fail = 2
			r.say("hi")
		}, claybot.RunSucceeded, 3},
		{"never answered", func(r *rig, c *counter) {
			c.fail = 3
			r.say("hi")
		}, claybot.RunFailed, 3},
		{"stopped by a person", func(r *rig, c *counter) {
			c.takes = time.Minute
			r.say("hi")
			after(time.Second)
			r.post(ann, typed("s", claybot.MessageCancel, ""))
		}, claybot.RunCanceled, 1},
		{"the deadline", func(r *rig, c *counter) {
			c.takes, r.profile.Deadline = time.Minute, time.Second
			r.say("hi")
		}, claybot.RunFailed, 1},
		{"stopped in order and started again", func(r *rig, c *counter) {
			c.fail, c.takes = 1, 30*time.Second
			r.say("hi")
			after(40 * time.Second) // in the second try
			r.restart()
		}, claybot.RunSucceeded, 3},
		{"a crash after a try", func(r *rig, c *counter) {
			c.fail, c.takes = 1, 10*time.Second
			r.say("hi")
			after(11 * time.Second) // between two tries, or in the second one, whose outcome is lost
			r.crash()
			c.calls, c.taken = 1, 101
			r.start()
		}, claybot.RunSucceeded, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			counted(t, func(r *rig, c *counter) {
				r.grace = time.Second
				r.start()
				tt.test(r, c)
				after(time.Hour)
				if got := r.receipt("hi").Run; got == nil || got.State != tt.state || c.calls != tt.calls {
					t.Fatalf("the run is %+v after %d calls, want %s after %d", got, c.calls, tt.state, tt.calls)
				}
				r.checkLedger(c)
				r.checkEvents(ann)
			})
		})
	}
}

// What was only counted is no part of what an agent remembers.
func TestChargesAreNotRemembered(t *testing.T) {
	counted(t, func(r *rig, c *counter) {
		c.fail = 2
		r.start()
		r.say("a")
		after(time.Minute)
		r.say("b")
		after(time.Minute)
		notes := 0
		for _, rec := range r.records(ann) {
			if rec.Type == claybot.RecordNote {
				notes++
			}
		}
		if notes != 2 || len(r.chat.seen()) != 2 {
			t.Errorf("%d notes; people see %q", notes, r.chat.seen())
		}
		r.checkLedger(c)
	})
}

// What is stopped while files of a message that joined the run are fetched ends
// with that message, too.
func TestInjectedMessagesEndWithTheRun(t *testing.T) {
	for _, tt := range []struct {
		name  string
		test  func(r *rig, c *cloud)
		state claybot.RunState
		text  string
		files int
	}{
		{"in time", func(r *rig, c *cloud) {}, claybot.RunSucceeded, "more", 1},
		{"stop", func(r *rig, c *cloud) {
			after(10 * time.Second)
			r.post(ann, typed("s", claybot.MessageCancel, ""))
		}, claybot.RunCanceled, "more\n[document a.txt: the run was stopped before it was fetched]", 0},
		{"deadline", func(r *rig, c *cloud) {
			r.profile.Deadline = 20 * time.Second
		}, claybot.RunFailed, "more\n[document a.txt: the run was stopped before it was fetched]", 0},
		{"shutdown", func(r *rig, c *cloud) {
			after(10 * time.Second)
			r.restart()
		}, claybot.RunSucceeded, "more", 1},
		{"crash", func(r *rig, c *cloud) {
			after(10 * time.Second)
			r.crash()
			r.start()
		}, claybot.RunSucceeded, "more", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clouded(t, func(r *rig, c *cloud) {
				r.profile.Policy, r.grace = inject, time.Second
				c.files["a"], c.slow = []byte("alpha"), 40*time.Second
				if tt.name == "deadline" {
					tt.test(r, c)
				}
				r.mind.plan("begin", use("work"), llmtest.Say("done"))
				r.bench.work = restALittle
				r.start()
				r.post(ann, msg("begin", "begin"))
				synctest.Wait()
				waited := make(chan error, 1)
				of := r.system
				go func() {
					_, err := of.Control.Invoke(r.Context(), ann, withFiles("m", "more", from("a", "a.txt", claybot.FileDocument)))
					waited <- err
				}()
				if tt.name != "deadline" {
					tt.test(r, c)
				}
				after(time.Hour)
				select {
				case err := <-waited:
					if (err == nil) != (tt.state == claybot.RunSucceeded) && r.system == of {
						t.Errorf("who waits is told %v", err)
					}
				default:
					t.Error("who waits is told nothing")
				}
				if got := r.receipt("m").Run; got == nil || got.State != tt.state || !r.sameRun("begin", "m") {
					t.Errorf("the run is %+v, want %s with both messages", got, tt.state)
				}
				if rec := r.userRecord("m"); rec.Text != tt.text || len(rec.Files) != tt.files {
					t.Errorf("recorded %q with %d files", rec.Text, len(rec.Files))
				}
				r.checkEvents(ann)
			})
		})
	}
}

// A transcription is counted with its model, at once or by what a crash leaves,
// also when it comes with a message that joins the run.
func TestTranscriptionsAreCounted(t *testing.T) {
	voice := func(source string) claybot.FileReference { return from(source, source+".ogg", claybot.FileVoice) }
	for _, tt := range []struct {
		name string
		test func(r *rig)
		want claybot.Usage
	}{
		{"first", func(r *rig) { r.post(ann, withFiles("m", "", voice("a"))) }, claybot.Usage{Input: 7, Output: 2, LLMCalls: 1, Unpriced: 1}},
		{"injected", func(r *rig) {
			r.post(ann, msg("begin", "begin"))
			synctest.Wait()
			r.post(ann, withFiles("m", "", voice("a"), voice("b")))
		}, claybot.Usage{Input: 14, Output: 4, LLMCalls: 2, Unpriced: 2}},
		{"restarted in between", func(r *rig) {
			r.post(ann, withFiles("m", "begin", voice("a")))
			synctest.Wait() // in the model call
			r.restart()
		}, claybot.Usage{Input: 7, Output: 2, LLMCalls: 1, Unpriced: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clouded(t, func(r *rig, c *cloud) {
				c.files["a"], c.files["b"] = []byte("one"), []byte("two")
				r.transcribe = func(context.Context, claybot.Run, claybot.FileReference, func() (io.ReadCloser, error)) (llm.Speech, error) {
					return llm.Speech{Text: "hello", Model: "ear", Usage: claybot.Usage{Input: 7, Output: 2, LLMCalls: 1, Unpriced: 1}}, nil
				}
				r.profile.Policy, r.grace = inject, time.Second
				r.mind.plan("begin", use("work"), llmtest.Say("done"))
				r.mind.hold("begin", 5*time.Second)
				r.bench.work = restALittle
				r.start()
				tt.test(r)
				after(time.Hour)
				rows, err := r.db.Spent(r.Context(), storage.SpentQuery{By: []string{storage.ByModel}})
				if err != nil {
					t.Fatal(err)
				}
				var got claybot.Usage
				for _, row := range rows {
					if row.Model == "ear" {
						got = got.Add(row.Usage)
					}
				}
				got.ToolCalls = 0 // they stand with the first model
				if got != tt.want {
					t.Errorf("the ledger has %+v, want %+v", got, tt.want)
				}
				if run := r.receipt("m").Run; run == nil || run.State != claybot.RunSucceeded || run.Usage.Unpriced != tt.want.Unpriced {
					t.Errorf("the run is %+v", run)
				}
				r.checkEvents(ann)
			})
		})
	}
}
