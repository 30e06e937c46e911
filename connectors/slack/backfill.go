package slack

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors"
)

// A backfill closes gaps: periods without an open socket, so long that Slack may
// have dropped events. It reads the history of conversations with the bot and
// posts the messages that the app's subscriptions would have delivered (direct
// messages and mentions) under the ids of live messages, so duplicates are
// recognized. If that is not possible, the chat gets a notice. A gap is stored
// until each of its conversations is settled in one of these ways, also across
// restarts.
type backfill struct {
	chat    *Connector
	self    identity
	handler gapHandler
	log     *slog.Logger
	good    connectors.Watermark // when a socket was open last; run's own
	floor   time.Time            // when the store was restored last: nothing older is posted; run's own
	kick    chan struct{}
	given   chan struct{} // has one element after live messages of a conversation went first
	outage  outage        // run's own

	mu       sync.Mutex
	last     time.Time          // when the socket before the newest one lived last
	since    time.Time          // since when events may be missing without a pause of the connection; zero: since never
	used     time.Time          // since, as the present check found it
	unknown  bool               // not known yet whether there was a gap before that
	checking chan struct{}      // closed when live messages no longer wait for the check; nil without a check
	open     map[string]*replay // of the present gap, by channel
	hurried  map[string]bool    // channels whose live messages did not wait for it
	order    []string           // in which the channels are read
}

func newBackfill(c *Connector, self identity, h gapHandler) *backfill {
	b := &backfill{chat: c, self: self, handler: h, log: c.log, kick: make(chan struct{}, 1), given: make(chan struct{}, 1), open: make(map[string]*replay)}
	b.good = connectors.Watermark{Marks: c.cfg.Marks, Key: b.key("last_good"), Reach: backfillReach}
	return b
}

// A gapHandler accepts messages and gaps.
type gapHandler interface {
	connectors.Handler
	connectors.GapHandler
}

// noChats is a gapHandler without chats.
type noChats struct{ connectors.Handler }

func (noChats) Recent(context.Context, string, string, time.Time) ([]connectors.Chat, int, error) {
	return nil, 0, nil
}
func (noChats) Missed(context.Context, connectors.Missed) (int, error) { return 0, nil }

// key returns the key of a stored value of the bot.
func (b *backfill) key(what string) string {
	return "slack/" + b.self.Team + "/" + b.self.User + "/" + what
}

// opened is called for a new socket before it is read. If there was, or may
// have been, a gap, live messages wait until it is examined.
func (b *backfill) opened() {
	last := b.chat.pulse.Health().LastOK.Round(0)
	if age := time.Now().Round(0).Sub(last); !last.IsZero() && age >= 0 && age <= gapAfter {
		return // else the clock may have been set back
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.unknown {
		b.unknown, b.last = true, last
	}
	b.check()
}

// suspect closes a gap since a time, which may be short.
func (b *backfill) suspect(since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.since.IsZero() && !since.Before(b.since) {
		return
	}
	b.since, b.unknown = since, true
	b.check()
}

// check makes run look for a gap; live messages wait for it. The lock is held.
func (b *backfill) check() {
	if b.checking == nil {
		b.checking, b.hurried = make(chan struct{}), make(map[string]bool)
	}
	select {
	case b.kick <- struct{}{}:
	default:
	}
}

// turn waits until earlier messages of the conversation are posted, for at most
// the patience of the message.
func (b *backfill) turn(ctx context.Context, in incoming) error {
	channel := b.channel(in)
	wait := patience
	if in.message.Context.MessageID == "" {
		wait = slashPatience
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	b.mu.Lock()
	checking := b.checking
	b.mu.Unlock()
	if checking != nil {
		select {
		case <-checking:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			b.hurry(channel)
			return nil
		}
	}
	b.mu.Lock()
	r := b.open[channel]
	if r != nil {
		r.waited = true
	}
	b.mu.Unlock()
	if r == nil {
		return nil
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		b.leave(r)
	}
	return nil
}

// hurry records that live messages of a channel no longer wait.
func (b *backfill) hurry(channel string) {
	b.mu.Lock()
	b.hurried[channel] = true
	r := b.open[channel] // found in the meantime
	b.mu.Unlock()
	if r != nil {
		b.leave(r)
	}
}

// leave lets live messages of a conversation go first: once it has returned, nothing is posted.
func (b *backfill) leave(r *replay) {
	r.leave()
	select {
	case b.given <- struct{}{}:
	default:
	}
}

// channel is the channel of a message, without its workspace.
func (b *backfill) channel(in incoming) string {
	_, channel, _ := strings.Cut(in.to.ChannelID, "/")
	return channel
}

// run updates the watermark and closes gaps until ctx is done.
func (b *backfill) run(ctx context.Context) {
	keep := time.NewTicker(keepEvery)
	defer keep.Stop()
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
			defer cancel()
			b.keep(late, true)
			return
		case <-keep.C:
			b.keep(ctx, false)
			continue
		case <-b.kick:
		case <-again:
		}
		again = nil
		if err := b.close(ctx); err != nil && ctx.Err() == nil {
			b.log.Warn("failed to fetch messages missed in a connection gap, retrying", "err", err)
			again = time.After(backfillAgain)
		}
	}
}

