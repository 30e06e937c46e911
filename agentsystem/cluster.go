package agentsystem

import (
	"context"
	"errors"
	"time"

	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

const (
	// pollShared is how often a node looks for due agents that nobody told it of.
	pollShared = 2 * time.Second
	// mendClaim is the claim of whoever mends what nodes left behind that are gone.
	mendClaim = "mend"
	mendPause = time.Second
)

// newBoxes are the inboxes of a node. Agents are held under the id of its present
// term.
func newBoxes(cfg Config) *inbox.Inboxes {
	c := inbox.Config{Store: cfg.Inbox, Node: cfg.Members.Node, TTL: cfg.Lease}
	if !cfg.Members.IsAlone() {
		c.Poll = pollShared
	}
	return inbox.New(c)
}

// Working is how many agents this node works on.
func (s *AgentSystem) Working() int { return s.boxes.Working() }

// followNodes gives up what was held in a term that is over, and takes work again
// when the next one begins, until ctx is done.
func (s *AgentSystem) followNodes(ctx context.Context) {
	for ctx.Err() == nil {
		changed := s.Members.Changed()
		s.boxes.Lapse()
		s.boxes.Wake()
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
}

// mendAll does at the start, and whenever a node has gone, what that node may
// have left undone: it stops helpers that nobody waits for, and carries out what
// people have typed. To do it twice does no harm, but costs a walk over all
// agents, and two walks side by side could stop an agent that is at its next task
// already; so it stands on a claim.
func (s *AgentSystem) mendAll(ctx context.Context) {
	var known []storage.Member
	todo := true
	for ctx.Err() == nil {
		changed := s.Members.Changed()
		for _, n := range known {
			todo = todo || s.Members.Gone(n.ID)
		}
		if s.Members.Term() != nil {
			known = s.Members.Alive()
		}
		if todo {
			todo = !s.mend(ctx)
		}
		var later <-chan time.Time
		if todo {
			later = time.After(mendPause)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-later:
		}
	}
}

// mend does it now. False means that it is to be tried again.
func (s *AgentSystem) mend(ctx context.Context) bool {
	hold, err := s.Members.Claim(ctx, mendClaim)
	if errors.Is(err, storage.ErrHeld) {
		return true // who has it walks now, and again after whatever goes meanwhile
	}
	if err != nil {
		if ctx.Err() == nil && s.Members.Trusted() == nil {
			s.Log.Warn("cannot claim the mending of what others left; trying again", "err", err)
		}
		return false
	}
	mine, free := hold.Context(ctx)
	s.Subagents.StopOrphans(mine)
	s.Questions.TakeTyped(mine)
	ended := mine.Err() == nil
	free()
	if err := hold.Yield(ctx, false); err != nil {
		s.Log.Debug("cannot yield a claim", "claim", mendClaim, "err", err)
	}
	return ended
}
