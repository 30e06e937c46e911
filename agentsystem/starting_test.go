package agentsystem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
)

// orders are a flow that takes messages which begin with "order", and asks whether to buy.
type orders struct{}

func (orders) Engine(claybot.FlowStart) string { return claybot.EngineFlow + ":orders@1" }
func (orders) Max(string) int                  { return 0 }
func (orders) Shapes() map[string]runs.Shape   { return nil }
func (orders) Named(string) *flows.Flow        { return nil }

func (orders) Take(to claybot.Descriptor, m claybot.AgentMessage) (claybot.Descriptor, claybot.AgentMessage, bool) {
	if !strings.HasPrefix(m.Text, "order") {
		return to, m, false
	}
	route := m.ReplyRoute(to)
	m.Type, m.Kind, m.Route, m.Flow = claybot.MessageSystem, claybot.KindTrigger, &route, &claybot.FlowStart{Name: "orders"}
	return claybot.Descriptor{Type: claybot.AgentFlow, UID: string(m.ID), Owner: to.OwnerID()}, m, true
}

// A tally is what the runs of an engine noted, which run beside each other.
type tally struct {
	mu    sync.Mutex
	lines []string
}

func (n *tally) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *tally) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}

// A buyer is the engine of orders.
type buyer struct{ failed *tally }

func (buyer) Run(ctx context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		_, wait, err := t.Ask(ctx, "buy", []claybot.Question{{Key: "buy", Text: "Buy " + t.Messages[0].Text + "?", Type: claybot.QuestionConfirm, Once: true}})
		if err == nil && wait != nil {
			err = &runs.WaitError{Awaiting: *wait}
		}
		if err != nil {
			yield(claybot.Record{}, err)
		}
	}
}

// Failed implements runs.Failer.
func (b buyer) Failed(_ context.Context, _ *runs.Turn, why runs.Error) *runs.Error {
	b.failed.add(why.Code)
	return &why
}

// ordering gives a rig the flow, and returns the codes with which its runs fail.
func ordering(r *rig) *tally {
	failed := new(tally)
	r.flows, r.engines = orders{}, map[string]runs.Engine{claybot.EngineFlow: buyer{failed}}
	return failed
}

// An engine has a say in the end of a run whose deadline passes while it waits.
func TestFailerAtDeadline(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		failed := ordering(r)
		r.start()
		m := msg("m", "order tea")
		m.Deadline = claybot.At(time.Now().Add(time.Hour))
		r.post(ann, m)
		after(2 * time.Hour)
		if got := failed.all(); !slices.Equal(got, []string{runs.CodeDeadline}) {
			t.Errorf("fails with %q", got)
		}
	})
}

// A flow can ask a person whose first message started it; the same message starts nothing more, also
// where the trigger is gone by then, and the agent of the chat takes none of it.
func TestFlowOfFirstMessage(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		ordering(r)
		r.start()
		r.say("order tea")
		after(time.Second)
		r.crash()
		r.start()
		r.say("order tea")
		after(time.Second)
		r.flows = nil
		r.restart()
		r.say("order tea")
		after(time.Second)
		if got := r.chat.seen(); len(got) != 1 || !strings.HasPrefix(got[0], "**Buy order tea?") || len(r.mind.asked()) != 0 {
			t.Errorf("they read %q, %d calls", got, len(r.mind.asked()))
		}
	})
}

// What a person pastes into a message that starts a flow is stored without secrets, as in any other, and
// so is the event of a program.
func TestFlowSecrets(t *testing.T) {
	t.Parallel()
	const secret = "xoxb-123456789012-123456789012-abcdefghijABCDEFGHIJ1234"
	bubble(t, func(r *rig) {
		ordering(r)
		r.start()
		m := msg("m", "order "+secret)
		m.Payload = json.RawMessage(`{"a":["` + secret + `",1.50],"b":"ok"}`)
		r.post(ann, m)
		after(time.Second)
		x := r.receipt("m")
		if strings.Contains(x.Message.Text, "xoxb") || string(x.Message.Payload) != `{"a":["[removed: a Slack token]",1.50],"b":"ok"}` {
			t.Errorf("stored: %q %s", x.Message.Text, x.Message.Payload)
		}
		if got := r.chat.seen(); len(got) != 2 || strings.Contains(strings.Join(got, ""), "xoxb") {
			t.Errorf("they read %q", got)
		}
	})
}

