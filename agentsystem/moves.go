package agentsystem

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/worker"
)

// mostSeen bounds how many chats moves remember.
const mostSeen = 10_000

// Moves follow chats that get a new id. The new id is stored first; then agents, access and what
// was overheard move to it. A process that dies in between completes that before the next message
// of the chat is taken.
type moves struct {
	agents      *storage.Bounded
	index       Index
	outbox      storage.OutboxReader
	parked      storage.ParkedReader
	people      *people.Directory
	sender      *delivery.Deliverer
	worker      *worker.Worker
	members     *cluster.Membership
	overhearing *overhearing
	pending     *pendingCalls
	named       func() []string // the chats that the settings name; nil: none
	log         *slog.Logger

	mu   sync.Mutex
	seen map[storage.Chat]int // the chats that are known here, with Moves.Changes when all of them had moved
}

// moved is AgentSystem.Moved. An explicit decision about the channel moves with it; that
// access is open now is none. Chats of unknown users of which nothing is stored leave nothing behind.
func (m *moves) moved(ctx context.Context, connector, from, to string, at claybot.Time) error {
	defer m.pending.begin(connector)()
	if m.members.Others() > 0 { // another one may have stored the opposite, which holds
		if err := m.people.Moves.Load(ctx); err != nil {
			return err
		}
	}
	ours, err := m.concerns(ctx, connector, from)
	if err != nil || !ours {
		return err
	}
	if _, err := m.sender.Routes.Revive(ctx, connector, from); err != nil { // before: after a crash nothing does it again
		return err
	}
	if err := m.people.Note(ctx, connector, from, to, at); err != nil {
		return err
	}
	m.log.Info("channel has a new id", "connector", connector, "from", from, "to", to)
	return m.move(ctx, connector, m.people.Current(connector, to))
}

// concerns reports whether anything here names a chat, by this id or another one that it had: an
// explicit decision about its access, the settings, an agent, or a message that is stored for it or
// from it. Open access names none, so that unknown users cannot fill the store with new ids.
func (m *moves) concerns(ctx context.Context, connector, channel string) (bool, error) {
	now := m.people.Current(connector, channel)
	if m.people.Decided(connector, now) {
		return true, nil
	}
	ids := append(m.people.Former(connector, now), now, channel)
	for _, id := range ids {
		if m.named != nil && people.IsNamed(m.named(), connector, id) {
			return true, nil
		}
		agents, err := m.index.ChannelAgents(ctx, connector, id)
		if err != nil {
			return false, fmt.Errorf("find the agents of a channel: %w", err)
		}
		if len(agents) > 0 {
			return true, nil
		}
	}
	return m.stored(ctx, connector, ids)
}

// stored reports whether messages for a chat, or from it, are stored, by one of these ids.
func (m *moves) stored(ctx context.Context, connector string, ids []string) (bool, error) {
	for _, id := range ids {
		for _, aside := range []bool{false, true} {
			last, err := m.outbox.LastN(ctx, claybot.Route{Connector: connector, ChannelID: id, Aside: aside}.Dest())
			if err != nil || last > 0 {
				return last > 0, err
			}
		}
		if kept, err := m.overhearing.has(ctx, storage.Chat{Connector: connector, Channel: id}); err != nil || kept {
			return kept, err
		}
	}
	waiting, err := m.parked.ParkedAgents(ctx, storage.MaxParked)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(waiting, func(a storage.ParkedAgent) bool {
		d := claybot.DescriptorOf(a.Key)
		return d.Connector == connector && slices.Contains(ids, d.ChannelID)
	}), nil
}

// here returns d with the id that its chat has now, to which all of the chat has moved. A new
// chat, and one that is back at an id that it had, may have got it from another member a moment ago.
func (m *moves) here(ctx context.Context, d claybot.Descriptor) (claybot.Descriptor, error) {
	if !d.Foreground() {
		return d, nil
	}
	chat := storage.Chat{Connector: d.Connector, Channel: d.ChannelID}
	_, seen := m.known(chat)
	if seen = seen && m.people.Current(chat.Connector, chat.Channel) == chat.Channel; !seen && m.members.Others() > 0 {
		if err := m.people.Moves.Load(ctx); err != nil {
			return d, err
		}
	}
	chat.Channel = m.people.Current(d.Connector, d.ChannelID)
	d.ChannelID = chat.Channel
	if changes, seen := m.known(chat); seen && changes == m.people.Changes() {
		return d, nil
	}
	return d, m.move(ctx, chat.Connector, chat.Channel)
}

// known returns Moves.Changes when all of a chat had moved to it.
func (m *moves) known(chat storage.Chat) (changes int, seen bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	changes, seen = m.seen[chat]
	return changes, seen
}

// move moves what former ids of a chat have to the one that it has now. To call it again
// changes nothing.
func (m *moves) move(ctx context.Context, connector, to string) error {
	changes := m.people.Changes()
	for _, from := range m.people.Former(connector, to) {
		err := m.agents.MoveChannel(ctx, connector, from, to)
		if m.worker.OfOne(ctx, err) {
			m.log.Error("failed to move an agent to the new id of its channel", "connector", connector, "from", from, "to", to, "err", err)
		} else if err != nil {
			return fmt.Errorf("move channel: %w", err)
		}
		if err := m.people.MoveGrant(ctx, connector, from, to); err != nil {
			return err
		}
		if _, err := m.sender.Routes.Revive(ctx, connector, from); err != nil {
			return err
		}
		if err := m.overhearing.moved(ctx, connector, from, to); err != nil { // last: of a channel without access nothing is kept
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil || len(m.seen) >= mostSeen {
		m.seen = make(map[storage.Chat]int)
	}
	m.seen[storage.Chat{Connector: connector, Channel: to}] = changes
	return nil
}
