package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
// all are settled: until then the session after it is kept as one with a gap, so that a restart reads it
// again.
type backfill struct {
	*receiver
	floor time.Time // when the store was restored last: nothing older is posted

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
// ctx is done.
func (b *backfill) begin() func(ctx context.Context, from time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	checking, to := make(chan struct{}), time.Now()
	b.checking = checking
	return func(ctx context.Context, from time.Time) {
		g := &connectors.Gap{From: from, To: to}
		known := b.chats != nil && !from.IsZero()
		var all []*conversation
		if known {
			all = b.list(ctx, g)
		}
		b.mu.Lock()
		b.answered = time.Now()
		for _, c := range all {
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
// alone, and the list of threads of a server those of the server.
func (b *backfill) fill(ctx context.Context, all []*conversation, g *connectors.Gap) {
	lists := make(map[string]func() []channel) // of threads, by server
	slots := make(chan struct{}, backfillAtOnce)
	var work sync.WaitGroup
	for _, c := range all {
		if c.guild != "" && lists[c.guild] == nil {
			lists[c.guild] = sync.OnceValue(func() []channel {
				slots <- struct{}{}
				defer func() { <-slots }()
				return b.active(ctx, c.guild, g)
			})
		}
		list := lists[c.guild]
		work.Go(func() {
			if list != nil {
				b.threads(c, list(), g)
			}
			slots <- struct{}{}
			b.settle(ctx, c, g)
			<-slots
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
	chat    string
	guild   string
	ids     []string
	settled chan struct{}
}

// list returns the conversations in which people wrote in the weeks before the gap.
func (b *backfill) list(ctx context.Context, g *connectors.Gap) (all []*conversation) {
	var back connectors.Backoff
	for {
		chats, more, err := b.chats.Recent(ctx, b.cfg.Name, g.From.Add(-activeFor))
		if err != nil {
			b.log.Warn("failed to list the conversations with missed messages, retrying", "err", err)
			if !connectors.Sleep(ctx, back.Next(0)) {
				return nil
			}
			continue
		}
		if g.Unread = more; more > 0 {
			b.log.Warn("conversations neither read nor notified after a gap", "count", more)
		}
		for _, chat := range chats {
			c := &conversation{chat: chat.ChannelID, ids: []string{chat.ChannelID[strings.LastIndexByte(chat.ChannelID, '/')+1:]}, settled: make(chan struct{})}
			c.guild, _, _ = strings.Cut(chat.ChannelID, "/")
			if c.guild == chat.ChannelID {
				c.guild = ""
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
}

// call makes a call that leaves room for those of conversations that go on. After an outage, Discord
// may deliver events before it answers calls: a call is tried for minutes, and only a few times once
// Discord has answered none for so long.
func (b *backfill) call(ctx context.Context, x call, result any) error {
	x.behind = true
	began := time.Now()
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
		b.mu.Lock()
		over := tries >= backfillTries && max(time.Since(began), time.Since(b.answered)) >= backfillPatience
		b.mu.Unlock()
		var asked time.Duration
		var retry *connectors.RetryError
		if errors.As(err, &retry) {
			asked = retry.After
		}
		if over || !connectors.Sleep(ctx, back.Next(asked)) {
			return err
		}
	}
}

// active lists the active threads of a server.
//
// Shape: docs.discord.com/developers/resources/guild (List Active Guild Threads), read 2026-11-28.
func (b *backfill) active(ctx context.Context, guild string, g *connectors.Gap) []channel {
	var found struct {
		Threads []channel `json:"threads"`
	}
	err := b.call(ctx, call{method: http.MethodGet, what: "list threads", path: "/guilds/" + guild + "/threads/active", major: guild}, &found)
	if err != nil && !refusedWith(err, http.StatusNotFound) && !refusedWith(err, http.StatusForbidden) {
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
	return isID(id) && cmp.Or(cmp.Compare(len(id), len(after)), cmp.Compare(id, after)) >= 0
}

// errTooLong is why messages may be missing in a conversation that was read.
var errTooLong = errors.New("more messages, or older ones, than are read again")

// settle reads a conversation, or tells it that messages may be missing.
func (b *backfill) settle(ctx context.Context, c *conversation, g *connectors.Gap) {
	var missing error
	for _, id := range c.ids {
		missing = cmp.Or(missing, b.read(ctx, c.guild, id, g))
	}
	if missing == nil || ctx.Err() != nil {
		return
	}
	b.log.Warn("messages may be missing in a conversation", "channel", c.chat, "since", g.From, "err", missing)
	b.mu.Lock()
	g.Chats, g.Reason = g.Chats+1, missing.Error()
	b.mu.Unlock()
	var back connectors.Backoff
	for {
		_, err := b.chats.Missed(ctx, connectors.Missed{Connector: b.cfg.Name, From: g.From, To: g.To, Channels: []string{c.chat}, Flat: true})
		if err == nil {
			return
		}
		b.log.Warn("failed to notify users that messages may be missing, retrying", "err", err)
		if !connectors.Sleep(ctx, back.Next(0)) {
			return
		}
	}
}

// read posts what was written in a channel or a thread since a gap began, oldest first. The error is
// why messages may be missing.
func (b *backfill) read(ctx context.Context, guild, id string, g *connectors.Gap) (missing error) {
	from := g.From
	begin := from.Add(-gapMargin)
	if oldest := time.Now().Add(-backfillReach); begin.Before(oldest) {
		begin, missing = oldest, b.since(ctx, id, from, oldest)
	}
	if begin.Before(b.floor) {
		begin = b.floor
	}
	after := snowflake(begin)
	for first, pages := true, 0; pages < b.pages; first = false {
		var page []message
		x := channelCall(http.MethodGet, "get messages", id, fmt.Sprintf("/messages?limit=%d&after=%s", pageItems, after), nil)
		err := b.call(ctx, x, &page)
		switch {
		case refusedWith(err, http.StatusNotFound) || refusedWith(err, http.StatusForbidden):
			return nil // the bot is not there, so it missed nothing
		case err != nil:
			return fmt.Errorf("read what was missed: %w", err)
		case first && len(page) == 0 && guild != "":
			if from.Before(b.floor) {
				from = b.floor
			}
			return cmp.Or(b.hidden(ctx, id, from, g.To), missing)
		}
		sortMessages(page)
		for _, m := range page {
			m.Guild, m.Channel = guild, id
			if !m.written() || m.Author.ID == b.bot || m.sentAt().Before(begin) {
				continue
			}
			b.authors.note(m.ID, m.author())
			j := job{what: "message", id: m.ID, store: func(ctx context.Context) error { return b.wrote(ctx, m, false) }}
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
// Where its newest message came on a connection, that of the beginning of the session counts. A
// channel of threads has none of its own: it names its newest thread in place of them.
//
// docs.discord.com/developers/resources/channel, Channel Object, read 2026-11-28.
func (b *backfill) hidden(ctx context.Context, id string, from, to time.Time) error {
	var of channel
	var newest []message
	err := b.call(ctx, channelCall(http.MethodGet, "get channel", id, "", nil), &of)
	if b.came(of.Last) || newer(of.Last, snowflake(to)) {
		of.Last = ""
		if began, _ := b.channels.get(id); !b.came(began.Last) {
			of.Last = began.Last
		}
	}
	if err == nil && !of.forum() && newer(of.Last, snowflake(from)) {
		err = b.call(ctx, newestCall(id), &newest)
		if err == nil && len(newest) == 0 {
			return errNoHistory
		}
	}
	if err == nil || refusedWith(err, http.StatusNotFound) || refusedWith(err, http.StatusForbidden) {
		return nil // the bot is not there, or the message was deleted
	}
	return fmt.Errorf("read what was missed: %w", err)
}

// came reports whether a message is known to have come, or to be of this process itself.
func (b *backfill) came(id string) bool {
	return b.authors.came(id) || b.own.nonce(id) != ""
}

// since returns errTooLong if a person wrote in a channel between the beginning of a gap and
// what is read of it.
func (b *backfill) since(ctx context.Context, id string, from, oldest time.Time) error {
	page, err := b.page(ctx, id, snowflake(from))
	if err != nil {
		return nil //nolint:nilerr // what is read of the channel says it
	}
	for _, m := range page {
		if m.written() && !m.program() && m.sentAt().After(from) && m.sentAt().Before(oldest) {
			return errTooLong
		}
	}
	return nil
}
