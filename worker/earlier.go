package worker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// The bounds of what was said in a chat before a message.
const (
	earlierTime  = 5 * time.Second // to read it, for all messages that a run takes at once
	earlierText  = 2000            // bytes of one message
	earlierBytes = 16 << 10        // of all of them
)

// recall adds to the newest message of each thread, and of each channel, what was said there
// before it and the agent has not seen. It delays a run by earlierTime at most: what cannot be
// read by then is missing, and the next message brings it. It is stored with the message, so
// that later passes see the same.
func (p *pass) recall(ctx context.Context, ms []claybot.AgentMessage) {
	ctx, cancel := context.WithTimeout(ctx, earlierTime)
	defer cancel()
	read := make(map[string]bool)
	for i, m := range slices.Backward(ms) {
		thread := threadOf(m)
		if !m.Context.Group || m.Type != claybot.MessageUser || m.Context.MessageID == "" || read[thread] {
			continue
		}
		read[thread] = true
		records := p.talk.history.Records()
		if at := slices.IndexFunc(records, func(r claybot.Record) bool { return r.MessageID == m.ID }); at >= 0 {
			ms[i].Earlier = records[at].Earlier // by an earlier pass
			continue
		}
		if p.job.run.Cancel == "" && !p.job.charges.GivenUp() {
			ms[i].Earlier = p.earlier(ctx, m, thread)
		}
	}
}

// threadOf returns the thread that a message belongs to; empty for the channel, to which a
// message with which a thread begins belongs as well.
func threadOf(m claybot.AgentMessage) string {
	if m.Context.ThreadID == m.Context.MessageID {
		return ""
	}
	return m.Context.ThreadID
}

// unread is why a chat is missing when the store cannot say which messages are known.
const unread = "the messages of this chat cannot be read now"

// earlier reads what was said before a message; nil where nothing is read. If nothing is new, it
// still says up to where the thread is read, so that the next message starts from there.
func (p *pass) earlier(ctx context.Context, m claybot.AgentMessage, thread string) *claybot.Earlier {
	limit := 0
	if thread != "" {
		limit = profiles.ContextOfThreads
	}
	if set := p.job.profile.Context; set != nil {
		limit = *set
	}
	if limit == 0 || p.worker.parts.Said == nil {
		return nil
	}
	upto, since := seen(p.talk.history, thread)
	said, more, kept, err := p.worker.parts.Said(ctx, p.job.agent, connectors.Span{
		Channel: p.job.agent.Descriptor.ChannelID, Thread: thread, After: upto, Before: m.Context.MessageID, Limit: 2 * limit, // some are known
	})
	switch {
	case !kept:
		return nil
	case err != nil:
		return &claybot.Earlier{Thread: thread, Missing: err.Error()}
	}
	e := &claybot.Earlier{Thread: thread, Upto: m.Context.MessageID, More: more}
	left := earlierBytes
	for _, s := range slices.Backward(said) {
		if s.At <= since {
			e.More = false // what is left out was forgotten
			break
		}
		known, err := p.knows(ctx, s)
		if err != nil { // half of it would be taken for all of it
			p.job.log.Warn("failed to look up the messages of a chat", "err", err)
			return &claybot.Earlier{Thread: thread, Missing: unread}
		}
		if known {
			continue
		}
		s.Text, s.Ref = texts.Shorten(s.Text, earlierText), ""
		if left -= len(s.Text); left < 0 || len(e.Said) == limit {
			e.More = true
			break
		}
		e.Said, e.Others = append(e.Said, s), e.Others || s.UserID != m.From.UserID || s.Passed
	}
	slices.Reverse(e.Said)
	return e
}

// seen returns the message up to which an agent has seen a thread, and the time before which
// all that was said is forgotten, or a part of a summary.
func seen(h storage.History, thread string) (upto string, since claybot.Time) {
	if m := h.Marker(); m.Type == claybot.RecordReset {
		since = m.At
	}
	for _, r := range slices.Backward(h.Records()) {
		switch e := r.Earlier; {
		case r.Type == claybot.RecordSummary:
			return "", since
		case e != nil && e.Thread == thread && e.Upto != "" && !r.Aside:
			return e.Upto, since
		case r.Type == claybot.RecordUser && h.Marker().Type == "":
			since = r.At
		}
	}
	return "", since
}

// knows reports whether a message is one of the agent's conversation: that it got, or an
// answer of its own. Without a memory it knows none.
func (p *pass) knows(ctx context.Context, s claybot.Said) (bool, error) {
	if p.job.forgets() {
		return false, nil
	}
	if s.Outgoing != "" {
		o, err := p.worker.stores.Outbox.OutgoingByID(ctx, s.Outgoing)
		return err == nil && o.Agent == p.job.agent.ID, found(err)
	}
	d := p.job.agent.Descriptor
	ids, err := p.worker.stores.Receipts.FindMessages(ctx, cmp.Or(s.Ref, d.Connector+"/"+d.ChannelID+"/"+s.ID))
	if err != nil || len(ids) == 0 {
		return false, found(err)
	}
	r, err := p.worker.stores.Receipts.Receipt(ctx, ids[0])
	return err == nil && r.Agent == p.job.agent.ID, found(err)
}

// found returns the error of a look-up; nil where there was nothing to find.
func found(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
