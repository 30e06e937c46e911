package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// As many runs of a workflow are at work as it says, in the order in which they came. The others hold up no
// chat, can be dropped, and go on after a restart; and a run that waits has no place.
func TestFlowPlaces(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var mu sync.Mutex
		var begun []string
		atWork, most := 0, 0
		held := make(chan struct{})
		work := func(ctx context.Context, x *runs.Turn, yield func(claybot.Record, error) bool) {
			text := x.Messages[0].Text
			if text == "memo waits" {
				yield(claybot.Record{}, &runs.WaitError{Awaiting: claybot.Awaiting{Reason: claybot.AwaitTime, Answers: []claybot.MessageID{"never"}, Until: claybot.At(time.Now().Add(time.Hour * 24))}})
				return
			}
			mu.Lock()
			begun = append(begun, text)
			atWork++
			most = max(most, atWork)
			mu.Unlock()
			defer func() { mu.Lock(); atWork--; mu.Unlock() }()
			select {
			case <-held:
			case <-ctx.Done():
				yield(claybot.Record{}, context.Cause(ctx))
			}
		}
		f := remembering("memo", &flows.Agent{Prompt: "{text}"})
		f.Concurrency.Max = 2
		r.maxRuns = 3
		start := func() {
			r.flows = shelf{"memo": f}
			r.engines = map[string]runs.Engine{claybot.EngineFlow: engineFunc(work)}
			r.start()
		}
		start()
		for _, text := range []string{"memo waits", "memo 1", "memo 2", "memo 3", "memo 4", "memo 5", "memo 6"} {
			r.say(text)
			after(time.Second)
		}
		r.say("hello")
		after(time.Second)
		r.wants("re: hello")
		if got := fmt.Sprint(begun); got != "[memo 1 memo 2]" {
			t.Errorf("at work: %s", got)
		}
		if _, err := r.db.Drop(r.Context(), r.receipt("memo 3").Agent, "operator", "memo 3"); err != nil {
			t.Fatal(err)
		}
		r.shut()
		begun = nil
		start()
		after(time.Minute)
		if len(begun) != 2 {
			t.Errorf("at work after a restart: %q", begun)
		}
		close(held)
		after(time.Hour)
		slices.Sort(begun)
		if got := fmt.Sprint(begun); most != 2 || got != "[memo 1 memo 2 memo 4 memo 5 memo 6]" {
			t.Errorf("%d at most, in the end: %s", most, got)
		}
		for _, i := range []int{1, 2, 4, 5, 6} {
			if x := r.receipt(claybot.MessageID(fmt.Sprint("memo ", i))); x.Run == nil || x.Run.State != claybot.RunSucceeded {
				t.Errorf("%d: %+v", i, x.Run)
			}
		}
	})
}

// What a message does that finds a run of its key at work: it starts none, which the person is told, or it
// takes the place of that run.
func TestFlowBusy(t *testing.T) {
	t.Parallel()
	for busy, want := range map[string][]string{"": {"1 SUCCEEDED", "2 SUCCEEDED", "3 SUCCEEDED"}, claybot.BusySkip: {"1 SUCCEEDED", "2 flow_busy", "3 flow_busy"}, claybot.BusyCancel: {"1 CANCELED", "2 flow_newer", "3 SUCCEEDED"}} {
		t.Run(busy, func(t *testing.T) {
			bubble(t, func(r *rig) {
				work := func(ctx context.Context, x *runs.Turn, yield func(claybot.Record, error) bool) {
					claybot.Sleep(context.WithoutCancel(ctx), time.Minute) // it ends later than it is told to
					if ctx.Err() != nil {
						yield(claybot.Record{}, context.Cause(ctx))
					}
				}
				f := remembering("memo", &flows.Agent{Prompt: "{text}"})
				f.Concurrency = flows.Concurrency{Key: "all", Busy: busy}
				r.flows = shelf{"memo": f}
				r.engines = map[string]runs.Engine{claybot.EngineFlow: engineFunc(work)}
				r.start()
				for i := range 3 {
					r.say(fmt.Sprint("memo ", i+1))
					after(time.Second)
				}
				after(time.Hour)
				var got []string
				for i := range 3 {
					x := r.receipt(claybot.MessageID(fmt.Sprint("memo ", i+1)))
					if got = append(got, fmt.Sprint(i+1, " ", x.Skipped)); x.Run != nil {
						got[i] = fmt.Sprint(i+1, " ", x.Run.State)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%q, want %q", got, want)
				}
				var told []string
				if busy == claybot.BusySkip {
					told = []string{"The workflow memo is still at work, so your last message did not start it again."}
				}
				if seen := r.chat.seen(); !slices.Equal(seen, told) {
					t.Errorf("they read %q", seen)
				}
			})
		})
	}
}

// A brokenLine panics the first time that it is asked how a run is shown.
type brokenLine struct {
	*line
	broken *atomic.Bool
}

func (l brokenLine) Streaming(claybot.Route) connectors.Streaming {
	if l.broken.Swap(false) {
		panic("broken")
	}
	return connectors.Streaming{Off: true}
}

// A panic of a connector takes no place of a workflow along.
func TestFlowPlaceAfterAPanic(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		broken := new(atomic.Bool)
		broken.Store(true)
		r.line = func(l *line) connectors.Connector { return brokenLine{l, broken} }
		f := remembering("memo", &flows.Agent{Prompt: "{text}"})
		f.Concurrency.Max = 1
		r.flows = shelf{"memo": f}
		r.engines = map[string]runs.Engine{claybot.EngineFlow: engineFunc(func(context.Context, *runs.Turn, func(claybot.Record, error) bool) {})}
		r.start()
		r.say("memo 1")
		after(time.Hour)
		if run := r.receipt("memo 1").Run; broken.Load() || run == nil || run.State != claybot.RunSucceeded {
			t.Errorf("broken: %v, the run: %+v", broken.Load(), run)
		}
	})
}

