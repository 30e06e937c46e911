package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors"
)

// A replay reads the history of one conversation for missed messages. Live
// messages of the conversation wait for it and abandon it after their patience:
// order takes precedence over completeness, and the chat gets a notice.
type replay struct {
	channel string
	from    time.Time // of the gap
	threads []string  // besides those that the history shows

	done   chan struct{} // closed at the end
	left   chan struct{} // closed when a live message goes first
	once   sync.Once
	turn   chan struct{} // has one element while a message is posted
	waited bool          // a live message waits; guarded by the lock of the backfill

	// What run keeps while other conversations are read.
	ready  time.Time       // when it may be read again
	tries  int             // that failed, of the present page or message
	before int             // how many reads Slack had answered before the first of these
	latest string          // up to when it is read
	read   map[string]page // by request
}

// A page is a part of a history, or why it cannot be read.
type page struct {
	posts []said
	next  string
	err   error
}

func newReplay(channel string, from time.Time, threads []string) *replay {
	return &replay{channel: channel, from: from, threads: threads, done: make(chan struct{}), left: make(chan struct{}), turn: make(chan struct{}, 1), read: make(map[string]page)}
}

// leave lets live messages go first: once it has returned, nothing is posted.
func (r *replay) leave() {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	r.once.Do(func() { close(r.left) })
}

func (r *replay) abandoned() bool {
	select {
	case <-r.left:
		return true
	default:
		return false
	}
}

// Why messages of a conversation may be missing.
var (
	errLeft    = errors.New("new messages could not wait for the older ones")
	errOff     = errors.New("slack.backfill is off")
	errTooLong = errors.New("more messages, or older ones, than are read again")
)

// replay posts the messages of a conversation since the gap began, oldest
// first. An error gives the reason why messages may be missing; with errAgain,
// nothing more is posted before it is called again.
func (b *backfill) replay(ctx context.Context, r *replay) error {
	if r.tries > 0 && r.abandoned() {
		return errLeft
	}
	posts, missing := b.collect(ctx, r)
	if errors.Is(missing, errAgain) {
		return missing
	}
	oldest := time.Now().Add(-backfillReach)
	for _, p := range posts {
		in, v := p.live(b.self, r.channel).message(b.chat.cfg.Name, b.self)
		if v != message {
			continue
		}
		if p.sentAt().Time().Before(oldest) {
			if heard, err := b.handler.Hears(ctx, in.to, in.message); p.sentAt().Time().After(r.from) && (heard || err != nil) {
				missing = cmp.Or(missing, error(errTooLong))
			}
			continue
		}
		if err := b.repost(ctx, r, in); err != nil {
			return err
		}
	}
	return missing
}

// repost posts one message like a live one. It is retried until the store
// accepts it: a message that was stored is recognized.
func (b *backfill) repost(ctx context.Context, r *replay, in incoming) error {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if r.abandoned() {
		return errLeft
	}
	err := b.handler.Post(ctx, in.to, in.message)
	if err == nil {
		r.tries = 0
		return nil
	}
	b.log.Warn("failed to store a missed message, retrying", "message", in.message.ID, "err", err)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.again(min(firstRetry<<min(r.tries, 10), lastRetry))
	return errAgain
}

// again notes a failed try; the next one is after d.
func (r *replay) again(d time.Duration) {
	r.tries++
	r.ready = time.Now().Add(d)
}

// pause waits for d and reports whether the replay continues.
func (r *replay) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.left:
	case <-ctx.Done():
	}
	return false
}

