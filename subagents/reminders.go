package subagents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// The bounds of reminders.
const (
	maxReminders  = 1000 // of one agent
	maxNote       = 4000 // bytes
	remindAtMost  = 366 * 24 * time.Hour
	lateReminder  = time.Minute // later than this, a reminder says so
	lookReminders = 30 * time.Second
	// lookShared is how often a member looks for reminders that another one keeps
	// time for, and so how late they are when that one has crashed.
	lookShared = 10 * time.Second
	// leastReminder keeps an agent from waking itself again and again.
	leastReminder = time.Minute
)

// Reminders keeps the notes that agents send to themselves later, and posts them.
type Reminders struct {
	store    storage.Reminders
	index    Index
	poster   Poster
	complete func(ctx context.Context, agent claybot.Agent, m claybot.AgentMessage) (storage.Posting, error)
	work     *runs.AtWork
	clock    Clock
	added    chan struct{} // a reminder was added
	log      *slog.Logger
}

var _ tools.Reminders = (*Reminders)(nil)

// RemindAll posts reminders when they are due, until ctx is done. It looks at
// the clock again and again while some are left, as the clock may be set.
//
// Several members run it concurrently, without a leader: the store deletes a reminder in
// the transaction that posts it, so exactly one member posts it.
func (r *Reminders) RemindAll(ctx context.Context) {
	for ctx.Err() == nil {
		posted, next, err := r.store.Remind(ctx, claybot.Now(), func(due storage.Reminder) (storage.Posting, error) {
			e, err := r.index.IndexedAgentByID(ctx, due.Agent)
			if err != nil {
				return storage.Posting{}, err
			}
			return r.complete(ctx, claybot.Agent{ID: due.Agent, Descriptor: e.Descriptor}, reminderMessage(due))
		})
		if err != nil && ctx.Err() == nil {
			r.log.Error("failed to read reminders, retrying", "err", err)
			next = claybot.Now()
		}
		if posted > 0 {
			r.poster.Wake()
			continue // there may be more
		}
		var look <-chan time.Time
		if next != 0 {
			look = time.After(max(time.Second/20, min(time.Until(next.Time()), lookReminders)))
		}
		if err != nil {
			look = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
		case <-r.added:
		case <-look:
		case <-r.clock.Elsewhere(lookShared):
		}
	}
}

// reminderMessage returns the message that a reminder becomes.
func reminderMessage(r storage.Reminder) claybot.AgentMessage {
	now := claybot.Now()
	text := r.Note
	if now.Time().Sub(r.Due.Time()) > lateReminder {
		text = texts.LateReminder(text, r.Due)
	}
	return claybot.AgentMessage{
		ID: claybot.MessageID("reminder/" + r.ID), Type: claybot.MessageSystem, Kind: claybot.KindReminder,
		From: claybot.Sender{Name: "reminder"}, Text: text, At: now, Context: r.Context, Route: r.Route,
		Private: true, // what the agent had read when it wrote the note is not known any more
	}
}

// RemindMe implements tools.Reminders.
func (r *Reminders) RemindMe(ctx context.Context, env tools.Env, at time.Time, note string) (string, error) {
	note = strings.TrimSpace(claybot.Clean(note))
	switch {
	case note == "":
		return "", errors.New("note must not be empty")
	case len(note) > maxNote:
		return "", fmt.Errorf("note has %d bytes; at most %d are kept", len(note), maxNote)
	case at.Before(time.Now().Add(-lateReminder)):
		return "", fmt.Errorf("%s lies in the past; it is %s", at.Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339))
	case time.Until(at) > remindAtMost:
		return "", fmt.Errorf("%s is more than a year away", at.Format(time.RFC3339))
	}
	turn := r.work.Of(env.Run)
	if time.Until(at) < leastReminder && !turn.Person() {
		return "", fmt.Errorf("without a word of a person, a reminder must lie at least %v ahead", leastReminder)
	}
	from := turn.Newest()
	if from.Route != nil && from.Route.Connector == "" { // the asker gets the answer, but not this
		from.Route = nil
	}
	kept := storage.Reminder{
		ID: env.UID(0), Agent: env.Agent.ID, Due: claybot.At(at), Note: note, Made: claybot.Now(),
		Context: claybot.MessageContext{ThreadID: from.Context.ThreadID, Group: from.Context.Group}, Route: from.Route,
	}
	err := r.store.AddReminder(ctx, kept, maxReminders)
	if errors.Is(err, storage.ErrTooMany) {
		return "", fmt.Errorf("you have %d reminders already; cancel some first", maxReminders)
	}
	if err != nil {
		return "", fmt.Errorf("keep the reminder: %w", err)
	}
	select {
	case r.added <- struct{}{}:
	default:
	}
	return kept.ID, nil
}

// Reminders implements tools.Reminders.
func (r *Reminders) Reminders(ctx context.Context, env tools.Env) ([]tools.Reminder, error) {
	all, err := r.store.Reminders(ctx, env.Agent.ID)
	if err != nil {
		return nil, fmt.Errorf("list reminders: %w", err)
	}
	list := make([]tools.Reminder, len(all))
	for i, x := range all {
		list[i] = tools.Reminder{ID: x.ID, At: x.Due.Time(), Note: x.Note}
	}
	return list, nil
}

// CancelReminder implements tools.Reminders.
func (r *Reminders) CancelReminder(ctx context.Context, env tools.Env, id string) error {
	err := r.store.CancelReminder(ctx, env.Agent.ID, id)
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("you have no reminder %.40q; it may have come already", id)
	}
	return err
}

// NextReminders lists the reminders of all agents, the next one first, at most limit.
func (r *Reminders) NextReminders(ctx context.Context, limit int) ([]storage.Reminder, error) {
	return r.store.NextReminders(ctx, limit)
}

// AgentReminders lists the reminders of an agent, the next one first.
func (r *Reminders) AgentReminders(ctx context.Context, id claybot.AgentID) ([]storage.Reminder, error) {
	if _, err := r.index.IndexedAgentByID(ctx, id); err != nil {
		return nil, err
	}
	return r.store.Reminders(ctx, id)
}
