package runs

import (
	"cmp"
	"slices"
	"sync"

	"github.com/claybot/claybot"
)

// AtWork knows the runs that this process works on, for the tools they call. The zero
// value is ready. Its methods are safe for concurrent use.
type AtWork struct {
	mu  sync.Mutex
	all map[claybot.RunID]Work
}

// Work is what a run works on.
type Work struct {
	Pass     any // who works on it: what Begin and End are called for
	Agent    claybot.Agent
	Messages []claybot.AgentMessage // never changed
	// Add adds to what the run tells of itself; nil in an empty Work.
	Add   func(...claybot.Event)
	Asked map[string]claybot.Question // what its person was asked, by id; never changed
}

// Begin makes the work on a run known, or replaces it.
func (a *AtWork) Begin(run claybot.RunID, w Work) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = make(map[claybot.RunID]Work)
	}
	w.Messages = slices.Clone(w.Messages)
	a.all[run] = w
}

// End forgets the work on a run, unless a later pass has it by now.
func (a *AtWork) End(run claybot.RunID, pass any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all[run].Pass == pass {
		delete(a.all, run)
	}
}

// Of returns the work on a run, an empty one when this process does not work on it.
func (a *AtWork) Of(run claybot.RunID) Work {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[run]
}

// Here reports whether this process works on a run.
func (a *AtWork) Here(run claybot.RunID) bool { return a.Of(run).Agent.ID != "" }

// Root is the run that a chain of subagents began with, of which run is the newest; the
// run itself where it is no part of one.
func (a *AtWork) Root(run claybot.RunID) claybot.RunID { return a.Of(run).Root(run) }

// Tell adds to what the run tells of itself.
func (w Work) Tell(ev ...claybot.Event) {
	if w.Add != nil {
		w.Add(ev...)
	}
}

// Person reports whether a person said something in the work.
func (w Work) Person() bool {
	return slices.ContainsFunc(w.Messages, func(m claybot.AgentMessage) bool { return m.Type == claybot.MessageUser })
}

// Addressed reports whether a person said something in the work to the agent, and not only to others in a group.
func (w Work) Addressed() bool {
	return slices.ContainsFunc(w.Messages, func(m claybot.AgentMessage) bool {
		return m.Type == claybot.MessageUser && !m.Context.Unaddressed
	})
}

// Owner is the person for whom the work is done, in the form of Descriptor.OwnerID: of a
// shared agent, the sender of what it answers or undoes. It is the group where no member of
// it said something.
func (w Work) Owner() string {
	for _, m := range w.Messages {
		if m.Type == claybot.MessageUser || m.Undo != nil {
			return m.Speaker(w.Agent.Descriptor)
		}
	}
	return w.Agent.Descriptor.OwnerID()
}

// Hops is the number of agents between the work and the last word of a person.
func (w Work) Hops() int {
	n := 0
	for _, m := range w.Messages {
		n = max(n, m.Hops)
	}
	if w.Person() {
		return 0
	}
	return n
}

// Root is AtWork.Root for the run that does the work.
func (w Work) Root(run claybot.RunID) claybot.RunID {
	for _, m := range w.Messages {
		if m.Root != "" {
			return m.Root
		}
	}
	return run
}

// Budgets are those of the runs of workflows for which the work of a run is done, each once.
func (w Work) Budgets(run claybot.RunID) (all []claybot.RunBudget) {
	for _, m := range w.Messages {
		for _, b := range m.Budgets {
			b.Run = cmp.Or(b.Run, run)
			if !slices.Contains(all, b) {
				all = append(all, b)
			}
		}
	}
	return all
}

// Dry reports whether the work is part of a dry run, in which no person can be asked.
func (w Work) Dry() bool {
	return slices.ContainsFunc(w.Messages, func(m claybot.AgentMessage) bool { return m.Dry || m.Flow != nil && m.Flow.Dry })
}

// Newest is the message that the work answers: the last one that is not silent.
func (w Work) Newest() claybot.AgentMessage {
	for _, m := range slices.Backward(w.Messages) {
		if !m.Silent {
			return m
		}
	}
	return claybot.AgentMessage{}
}

// Route is where the work is answered.
func (w Work) Route() claybot.Route {
	return w.Newest().ReplyRoute(w.Agent.Descriptor)
}
