package discord

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors"
)

// A backfill closes gaps: where Discord does not resume a session, it reads what was written in
// the known conversations since then, and posts it under the ids of live messages, so that what
// was stored is recognized. Live messages of a conversation wait for it, and for no other one. A
// conversation that cannot be read gets a notice that messages may be missing. A gap lasts until
// all are settled.
type backfill struct {
	*receiver
	floor time.Time     // when the store was restored last: nothing older is posted
	slots chan struct{} // of conversations that are read at once

	mu       sync.Mutex               // also of the counts of a gap that is read
	checking chan struct{}            // closed once the conversations are known; nil without a gap
	open     map[string]chan struct{} // by chat, closed once it is settled
	answered time.Time                // when Discord last answered a call, or the gap began to be read
}

// turn returns what a live message of a chat, or of a thread there, waits for; nil for nothing.
func (b *backfill) turn(chat string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.checking != nil {
		return b.checking
	}
	return b.open[chat]
}

// begin notes that there may be a gap, before any event of the new session is read. The function
// that it returns takes when the gap began, zero for none, and closes it, or leaves it to a later one if
// ctx is done; fresh says that nothing came live between the beginning of the gap and of the session.
func (b *backfill) begin() func(ctx context.Context, from time.Time, fresh bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	checking, to := make(chan struct{}), time.Now()
	b.checking = checking
	return func(ctx context.Context, from time.Time, fresh bool) {
		g := &connectors.Gap{From: from, To: to}
		known := b.chats != nil && !from.IsZero()
		var all []*conversation
		if known {
			all = b.list(ctx, g)
		}
		b.mu.Lock()
		b.answered = time.Now()
		for _, c := range all {
			c.fresh = fresh
			b.open[c.chat] = c.settled
		}
		if b.checking == checking {
			b.checking = nil
		}
		close(checking)
		b.mu.Unlock()
		if !known {
			return
		}
		b.fill(ctx, all, g)
		if ctx.Err() != nil {
			return
		}
		if b.log.Info("read what was written while the gateway was away", "from", from, "to", to, "conversations", len(all), "told", g.Chats, "unread", g.Unread); !g.Silent() {
			b.gap.Store(g)
		}
	}
}

// fill settles conversations, some at a time: a call that takes long holds up its conversation
// alone, and the list of threads of a server those of the server. What is tried again holds up no other one.
func (b *backfill) fill(ctx context.Context, all []*conversation, g *connectors.Gap) {
	lists := make(map[string]*listing) // by server
	var work sync.WaitGroup
	for _, c := range all {
		list := lists[c.guild]
		if c.guild != "" && list == nil {
			list = &listing{done: make(chan struct{})}
			lists[c.guild] = list
			work.Go(func() {
				b.slots <- struct{}{}
				list.threads = b.active(ctx, c.guild, &list.patience, g)
				<-b.slots
				close(list.done)
			})
		}
		work.Go(func() {
			if list != nil {
				<-list.done
				c.patience = list.patience
				b.threads(c, list.threads, g)
			}
			b.slots <- struct{}{}
			b.settle(ctx, c, g)
			<-b.slots
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.open[c.chat] == c.settled {
				delete(b.open, c.chat)
			}
			close(c.settled)
		})
	}
	work.Wait()
}

// A conversation is a chat with the channels to read: its own, and its latest threads.
type conversation struct {
	patience
	chat    string
	guild   string
	ids     []string
	fresh   bool // see begin
	settled chan struct{}
}

// A listing is what is asked for the threads of a server.
type listing struct {
	patience
	threads []channel
	done    chan struct{} // closed once the threads are known
}

// patience is for how long calls of a conversation have failed: what was written there since waits.
type patience struct{ failed time.Duration }

// list returns the conversations in which people wrote in the weeks before the gap.
func (b *backfill) list(ctx context.Context, g *connectors.Gap) (all []*conversation) {
	var chats []connectors.Chat
	connectors.Retry(ctx, b.log, "failed to list the conversations with missed messages, retrying", func() (err error) {
		chats, g.Unread, err = b.chats.Recent(ctx, b.cfg.Name, "", g.From.Add(-activeFor))
		return err
	})
	if g.Unread > 0 {
		b.log.Warn("conversations neither read nor notified after a gap", "count", g.Unread)
	}
	for _, chat := range chats {
		c := &conversation{chat: chat.ChannelID, ids: []string{chat.ChannelID[strings.LastIndexByte(chat.ChannelID, '/')+1:]}, settled: make(chan struct{})}
		if guild, _, server := strings.Cut(chat.ChannelID, "/"); server {
			c.guild = guild
		}
		for _, thread := range chat.Threads {
			if isID(thread) {
				c.ids = append(c.ids, thread)
			}
		}
		all = append(all, c)
	}
	return all
}

