package agentsystem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// Whatever a platform and the process do, people see at most two copies of each
// outgoing message and one notice about it, in order, and everything ends.
// CLAYBOT_SEQUENCES is how many random sequences of faults are tried, CLAYBOT_SEED the
// first of their seeds. Each has messages of all kinds (answers in one and in several
// parts, growing ones, command confirmations, notices, questions, files, texts that
// are kept up to date), a connector with some of the powers there are, and lost
// responses, cut connections, refusals, 429s, panics, deletions, restarts and kills.
func TestCopiesUnderAnyFaults(t *testing.T) {
	n, first := 60, uint64(1)
	if raced || testing.Short() {
		n = 12
	}
	if v, err := strconv.Atoi(os.Getenv("CLAYBOT_SEQUENCES")); err == nil {
		n = v
	}
	if v, err := strconv.ParseUint(os.Getenv("CLAYBOT_SEED"), 10, 64); err == nil {
		n, first = 1, v
	}
	var sum toll
	const lanes = 4
	t.Run("all", func(t *testing.T) {
		for lane := range lanes {
			t.Run(strconv.Itoa(lane), func(t *testing.T) {
				t.Parallel()
				for i := lane; i < n && !t.Failed(); i += lanes {
					seed := first + uint64(i)
					ok := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
						bubble(t, func(r *rig) { faultSequence(r, seed, &sum) })
					})
					if !ok {
						t.Logf("to repeat: CLAYBOT_SEED=%d go test ./agentsystem -run TestCopiesUnderAnyFaults", seed)
					}
				}
			})
		}
	})
	t.Logf("%d sequences: %s", n, &sum)
	if n >= 40 && (sum.twice.Load() == 0 || sum.notices.Load() == 0 || sum.kills.Load() == 0) {
		t.Error("the sequences have no second copies, notices or kills: the test does not see them")
	}
}

// oddities are the faults of one sequence. Its methods are called under the lock of
// the chat.
type oddities struct {
	*rand.Rand
	r      *rig
	calm   bool    // nothing goes wrong any more
	chance float64 // that a send goes wrong
	kill   float64 // that a wrong send kills the process
	lost   bool    // what goes wrong is a response that is lost
	late   time.Duration
}

// judge decides about a send.
func (x *oddities) judge(o claybot.Outgoing) verdict {
	if x.calm || x.Float64() >= x.chance {
		return verdict{}
	}
	edit := o.Edit != ""
	unknown := error(&connectors.AmbiguousError{Err: errNet})
	if edit && x.IntN(2) == 0 {
		unknown = errNet // what connectors say about edits
	}
	seen := x.lost || x.IntN(2) == 0
	if x.Float64() < x.kill {
		x.r.fuse.blow()
		return verdict{err: unknown, lost: seen}
	}
	switch n := x.IntN(20); {
	case n < 12 || x.lost && n < 17:
		return verdict{err: unknown, lost: seen}
	case n < 15:
		return failing
	case n < 17:
		return slow(time.Duration(x.IntN(20_000))*time.Millisecond, x.IntN(4) == 0)
	case n == 17 && edit: // deleted, or there and not to be edited
		return verdict{err: connectors.ErrEditGone}
	case n == 18:
		return refused(x.IntN(2) == 0)
	case n == 19:
		panic("a connector that panics")
	}
	return verdict{}
}

// lookUp decides about a look-up: it works, shows posts late, fails, or is not
// allowed.
func (x *oddities) lookUp(claybot.Outgoing) error {
	if x.calm || x.Float64() >= x.chance/2 {
		return nil
	}
	switch x.IntN(4) {
	case 0:
		return &connectors.PermanentError{Err: errors.New("missing_scope")}
	case 1:
		return slow(10*time.Second, false).err
	}
	return errNet
}

// A wire is a line that takes files.
type wire struct{ *line }

func (w wire) SendFile(ctx context.Context, o claybot.Outgoing, open func() (io.ReadCloser, error)) (string, error) {
	return mediaLine{findingLine: findingLine(w)}.SendFile(ctx, o, open)
}

