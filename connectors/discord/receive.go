package discord

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// A receiver turns events into messages, reactions, answers and changes of routes.
type receiver struct {
	*Connector
	app     *application
	handler connectors.Handler
	routes  connectors.RouteHandler    // nil: changes of channels have no effect
	reacts  connectors.ReactionHandler // nil: reactions have no effect
	chats   connectors.GapHandler      // nil: no chats are known
	work    *connectors.Lanes
	aside   sync.WaitGroup // calls that nothing waits for
	back    *backfill
	guilds  sync.Map       // ids of servers that a session lists: the bot does not join them now
	authors memory[string] // of messages that were read: a deletion does not say who wrote it
	edited  memory[string] // the authors of messages of which only an edit may have been read

	pos *position // of the session before the present one; the gateway's
}

func newReceiver(c *Connector, app *application, h connectors.Handler) *receiver {
	r := &receiver{Connector: c, app: app, handler: h, work: connectors.NewLanes(maxPending)}
	c.channels.clear()
	r.routes, _ = h.(connectors.RouteHandler)
	r.reacts, _ = h.(connectors.ReactionHandler)
	r.chats, _ = h.(connectors.GapHandler)
	r.back = &backfill{receiver: r, open: make(map[string]chan struct{}), slots: make(chan struct{}, backfillAtOnce)}
	return r
}

// A job is what an event brings: a function that stores it, in a lane. It is tried until it
// succeeds.
type job struct {
	lane, what, id string
	store          func(ctx context.Context) error
}

// take reads one event and hands over its jobs. It blocks while too many are waiting.
func (r *receiver) take(ctx context.Context, pos *position, p payload) {
	jobs, known := r.read(p)
	if !known {
		r.ignored.Add(1)
	}
	e := pos.begin(p.Seq, len(jobs))
	if e == nil {
		return // it came on the connection before
	}
	for _, j := range jobs {
		key, leave := r.channels.enter(j.lane, r.shares)
		r.work.Do(ctx, key, func() error {
			defer leave()
			if err := r.keep(ctx, j); err != nil {
				return err
			}
			pos.done(e)
			return nil
		})
	}
}

// keep tries a job until it is stored, or ctx is done: Discord does not send its event again as
// long as the session lives.
func (r *receiver) keep(ctx context.Context, j job) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := j.store(ctx)
		if storage.ClassOf(err) == storage.ClassMessage { // permanent: a retry would fail
			r.log.Error("event cannot be handled, skipped", j.what, j.id, "err", err)
			err = nil
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.log.Warn("event not stored, retrying", j.what, j.id, "err", err, "wait", wait)
		if !connectors.Sleep(ctx, wait) {
			return context.Cause(ctx)
		}
	}
}

// in is the work of an event in a channel: none where the bot does not see the channel any more.
func (r *receiver) in(guild, channel string, work func(ctx context.Context, in place) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		in, gone, err := r.place(ctx, guild, channel)
		if err != nil || gone {
			return err
		}
		return work(ctx, in)
	}
}

// read returns the jobs of an event; known is false for one that is not understood. It calls
// nothing.
func (r *receiver) read(p payload) (jobs []job, known bool) {
	switch p.T {
	case "MESSAGE_CREATE":
		return readAs(p, r.created)
	case "MESSAGE_UPDATE":
		return readAs(p, r.updated)
	case "MESSAGE_DELETE":
		return readAs(p, r.deleted)
	case "MESSAGE_DELETE_BULK":
		return readAs(p, r.bulkDeleted)
	case "MESSAGE_REACTION_ADD", "MESSAGE_REACTION_REMOVE":
		return readAs(p, func(x reaction) []job { return r.reacted(x, p.T == "MESSAGE_REACTION_REMOVE") })
	case "INTERACTION_CREATE":
		return readAs(p, r.interacted)
	case "GUILD_CREATE":
		return readAs(p, r.guildCreated)
	case "GUILD_DELETE":
		return readAs(p, r.guildDeleted)
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		return readAs(p, func(c channel) []job { r.channels.learn(c.Guild, c); return nil })
	case "CHANNEL_DELETE":
		return readAs(p, r.channelDeleted)
	}
	return nil, false
}

// readAs decodes an event and reads it.
func readAs[T any](p payload, read func(T) []job) (jobs []job, known bool) {
	var x T
	if connectors.Decode(p.D, &x) != nil {
		return nil, false
	}
	return read(x), true
}

// lane keeps what one person does in one channel in order, see channels.enter.
func lane(channel, user string) string { return channel + "\x00" + user }

// shares reports whether the order of all people in a channel of a server counts, and not only that
// of each of them.
func (r *receiver) shares(channel, user string) bool {
	return connectors.LaneOf(r.handler, claybot.User(r.cfg.Name, channel, user), true) == ""
}

// post stores a message, after earlier messages of its chat that a gap had left out.
func (r *receiver) post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	if err := r.await(ctx, to.ChannelID); err != nil {
		return err
	}
	return r.handler.Post(ctx, to, m)
}

// await waits for earlier messages of a chat that a gap had left out.
func (r *receiver) await(ctx context.Context, chat string) error {
	for earlier := r.back.turn(chat); earlier != nil; earlier = r.back.turn(chat) {
		if !wait(ctx, earlier) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// author returns who wrote a message; empty if that is not known.
func (r *receiver) author(message string) string {
	return cmp.Or(r.authors.get(message), r.edited.get(message))
}

// at returns the time of a timestamp, or now if it has none.
func at(stamp string) claybot.Time {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return claybot.Now()
	}
	return claybot.At(t)
}