// call makes a call that leaves room for those of conversations that go on. After an outage, Discord
// may deliver events before it answers calls: the calls of a conversation are tried for minutes in all,
// and only a few times once those are over, or Discord has answered none for so long. The caller holds a
// slot, which others have meanwhile.
func (b *backfill) call(ctx context.Context, p *patience, x call, result any) error {
	x.behind = true
	began, before := time.Now(), p.failed
	var back connectors.Backoff
	for tries := 1; ; tries++ {
		err := b.api.soon(ctx, x, result)
		var refused *refusal
		if err == nil || errors.As(err, &refused) {
			b.mu.Lock()
			b.answered = time.Now()
			b.mu.Unlock()
			return err
		}
		p.failed = before + time.Since(began)
		b.mu.Lock()
		over := tries >= backfillTries && max(p.failed, time.Since(b.answered)) >= backfillPatience
		b.mu.Unlock()
		var asked time.Duration
		var retry *connectors.RetryError
		if errors.As(err, &retry) {
			asked = min(retry.After, backfillPatience)
		}
		if over {
			return err
		}
		<-b.slots
		alive := connectors.Sleep(ctx, back.Next(asked))
		b.slots <- struct{}{}
		if !alive {
			return err
		}
	}
}

// active lists the active threads of a server.
//
// Shape: docs.discord.com/developers/resources/guild (List Active Guild Threads), read 2026-11-28.
func (b *backfill) active(ctx context.Context, guild string, p *patience, g *connectors.Gap) []channel {
	var found struct {
		Threads []channel `json:"threads"`
	}
	err := b.call(ctx, p, call{method: http.MethodGet, what: "list threads", path: "/guilds/" + guild + "/threads/active", major: guild}, &found)
	if err != nil && ctx.Err() == nil && !absent(err) {
		b.log.Warn("failed to list the threads after a gap", "server", guild, "err", err)
		b.mu.Lock()
		defer b.mu.Unlock()
		g.Unlisted = err.Error()
	}
	return found.Threads
}

// threads adds the threads of a conversation in which people wrote since the gap began.
func (b *backfill) threads(c *conversation, active []channel, g *connectors.Gap) {
	after, added := snowflake(g.From.Add(-gapMargin)), 0
	for _, t := range active {
		switch {
		case c.chat != c.guild+"/"+t.Parent || !isID(t.ID) || slices.Contains(c.ids, t.ID) || !newer(t.ID, after) && !newer(t.Last, after):
		case added == maxNewThreads:
			b.mu.Lock()
			g.Unread++
			b.mu.Unlock()
		default:
			added++
			c.ids = append(c.ids, t.ID)
		}
	}
}

// newer reports whether an id is at or after another one.
func newer(id, after string) bool {
	return isID(id) && compareIDs(id, after) >= 0
}

// errTooLong is why messages may be missing in a conversation that was read.
var errTooLong = errors.New("more messages, or older ones, than are read again")

// An unread error is why a channel was not read to its end: the conversation waits no longer.
type unread struct{ error }

func (e unread) Error() string { return "read what was missed: " + e.error.Error() }
func (e unread) Unwrap() error { return e.error }

// settle reads a conversation, or tells it that messages may be missing.
func (b *backfill) settle(ctx context.Context, c *conversation, g *connectors.Gap) {
	var missing error
	for _, id := range c.ids {
		err := b.read(ctx, c, id, g)
		missing = cmp.Or(missing, err)
		if errors.As(err, &unread{}) {
			break
		}
	}
	if missing == nil || ctx.Err() != nil {
		return
	}
	b.log.Warn("messages may be missing in a conversation", "channel", c.chat, "since", g.From, "err", missing)
	b.mu.Lock()
	g.Chats, g.Reason = g.Chats+1, missing.Error()
	b.mu.Unlock()
	connectors.Retry(ctx, b.log, "failed to notify users that messages may be missing, retrying", func() error {
		_, err := b.chats.Missed(ctx, connectors.Missed{Connector: b.cfg.Name, From: g.From, To: g.To, Channels: []string{c.chat}, Flat: true})
		return err
	})
}