// always is a Resender.
type always bool

func (a always) Resend(claybot.Outgoing) bool { return bool(a) }

// growing is a Streamer.
type growing struct{}

func (growing) Streaming(claybot.Route) connectors.Streaming { return streaming }

// connector is one with some of the powers there are.
func (x *oddities) connector() func(*line) connectors.Connector {
	again := always(x.IntN(4) > 0)
	x.late = []time.Duration{0, 0, 7 * time.Second, time.Hour}[x.IntN(4)]
	kind := x.IntN(6)
	return func(l *line) connectors.Connector {
		w, find := wire{l}, lateLine{l, x.late}
		switch kind {
		case 0:
			return w
		case 1:
			return struct {
				wire
				always
			}{w, again}
		case 2:
			return struct {
				wire
				connectors.Finder
			}{w, find}
		case 3:
			return struct {
				wire
				always
				connectors.Finder
			}{w, again, find}
		case 4:
			return struct {
				wire
				always
				growing
			}{w, again, growing{}}
		}
		return struct {
			wire
			always
			connectors.Finder
			growing
		}{w, again, find, growing{}}
	}
}

// extras are tools that send files and show texts that are kept up to date.
func extras(s *agentsystem.AgentSystem) []tools.Tool {
	spec := func(name string) tools.Spec {
		return tools.Spec{Tool: llm.Tool{Name: name, Description: name}, Effect: tools.Idempotent, Timeout: time.Minute}
	}
	return []tools.Tool{
		tools.New(spec("list"), func(ctx context.Context, env tools.Env, _ struct{}) (tools.Result, error) {
			return tools.Result{Text: "shown"}, s.Output.Show(ctx, env, "list", "todos of "+env.CallID)
		}),
		tools.New(spec("file"), func(ctx context.Context, env tools.Env, _ struct{}) (tools.Result, error) {
			_, err := s.Output.SendFile(ctx, env, tools.Sending{Name: "a.txt", Caption: "here", Open: func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(bytes.NewReader([]byte("alpha"))), nil
			}})
			return tools.Result{Text: "sent"}, err
		}),
	}
}

// plans are what the model does, by a word in the message.
func (r *rig) plans() {
	r.mind.plan("long", llmtest.Say(strings.Repeat("many words ", 120)))
	r.mind.plan("list", use("list"), use("list", "list"), use("list"), llmtest.Say("the list is done"))
	r.mind.plan("file", use("file"), llmtest.Say("that was the file"))
	r.mind.plan("ask", askColour(nil), llmtest.Say("a fine colour"))
	r.mind.plan("break", llmtest.Reply{Err: llm.Failed(llm.Permanent, "broken")})
	r.mind.plan("grow", llmtest.Say(half1+half2))
}

// faultSequence lets two people write while things go wrong, then heals all and
// checks what they see.
func faultSequence(r *rig, seed uint64, sum *toll) {
	mine := rand.New(rand.NewPCG(seed, 1))
	x := &oddities{Rand: rand.New(rand.NewPCG(seed, 2)), r: r, chance: 0.2 + 0.8*mine.Float64(), kill: 0.3 * mine.Float64()}
	x.lost = mine.IntN(3) == 0
	r.line, r.more = x.connector(), extras
	if r.mind.pace = 0; mine.IntN(2) == 0 {
		r.mind.pace = 2 * time.Second
	}
	if mine.IntN(2) == 0 {
		r.setPolicy(oneByOne)
	}
	r.plans()
	r.chat.judge, r.chat.find = x.judge, x.lookUp
	r.start()
	words := []string{"plain", "long", "list", "file", "ask", "red", "break", "grow", "grow"}
	for i := range 2 + mine.IntN(4) {
		d := ann
		if mine.IntN(4) == 0 {
			d = claybot.User("chat", "dm-bob", "bob")
		}
		m := msg(fmt.Sprint("m", i), fmt.Sprint(words[mine.IntN(len(words))], " number ", i))
		if mine.IntN(5) == 0 {
			m = command(fmt.Sprint("m", i), []string{"start", "status", "stop", "why"}[mine.IntN(4)])
		}
		r.persist(d, m)
		if mine.IntN(3) == 0 {
			r.fuse.blowIn(1 + mine.IntN(25))
		}
		r.awaits(time.Duration(mine.IntN(40)) * time.Second / 2)
		if mine.IntN(6) == 0 {
			r.restart()
		}
		r.again(sum)
	}
	r.awaits(time.Duration(mine.IntN(20)) * time.Minute)
	r.again(sum)
	r.chat.mu.Lock()
	x.calm = true
	r.chat.mu.Unlock()
	r.fuse.blowIn(0)
	r.again(sum)
	for range 8 * 60 {
		after(time.Minute)
		if open, err := r.db.OutgoingPage(r.Context(), storage.OutgoingQuery{Open: true, Limit: 1}); err == nil && len(open) == 0 {
			break
		}
	}
	r.checkFaultless(sum)
}

