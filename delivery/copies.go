package delivery

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// People see at most two copies of an outgoing message, under any sequence of
// faults, in every process that tries to send it:
//
//	sent, no answer → look it up, where the platform can → pause →
//	sent once more → no answer → look it up → failed, with one notice
//
// The store counts the copies with the message, so a crash does not start over. The
// notice is committed with the failure. It is sent once: if its own fate is
// unknown, nothing follows. Sends that are known to have failed and repeated edits
// of one message leave no copy and have the tries of maxTries.
const (
	maxCopies = 2
	// unsurePause is the pause after the first ambiguous send of a chat. Each
	// further one in a row makes it four times as long, up to unsureLongest.
	unsurePause   = 2 * time.Second
	unsureLongest = 5 * time.Minute
	mostPause     = unsureLongest * 5 / 4

	findTimeout = 10 * time.Second
	settleTime  = 5 * time.Second // until a platform shows what it accepted
	maxLookups  = 2
)

// SpokenPrefix starts the ids of replies that are spoken as well: no reader misses one, because its
// text is a message of its own.
const SpokenPrefix = "spoken/"

// NoticePrefix starts the ids of notices about messages that failed.
const NoticePrefix = "undelivered/"

// causeUnknown is the cause of a message that failed after an ambiguous send.
const causeUnknown = "no answer to the send: it may have arrived, and is not sent again"

// readyAt returns when a stored message may be tried. A wall clock that was set back
// since then does not make it wait longer than intended.
func readyAt(o claybot.Outgoing) time.Time {
	now, due := time.Now(), o.Due.Time()
	meant := due.Sub(max(o.Tried, o.At).Time())
	return now.Add(min(due.Sub(now), max(meant, 0)))
}

// endedAt returns the latest time at which the last attempt of a stored message can
// have ended, never in the future.
func endedAt(o claybot.Outgoing) time.Time {
	now := time.Now()
	return now.Add(-max(now.Sub(o.Tried.Time()), 0))
}

// settle resolves an ambiguous send: it looks the message up where the platform
// allows that, and otherwise follows the policy of the connector.
func (x *delivery) settle(ctx context.Context) (done bool) {
	if x.o.Edit != "" || x.o.Mark != nil { // they may be repeated
		x.resolve(ctx, storage.Resolution{State: claybot.SendWaiting})
		return false
	}
	finder, ok := x.sender.(connectors.Finder)
	if !ok {
		return x.byPolicy(ctx)
	}
	if wait := time.Until(x.ended.Add(settleTime << x.lookups)); wait > 0 {
		claybot.Sleep(ctx, wait)
		return false
	}
	findCtx, cancel := context.WithTimeout(ctx, findTimeout)
	receipt, found, err := finder.Find(findCtx, x.o)
	cancel()
	var retry *connectors.RetryError
	var permanent *connectors.PermanentError
	switch {
	case ctx.Err() != nil: // the next process looks it up
	case errors.As(err, &permanent):
		return x.byPolicy(ctx)
	case errors.As(err, &retry):
		claybot.Sleep(ctx, time.Until(x.silences.Obey(x.o.Route, retry)))
	case err != nil && x.unknown >= maxTries:
		return x.byPolicy(ctx)
	case err != nil:
		x.unknown++
		about(x.cfg.Log, x.o).Info("lookup failed, retrying", "err", err)
		claybot.Sleep(ctx, backoff(x.unknown))
	case found && x.o.File != nil: // a file arrives whole or not at all
		x.resolve(ctx, storage.Resolution{State: claybot.SendSent, Receipt: receipt})
		return true
	case found:
		// Only the beginning of the text may have arrived: an edit completes it.
		x.resolve(ctx, storage.Resolution{State: claybot.SendWaiting, Edit: receipt})
	default:
		if x.lookups++; x.lookups < maxLookups {
			break
		}
		x.lookups = 0
		return x.again(ctx, storage.Resolution{Cause: "looked up and not found"})
	}
	return false
}

// byPolicy resolves an ambiguous send that cannot be looked up.
func (x *delivery) byPolicy(ctx context.Context) (done bool) {
	r, ok := x.sender.(connectors.Resender)
	if !ok || !r.Resend(x.o) {
		return x.missing(ctx, causeUnknown)
	}
	return x.again(ctx, storage.Resolution{Resent: true})
}