// collect reads the history of a conversation and its threads since the gap
// began, oldest first. With an error it returns what it has read so far.
func (b *backfill) collect(ctx context.Context, r *replay) ([]said, error) {
	from := r.from.Add(-gapMargin)
	if from.Before(b.floor) {
		from = b.floor
	}
	oldest := stampOf(from)
	r.latest = cmp.Or(r.latest, stampOf(time.Now()))
	args := url.Values{
		"channel": {r.channel}, "oldest": {oldest}, "latest": {r.latest}, "inclusive": {"1"}, "limit": {strconv.Itoa(historyItems)},
	}
	posts, err := b.pages(ctx, r, methodHistory, args)
	if errors.Is(err, errGone) {
		return nil, nil
	}
	var threads []string
	for _, p := range posts {
		if p.LatestReply >= oldest {
			threads = append(threads, p.TS)
		}
	}
	slices.Sort(threads)
	slices.Reverse(threads)
	for _, ts := range r.threads {
		if !slices.Contains(threads, ts) {
			threads = append(threads, ts)
		}
	}
	if len(threads) > maxThreads {
		threads, err = threads[:maxThreads], cmp.Or(err, error(errTooLong))
	}
	for _, ts := range threads {
		if err != nil && !errors.Is(err, errTooLong) {
			break
		}
		args.Set("ts", ts)
		replies, failed := b.pages(ctx, r, methodReplies, args)
		if errors.Is(failed, errGone) {
			failed = nil
		}
		posts, err = append(posts, replies...), cmp.Or(err, failed)
	}
	posts = slices.DeleteFunc(posts, func(p said) bool { return p.TS < oldest }) // the first message of an old thread
	slices.SortFunc(posts, func(a, b said) int { return cmp.Compare(a.TS, b.TS) })
	return slices.CompactFunc(posts, func(a, b said) bool { return a.TS == b.TS }), err
}

// errGone means that the bot has no access to the conversation or thread, so it
// missed nothing there.
var errGone = errors.New("no such conversation")

// pages reads all pages, as fast as Slack allows. It does not read again what
// the replay has read before.
func (b *backfill) pages(ctx context.Context, r *replay, method string, args url.Values) (posts []said, err error) {
	defer args.Del("cursor")
	for range historyPages * backfillTries {
		key := method + "?" + args.Encode()
		p, known := r.read[key]
		if !known {
			if !r.pause(ctx, max(0, b.chat.penalties.left(method, ""))) {
				return posts, cmp.Or(context.Cause(ctx), errLeft)
			}
			switch p, err = b.page(ctx, r, method, args); {
			case waitFor(err) > 0:
				b.chat.penalties.add(method, "", waitFor(err))
				continue
			case errors.Is(err, errAgain), ctx.Err() != nil:
				return posts, err
			}
			p.err = err
			r.read[key] = p
		}
		if p.err != nil {
			return posts, p.err
		}
		posts = append(posts, p.posts...)
		if p.next == "" {
			return posts, nil
		}
		if len(posts) >= historyPages*historyItems {
			break
		}
		args.Set("cursor", p.next)
	}
	return posts, errTooLong
}

// page reads one page. A try does not keep other conversations waiting for long.
func (b *backfill) page(ctx context.Context, r *replay, method string, args url.Values) (p page, err error) {
	limit := callTimeout
	if b.waiting() {
		limit = hastyTime
	}
	one, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p.posts, p.next, err = b.chat.readPage(one, method, args)
	code, _ := judge(err)
	switch {
	case err == nil || waitFor(err) > 0:
		b.outage.answer(true)
		r.tries = 0
		return p, err
	case ctx.Err() != nil:
		return p, context.Cause(ctx)
	}
	b.outage.answer(code != "")
	if r.tries == 0 {
		r.before = b.outage.answers
	}
	r.again(min(time.Second<<min(r.tries+1, 10), maxBackoff))
	last := r.tries >= backfillTries
	if code == "" {
		last = r.tries >= outageTries && b.outage.over(r.before)
	}
	if final := b.unreadable(method, err, last); final != nil {
		r.tries = 0
		return p, final
	}
	return p, errAgain
}

// unreadable returns why a page is abandoned; nil if it should be retried. last says that there were
// enough tries.
func (b *backfill) unreadable(method string, err error, last bool) error {
	code, k := judge(err)
	refused := b.chat.refused(method, b.chat.cfg.BotTokenName, err)
	var permanent *connectors.PermanentError
	switch {
	case k == route, code == "thread_not_found", code == "message_not_found":
		return errGone
	case errors.As(refused, &permanent), code != "" && k == content, last:
		return fmt.Errorf("read what was missed: %w", refused)
	}
	return nil
}
