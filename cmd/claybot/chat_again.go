package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

const (
	// againEvery is how often a chat that lost its stream tries to have it again.
	againEvery = 500 * time.Millisecond
	// liveTime is how long a daemon that lives may take to say so, and againTime how
	// long to begin a stream, or to tell of a message.
	liveTime  = 5 * time.Second
	againTime = 15 * time.Second
)

// listen opens the stream behind what was heard.
func (t *talk) listen(ctx context.Context) (<-chan event, error) {
	return t.client.stream(ctx, fmt.Sprintf("/terminal/stream?after=%d", t.after))
}

// note keeps the place in the stream, and tells the person, once, that the database
// does not answer. False is an event that was heard before: a stream begins with the
// newest ones of a run at work.
func (t *talk) note(ev event) (news bool) {
	if n, err := strconv.ParseInt(ev.id, 10, 64); err == nil {
		t.after = max(t.after, n)
	}
	switch ev.name {
	case "away":
		t.waitsFor()
	case "event":
		var e claybot.Event
		if json.Unmarshal(ev.data, &e) != nil || e.Seq == 0 {
			return true
		}
		if e.Run == t.newest.Run && e.Seq <= t.newest.Seq {
			return false
		}
		t.newest = e
		t.works(e)
	}
	return true
}

func (t *talk) waitsFor() {
	if !t.away {
		t.away = true
		fmt.Fprintln(t.errs, "claybot: the database does not answer; what you sent is kept, and this waits until it does")
	}
}

// again has the stream again after it broke, for as long as the daemon lives, and
// what was missed of the messages that have no end yet. Without a daemon it is
// errGone.
func (t *talk) again(ctx context.Context) (<-chan event, []event, error) {
	for {
		select {
		case <-time.After(againEvery):
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
		if !t.lives(ctx) {
			return nil, nil, errGone
		}
		events, missed, err := t.resume(ctx)
		if err == nil {
			return events, missed, nil
		}
		var r *refusal
		if errors.As(err, &r) && r.status >= http.StatusInternalServerError {
			t.waitsFor()
		}
	}
}

// lives reports whether the daemon is there, whatever its database does.
func (t *talk) lives(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, liveTime)
	defer cancel()
	return t.client.call(ctx, http.MethodGet, "/healthz", nil, nil) == nil
}

// resume opens the stream and asks then what was missed, so that nothing falls
// between.
func (t *talk) resume(ctx context.Context) (<-chan event, []event, error) {
	if t.cut != nil {
		t.cut()
	}
	ctx, t.cut = context.WithCancel(ctx)
	late := time.AfterFunc(againTime, t.cut) // of the stream alone: it lives on behind this
	events, err := t.listen(ctx)
	late.Stop()
	if err != nil {
		return nil, nil, err
	}
	ask, cancel := context.WithTimeout(ctx, againTime)
	defer cancel()
	missed, err := t.missed(ask)
	if err != nil {
		t.cut()
		return nil, nil, err
	}
	return events, missed, nil
}

// missed is what runs may have told of the messages that have no end yet, while
// nobody heard. What was said to the person comes with the stream.
func (t *talk) missed(ctx context.Context) ([]event, error) {
	var all []event
	for _, w := range t.waits {
		var told web.ReceiptList
		err := t.client.call(ctx, http.MethodGet, "/receipts?"+url.Values{"message": {string(w.id)}}.Encode(), nil, &told)
		var r *refusal
		if errors.As(err, &r) && r.status == http.StatusNotFound {
			continue // of what stands behind /new there is nothing yet
		}
		if err != nil {
			return nil, err
		}
		for _, r := range told.Receipts {
			events, err := receiptEvents(r)
			if err != nil {
				return nil, err
			}
			all = append(all, events...)
		}
	}
	return all, nil
}

// receiptEvents are those that led to it: that a run has taken the message, and how that
// stands now.
func receiptEvents(r web.ReceiptView) ([]event, error) {
	if r.Run == nil {
		return nil, nil
	}
	all := []claybot.Event{{Type: claybot.EventRunStarted, Run: r.Run.ID}}
	facts := []any{runs.MessagesTaken{Messages: []claybot.MessageID{r.Message}}}
	next := func(t claybot.EventType, data any) {
		all, facts = append(all, claybot.Event{Type: t, Run: r.Run.ID}), append(facts, data)
	}
	switch {
	case r.Run.State == claybot.RunSucceeded:
		next(claybot.EventRunFinished, runs.RunFinished{Output: r.Run.Output})
	case r.Run.State == claybot.RunFailed:
		next(claybot.EventRunFailed, struct{}{})
	case r.Run.State == claybot.RunCanceled:
		d := runs.RunCanceled{Output: r.Run.Output}
		if len(r.Replies) == 0 {
			d.Output = "" // no reply says it
		}
		next(claybot.EventRunCanceled, d)
	case r.Run.Awaiting != nil && len(r.Run.Awaiting.Questions) > 0:
		next(claybot.EventAwaitingInput, runs.AwaitingInput{Questions: r.Run.Awaiting.Questions})
	}
	out := make([]event, 0, len(all))
	for i, e := range all {
		var err error
		if e.Data, err = json.Marshal(facts[i]); err != nil {
			return nil, fmt.Errorf("read the receipt: %w", err)
		}
		data, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("read the receipt: %w", err)
		}
		out = append(out, event{name: "event", data: data})
	}
	return out, nil
}
