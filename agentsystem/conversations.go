package agentsystem

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/storage"
)

// conversations finds the conversation that a message belongs to.
type conversations struct {
	own      func() bool // each thread is a conversation of its own
	profile  func(claybot.Descriptor) profiles.Profile
	index    Index
	runs     storage.RunReader
	people   *people.Directory
	receipts storage.Receipts
	spelling spelling
	marks    storage.Checkpoints // nil: the parts of albums do not belong together
}

// hears reports whether a message of a group is for an agent, as the profile of the channel
// says, or because it is of an album that is.
func (c conversations) hears(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	switch c.profile(d).Respond {
	case profiles.RespondOff:
		return false, nil
	case profiles.RespondAll:
		return true, nil
	case profiles.RespondThread:
		if m.Context.Unaddressed && m.Context.ThreadID != "" {
			if takes, err := c.takesPart(ctx, d, m.Context.ThreadID); takes || err != nil {
				return takes, err
			}
		}
	}
	if !m.Context.Unaddressed {
		return true, nil
	}
	return c.ofAlbum(ctx, d, m)
}

// ofAlbum reports whether an earlier part of the album of a message was addressed to the bot. A
// platform delivers the parts as messages of their own, and only the first has the caption with
// the mention.
func (c conversations) ofAlbum(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	if m.Context.GroupID == "" || c.marks == nil {
		return false, nil
	}
	at, err := c.marks.Checkpoint(ctx, albumMark(d, m))
	return at != "", err
}

// noteAlbum stores that the album of a message is for the bot, if it is addressed to it. It is
// stored before the message, so that no part is lost by a crash, and is removed after a day.
func (c conversations) noteAlbum(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) error {
	if m.Context.GroupID == "" || !m.Context.Group || m.Context.Unaddressed || c.marks == nil {
		return nil
	}
	return c.marks.SetCheckpoint(ctx, albumMark(d, m), fmt.Sprintf("%013d ", claybot.Now()))
}

func albumMark(d claybot.Descriptor, m claybot.AgentMessage) string {
	return storage.CheckpointRepeats + "album/" + d.Connector + "/" + d.ChannelID + "/" + m.Context.GroupID
}

// takesPart reports whether an agent has a conversation in a thread: where threads have
// conversations of their own, with any person; otherwise where the agent of d was written to
// last.
func (c conversations) takesPart(ctx context.Context, d claybot.Descriptor, thread string) (bool, error) {
	if !c.own() {
		id, err := c.index.IndexedAgent(ctx, c.group(d, claybot.AgentMessage{Context: claybot.MessageContext{Group: true}}))
		if err != nil {
			return false, unlessGone(err)
		}
		last, err := c.people.LastContext(ctx, id)
		return last.ThreadID == thread, err
	}
	agents, err := c.index.ChannelAgents(ctx, d.Connector, d.ChannelID)
	if err != nil {
		return false, fmt.Errorf("look for the agents of a thread: %w", err)
	}
	return slices.ContainsFunc(agents, func(e storage.IndexEntry) bool { return e.Descriptor.ThreadID == thread }), nil
}

// recentConversations is how many conversations of a person are looked through for the one
// that a command without a thread concerns.
const recentConversations = 100

// group returns the agent of a group or channel to which a message belongs: that of its
// sender, or the one that all members share, as the profile of the channel says.
func (c conversations) group(d claybot.Descriptor, m claybot.AgentMessage) claybot.Descriptor {
	if m.Context.Group && m.Type != claybot.MessageSystem && c.shares(d) {
		d.UserID = claybot.Everyone
	}
	return d
}

// shares reports whether the members of the group of d share one agent.
func (c conversations) shares(d claybot.Descriptor) bool { return c.profile(d).Shared }

// sender returns the id of the person of d where m goes to a shared agent, which does not tell
// who wrote m; otherwise it is empty.
func (c conversations) sender(d claybot.Descriptor, m claybot.AgentMessage) string {
	if d.Foreground() && c.group(d, m) != d {
		return d.UserID
	}
	return ""
}

