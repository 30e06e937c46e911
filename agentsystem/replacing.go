package agentsystem

import (
	"context"
	"time"

	"github.com/claybot/claybot/connectors"
)

// replaceTime is how long Replace waits for connectors to end.
const replaceTime = 10 * time.Second

// work is the life of a connector that has its place, and ends with ctx. Its start is over at once: from
// there on Health says how it does.
func (s *supervisor) work(ctx context.Context, name string, c connectors.Connector, up func()) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	up()
	if pooled, is := c.(connectors.Pooled); is {
		pooled.Wake()
		defer pooled.CloseIdleConnections()
	}
	defer s.standby.over(name)
	s.run(ctx, c, s.handler)
	return nil
}

// ended forgets the notices that are still to be sent about a connector that is replaced or gone.
func (s *supervisor) ended(name string, hangs bool) {
	if hangs {
		s.log.Warn("connector does not end", "connector", name)
	}
	s.alarms.drop(name)
}

// runAll runs the connectors until ctx is done, and returns when all have ended.
func (s *supervisor) runAll(ctx context.Context) {
	s.mu.Lock()
	clear(s.came) // those that are there when the work begins are not fresh
	s.mu.Unlock()
	_ = s.nodes.Run(ctx)
}

// follows says which former connector one waits for; empty for none.
func (s *supervisor) follows(name string) string {
	former, waits := s.nodes.Follows(name)
	if !waits {
		return ""
	}
	return "it waits for the former connector " + former + " to end"
}

// unwell returns the names of the connectors that do not work: what takes their place has yet to show
// that it does.
func (s *supervisor) unwell() map[string]bool {
	all := make(map[string]bool)
	for _, c := range s.All() {
		h := c.Health()
		all[c.Name()] = h.State == connectors.StateStopped || h.Lapsed() || h.State != connectors.StateStandby && h.LastOK.IsZero() && !s.Fresh(c.Name())
	}
	return all
}

// replace is AgentSystem.Replace. It returns the names that have another connector now.
func (s *supervisor) replace(ctx context.Context, cs []connectors.Connector) []string {
	s.replacing <- struct{}{}
	defer func() { <-s.replacing }()
	next, unwell := byName(cs), s.unwell()
	var changes []string
	for name, c := range next {
		if s.active(name) != c {
			changes = append(changes, name)
		}
	}
	s.comes(changes, unwell)
	changed := s.nodes.Reconcile(ctx, next)
	s.comes(changed, unwell) // the time until the former ones had ended does not count
	return changed
}

// restart is AgentSystem.Restart.
func (s *supervisor) restart(ctx context.Context, name string) error {
	s.replacing <- struct{}{}
	defer func() { <-s.replacing }()
	if s.active(name) == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, replaceTime)
	defer cancel()
	unwell := s.unwell()
	s.comes([]string{name}, unwell)
	node := s.nodes.Node(name)
	s.ended(name, node.Stop(ctx) != nil)
	defer s.comes([]string{name}, unwell)
	return node.Start(ctx)
}

// comes notes that connectors take the place of those that work, or of none; those whose former one was
// unwell do not.
func (s *supervisor) comes(names []string, unwell map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = true // these are the connectors, whatever Run is called with
	for _, name := range names {
		s.came[name] = time.Now()
		if unwell[name] {
			delete(s.came, name)
		}
	}
}

// byName returns connectors by their names.
func byName(cs []connectors.Connector) map[string]connectors.Connector {
	all := make(map[string]connectors.Connector, len(cs))
	for _, c := range cs {
		all[c.Name()] = c
	}
	return all
}