// again schedules a second send although people may already see a copy. A message that
// had its second send fails instead, and so does a notice about another message: the
// reader could not tell what a second notice is about.
func (x *delivery) again(ctx context.Context, r storage.Resolution) (done bool) {
	if x.o.Copies+1 >= maxCopies || strings.HasPrefix(x.o.ID, NoticePrefix) {
		return x.missing(ctx, causeUnknown)
	}
	if !r.NoEdit {
		r.Due = x.calm(ctx)
	}
	r.State, r.Copies = claybot.SendWaiting, x.o.Copies+1
	x.resolve(ctx, r)
	return false
}

// missing gives up a message that may or may not have arrived and, unless the reader
// knows already, stores the notice about it in the same commit.
func (x *delivery) missing(ctx context.Context, cause string) (done bool) {
	about(x.cfg.Log, x.o).Warn("message may be missing", "attempts", x.o.Attempts, "copies", x.o.Copies+1)
	calm := x.calm(ctx)
	r := storage.Resolution{State: claybot.SendFailed, Cause: cause, Copies: x.o.Copies + 1}
	if strings.HasPrefix(x.o.ID, SpokenPrefix) {
		x.resolve(ctx, r)
		return true
	}
	for _, notice := range x.instead.notice(ctx, x.o, x.instead.mayBeMissing(ctx, x.o), whispers(x.sender, x.o)) {
		notice.Due = claybot.At(calm)
		r.Notices = append(r.Notices, notice)
	}
	x.resolve(ctx, r)
	return true
}

// calm pauses the chat after an ambiguous send, longer with each one in a row, and
// returns the end of the pause.
func (x *delivery) calm(ctx context.Context) time.Time {
	n, _, _ := x.inARow(ctx)
	end := x.ended.Add(pauseAfter(n + x.o.Copies + 1))
	x.pauses.keep(x.lane.dest, end)
	return end
}

// recall pauses the chat as another process left it, which may have ended a moment ago.
func (x *delivery) recall(ctx context.Context) {
	if !x.lane.foreign {
		return
	}
	n, last, err := x.inARow(ctx)
	x.lane.foreign = err != nil
	if n > 0 {
		x.pauses.keep(x.lane.dest, endedAt(last).Add(pauseAfter(n)))
	}
}

// pauseAfter is the pause after n ambiguous sends in a row.
func pauseAfter(n int) time.Duration {
	d := unsurePause
	for ; n > 1 && d < unsureLongest; n-- {
		d *= 4
	}
	d = min(d, unsureLongest)
	return d + rand.N(d/4) // at most mostPause
}

// ResendAt returns when to send again what was sent outside the outbox, as a draft, at a
// time and without a response.
func ResendAt(tried time.Time) time.Time { return tried.Add(pauseAfter(1)) }

// inARow counts the ambiguous sends to the chat since the newest message before this
// one that is known to have arrived. last is the message of the newest of them.
func (x *delivery) inARow(ctx context.Context) (n int, last claybot.Outgoing, err error) {
	const enough = 10 // for the longest pause
	before, err := x.cfg.Reader.OutgoingPage(ctx, storage.OutgoingQuery{Dest: x.o.Route.Dest(), Before: x.o.N, Limit: enough})
	if err != nil {
		about(x.cfg.Log, x.o).Warn("failed to read the outbox of a chat", "err", err)
	}
	for _, o := range before {
		if o.State == claybot.SendSent {
			break
		}
		if n += o.Copies; o.Copies > 0 && o.Tried > last.Tried {
			last = o
		}
	}
	return n, last, err
}

// giveUp fails a message for good, notifies the reader once, and sends the message on
// another route of the reader. A reply that was refused as a file goes out in parts instead.
func (x *delivery) giveUp(ctx context.Context, cause string) {
	about(x.cfg.Log, x.o).Warn("delivery failed", "attempts", x.o.Attempts, "err", cause)
	r := storage.Resolution{State: claybot.SendFailed, Cause: cause}
	if x.o.Mark != nil || strings.HasPrefix(x.o.ID, SpokenPrefix) { // no person misses it
		x.resolve(ctx, r)
		return
	}
	if r.Notices = x.instead.inParts(ctx, x.o); len(r.Notices) > 0 {
		x.resolve(ctx, r)
		return
	}
	text := x.cfg.Voice(ctx, x.o).NotDelivered(x.o)
	if x.o.Copies > 0 {
		text = x.instead.mayBeMissing(ctx, x.o)
	}
	r.Notices = append(x.instead.notice(ctx, x.o, text, whispers(x.sender, x.o)), x.instead.reroute(ctx, x.o)...)
	x.resolve(ctx, r)
}