// place returns the descriptor of the conversation of d that m belongs to: that of its
// thread, where threads are conversations of their own. A command that was entered in no
// thread, because the platform has no commands there, concerns the conversation of the
// channel to which its person wrote last; one that names a run concerns that run's.
func (c conversations) place(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) (claybot.Descriptor, error) {
	if !d.Foreground() || d.ThreadID != "" || m.Type == claybot.MessageSystem {
		return d, nil
	}
	if d = c.group(d, m); !c.own() {
		return d, nil
	}
	if of, found, err := c.ofRun(ctx, d, m); err != nil || found {
		return of, err
	}
	if m.Context.ThreadID != "" || m.Context.MessageID != "" || !commands(m) || m.Engine != "" {
		d.ThreadID = m.Context.ThreadID
		return d, nil
	}
	left := recentConversations
	for e, err := range c.index.Foreground(ctx, []string{d.OwnerID()}) {
		if err != nil {
			return d, fmt.Errorf("find the conversation of %s: %w", m.ID, err)
		}
		if e.Descriptor.Connector == d.Connector && e.Descriptor.ChannelID == d.ChannelID && e.Descriptor.UserID == d.UserID {
			return e.Descriptor, nil
		}
		if left--; left == 0 {
			break
		}
	}
	return d, nil
}

// ofRun returns the conversation of d's person in that channel to which the run belongs that a
// command names, if it names one.
func (c conversations) ofRun(ctx context.Context, d claybot.Descriptor, m claybot.AgentMessage) (of claybot.Descriptor, found bool, err error) {
	if m.Type != claybot.MessageCommand || m.Command != "undo" || m.Text == "" {
		return d, false, nil
	}
	run, err := c.runs.Run(ctx, claybot.RunID(m.Text))
	if err != nil {
		return d, false, unlessGone(err)
	}
	e, err := c.index.IndexedAgentByID(ctx, run.Agent)
	if err != nil {
		return d, false, unlessGone(err)
	}
	return e.Descriptor, e.Descriptor.Connector == d.Connector && e.Descriptor.ChannelID == d.ChannelID && e.Descriptor.UserID == d.UserID, nil
}

// amended finds the message that an edit or a deletion is about. It returns the agent that
// has it, and m with its id. found is false if there is none that the same person wrote in
// the same channel: then there is nothing to change.
func (c conversations) amended(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) (of claybot.Descriptor, _ claybot.AgentMessage, found bool, err error) {
	ids, err := c.spelling.find(ctx, c.receipts, to.Connector, to.ChannelID, m.Amends)
	if err != nil || len(ids) == 0 {
		return to, m, false, err
	}
	m.Amends = ids[len(ids)-1]
	was, err := c.receipts.Receipt(ctx, m.Amends)
	if err != nil {
		return to, m, false, unlessGone(err)
	}
	if was.Agent == "" { // parked: the agent does not exist yet
		of, err = c.place(ctx, to, was.Message)
	} else {
		var e storage.IndexEntry
		e, err = c.index.IndexedAgentByID(ctx, was.Agent)
		of = e.Descriptor
	}
	if err != nil {
		return to, m, false, unlessGone(err)
	}
	m.Context.ThreadID, m.Context.Group = was.Message.Context.ThreadID, was.Message.Context.Group
	if of.Type == claybot.AgentFlow {
		m.Route = was.Message.Route // it has no chat of its own
		return of, m, startedIn(was.Message, to) && was.Message.From.UserID == m.From.UserID, nil
	}
	return of, m, of.Connector == to.Connector && of.ChannelID == to.ChannelID && was.Message.From.UserID == m.From.UserID, nil
}

// unlessGone returns err unless it says that there is no such message or agent, or that it
// is damaged.
func unlessGone(err error) error {
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrDamaged) {
		return nil
	}
	return err
}
