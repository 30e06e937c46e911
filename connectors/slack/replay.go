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
}

func newReplay(channel string, from time.Time, threads []string) *replay {
	return &replay{channel: channel, from: from, threads: threads, done: make(chan struct{}), left: make(chan struct{}), turn: make(chan struct{}, 1)}
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
// first. An error gives the reason why messages may be missing.
func (b *backfill) replay(ctx context.Context, r *replay) error {
	posts, missing := b.collect(ctx, r)
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

// repost posts one message like a live one. It retries until the store accepts
// it.
func (b *backfill) repost(ctx context.Context, r *replay, in incoming) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := func() error {
			r.turn <- struct{}{}
			defer func() { <-r.turn }()
			if r.abandoned() {
				return errLeft
			}
			return b.handler.Post(ctx, in.to, in.message)
		}()
		if err == nil || errors.Is(err, errLeft) {
			return err
		}
		b.log.Warn("failed to store a missed message, retrying", "message", in.message.ID, "err", err)
		if !r.pause(ctx, wait) {
			return cmp.Or(context.Cause(ctx), errLeft)
		}
	}
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
	args := url.Values{
		"channel": {r.channel}, "oldest": {oldest}, "latest": {stampOf(time.Now())}, "inclusive": {"1"}, "limit": {strconv.Itoa(historyItems)},
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

// pages reads all pages, as fast as Slack allows.
func (b *backfill) pages(ctx context.Context, r *replay, method string, args url.Values) (posts []said, err error) {
	defer args.Del("cursor")
	tries := 0
	for range historyPages * backfillTries {
		if !r.pause(ctx, max(0, b.chat.penalties.left(method, ""))) {
			return posts, cmp.Or(context.Cause(ctx), errLeft)
		}
		page, next, err := b.chat.readPage(ctx, method, args)
		if err != nil {
			if tries++; waitFor(err) > 0 {
				tries = 0
				b.chat.penalties.add(method, "", waitFor(err))
				continue
			}
			most := backfillTries
			if code, _ := judge(err); code == "" {
				most = outageTries
			}
			if final := b.unreadable(method, err, tries >= most); final != nil {
				return posts, final
			}
			if !r.pause(ctx, min(time.Second<<tries, maxBackoff)) {
				return posts, cmp.Or(context.Cause(ctx), errLeft)
			}
			continue
		}
		tries = 0
		posts = append(posts, page...)
		if next == "" {
			return posts, nil
		}
		if len(posts) >= historyPages*historyItems {
			break
		}
		args.Set("cursor", next)
	}
	return posts, errTooLong
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
