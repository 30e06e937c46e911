package agentsystem_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
)

// carol is the person whose agent meets the faults of these tests.
var carol = claybot.User("chat", "dm-carol", "carol")

// A fault is one call that fails for one agent, while it is on.
type agentFault struct {
	call  string
	also  string // fails, too: without it the call is not made
	err   error
	block chan struct{} // the call waits in place of failing, until this is closed
	on    atomic.Bool
	hits  atomic.Int64
	id    atomic.Pointer[claybot.AgentID]
}

// at is the error of a call for the agent at fault.
func (f *agentFault) at(call string, mine bool) error {
	if !mine || !f.on.Load() || call != f.call && call != f.also {
		return nil
	}
	if call == f.call {
		f.hits.Add(1)
	}
	if f.block != nil {
		<-f.block
	}
	return f.err
}

// end ends the fault.
func (f *agentFault) end() {
	f.on.Store(false)
	if f.block != nil {
		close(f.block)
	}
}

func (f *agentFault) of(call string, id claybot.AgentID) error {
	its := f.id.Load()
	return f.at(call, its != nil && *its == id)
}

func (f *agentFault) person(call string, d claybot.Descriptor) error {
	return f.at(call, d.Identity() == carol)
}

func (f *agentFault) stores(s agentsystem.Stores) agentsystem.Stores {
	s.Agents = faultAgents{s.Agents, f}
	s.Index = faultIndex{s.Index, f}
	s.Asked = faultQuestions{s.Asked, f}
	s.Inbox = faultInbox{s.Inbox, f}
	s.Runs = faultRuns{s.Runs, f}
	s.Outbox = faultOutbox{s.Outbox, f}
	s.Parking = faultParking{s.Parking, f}
	return s
}

type faultAgents struct {
	agentsystem.Agents
	f *agentFault
}

func (a faultAgents) AgentFor(ctx context.Context, d claybot.Descriptor) (claybot.Agent, error) {
	if err := a.f.person("AgentFor", d); err != nil {
		return claybot.Agent{}, err
	}
	return a.Agents.AgentFor(ctx, d)
}

func (a faultAgents) Agent(ctx context.Context, id claybot.AgentID) (claybot.Agent, error) {
	if err := a.f.of("Agent", id); err != nil {
		return claybot.Agent{}, err
	}
	return a.Agents.Agent(ctx, id)
}

func (a faultAgents) SaveState(ctx context.Context, l storage.Lease, st claybot.AgentState) error {
	if err := a.f.of("SaveState", l.Agent); err != nil {
		return err
	}
	return a.Agents.SaveState(ctx, l, st)
}

func (a faultAgents) OpenHistory(ctx context.Context, l storage.Lease) (storage.History, error) {
	if err := a.f.of("OpenHistory", l.Agent); err != nil {
		return nil, err
	}
	h, err := a.Agents.OpenHistory(ctx, l)
	if err != nil {
		return nil, err
	}
	return faultHistory{h, a.f, l.Agent}, nil
}

type faultHistory struct {
	storage.History
	f  *agentFault
	id claybot.AgentID
}

func (h faultHistory) Append(ctx context.Context, r ...claybot.Record) error {
	if err := h.f.of("Append history", h.id); err != nil {
		return err
	}
	return h.History.Append(ctx, r...)
}

func (h faultHistory) Buffer(ctx context.Context, r ...claybot.Record) error {
	if err := h.f.of("Buffer history", h.id); err != nil {
		return err
	}
	return h.History.Buffer(ctx, r...)
}

type faultIndex struct {
	agentsystem.Index
	f *agentFault
}

func (i faultIndex) IndexedAgentByID(ctx context.Context, id claybot.AgentID) (storage.IndexEntry, error) {
	if err := i.f.of("IndexedAgentByID", id); err != nil {
		return storage.IndexEntry{}, err
	}
	return i.Index.IndexedAgentByID(ctx, id)
}

type faultQuestions struct {
	storage.Questions
	f *agentFault
}

func (q faultQuestions) OpenQuestions(ctx context.Context, id claybot.AgentID, limit int) ([]storage.OpenQuestion, error) {
	if err := q.f.of("OpenQuestions", id); err != nil {
		return nil, err
	}
	return q.Questions.OpenQuestions(ctx, id, limit)
}

type faultInbox struct {
	agentsystem.Inbox
	f *agentFault
}

func (i faultInbox) Post(ctx context.Context, p storage.Posting) (storage.Posted, error) {
	if err := i.f.of("Post", p.To); err != nil {
		return storage.Posted{}, err
	}
	return i.Inbox.Post(ctx, p)
}

func (i faultInbox) LastReceipt(ctx context.Context, id claybot.AgentID) (storage.Receipt, error) {
	if err := i.f.of("LastReceipt", id); err != nil {
		return storage.Receipt{}, err
	}
	return i.Inbox.LastReceipt(ctx, id)
}