// A workflow that has as many unfinished runs as it may have: a person is told, a program may send the event
// again, and nothing of it is stored, not even an agent.
func TestFlowFull(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		held := make(chan struct{})
		f := remembering("memo", &flows.Agent{Prompt: "{text}"})
		f.Limits = flows.Limits{Open: 2}
		r.flows = shelf{"memo": f}
		r.engines = map[string]runs.Engine{claybot.EngineFlow: engineFunc(func(ctx context.Context, x *runs.Turn, yield func(claybot.Record, error) bool) {
			select {
			case <-held:
			case <-ctx.Done():
				yield(claybot.Record{}, context.Cause(ctx))
			}
		})}
		r.start()
		for i := range 4 {
			r.say(fmt.Sprint("memo ", i+1))
			after(time.Second)
		}
		for i, want := range []string{"", "", storage.SkippedFlowFull, storage.SkippedFlowFull} {
			if got := r.receipt(claybot.MessageID(fmt.Sprint("memo ", i+1))).Skipped; got != want {
				r.Errorf("message %d: %q, want %q", i+1, got, want)
			}
		}
		const told = "The workflow memo has as many unfinished runs as it may have, so your last message did not start it. Please send it again later."
		if seen := r.chat.seen(); !slices.Equal(seen, []string{told}) { // once an hour
			r.Errorf("they read %q", seen)
		}
		sent, err := r.db.OutgoingPage(r.Context(), outgoingOf(ann))
		if err != nil || len(sent) != 1 || strings.ContainsFunc(sent[0].ID, unicode.IsControl) { // operators name it on the command line
			r.Errorf("sent %+v, %v", sent, err)
		}
		agents := func() int {
			counts, err := r.db.Stats(r.Context())
			if err != nil {
				r.Fatal(err)
			}
			return counts.Agents
		}
		before := agents()
		event := claybot.AgentMessage{ID: "shop/1", Type: claybot.MessageUser, Text: "memo shop", From: claybot.Sender{UserID: "shop", Program: true}}
		if err := r.system.Post(r.Context(), claybot.User("shop", "shop", "shop"), event); !errors.Is(err, storage.ErrFlowFull) {
			r.Errorf("event: %v", err)
		}
		if _, err := r.db.Receipt(r.Context(), event.ID); !errors.Is(err, storage.ErrNotFound) || agents() != before {
			r.Errorf("stored of a refused event: %v, %d agents more", err, agents()-before)
		}
		close(held)
		after(time.Minute)
		if err := r.system.Post(r.Context(), claybot.User("shop", "shop", "shop"), event); err != nil {
			r.Errorf("event with room: %v", err)
		}
	})
}

// A message whose payload does not fit the input of its workflow starts no run, and nothing of it is stored; one
// that was stored before is a duplicate, also once the workflow has another input.
func TestFlowInput(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		f := remembering("memo", &flows.Agent{Prompt: "{text}"})
		f.Concurrency.Key = "one" // its agent is known when the second message comes
		r.flows = shelf{"memo": f}
		r.engines = map[string]runs.Engine{claybot.EngineFlow: engineFunc(func(context.Context, *runs.Turn, func(claybot.Record, error) bool) {})}
		r.start()
		post := func(id claybot.MessageID, payload string) error {
			m := claybot.AgentMessage{ID: id, Type: claybot.MessageUser, Text: "memo shop", Payload: []byte(payload), From: claybot.Sender{UserID: "shop", Program: true}}
			return r.system.Post(r.Context(), claybot.User("shop", "shop", "shop"), m)
		}
		if err := post("shop/1", `{"n":"x"}`); err != nil {
			r.Fatal(err)
		}
		after(time.Second)
		f.Input = []flows.Field{{Name: "n", Type: flows.FieldInteger}}
		var wrong *flows.InputError
		if err := post("shop/2", `{"n":"x"}`); !errors.As(err, &wrong) || wrong.Field != "payload.n" || storage.ClassOf(err) != storage.ClassMessage {
			r.Errorf("a payload that does not fit: %v", err)
		}
		if _, err := r.db.Receipt(r.Context(), "shop/2"); !errors.Is(err, storage.ErrNotFound) {
			r.Errorf("stored of a refused event: %v", err)
		}
		for id, payload := range map[claybot.MessageID]string{"shop/1": `{"n":"x"}`, "shop/3": `{"n":3}`} {
			if err := post(id, payload); err != nil {
				r.Errorf("%s: %v", id, err)
			}
		}
	})
}
