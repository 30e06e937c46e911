package agentsystem_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/runstest"
)

// A turn is a message of Ann, the tools on the way, and the answer.
type turn struct {
	text, answer string
	steps        []llmtest.Reply
}

var (
	whole = []turn{
		{"first", "one", []llmtest.Reply{use("pay", "look")}},
		{"second", "two", []llmtest.Reply{use("work")}},
	}
	brief = []turn{{"first", "one, at some length so that it is worth streaming", []llmtest.Reply{use("pay")}}}
)

// converse plays Ann until she has all answers, or the process dies. Like a
// platform it sends again what was not confirmed. Ann writes when she has read
// the answer to what she wrote before.
func (r *rig) converse(turns []turn) {
	r.Helper()
	for _, turn := range turns {
		r.mind.plan(turn.text, append(turn.steps[:len(turn.steps):len(turn.steps)], llmtest.Say(turn.answer))...)
		for !r.reads(turn.answer) {
			if r.fuse.dead() {
				return
			}
			if err := r.system.Post(r.Context(), ann, msg(turn.text, turn.text)); err == nil {
				break
			}
			time.Sleep(time.Second)
		}
		for limit := time.Now().Add(time.Hour); !r.reads(turn.answer); {
			if r.fuse.dead() {
				return
			}
			if time.Now().After(limit) {
				r.Fatalf("no answer to %q; people see %q", turn.text, r.chat.seen())
			}
			time.Sleep(time.Second)
		}
	}
	after(20 * time.Second)
}

func (r *rig) reads(text string) bool {
	return slices.ContainsFunc(r.chat.seen(), func(s string) bool { return strings.Contains(s, text) })
}

// checkEvents requires of every run that its events are numbered without gaps,
// end once, and tell exactly what its records say, in order.
func (r *rig) checkEvents(d claybot.Descriptor) {
	r.Helper()
	byRun := make(map[claybot.RunID][]claybot.Event)
	var order []claybot.RunID
	for _, rec := range r.records(d) {
		if rec.Run == "" {
			continue
		}
		if !slices.Contains(order, rec.Run) {
			order = append(order, rec.Run)
		}
		if ev, ok := runs.EventOf(rec); ok {
			byRun[rec.Run] = append(byRun[rec.Run], ev)
		}
	}
	for _, id := range order {
		var born []claybot.Event
		ends := 0
		node := "" // the one that has begun
		for i, e := range r.events(id) {
			if e.Seq != int64(i+1) {
				r.Errorf("run %s: event %d has seq %d", id, i+1, e.Seq)
			}
			if err := runstest.CheckEvent(e); err != nil {
				r.Errorf("run %s: %v", id, err)
			}
			switch e.Type {
			case claybot.EventNodeStarted, claybot.EventNodeFinished:
				node = r.pair(id, e, node)
			case claybot.EventAssistantMessage, claybot.EventToolSucceeded, claybot.EventToolFailed, claybot.EventAnswered, claybot.EventEdgeTaken:
				born = append(born, e)
			case claybot.EventRunFinished, claybot.EventRunFailed, claybot.EventRunCanceled:
				ends++
			}
		}
		if node != "" {
			r.Errorf("run %s: node %s does not end", id, node)
		}
		if ends != 1 {
			r.Errorf("run %s has %d terminal events", id, ends)
		}
		want := byRun[id]
		if len(born) != len(want) {
			r.Errorf("run %s: %d events of records, %d records", id, len(born), len(want))
			continue
		}
		for i := range born {
			if born[i].Type != want[i].Type || string(born[i].Data) != string(want[i].Data) || born[i].At != want[i].At {
				r.Errorf("run %s: event %s %s, the record says %s %s", id, born[i].Type, born[i].Data, want[i].Type, want[i].Data)
			}
		}
	}
}

// pair requires that nodes begin and end in pairs. It returns the one that has
// begun after the event.
func (r *rig) pair(id claybot.RunID, e claybot.Event, begun string) string {
	r.Helper()
	var d runs.NodeStarted
	if err := json.Unmarshal(e.Data, &d); err != nil {
		r.Error(err)
	}
	node := fmt.Sprintf("%s %d", d.Node, d.Iteration)
	if e.Type == claybot.EventNodeFinished {
		if node != begun {
			r.Errorf("run %s: %s ends, but %q has begun", id, node, begun)
		}
		return ""
	}
	if begun != "" {
		r.Errorf("run %s: %s begins before %s has ended", id, node, begun)
	}
	return node
}

// checkOnce requires that no tool that may act once acted twice.
func (r *rig) checkOnce() {
	r.Helper()
	for _, n := range r.bench.times("pay") {
		if n > 1 {
			r.Errorf("a tool that may act once acted %d times", n)
		}
	}
}

// The platforms differ in what they let a sender find out.
var platforms = []struct {
	name  string
	line  func(*line) connectors.Connector
	turns []turn
	pace  time.Duration
	// tried is how many of the last steps are tried; what comes before does
	// not depend on the platform.
	tried int
	// extra is how many copies of an answer people may see besides the one.
	extra int
}{
	{"finds", func(l *line) connectors.Connector { return findingLine{l} }, whole, 0, 1000, 0},
	{"streams and finds", func(l *line) connectors.Connector { return streamingFindingLine{streamingLine{l}} }, brief, 2 * time.Second, 16, 0},
	{"sends again, marked", func(l *line) connectors.Connector { return repeatingLine{l} }, brief, 0, 7, 1},
}