// The limits of how much people and other bots write hold for messages that start flows.
func TestFlowFlood(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, skipped string
		from          claybot.Sender
		most          int
	}{
		{"a person", inbox.SkippedFlood, claybot.Sender{UserID: "ann"}, 3},
		{"a bot", inbox.SkippedBot, claybot.NewBot("B1", "CI"), 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				ordering(r)
				r.runsPerMinute = 3
				r.access = people.Access{Mode: people.AccessOpen, Allow: []string{"chat:B1"}}
				r.start()
				for i := range tt.most + 1 {
					m := msg(fmt.Sprint("m", i), "order tea")
					m.From, m.Context.Group = tt.from, true
					r.post(claybot.User("chat", "g", tt.from.UserID), m)
				}
				after(time.Second)
				for i := range tt.most + 1 {
					want := ""
					if i == tt.most {
						want = tt.skipped
					}
					if got := r.receipt(claybot.MessageID(fmt.Sprint("m", i))).Skipped; got != want {
						t.Errorf("message %d: skipped %q, want %q", i, got, want)
					}
				}
			})
		})
	}
}

// A message that waited until its sender was approved starts the flow, once.
func TestFlowAfterApproval(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		ordering(r)
		r.bossAt()
		asked := len(r.mind.asked())
		r.writes("1", claybot.Sender{UserID: "ann", Name: "Ann"}, "", "order tea")
		if x := r.receipt("1"); x.Parked != storage.ParkedUnapproved {
			t.Fatalf("%+v", x)
		}
		r.orders("press", "boss", "approve "+r.codeIn(r.chat.seen("ann")))
		time.Sleep(time.Minute)
		r.writes("1", claybot.Sender{UserID: "ann", Name: "Ann"}, "", "order tea")
		time.Sleep(time.Minute)
		n := 0
		for _, text := range r.chat.seen("ann") {
			if strings.HasPrefix(text, "**Buy order tea?") {
				n++
			}
		}
		if n != 1 || len(r.mind.asked()) != asked || !slices.ContainsFunc(r.chat.seen("ann"), func(s string) bool { return strings.HasPrefix(s, "Your access is approved") }) {
			t.Errorf("asked %d times, %d calls: %q", n, len(r.mind.asked())-asked, r.chat.seen("ann"))
		}
	})
}

// A key that comes again with another event, or for another trigger, is refused, not taken for done.
func TestFlowKeyUsed(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		ordering(r)
		r.start()
		start := func(payload, trigger string) error {
			d := claybot.Descriptor{Type: claybot.AgentFlow, UID: "u", Owner: "chat/ann"}
			_, err := r.system.Control.StartRun(r.Context(), agentsystem.Address{Descriptor: &d}, claybot.AgentMessage{
				ID: "api/x/flow/key", Type: claybot.MessageUser, Kind: claybot.KindTrigger, Payload: json.RawMessage(payload), Flow: &claybot.FlowStart{Name: "orders", Trigger: trigger},
			})
			return err
		}
		for _, tt := range []struct {
			payload, trigger string
			used             bool
		}{{`{"n": 1}`, "a", false}, {`{"n":1}`, "a", false}, {`{"n":2}`, "a", true}, {`{"n":1}`, "b", true}, {"", "a", true}} {
			if err := start(tt.payload, tt.trigger); errors.Is(err, agentsystem.ErrUsed) != tt.used || err != nil && !tt.used {
				t.Errorf("%+v: %v", tt, err)
			}
		}
	})
}

// A taker is an engine that notes the messages of its runs.
type taker struct{ took *tally }

func (x taker) Run(_ context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(func(claybot.Record, error) bool) {
		var ids []string
		for _, m := range t.Messages {
			ids = append(ids, string(m.ID))
		}
		x.took.add(strings.Join(ids, " "))
	}
}

// All parts of an album go where its first part went, as one, also over a crash between them; a part that
// comes when the run has begun starts no other one.
func TestFlowTakesAlbums(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		took := new(tally)
		r.flows, r.engines = orders{}, map[string]runs.Engine{claybot.EngineFlow: taker{took}}
		r.start()
		part := func(id, text, album string) {
			m := msg(id, text)
			m.Context.GroupID = album
			r.post(ann, m)
		}
		part("a1", "order these", "a")
		after(500 * time.Millisecond)
		part("a2", "", "a")
		r.crash()
		r.start()
		part("a1", "order these", "a")
		part("a3", "", "a")
		after(10 * time.Second)
		part("a4", "", "a")
		after(10 * time.Second)
		if got := strings.Join(took.all(), ", "); got != "a1 a2 a3" {
			t.Errorf("the flow took %q, want a1 a2 a3 in one run", got)
		}
		if n := len(r.mind.asked()); n != 0 {
			t.Errorf("the agent of the chat was asked %d times", n)
		}
		part("b1", "look", "b")
		part("b2", "order this", "b")
		after(10 * time.Second)
		if n := len(r.mind.asked()); n != 1 || len(took.all()) != 1 {
			t.Errorf("of an album of the chat, its agent was asked %d times, and the flow took %q", n, took.all())
		}
	})
}
