package agentsystem

import (
	"slices"
	"sync"

	"github.com/claybot/claybot"
)

// turns are the messages of the runs that this process works on, for the tools
// they call. The zero value is ready.
type turns struct {
	mu  sync.Mutex
	all map[claybot.RunID]turn
}

// A turn is what a run works on.
type turn struct {
	pass     *pass
	agent    claybot.Agent
	messages []claybot.AgentMessage // never changed
	add      func(...claybot.Event)
	asked    map[string]claybot.Question // what its person was asked, by id; never changed
}

// tell adds to what the run tells of itself.
func (t turn) tell(ev ...claybot.Event) {
	if t.add != nil {
		t.add(ev...)
	}
}

// begin makes the messages of a pass known, or replaces them.
func (t *turns) begin(p *pass) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = make(map[claybot.RunID]turn)
	}
	t.all[p.run.ID] = turn{p, p.agent, slices.Clone(p.messages), p.add, p.round}
}

func (t *turns) end(p *pass) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[p.run.ID].pass == p { // the run may go on in a later pass already
		delete(t.all, p.run.ID)
	}
}

// of returns the turn of a run, an empty one when it is not at work here.
func (t *turns) of(run claybot.RunID) turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[run]
}

// person reports whether a person said something in the turn.
func (t turn) person() bool {
	return slices.ContainsFunc(t.messages, func(m claybot.AgentMessage) bool { return m.Type == claybot.MessageUser })
}

// hops is how far the thoughts of the turn have come from a person.
func (t turn) hops() int {
	n := 0
	for _, m := range t.messages {
		n = max(n, m.Hops)
	}
	if t.person() {
		return 0
	}
	return n
}

// root is the run that a chain of subagents began with, of which a run is the
// newest; the run itself where it is no part of one.
func (t turn) root(run claybot.RunID) claybot.RunID {
	for _, m := range t.messages {
		if m.Root != "" {
			return m.Root
		}
	}
	return run
}

// newest is the message that the turn answers: the last one that is not silent.
func (t turn) newest() claybot.AgentMessage {
	for _, m := range slices.Backward(t.messages) {
		if !m.Silent {
			return m
		}
	}
	return claybot.AgentMessage{}
}

// work is what the pass works on.
func (p *pass) work() turn { return turn{p, p.agent, p.messages, p.add, p.round} }

// route is where the turn answers.
func (t turn) route() claybot.Route {
	return t.newest().ReplyRoute(t.agent.Descriptor)
}

// newestOf is the newest message of the run that has a type; nil for none.
func (p *pass) newestOf(typ claybot.MessageType) *claybot.AgentMessage {
	for _, m := range slices.Backward(p.messages) {
		if m.Type == typ {
			return &m
		}
	}
	return nil
}

// firing is the instant of a cron task that the run is; nil for other runs.
func (p *pass) firing() *claybot.Firing {
	for _, m := range p.messages {
		if m.Firing != nil {
			return m.Firing
		}
	}
	return nil
}
