package agentsystem

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/storage"
)

const (
	// unapprovedMost and unapprovedBytes bound what is kept of a person who asks for access, in all
	// conversations: messages, and their text. In all, a connector has the messages of those with an open request.
	unapprovedMost  = 3
	unapprovedBytes = 8 << 10
	// lookUnapproved is how often it is looked whether a request was decided.
	lookUnapproved = 2 * time.Second
)

// errUnapproved is why a parked message waits: an operator decides about its sender.
var errUnapproved = errors.New(storage.ParkedUnapproved)

// keep parks a message of an unknown user who has an open request for access: a text, in a direct
// chat, within the bounds. It is posted when they get access, and erased if they do not. m was
// refused, so no error but one of the store is returned.
func (p *parking) keep(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	if m.Type != claybot.MessageUser || m.Command != "" || m.Engine != "" || m.Silent || m.Context.Group || m.From.Bot || m.From.Outsider ||
		len(m.Files) > 0 || strings.TrimSpace(m.Text) == "" {
		return nil
	}
	asks, err := p.people.Asks(ctx, to.Connector, to.UserID)
	if err != nil || !asks {
		return err
	}
	m = p.intake.secrets.cleaned(m)
	m.Context.Quote, m.Context.Channel = "", "" // they have no bound
	_, err = p.store.Park(ctx, storage.Parked{To: to, Message: m, Cause: storage.ParkedUnapproved},
		storage.ParkRules{All: storage.MaxParked / 2, Person: unapprovedMost, PersonBytes: unapprovedBytes})
	if errors.Is(err, storage.ErrTooMany) || errors.Is(err, storage.ErrParkingFull) {
		return nil
	}
	p.counts.parked.Raise()
	return err
}

// amend erases a kept message of to that its sender deletes, or gives it the text of their edit, see
// conversations.amended. A text that is too long to be kept ends the message: what it said before is
// not what its sender wants answered.
func (p *parking) amend(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	list, err := p.store.ParkedOf(ctx, to.Key(), storage.MaxParkedAgent)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(x storage.Parked) bool { return x.Cause == storage.ParkedUnapproved && x.Message.ID == m.Amends })
	switch {
	case i < 0:
		return nil
	case m.Type == claybot.MessageDelete:
		return p.end(ctx, bare(list[i]), storage.SkippedDeleted)
	case list[i].Damaged != nil || strings.TrimSpace(m.Text) == "":
		return nil
	}
	x, m := list[i], p.intake.secrets.cleaned(m)
	others, err := p.keptBytes(ctx, to, x.Message.ID)
	switch {
	case err != nil:
		return err
	case others+len(m.Text) > unapprovedBytes:
		return p.end(ctx, bare(x), inbox.SkippedFull)
	}
	x.Message.Text, x.Message.Masked = m.Text, m.Masked
	return storage.Ignore(p.store.Repark(ctx, x), storage.ErrNotFound) // posted meanwhile
}

// keptBytes returns how much text is kept of the person of to in all conversations, but for one message.
func (p *parking) keptBytes(ctx context.Context, to claybot.Descriptor, except claybot.MessageID) (size int, err error) {
	agents, err := p.store.ParkedAgents(ctx, storage.MaxParked)
	if err != nil {
		return 0, err
	}
	for _, a := range agents {
		if d := claybot.DescriptorOf(a.Key); d.Connector != to.Connector || d.UserID != to.UserID {
			continue
		}
		list, err := p.store.ParkedOf(ctx, a.Key, storage.MaxParkedAgent)
		if err != nil {
			return 0, err
		}
		for _, x := range list {
			if x.Cause == storage.ParkedUnapproved && x.Message.ID != except {
				size += len(x.Message.Text)
			}
		}
	}
	return size, nil
}

// unapproved decides about a kept message: approved is true if its sender has access. It returns
// errUnapproved while their request is open, and ends the message otherwise, also where they got
// access after a denial.
func (p *parking) unapproved(ctx context.Context, x storage.Parked) (approved bool, err error) {
	refused, err := p.people.RefusedSince(ctx, x.To.Connector, x.To.UserID, x.At)
	switch {
	case err != nil:
		return false, err
	case refused:
		return false, p.end(ctx, bare(x), inbox.SkippedAccessDenied)
	case p.people.Admits(x.To, x.Message):
		return true, nil
	}
	open, err := p.people.Asks(ctx, x.To.Connector, x.To.UserID)
	switch {
	case err != nil:
		return false, err
	case open:
		return false, errUnapproved
	}
	// One commit ends a request and gives access: what this member knows of access may be older.
	if err := p.people.Load(ctx); err != nil {
		return false, err
	}
	if p.people.Admits(x.To, x.Message) {
		return true, nil
	}
	return false, p.end(ctx, bare(x), inbox.SkippedNotApproved)
}

// approved has the kept messages of an approved person wait like those of any other whose agent cannot
// be used.
func (p *parking) approved(ctx context.Context, x storage.Parked, cause error) error {
	list, err := p.store.ParkedOf(ctx, x.Key, unapprovedMost)
	for _, kept := range list {
		if err != nil || kept.Damaged != nil || kept.Cause != storage.ParkedUnapproved {
			continue
		}
		kept.Cause, kept.Message.Approved = cause.Error(), x.Message.Approved
		err = storage.Ignore(p.store.Repark(ctx, kept), storage.ErrNotFound)
	}
	return err
}

// bare is a parked message without what its sender wrote.
func bare(x storage.Parked) storage.Parked {
	m := x.Message
	x.Message = claybot.AgentMessage{ID: m.ID, Type: m.Type, At: m.At, Keys: m.Keys, From: claybot.Sender{UserID: m.From.UserID}}
	return x
}