// keep stores when a socket was last open. It stores nothing until the check
// for a gap is complete.
func (b *backfill) keep(ctx context.Context, now bool) {
	b.mu.Lock()
	unknown := b.unknown
	b.mu.Unlock()
	last := b.chat.pulse.Health().LastOK
	if unknown || last.IsZero() {
		return
	}
	if err := b.good.Advance(ctx, last, now); err != nil {
		b.log.Warn("failed to save the time of the last connection", "err", err)
	}
}

// A hole is the stored form of a gap, with the conversations that are not
// settled.
type hole struct {
	From int64           `json:"from"` // Unix seconds
	To   int64           `json:"to"`
	Left map[string]owed `json:"left,omitempty"` // by channel
	// Further facts for operators, see gap.
	Unread   int    `json:"unread,omitempty"`
	Unlisted string `json:"unlisted,omitempty"`
}

// An owed is the open work of one conversation.
type owed struct {
	From    int64    `json:"from"` // of the gap that concerns it
	Threads []string `json:"threads,omitempty"`
	// Notice means that only the notice is left, because newer messages went
	// first.
	Notice bool `json:"notice,omitempty"`
	// New means that claybot knows no recent message of the conversation.
	New bool `json:"new,omitempty"`
}

// close checks for a gap and settles its conversations. On an error some are
// left for a retry.
func (b *backfill) close(ctx context.Context) error {
	h, order, err := b.find(ctx)
	b.decide(h, order, err == nil)
	if err != nil || h == nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, backfillTime, errTooLong)
	defer cancel()
	g := &connectors.Gap{From: time.Unix(h.From, 0), To: time.Unix(h.To, 0), Unread: h.Unread, Unlisted: h.Unlisted}
	var failed error
	b.outage = outage{answered: time.Now()}
	for r := b.next(limited); r != nil && ctx.Err() == nil; r = b.next(limited) {
		failed = errors.Join(failed, b.recover(ctx, limited, r, h, g))
	}
	if ctx.Err() != nil {
		return b.interrupted(ctx, h)
	}
	b.log.Info("fetched messages missed in a connection gap", "from", g.From, "to", g.To, "told", g.Chats, "left", len(h.Left))
	if g.Unread > 0 || g.Unlisted != "" {
		b.log.Warn("conversations neither read nor notified after a connection gap", "count", g.Unread, "err", g.Unlisted)
	}
	if !g.Silent() {
		b.chat.gap.Store(g)
	}
	return failed
}

// recover settles one conversation: from its history, or with a notice. A conversation that is to
// be read again queues behind the others.
func (b *backfill) recover(ctx, limited context.Context, r *replay, h *hole, g *connectors.Gap) error {
	why := errLeft
	switch {
	case h.Left[r.channel].Notice:
	case b.chat.cfg.NoBackfill:
		why = errOff
	default:
		why = b.replay(limited, r)
	}
	if ctx.Err() != nil {
		return nil // it stays open
	}
	if errors.Is(why, errAgain) {
		b.requeue(r)
		return nil
	}
	defer b.settle(r)
	switch {
	case why == nil:
	case h.Left[r.channel].New && !errors.Is(why, errLeft):
		g.Unread++ // there may be no messages
		b.log.Warn("conversation not read after a connection gap", "channel", r.channel, "since", r.from, "err", why)
	default:
		b.log.Warn("messages may be missing in a conversation", "channel", r.channel, "since", r.from, "err", why)
		g.Chats, g.Reason = g.Chats+1, cmp.Or(g.Reason, why.Error())
		x := h.Left[r.channel]
		x.Notice = true
		h.Left[r.channel] = x
		_, err := b.handler.Missed(ctx, connectors.Missed{
			Connector: b.chat.cfg.Name, From: r.from, To: g.To, Channels: []string{b.self.Team + "/" + r.channel}, Flat: true,
		})
		if err != nil {
			return errors.Join(err, b.save(ctx, h))
		}
	}
	delete(h.Left, r.channel)
	return b.save(ctx, h)
}

