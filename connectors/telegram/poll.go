package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// A loop is the polling of one Run.
type loop struct {
	*Connector
	handler    connectors.Handler
	offset     int64                // the first update that is not durable; 0 lets Telegram choose
	lastUpdate time.Time            // time of the last update
	polled     connectors.Watermark // when a poll last completed
	missed     time.Time            // since when messages were last found to be missing
	back       connectors.Backoff
	idle       time.Duration // the last pause after an unproductive poll
	rival      rival
	unhooked   bool
	aside      aside
	choices    choices

	listening context.Context // of a webhook
	held      sync.Map        // of a webhook, by person
}

// getUpdates are the parameters of the method of that name.
type getUpdates struct {
	Offset  int64    `json:"offset,omitempty"`
	Limit   int      `json:"limit"`
	Timeout int      `json:"timeout"` // seconds
	Allowed []string `json:"allowed_updates"`
}

// quietWeek: after a week without updates Telegram may go on with lower ids,
// which an old offset would hide.
const quietWeek = 6 * 24 * time.Hour

func (l *loop) run(ctx context.Context) error {
	defer l.aside.wait()
	// The first poll, and the first after a failure, does not wait, so that the
	// connector is live at once.
	wait := time.Duration(0)
	for ctx.Err() == nil {
		asked := time.Now()
		batch, err := l.fetch(ctx, wait)
		took, known := time.Since(asked), l.offset
		if err == nil {
			l.pulse.Seen()
			l.completed(ctx)
			err = l.accept(ctx, batch)
		}
		if err == nil {
			l.worked()
			l.back.Reset()
			if pause := l.idling(wait, took, batch.next, known); pause > 0 && !connectors.Sleep(ctx, pause) {
				break
			}
			wait = l.cfg.Poll
			continue
		}
		if ctx.Err() != nil {
			break
		}
		pause, err := l.failed(ctx, err)
		if err != nil {
			return err
		}
		if !connectors.Sleep(ctx, pause) {
			break
		}
		wait = 0
	}
	return context.Cause(ctx)
}

// idling returns the pause after a successful poll that asked for wait, lasted
// took and moved the offset from known to next. It is 0 unless the server
// returned early without updates or returned acknowledged updates again; then
// the pause prevents a busy loop.
func (l *loop) idling(wait, took time.Duration, next, known int64) time.Duration {
	waited := took >= min(wait/2, quickPoll)
	if next == 0 && waited || next > known {
		l.idle = 0
		return 0
	}
	l.idle = min(max(2*l.idle, idleMin), idleMax)
	return l.idle
}

// A batch is the result of one poll.
type batch struct {
	updates []update
	next    int64 // the offset after them
	broken  int   // could not be read and are skipped
	lost    int   // broken updates without a readable id
}

// fetch asks for updates, at most waiting for wait.
func (l *loop) fetch(ctx context.Context, wait time.Duration) (batch, error) {
	if l.offset > 0 && time.Since(l.lastUpdate) > quietWeek {
		l.offset = 0
	}
	ctx, cancel := context.WithTimeout(ctx, wait+pollGrace)
	defer cancel()
	params := getUpdates{Offset: l.offset, Limit: maxBatch, Timeout: int(wait / time.Second), Allowed: updateKinds}
	got, err := l.poll.do(ctx, "getUpdates", connectors.Request{JSON: params, Limit: maxPollBytes})
	if err != nil {
		return batch{}, err
	}
	var updates []update
	a := answer{Result: &updates}
	decode := json.Unmarshal(got.Body, &a)
	var wrongType *json.UnmarshalTypeError
	if !errors.As(decode, &wrongType) {
		return newBatch(updates), l.poll.verdict("getUpdates", got, decode, a)
	}
	var raw []json.RawMessage // one by one: a broken update must not hide the others
	a = answer{Result: &raw}
	decode = json.Unmarshal(got.Body, &a)
	return readBatch(raw), l.poll.verdict("getUpdates", got, decode, a)
}

// newBatch returns a batch of decoded updates. An update without an id cannot
// be acknowledged or deduplicated.
func newBatch(updates []update) batch {
	var b batch
	for _, u := range updates {
		if u.UpdateID > 0 {
			b.next = max(b.next, u.UpdateID+1)
		}
	}
	b.updates = slices.DeleteFunc(updates, func(u update) bool { return u.UpdateID <= 0 })
	b.lost = len(updates) - len(b.updates)
	b.broken = b.lost
	return b
}

