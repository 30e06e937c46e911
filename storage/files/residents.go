package files

import (
	"container/list"
	"context"
	"io/fs"
	"slices"
	"sync"

	"github.com/claybot/claybot"
)

// residentLimit is how many unused agents stay in memory.
const residentLimit = 4096

// A resident is an agent in memory. There is one for an agent at any time, so
// its gate and its fence are those of the agent.
type resident struct {
	id   claybot.AgentID
	gate gate // held while the files of the agent are read or written

	// Guarded by gate.
	token    int64    // of the newest lease seen
	writer   *history // the one that may append
	extra    extras   // of state.json
	settings []byte   // of state.json, as JSON; nil: it has none, not even null
	marker   marker   // where the conversation begins, as far as is recorded; Seq 0: nothing is
	unsure   bool     // state.json may differ from agent.State
	cut      int64    // history.jsonl must be cut to this size first; -1: no
	indebted bool     // a pin is held because of cut
	reports  []string // damage found and not yet told
	found    bool     // settings that the index did not have, not yet told

	// Guarded by residents.mu.
	agent *claybot.Agent // nil before it is loaded; replaced, never changed
	pins  int            // users; unused residents may be forgotten
	elem  *list.Element  // in unused, when pins is 0
}

// residents are the agents in memory, by id and by descriptor. Those in use
// stay; of the others the least recently used are forgotten.
type residents struct {
	mu     sync.Mutex
	closed bool
	byID   map[claybot.AgentID]*resident
	byDesc map[claybot.Descriptor]*resident // by identity
	unused *list.List                       // of *resident, the most recently used first
	limit  int
}

func newResidents(limit int) *residents {
	return &residents{
		byID:   make(map[claybot.AgentID]*resident),
		byDesc: make(map[claybot.Descriptor]*resident),
		unused: list.New(),
		limit:  limit,
	}
}

// find returns the agent of d when it is in memory.
func (rs *residents) find(d claybot.Descriptor) (claybot.Agent, bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.use(rs.byDesc[d.Identity()])
}

// get returns the agent id when it is in memory.
func (rs *residents) get(id claybot.AgentID) (claybot.Agent, bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.use(rs.byID[id])
}

// use copies the agent of r. It needs mu.
func (rs *residents) use(r *resident) (claybot.Agent, bool) {
	if r == nil || r.agent == nil || rs.closed {
		return claybot.Agent{}, false
	}
	if r.elem != nil {
		rs.unused.MoveToFront(r.elem)
	}
	return cloned(*r.agent), true
}

// cloned returns a copy of a that shares nothing with it.
func cloned(a claybot.Agent) claybot.Agent {
	if a.State.Routing != nil {
		routing := *a.State.Routing
		a.State.Routing = &routing
	}
	if a.State.Background != nil {
		b := *a.State.Background
		b.Tools = slices.Clone(b.Tools)
		if b.Permissions != nil {
			b.Permissions = new(b.Permissions.Clone())
		}
		a.State.Background = &b
	}
	if a.State.Provider != nil {
		provider := *a.State.Provider
		a.State.Provider = &provider
	}
	if a.State.Permissions != nil {
		a.State.Permissions = new(a.State.Permissions.Clone())
	}
	return a
}

// pin returns the one resident of id, which stays until it is unpinned. It
// may not be loaded yet.
func (rs *residents) pin(id claybot.AgentID) (*resident, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return nil, fs.ErrClosed
	}
	r := rs.byID[id]
	if r == nil {
		r = &resident{id: id, gate: newGate(), cut: -1}
		rs.byID[id] = r
	}
	if r.elem != nil {
		rs.unused.Remove(r.elem)
		r.elem = nil
	}
	r.pins++
	return r, nil
}

func (rs *residents) unpin(r *resident) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r.pins--; r.pins > 0 {
		return
	}
	if r.agent == nil {
		rs.drop(r)
		return
	}
	r.elem = rs.unused.PushFront(r)
	rs.shrink(rs.limit)
}

// shrink forgets unused residents until limit are left. It needs mu.
func (rs *residents) shrink(limit int) {
	for rs.unused.Len() > limit {
		rs.drop(rs.unused.Back().Value.(*resident))
	}
}

// drop forgets r. It needs mu.
func (rs *residents) drop(r *resident) {
	delete(rs.byID, r.id)
	rs.unlink(r)
	if r.elem != nil {
		rs.unused.Remove(r.elem)
		r.elem = nil
	}
}

// publish sets the agent of r.
func (rs *residents) publish(r *resident, a claybot.Agent) {
	a = cloned(a)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.unlink(r)
	r.agent = &a
	rs.byDesc[a.Descriptor.Identity()] = r
}

// unlink takes r out of the identities. It needs mu.
func (rs *residents) unlink(r *resident) {
	if r.agent == nil {
		return
	}
	if d := r.agent.Descriptor.Identity(); rs.byDesc[d] == r {
		delete(rs.byDesc, d)
	}
}

// retract clears the agent of r, whose files are gone.
func (rs *residents) retract(r *resident) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.unlink(r)
	r.agent = nil
}

// agent returns the agent of r, nil before it is loaded.
func (rs *residents) agent(r *resident) *claybot.Agent {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return r.agent
}

// close drops all unused residents.
func (rs *residents) close() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.closed = true
	rs.shrink(0)
}

// A gate is a mutex that may be held during disk I/O, because waiting for it
// ends with the context.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	default:
	}
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g gate) leave() { <-g }

// keyGates has a gate for every identity that a caller waits for.
type keyGates struct {
	mu    sync.Mutex
	gates map[claybot.Descriptor]*keyGate
}

type keyGate struct {
	gate
	users int
}

// enter waits for the gate of d; the caller must call leave.
func (k *keyGates) enter(ctx context.Context, d claybot.Descriptor) (leave func(), err error) {
	d = d.Identity()
	k.mu.Lock()
	g := k.gates[d]
	if g == nil {
		g = &keyGate{gate: newGate()}
		k.gates[d] = g
	}
	g.users++
	k.mu.Unlock()

	forget := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(k.gates, d)
		}
	}
	if err := g.gate.enter(ctx); err != nil {
		forget()
		return nil, err
	}
	return func() { g.leave(); forget() }, nil
}