func (i faultInbox) Settle(ctx context.Context, l storage.Lease, id claybot.MessageID, s storage.Settlement) ([]claybot.Outgoing, error) {
	if err := i.f.of("Settle", l.Agent); err != nil {
		return nil, err
	}
	return i.Inbox.Settle(ctx, l, id, s)
}

func (i faultInbox) Release(ctx context.Context, l storage.Lease, w storage.Wait, orderly bool) error {
	if err := i.f.of("Release", l.Agent); err != nil {
		return err
	}
	return i.Inbox.Release(ctx, l, w, orderly)
}

func (i faultInbox) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, string, error) {
	if err := i.f.of("Renew", l.Agent); err != nil {
		return storage.Lease{}, "", err
	}
	return i.Inbox.Renew(ctx, l, ttl)
}

type faultRuns struct {
	agentsystem.Runs
	f *agentFault
}

func (r faultRuns) Begin(ctx context.Context, l storage.Lease, id claybot.RunID, batch []claybot.MessageID, with storage.Beginning) (claybot.Run, error) {
	if err := r.f.of("Begin", l.Agent); err != nil {
		return claybot.Run{}, err
	}
	return r.Runs.Begin(ctx, l, id, batch, with)
}

func (r faultRuns) Append(ctx context.Context, l storage.Lease, id claybot.RunID, progress bool, ev ...claybot.Event) error {
	if err := r.f.of("Append events", l.Agent); err != nil {
		return err
	}
	return r.Runs.Append(ctx, l, id, progress, ev...)
}

func (r faultRuns) Finish(ctx context.Context, l storage.Lease, id claybot.RunID, o storage.Outcome) ([]claybot.Outgoing, error) {
	if err := r.f.of("Finish", l.Agent); err != nil {
		return nil, err
	}
	return r.Runs.Finish(ctx, l, id, o)
}

type faultOutbox struct {
	agentsystem.Outbox
	f *agentFault
}

func (o faultOutbox) Enqueue(ctx context.Context, out ...claybot.Outgoing) ([]claybot.Outgoing, error) {
	mine := slices.ContainsFunc(out, func(x claybot.Outgoing) bool { return x.Route.ChannelID == carol.ChannelID })
	if err := o.f.at("Enqueue", mine); err != nil {
		return nil, err
	}
	return o.Outbox.Enqueue(ctx, out...)
}

type faultParking struct {
	agentsystem.Parking
	f *agentFault
}

func (p faultParking) Arrival(ctx context.Context, d claybot.Descriptor) (storage.Arrival, error) {
	if err := p.f.person("Arrival", d); err != nil {
		return storage.Arrival{}, err
	}
	met, err := p.Parking.Arrival(ctx, d)
	met.Asked = met.Asked || p.f.call == "OpenQuestions" // else none would be looked for
	return met, err
}

func (p faultParking) ParkedOf(ctx context.Context, key string, limit int) ([]storage.Parked, error) {
	if err := p.f.at("ParkedOf", key == carol.Key()); err != nil {
		return nil, err
	}
	return p.Parking.ParkedOf(ctx, key, limit)
}

// The errors of one agent's files and rows, and of a member.
var (
	errAccess = &fs.PathError{Op: "open", Path: "state.json", Err: syscall.EACCES}
	errFiles  = &fs.PathError{Op: "open", Path: "history.jsonl", Err: syscall.EMFILE}
)

// faultFor is how long the faults of these tests last.
const faultFor = 20 * time.Second

// othersWrite has some people write for some seconds, and returns how long the answers
// took.
func (r *rig) othersWrite() (took []time.Duration) {
	var all sync.WaitGroup
	var mu sync.Mutex
	posted := make(map[string]time.Time)
	for i := range 5 {
		all.Go(func() {
			user := fmt.Sprint("user", i)
			for k := range 3 {
				text := fmt.Sprint(user, "-", k)
				mu.Lock()
				posted["re: "+text] = time.Now()
				mu.Unlock()
				r.post(claybot.User("chat", "dm-"+user, user), msg(text, text))
				time.Sleep(time.Second)
			}
		})
	}
	all.Wait()
	after(time.Second)
	for _, s := range r.chat.sent() {
		if at, ok := posted[s.out.Text]; ok {
			took = append(took, s.at.Sub(at))
		}
	}
	if len(took) != len(posted) {
		r.Errorf("%d of %d messages of others were answered", len(took), len(posted))
	}
	slices.Sort(took)
	return took
}

// usualLatency is what the others' messages take without a fault.
func usualLatency(t *testing.T) (slowest time.Duration) {
	bubble(t, func(r *rig) {
		r.mind.hold("", 50*time.Millisecond)
		r.start()
		took := r.othersWrite()
		slowest = took[len(took)-1]
	})
	return slowest
}