func readBatch(raw []json.RawMessage) batch {
	var b batch
	for _, r := range raw {
		u, err := readUpdate(r)
		if u.UpdateID > 0 {
			b.next = max(b.next, u.UpdateID+1)
		}
		switch {
		case err == nil:
			b.updates = append(b.updates, u)
		case u.UpdateID > 0:
			b.broken++
		default:
			b.broken++
			b.lost++
		}
	}
	return b
}

// accept makes a batch durable and then moves the offset past it. Updates of
// different people are posted at the same time, so that the store can keep many
// with one sync; those of one person in order.
func (l *loop) accept(ctx context.Context, b batch) error {
	if b.broken > 0 {
		l.figures.broken.Add(int64(b.broken))
		l.log.Warn("skipped unreadable updates", "count", b.broken)
	}
	if len(b.updates) == 0 && b.lost > 0 && b.next == 0 {
		return errors.New("telegram: getUpdates: no update of the batch has a readable id")
	}
	for rest := b.updates; len(rest) > 0; {
		n := slices.IndexFunc(rest, barrier)
		switch n {
		case -1:
			n = len(rest)
		case 0:
			n = 1
		}
		if err := l.post(ctx, rest[:n]); err != nil {
			return &unstored{err}
		}
		rest = rest[n:]
	}
	if b.next > 0 {
		l.offset, l.lastUpdate = b.next, time.Now()
	}
	return nil
}

// lane returns the user whose updates must stay in order with u, as connectors.LaneOf does; ok is
// false for a kind that claybot does not read.
func (l *loop) lane(u *update) (p person, ok bool) {
	if p, ok = u.lane(); ok && p.group && connectors.LaneOf(l.handler, claybot.User(l.cfg.Name, strconv.FormatInt(p.chat, 10), strconv.FormatInt(p.user, 10)), true) == "" {
		p.user = 0
	}
	return p, ok
}

// barrier reports whether an update changes what becomes of later ones of other people: a group
// got a new id, or the bot came or went.
func barrier(u update) bool {
	return u.Membership != nil && u.Membership.Chat.group() || u.Message != nil && (u.Message.MigrateTo != 0 || u.Message.MigrateFrom != 0)
}

// post makes updates durable.
func (l *loop) post(ctx context.Context, updates []update) error {
	if err := l.overhear(ctx, updates...); err != nil { // all of them with one sync
		return err
	}
	lanes := make(map[person][]*update, len(updates))
	for i := range updates {
		u := &updates[i]
		p, ok := l.lane(u)
		if !ok {
			l.figures.ignored.Add(1)
			continue
		}
		lanes[p] = append(lanes[p], u)
	}
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		errs  []error
	)
	post := func(lane []*update) {
		for _, u := range lane {
			err := l.deliver(ctx, u)
			if storage.ClassOf(err) == storage.ClassMessage { // permanent: other updates must not wait
				l.figures.broken.Add(1)
				l.log.Error("update cannot be handled, skipped", "update", u.UpdateID, "err", err)
				continue
			}
			if err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
				return
			}
		}
	}
	left := len(lanes)
	for _, lane := range lanes {
		if left--; left == 0 { // it need not wait for a goroutine
			post(lane)
		} else {
			group.Go(func() { post(lane) })
		}
	}
	group.Wait()
	if len(errs) > 0 {
		return errs[0]
	}
	return nil
}

// unstored marks an error of the Handler.
type unstored struct{ error }

func (e *unstored) Unwrap() error { return e.error }

// completed records a completed poll. If the previous one is so old that
// Telegram may have dropped updates since, it notifies the operator and the
// chats first: a gap counts as closed only after the notices are durable.
func (l *loop) completed(ctx context.Context) {
	now := time.Now().Round(0)
	last, err := l.polled.Last(ctx)
	if err != nil {
		l.log.Warn("time of the last poll unknown", "err", err)
	}
	if !last.IsZero() && now.Sub(last) > gapWarning {
		g := &gap{from: last, to: now, assumed: l.polled.Assumed()}
		if l.gap.Swap(g) == nil || !l.missed.Equal(last) {
			l.log.Warn("messages may be missing", "reason", g.String())
		}
		l.missed = last
		if n, ok := l.handler.(connectors.GapHandler); ok {
			untold, err := n.Missed(ctx, connectors.Missed{Connector: l.cfg.Name, From: last, To: now, Assumed: l.polled.Assumed()})
			if err != nil {
				l.log.Warn("failed to notify users that messages may be missing, retrying", "err", err)
				return
			}
			if untold > 0 {
				l.gap.Store(&gap{from: g.from, to: g.to, assumed: g.assumed, untold: untold})
			}
		}
	}
	if err := l.polled.Advance(ctx, now, false); err != nil {
		l.log.Warn("failed to save the time of the last poll", "err", err)
	}
}

