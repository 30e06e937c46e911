package agentsystem

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

const (
	// mostOverheard is how many messages are kept of each thread of a group.
	mostOverheard = 250
	// overheardText is how many bytes are kept of a message.
	overheardText = 2000
	// sweepEvery is how often messages are removed of groups that are not to be kept any more.
	sweepEvery = time.Hour
)

// overhearing keeps what is said in groups whose platform shows bots no earlier messages. It
// keeps nothing unless the group has access, and its profile asks for context.
type overhearing struct {
	store   storage.Chatter // nil: nothing is kept
	profile func(claybot.Descriptor) profiles.Profile
	people  *people.Directory
	masked  func(text string) string
	log     *slog.Logger
}

// keeps reports whether messages of the group of d are kept.
func (o *overhearing) keeps(d claybot.Descriptor) bool {
	if o.store == nil || !d.Foreground() {
		return false
	}
	p := o.profile(d)
	return p.Context != nil && *p.Context > 0 && p.Respond != profiles.RespondOff && o.people.Allowed(d, true)
}

// overheard is AgentSystem.Overheard.
func (o *overhearing) overheard(ctx context.Context, all []connectors.Overheard) error {
	var said []storage.SaidIn
	for _, x := range all {
		x.In.ChannelID = o.people.Current(x.In.Connector, x.In.ChannelID)
		if !o.keeps(x.In) || x.Said.ID == "" {
			continue
		}
		m := x.Said
		m.Text = texts.Shorten(o.masked(m.Text), overheardText)
		said = append(said, storage.SaidIn{Chat: storage.Chat{Connector: x.In.Connector, Channel: x.In.ChannelID}, Thread: x.Thread, Said: m, Edit: x.Edit})
	}
	if len(said) == 0 {
		return nil
	}
	return o.store.KeepSaid(ctx, mostOverheard, said...)
}

// said returns what is kept of a span of the chat of d, as connectors.Historian does.
func (o *overhearing) said(ctx context.Context, d claybot.Descriptor, s connectors.Span) (said []claybot.Said, more bool, err error) {
	said, err = o.store.SaidIn(ctx, storage.Chat{Connector: d.Connector, Channel: s.Channel}, s.Thread)
	if err != nil {
		return nil, false, err
	}
	if s.Before != "" {
		if strings.Trim(s.Before, "0123456789") != "" {
			return nil, false, &connectors.RefusedError{Text: fmt.Sprintf("%.40q is not the id of a message of this chat", s.Before)}
		}
		i, _ := place(said, s.Before)
		said = said[:i]
	}
	if s.After != "" {
		// A group that got a new id counts its messages anew: then After is not among them.
		if i, found := place(said, s.After); found {
			said = said[i+1:]
		} else if s.Before == "" || older(s.After, s.Before) {
			said = said[i:]
		}
	}
	if extra := len(said) - s.Limit; extra > 0 {
		return said[extra:], true, nil
	}
	return said, false, nil
}

// place returns where the message of an id is in a list, or would be.
func place(said []claybot.Said, id string) (i int, found bool) {
	for i, m := range slices.Backward(said) {
		if m.ID == id {
			return i, true
		}
	}
	for i = len(said); i > 0 && !older(said[i-1].ID, id); i-- {
	}
	return i, false
}

// older compares the ids of messages, which are numbers.
func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// forget removes what was said in a channel up to a time; 0: all of it.
func (o *overhearing) forget(ctx context.Context, connector, channel string, upto claybot.Time) error {
	if o.store == nil {
		return nil
	}
	return o.store.ForgetSaid(ctx, storage.Chat{Connector: connector, Channel: channel}, upto)
}

// moved moves what was said in a channel to its new id.
func (o *overhearing) moved(ctx context.Context, connector, from, to string) error {
	if o.store == nil {
		return nil
	}
	return o.store.MoveSaid(ctx, connector, from, to)
}

// has reports whether something is kept of a chat.
func (o *overhearing) has(ctx context.Context, chat storage.Chat) (bool, error) {
	if o.store == nil {
		return false, nil
	}
	chats, err := o.store.SaidChats(ctx)
	return slices.Contains(chats, chat), err
}

// sweep removes what was said in groups that are not to be kept any more.
func (o *overhearing) sweep(ctx context.Context) error {
	if o.store == nil {
		return nil
	}
	chats, err := o.store.SaidChats(ctx)
	if err != nil {
		return err
	}
	for _, c := range chats {
		if o.keeps(claybot.User(c.Connector, c.Channel, claybot.Everyone)) {
			continue
		}
		if err := o.forget(ctx, c.Connector, c.Channel, 0); err != nil {
			return err
		}
		o.log.Info("removed the messages of a group that is not kept any more", "connector", c.Connector, "channel", c.Channel)
	}
	return nil
}

// sweepAll sweeps at the start and from time to time, until ctx is done.
func (o *overhearing) sweepAll(ctx context.Context) {
	for ctx.Err() == nil {
		if err := o.sweep(ctx); err != nil && ctx.Err() == nil {
			o.log.Warn("failed to remove the messages of groups that are not kept any more, retrying", "err", err)
		}
		claybot.Sleep(ctx, sweepEvery)
	}
}