// read posts what was written in a channel or a thread since a gap began, oldest first. The error is
// why messages may be missing.
func (b *backfill) read(ctx context.Context, c *conversation, id string, g *connectors.Gap) (missing error) {
	from := g.From
	begin := from.Add(-gapMargin)
	if oldest := time.Now().Add(-backfillReach); begin.Before(oldest) {
		begin, missing = oldest, b.older(ctx, c, id, from, oldest)
		if errors.As(missing, &unread{}) {
			return missing
		}
	}
	if begin.Before(b.floor) {
		begin = b.floor
	}
	after := snowflake(begin)
	for first, pages := true, 0; pages < b.pages; first = false {
		page, err := b.since(ctx, c, id, after)
		switch {
		case absent(err):
			return nil // it missed nothing
		case err != nil:
			return unread{err}
		case first && len(page) == 0 && c.guild != "":
			if from.Before(b.floor) {
				from = b.floor
			}
			return cmp.Or(b.hidden(ctx, c, id, from, g.To), missing)
		}
		for _, m := range page {
			m.Guild, m.Channel = c.guild, id
			if !m.written() || m.Author.ID == b.bot || m.sentAt().Before(begin) {
				continue
			}
			b.authors.keep(m.ID, m.author(), maxAuthors)
			j := job{what: "message", id: m.ID, store: b.in(c.guild, id, func(ctx context.Context, in place) error { return b.wrote(ctx, m, in, false) })}
			if err := b.keep(ctx, j); err != nil {
				return err
			}
		}
		if len(page) < pageItems {
			return missing
		}
		last := page[len(page)-1]
		if after = last.ID; last.sentAt().After(from) {
			pages++
		}
	}
	return errTooLong
}

// hidden returns errNoHistory if a channel of a server has a message of a gap and shows none at all.
// Where its newest message came on a connection, that of the beginning of the session counts, unless
// what came in the gap may hide it there as well. A channel of threads has none of its own: it names its
// newest thread in place of them.
//
// docs.discord.com/developers/resources/channel, Channel Object, read 2026-11-28.
func (b *backfill) hidden(ctx context.Context, c *conversation, id string, from, to time.Time) error {
	var of channel
	var newest []message
	err := b.call(ctx, &c.patience, channelCall(http.MethodGet, "get channel", id, "", nil), &of)
	if c.fresh && (b.came(of.Last) || newer(of.Last, snowflake(to))) {
		of.Last = ""
		if began := b.channels.known.get(id); !b.came(began.Last) {
			of.Last = began.Last
		}
	}
	if err == nil && !of.forum() && newer(of.Last, snowflake(from)) {
		err = b.call(ctx, &c.patience, messagesCall(id, 1, ""), &newest)
		if err == nil && len(newest) == 0 {
			return errNoHistory
		}
	}
	if err == nil || absent(err) {
		return nil
	}
	return unread{err}
}

// came reports whether a message is known to have come, or to be of this process itself.
func (b *backfill) came(id string) bool {
	return b.authors.get(id) != "" || b.own.nonces.get(id) != ""
}

// older returns errTooLong if a person wrote in a channel between the beginning of a gap and
// what is read of it.
func (b *backfill) older(ctx context.Context, c *conversation, id string, from, oldest time.Time) error {
	page, err := b.since(ctx, c, id, snowflake(from))
	if err != nil && !absent(err) {
		return unread{err}
	}
	for _, m := range page {
		if m.written() && !m.program() && m.sentAt().After(from) && m.sentAt().Before(oldest) {
			return errTooLong
		}
	}
	return nil
}

// since reads the page of messages after one, the oldest first.
func (b *backfill) since(ctx context.Context, c *conversation, id, after string) (page []message, err error) {
	err = b.call(ctx, &c.patience, messagesCall(id, pageItems, "&after="+after), &page)
	sortMessages(page)
	return page, err
}

// absent reports whether an error says that the bot is not in a channel, or a message is not.
func absent(err error) bool {
	return refusedWith(err, http.StatusNotFound) || refusedWith(err, http.StatusForbidden)
}