// A gap is a period without contact, so long that Telegram may have dropped
// messages.
type gap struct {
	from, to time.Time
	assumed  bool // from is unknown
	untold   int  // chats that got no notice, because there are too many
}

func (g *gap) String() string {
	const layout = "2006-01-02 15:04"
	away := fmt.Sprintf("out of reach from %s to %s UTC", g.from.UTC().Format(layout), g.to.UTC().Format(layout))
	if g.assumed {
		away = fmt.Sprintf("out of reach before %s UTC, for an unknown time, because the clock was ahead", g.to.UTC().Format(layout))
	}
	if g.untold > 0 {
		away += fmt.Sprintf("; %d chats got no notice", g.untold)
	}
	return fmt.Sprintf("telegram: %s; Telegram keeps messages for %d hours only, so some may be missing: ask people to repeat them",
		away, int(retention.Hours()))
}

// tokenRefused returns the error of a token that Telegram refuses.
func (c *Connector) tokenRefused(err error) *connectors.PermanentError {
	var r *refusal
	errors.As(err, &r)
	return &connectors.PermanentError{
		Says: texts.StoppedToken,
		Fix:  "get the token from @BotFather (/mybots), " + connectors.Again(c.cfg.TokenName),
		Err:  fmt.Errorf("telegram: the bot token is refused (%d)", r.code),
	}
}

// failed returns how long to wait after err, or the error that ends polling.
func (l *loop) failed(ctx context.Context, err error) (time.Duration, error) {
	var r *refusal
	var u *unstored
	switch {
	case errors.As(err, &u):
		l.pulse.Fail("telegram: messages cannot be stored and wait at Telegram: " + storage.Plain(err))
	case refusesToken(err):
		stop := l.tokenRefused(err)
		l.pulse.Stop(stop)
		return 0, stop
	case errors.As(err, &r) && r.code == http.StatusConflict:
		return l.conflict(ctx, r), nil
	default:
		l.poll.closeIdle() // the next poll gets a new connection
		l.pulse.Fail(err.Error())
	}
	pause := l.back.Next(retryAfter(err))
	l.log.Warn("poll failed", "err", err, "wait", pause)
	return pause, nil
}

// conflict handles a poll that was refused because something else holds the
// bot. A webhook blocks polling until it is removed, so it is reported at once.
// claybot deletes its own, which a member with earlier settings may have set again, and
// another one once; if that is set again, it is intended. Another poller may be a previous
// process that is shutting down, so rival decides when to report it. It is never another
// cluster member, because those stand by.
func (l *loop) conflict(ctx context.Context, r *refusal) time.Duration {
	pause := conflictWait + rand.N(time.Second)
	if !strings.Contains(r.description, "webhook") {
		switch known := l.rival.reported; {
		case l.rival.met(time.Now()) && !known:
			l.log.Warn("another program polls with the same bot token", "err", r, "fix", rivalFix)
		case !known:
			l.log.Info("poll refused", "err", r, "wait", pause)
		}
		if l.rival.reported {
			l.pulse.Fail(rivalSays)
		}
		return pause
	}
	l.pulse.Fail("telegram: a webhook is set for this bot, which blocks polling (409); remove it where it was set")
	l.log.Warn("poll refused", "err", r, "wait", pause)
	if !l.unhooked || l.ownHook(ctx) {
		err := l.removeWebhook(ctx)
		if l.unhooked = err == nil; err != nil {
			l.log.Warn("failed to remove the webhook", "err", err)
		}
	}
	return pause
}

// ownHook reports whether the webhook that is set leads to this connector of claybot.
func (l *loop) ownHook(ctx context.Context) bool {
	w, err := l.Webhook(ctx)
	return err == nil && w.Ours
}