// The process dies after every step that reaches the disk or the platform, one
// after another. Each time the next one brings the conversation to the same
// end.
func TestCrashAtEveryStep(t *testing.T) {
	for _, p := range platforms {
		t.Run(p.name, func(t *testing.T) {
			var answers, want []string
			for _, turn := range p.turns {
				answers = append(answers, turn.answer)
			}
			steps := 0
			bubble(t, func(r *rig) {
				r.line, r.mind.pace = p.line, p.pace
				r.start()
				r.converse(p.turns)
				r.wants(answers...)
				r.checkEvents(ann)
				want, steps = r.history(ann), len(r.fuse.steps)
			})
			if steps < 13*len(p.turns) {
				t.Fatalf("only %d steps: the test does not see them", steps)
			}
			for k := max(0, steps-p.tried); k < steps; k++ {
				t.Run(fmt.Sprint(k), func(t *testing.T) {
					t.Parallel()
					bubble(t, func(r *rig) {
						r.line, r.mind.pace, r.blowAfter = p.line, p.pace, k
						r.start()
						r.converse(p.turns)
						if !r.fuse.dead() {
							t.Fatal("the process did not die")
						}
						t.Logf("the process died behind %q", r.fuse.steps)
						r.crash()
						r.start()
						r.converse(p.turns)
						if got := r.history(ann); !slices.Equal(got, want) {
							t.Errorf("history\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
						}
						r.checkEvents(ann)
						r.checkOnce()
						r.checkCopies(p.extra, answers...)
					})
				})
			}
		})
	}
}

// checkCopies requires that people see the answers in order, each once, and of
// one at most as many more as extra, which bear the mark.
func (r *rig) checkCopies(extra int, answers ...string) {
	r.Helper()
	r.chat.mu.Lock()
	defer r.chat.mu.Unlock()
	var plain []string
	for _, p := range r.chat.posts {
		if p.out.Resent {
			extra--
		} else {
			plain = append(plain, p.text)
		}
	}
	if extra < 0 {
		r.Errorf("%d resent copies too many", -extra)
	}
	// A resent copy may stand for one that never arrived.
	marked := len(r.chat.posts) - len(plain)
	if missing := len(answers) - len(plain); missing < 0 || missing > marked {
		r.Errorf("people see %q and %d marked copies, want %q", plain, marked, answers)
	}
}

// Messages that arrive during a tool join the run or wait for the next one,
// whatever dies: each is recorded once, answered, and in order.
func TestCrashWhileMessagesArrive(t *testing.T) {
	for _, tt := range []struct {
		policy inbox.Policy
		every  int // of how many steps one is tried
	}{
		{inbox.Policy{WhenBusy: inbox.InjectAfterTools}, 3},
		{inbox.Policy{WhenBusy: inbox.InjectAfterTools, ProcessBuffer: inbox.OneByOne}, 5},
		{inbox.Policy{WhenBusy: inbox.Wait, ProcessBuffer: inbox.OneByOne}, 7},
	} {
		t.Run(fmt.Sprint(tt.policy.WhenBusy, " ", tt.policy.ProcessBuffer), func(t *testing.T) {
			steps := arrive(t, tt.policy, -1)
			if steps < 10 {
				t.Fatalf("only %d steps: the test does not see them", steps)
			}
			for k := 0; k < steps; k += tt.every {
				t.Run(fmt.Sprint(k), func(t *testing.T) {
					t.Parallel()
					arrive(t, tt.policy, k)
				})
			}
		})
	}
}

// arrive lets four messages arrive in a process that dies after k steps, and
// returns how many steps there were.
func arrive(t *testing.T, policy inbox.Policy, k int) (steps int) {
	bubble(t, func(r *rig) {
		r.line, r.blowAfter = platforms[0].line, k
		r.setPolicy(policy)
		r.mind.plan("begin", use("work"), use("look"), llmtest.Say("done"))
		r.bench.work = restALittle
		r.start()
		texts := []string{"begin", "b", "c", "d"}
		r.source(texts...)
		steps = len(r.fuse.steps)
		if k >= 0 {
			r.crash()
			r.start()
			r.source(texts...)
		}
		var users []string
		for _, line := range r.history(ann) {
			if text, ok := strings.CutPrefix(line, "user_message "); ok {
				users = append(users, text)
			}
		}
		if !slices.Equal(users, texts) {
			t.Errorf("recorded %q, want %q", users, texts)
		}
		answered := make(map[claybot.RunID]bool)
		for _, text := range texts {
			rec := r.receipt(claybot.MessageID(text))
			if rec.Run == nil || rec.Run.State != claybot.RunSucceeded {
				t.Fatalf("%s did not run well: %+v", text, rec)
			}
			answered[rec.Run.ID] = true
		}
		if got := r.chat.seen(); len(got) != len(answered) {
			t.Errorf("%d runs, and people see %q", len(answered), got)
		}
		r.checkEvents(ann)
	})
	return steps
}

// insist posts a message until it is stored or the process has died, as a platform does.
func (r *rig) insist(to claybot.Descriptor, m claybot.AgentMessage) {
	for !r.fuse.dead() && r.system.Post(r.Context(), to, m) != nil {
		time.Sleep(time.Second)
	}
}

// source posts messages 300 ms apart and again until they are confirmed, in
// order, then waits until all is done or dead.
func (r *rig) source(texts ...string) {
	for _, text := range texts {
		r.insist(ann, msg(text, text))
		time.Sleep(300 * time.Millisecond)
	}
	after(20 * time.Second)
}