// interrupted stores which conversations had newer messages before the process
// ended: those only get the notice.
func (b *backfill) interrupted(ctx context.Context, h *hole) error {
	b.mu.Lock()
	for channel, r := range b.open {
		if x, ok := h.Left[channel]; ok && r.abandoned() {
			x.Notice = true
			h.Left[channel] = x
		}
	}
	b.mu.Unlock()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	return b.save(late, h)
}

// find returns the gap to settle, nil for none, and its channels, ordered by
// their newest message, latest first.
func (b *backfill) find(ctx context.Context) (*hole, []string, error) {
	last, err := b.good.Last(ctx)
	if err != nil {
		return nil, nil, err
	}
	old, err := b.kept(ctx)
	if err != nil {
		return nil, nil, err
	}
	h, now := &old, time.Now().Round(0)
	b.mu.Lock()
	if b.unknown && b.last.After(last) && !b.last.After(now) {
		last = b.last
	}
	since := b.since
	b.used = since
	if !since.IsZero() && since.Before(last) {
		last = since
	}
	b.mu.Unlock()
	var order []string
	if !last.IsZero() && now.Sub(last) > gapAfter || !since.IsZero() {
		if h, order, err = b.found(ctx, last, now, old); err != nil {
			return nil, nil, err
		}
	}
	for channel := range h.Left {
		if !slices.Contains(order, channel) {
			order = append(order, channel)
		}
	}
	if err := b.good.Advance(ctx, now, true); err != nil {
		return nil, nil, err
	}
	if len(order) == 0 && (h == &old || h.Unread == 0 && h.Unlisted == "") {
		return nil, nil, nil
	}
	return h, order, nil
}

// found stores a new gap, together with the open work of an older one.
func (b *backfill) found(ctx context.Context, last, now time.Time, old hole) (*hole, []string, error) {
	h := &hole{From: last.Unix(), To: now.Unix(), Left: make(map[string]owed)}
	if time.Unix(old.To, 0).After(last) && time.Unix(old.From, 0).Sub(last).Abs() < gapAfter {
		h.From = old.From // another cluster member found and reported it before
	}
	chats, more, err := b.handler.Recent(ctx, b.chat.cfg.Name, b.self.Team+"/", last.Add(-activeFor))
	if err != nil {
		return nil, nil, err
	}
	h.Unread = more
	var order []string
	for _, c := range chats {
		if _, channel, ok := strings.Cut(c.ChannelID, "/"); ok {
			h.Left[channel] = owed{From: h.From, Threads: c.Threads}
			order = append(order, channel)
		}
	}
	order = append(order, b.others(ctx, h)...)
	for channel, x := range old.Left {
		h.Left[channel] = x
	}
	b.log.Info("connection gap detected", "from", last, "to", now, "conversations", len(h.Left))
	return h, order, b.save(ctx, h)
}

// kept returns the stored gap.
func (b *backfill) kept(ctx context.Context) (h hole, err error) {
	h, err = connectors.ReadMark[hole](ctx, b.chat.cfg.Marks, b.key("gap"))
	if err != nil {
		return h, err
	}
	restored, err := connectors.Restored(ctx, b.chat.cfg.Marks, time.Now())
	if err != nil {
		return h, err
	}
	if h.To < restored.Unix() {
		h = hole{} // older than a restore of the store
	}
	b.floor = restored
	return h, nil
}

func (b *backfill) save(ctx context.Context, h *hole) error {
	return connectors.WriteMark(ctx, b.chat.cfg.Marks, b.key("gap"), h)
}

// decide opens the conversations of a gap and lets live messages of all others
// go on.
func (b *backfill) decide(h *hole, order []string, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known && b.since.Equal(b.used) {
		b.since = time.Time{}
	}
	b.unknown = b.unknown && !known
	b.order = order
	for _, channel := range order {
		x := h.Left[channel]
		r := newReplay(channel, time.Unix(x.From, 0), x.Threads)
		if b.hurried[channel] {
			r.leave()
		}
		b.open[channel] = r
	}
	if b.checking != nil {
		close(b.checking)
		b.checking = nil
	}
}