// persist posts a message until it is accepted.
func (r *rig) persist(d claybot.Descriptor, m claybot.AgentMessage) {
	for range 100 {
		if err := r.system.Post(r.Context(), d, m); err == nil {
			return
		}
		r.again(nil)
		time.Sleep(time.Second)
	}
	r.Fatalf("%s is never accepted", m.ID)
}

// awaits lets time pass, at most until the process dies.
func (r *rig) awaits(d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.fuse.fell:
	}
	synctest.Wait()
}

// again starts a new process where the present one is dead.
func (r *rig) again(sum *toll) {
	if !r.fuse.dead() {
		return
	}
	if sum != nil {
		sum.kills.Add(1)
	}
	r.crash()
	r.start()
}

// checkFaultless checks what people see, and that everything has ended.
func (r *rig) checkFaultless(sum *toll) {
	all, err := r.db.OutgoingPage(r.Context(), storage.OutgoingQuery{Limit: 1000})
	if err != nil {
		r.Fatal(err)
	}
	rows := make(map[string]claybot.Outgoing)
	for _, o := range all {
		rows[o.ID] = o
		if o.State != claybot.SendSent && o.State != claybot.SendFailed {
			r.Errorf("not ended: %+v", o)
		}
	}
	r.chat.mu.Lock()
	defer r.chat.mu.Unlock()
	visible, last, receipts := make(map[string]int), make(map[string]int64), make(map[string]bool)
	for _, p := range r.chat.posts {
		receipts[p.id] = true
		o, known := rows[p.out.ID]
		if !known {
			r.Errorf("a post belongs to no stored message: %+v", p.out)
		}
		visible[o.ID]++
		if first := rows[o.EditOf]; first.Copies > 0 { // an update is no way around the limit
			visible[first.ID]++
		}
		if n := p.out.N; n > 0 { // else a draft
			if n < last[o.Route.Dest()] {
				r.Errorf("out of order: %q", p.text)
			}
			last[o.Route.Dest()] = n
		}
	}
	for id, o := range rows {
		notice := strings.HasPrefix(id, "undelivered/")
		most := 2
		if notice {
			most = 1
			sum.notices.Add(1)
		}
		if visible[id] > most {
			r.Errorf("%d copies of %+v", visible[id], o)
		}
		sum.count(o, visible[id])
		if o.State == claybot.SendSent && !receipts[o.Receipt] {
			r.Errorf("not visible: %+v", o)
		}
		missing := o.State == claybot.SendFailed && o.Copies > 0 && !strings.Contains(o.Cause, "403") && !o.EditOnly
		if missing && (o.Kind != claybot.OutgoingNotice || o.Question != nil) && !slices.ContainsFunc(all, func(n claybot.Outgoing) bool {
			return strings.HasPrefix(n.ID, "undelivered/") && n.N > o.N && n.Route.Dest() == o.Route.Dest()
		}) {
			r.Errorf("nothing says that it may be missing: %+v", o)
		}
	}
}
