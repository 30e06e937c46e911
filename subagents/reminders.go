package subagents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// The bounds of reminders.
const (
	maxReminders  = 1000 // of one agent
	maxNote       = 4000 // bytes
	remindAtMost  = 366 * 24 * time.Hour
	lateReminder  = time.Minute // later than this, a reminder says so
	lookReminders = 30 * time.Second
	// lookShared is how often a node looks for reminders that another one keeps
	// time for, and so how late they are when that one has crashed.
	lookShared = 10 * time.Second
	// leastReminder keeps an agent from waking itself again and again.
	leastReminder = time.Minute
)

// RemindAll posts reminders when they are due, until ctx is done. It looks at
// the clock again and again while some are left, as the clock may be set.
//
// Several members run it concurrently, without a leader: the store deletes a reminder in
// the transaction that posts it, so exactly one member posts it.
func (s *Subagents) RemindAll(ctx context.Context) {
	for ctx.Err() == nil {
		posted, next, err := s.Later.Remind(ctx, claybot.Now(), func(r storage.Reminder) (storage.Posting, error) {
			e, err := s.Index.IndexedAgentByID(ctx, r.Agent)
			if err != nil {
				return storage.Posting{}, err
			}
			return s.Intake.Complete(ctx, claybot.Agent{ID: r.Agent, Descriptor: e.Descriptor}, reminderMessage(r))
		})
		if err != nil && ctx.Err() == nil {
			s.Log.Error("failed to read reminders, retrying", "err", err)
			next = claybot.Now()
		}
		if posted > 0 {
			s.Poster.Wake()
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
		case <-s.remind:
		case <-look:
		case <-s.Clock.Elsewhere(lookShared):
		}
	}
}

// reminderMessage returns the message that a reminder becomes.
func reminderMessage(r storage.Reminder) claybot.AgentMessage {
	now := claybot.Now()
	text := r.Note
	if late := now.Time().Sub(r.Due.Time()); late > lateReminder {
		text += fmt.Sprintf("\n(late: it was due at %s)", r.Due.Time().UTC().Format(time.RFC3339))
	}
	return claybot.AgentMessage{
		ID: claybot.MessageID("reminder/" + r.ID), Type: claybot.MessageSystem, Kind: claybot.KindReminder,
		From: claybot.Sender{Name: "reminder"}, Text: text, At: now, Context: r.Context, Route: r.Route,
	}
}

// RemindMe implements tools.Reminders.
func (s *Subagents) RemindMe(ctx context.Context, env tools.Env, at time.Time, note string) (string, error) {
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
	turn := s.Work.Of(env.Run)
	if time.Until(at) < leastReminder && !turn.Person() {
		return "", fmt.Errorf("without a word of a person, a reminder must lie at least %v ahead", leastReminder)
	}
	from := turn.Newest()
	if from.Route != nil && from.Route.Connector == "" { // the asker gets the answer, but not this
		from.Route = nil
	}
	r := storage.Reminder{
		ID: env.UID(0), Agent: env.Agent.ID, Due: claybot.At(at), Note: note, Made: claybot.Now(),
		Context: claybot.MessageContext{ThreadID: from.Context.ThreadID, Group: from.Context.Group}, Route: from.Route,
	}
	err := s.Later.AddReminder(ctx, r, maxReminders)
	if errors.Is(err, storage.ErrTooMany) {
		return "", fmt.Errorf("you have %d reminders already; cancel some first", maxReminders)
	}
	if err != nil {
		return "", fmt.Errorf("keep the reminder: %w", err)
	}
	select {
	case s.remind <- struct{}{}:
	default:
	}
	return r.ID, nil
}

// Reminders implements tools.Reminders.
func (s *Subagents) Reminders(ctx context.Context, env tools.Env) ([]tools.Reminder, error) {
	all, err := s.Later.Reminders(ctx, env.Agent.ID)
	if err != nil {
		return nil, fmt.Errorf("list reminders: %w", err)
	}
	list := make([]tools.Reminder, len(all))
	for i, r := range all {
		list[i] = tools.Reminder{ID: r.ID, At: r.Due.Time(), Note: r.Note}
	}
	return list, nil
}

// CancelReminder implements tools.Reminders.
func (s *Subagents) CancelReminder(ctx context.Context, env tools.Env, id string) error {
	err := s.Later.CancelReminder(ctx, env.Agent.ID, id)
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("you have no reminder %.40q; it may have come already", id)
	}
	return err
}

// NextReminders lists the reminders of all agents, the next one first, at most limit.
func (s *Subagents) NextReminders(ctx context.Context, limit int) ([]storage.Reminder, error) {
	return s.Later.NextReminders(ctx, limit)
}

// AgentReminders lists the reminders of an agent, the next one first.
func (s *Subagents) AgentReminders(ctx context.Context, id claybot.AgentID) ([]storage.Reminder, error) {
	if _, err := s.Index.IndexedAgentByID(ctx, id); err != nil {
		return nil, err
	}
	return s.Later.Reminders(ctx, id)
}