// An error of any call for one agent, of its own class or of the class of a member, or
// a call of the intake that does not return, affects no other agent: no post fails, so no source keeps anything back, and the
// answers of others take as long as without it. What the person has written comes in
// order when it is over, after one notice, and costs no run a try (R1, R4).
func TestFaultOfOneAgent(t *testing.T) {
	t.Parallel()
	usual := usualLatency(t)
	for call, also := range map[string]string{
		"AgentFor": "", "Agent": "", "SaveState": "", "OpenHistory": "", "Append history": "", "Buffer history": "",
		"IndexedAgentByID": "", "OpenQuestions": "", "Post": "", "LastReceipt": "", "Settle": "", "Release": "OpenHistory", "Renew": "OpenHistory",
		"Begin": "", "Append events": "", "Finish": "", "Enqueue": "AgentFor", "Arrival": "", "ParkedOf": "AgentFor",
	} {
		for class, err := range map[string]error{"agent": errAccess, "member": errFiles} {
			t.Run(call+"/"+class, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(r *rig) { r.faultOfCarol(&agentFault{call: call, also: also, err: err}, usual) })
			})
		}
	}
	for _, call := range []string{"AgentFor", "LastReceipt"} {
		t.Run(call+"/block", func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				f := &agentFault{call: call, block: make(chan struct{})}
				r.faultOfCarol(f, usual)
				if n := f.hits.Load(); n != 1 {
					r.Errorf("%d calls waited at the same time", n)
				}
			})
		})
	}
}

// faultOfCarol lets a call for the agent of Carol fail for a while.
func (r *rig) faultOfCarol(f *agentFault, usual time.Duration) {
	r.decorate = f.stores
	r.setPolicy(oneByOne)
	r.mind.hold("", 50*time.Millisecond)
	r.mind.plan("with tools", use("look"), use("look"))
	r.start()
	r.post(carol, msg("warm", "warm"))
	after(2 * time.Minute)
	id := r.agent(carol)
	f.id.Store(&id)
	f.on.Store(true)
	began := time.Now()
	r.post(carol, typed("new", claybot.MessageReset, ""), msg("b1", "b1"), msg("b2", "b2"), command("c", "why"), msg("b3", "b3 with tools"))
	took := r.othersWrite()
	if slowest := took[len(took)-1]; slowest > usual+usual/10 {
		r.Errorf("the slowest of the others' answers took %v, without the fault %v", slowest, usual)
	}
	r.post(carol, msg("b1", "b1"), msg("b4", "b4")) // a redelivery, and one more
	time.Sleep(time.Until(began.Add(faultFor)))
	synctest.Wait()
	held := !slices.Contains(r.chat.seen(carol.ChannelID), "re: b4")
	if ready, why := r.system.Overview.Ready(); !ready {
		r.Errorf("not ready because of one agent: %s", why)
	}
	if storage.ClassOf(f.err) == storage.ClassMember && f.call != "SaveState" && f.call != "IndexedAgentByID" && r.status().Unwell == "" { // a state that is not saved waits
		r.Error("the status does not name the error of a member")
	}
	f.end()
	after(3 * time.Minute)
	r.checkCarol(f, held)
}

// checkCarol compares what Carol sees with what he has written.
func (r *rig) checkCarol(f *agentFault, held bool) {
	var answers []string
	notices := 0
	for _, text := range r.chat.seen(carol.ChannelID) {
		switch {
		case strings.Contains(text, "has to wait"):
			notices++
		case strings.HasPrefix(text, "re: ") || text == "nothing" || strings.HasPrefix(text, "Done."):
			answers = append(answers, text[:min(len(text), 8)])
		}
	}
	if want := []string{"re: warm", "Done. I ", "re: b1", "re: b2", "nothing", "re: b4"}; !slices.Equal(answers, want) {
		r.Errorf("after %d faults Carol sees %q, want %q; all: %q", f.hits.Load(), answers, want, r.chat.seen(carol.ChannelID))
	}
	if held && f.call != "Enqueue" && notices != 1 || notices > 1 {
		r.Errorf("%d notices of the fault (held %v, %d faults)", notices, held, f.hits.Load())
	}
	for _, id := range []claybot.MessageID{"b1", "b2", "b3", "b4"} {
		if run := r.receipt(id).Run; run == nil || run.State != claybot.RunSucceeded || run.Attempts > 1 {
			r.Errorf("%s ended with %+v", id, run)
		}
	}
	if f.hits.Load() == 0 {
		r.Error("the call was never made")
	}
	if r.receipt("c").Skipped != "command" {
		r.Errorf("the command: %+v", r.receipt("c"))
	}
	if st, err := r.system.Overview.Status(r.Context()); err != nil || st.Faulty != 0 || st.Parked != nil || st.Unwell != "" {
		r.Errorf("status afterwards: %d agents, parked %+v, unwell %q, %v", st.Faulty, st.Parked, st.Unwell, err)
	}
	if ready, why := r.system.Overview.Ready(); !ready {
		r.Errorf("not ready afterwards: %s", why)
	}
}
