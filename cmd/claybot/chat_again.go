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
	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

const (
	// againEvery is how often a chat tries to reopen a lost stream.
	againEvery = 500 * time.Millisecond
	// liveTime bounds the wait for a sign of life of the daemon, againTime the wait for a
	// stream to open or a message to be traced.
	liveTime  = 5 * time.Second
	againTime = 15 * time.Second
	// notReady is the code of a daemon whose chat is starting or stopping.
	notReady = "not_ready"
)

// listen opens the stream after the current position.
func (t *talk) listen(ctx context.Context) (<-chan api.Frame, error) {
	return t.client.stream(ctx, fmt.Sprintf("/terminal/stream?after=%d", t.place.after))
}

// note advances the position and notifies the user once that the database does not respond.
// It returns false for an event that it has seen: a stream begins with the newest events of
// the active run.
func (t *talk) note(ev api.Frame) (news bool) {
	if n, err := strconv.ParseInt(ev.ID, 10, 64); err == nil {
		t.place.after = max(t.place.after, n)
	}
	switch ev.Name {
	case "away":
		t.waitsFor()
	case "event":
		e, ok := decode[claybot.Event](ev.Data)
		if !ok || e.Seq == 0 {
			return true
		}
		if e.Run == t.place.newest.Run && e.Seq <= t.place.newest.Seq {
			return false
		}
		t.place.newest = e
		t.works(e)
	}
	return true
}

func (t *talk) waitsFor() {
	if !t.place.away {
		t.place.away = true
		fmt.Fprintln(t.errs, "claybot: the database does not respond; your messages are stored, and this waits until it does")
	}
}

// again reopens the stream after it broke, as long as the daemon lives, and returns what was
// missed about the messages without an end. Without a daemon it returns errGone.
func (t *talk) again(ctx context.Context) (<-chan api.Frame, []api.Frame, error) {
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
		if errors.As(err, &r) && r.status >= http.StatusInternalServerError && r.code != notReady {
			t.waitsFor()
		}
	}
}

// lives reports whether the daemon responds, whatever its database does.
func (t *talk) lives(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, liveTime)
	defer cancel()
	return t.client.call(ctx, http.MethodGet, "/healthz", nil, nil) == nil
}

// resume opens the stream and then asks what was missed, so that there is no gap.
func (t *talk) resume(ctx context.Context) (<-chan api.Frame, []api.Frame, error) {
	if t.place.cut != nil {
		t.place.cut()
	}
	ctx, t.place.cut = context.WithCancel(ctx)
	late := time.AfterFunc(againTime, t.place.cut) // only of the stream, which outlives this call
	events, err := t.listen(ctx)
	late.Stop()
	if err != nil {
		return nil, nil, err
	}
	ask, cancel := context.WithTimeout(ctx, againTime)
	defer cancel()
	missed, err := t.missed(ask)
	if err != nil {
		t.place.cut()
		return nil, nil, err
	}
	return events, missed, nil
}

// missed returns the events of runs that may be missing for the messages without an end.
// The texts themselves come with the stream.
func (t *talk) missed(ctx context.Context) ([]api.Frame, error) {
	var all []api.Frame
	for _, w := range t.waits {
		var told web.ReceiptList
		err := t.client.call(ctx, http.MethodGet, "/receipts?"+url.Values{"message": {string(w.id)}}.Encode(), nil, &told)
		var r *refusal
		if errors.As(err, &r) && r.status == http.StatusNotFound {
			continue // the message after /new does not exist yet
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

// receiptEvents returns the events behind a receipt: a run has taken the message, and the
// state of that run.
func receiptEvents(r web.ReceiptView) ([]api.Frame, error) {
	if r.Run == nil {
		return nil, nil
	}
	var all []api.Frame
	var errs []error
	next := func(t claybot.EventType, facts any) {
		data, err := json.Marshal(facts)
		frame, err2 := json.Marshal(claybot.Event{Type: t, Run: r.Run.ID, Data: data})
		all, errs = append(all, api.Frame{Name: "event", Data: frame}), append(errs, err, err2)
	}
	next(claybot.EventRunStarted, runs.MessagesTaken{Messages: []claybot.MessageID{r.Message}})
	switch {
	case r.Run.State == claybot.RunSucceeded:
		next(claybot.EventRunFinished, runs.RunFinished{Output: r.Run.Output})
	case r.Run.State == claybot.RunFailed:
		next(claybot.EventRunFailed, struct{}{})
	case r.Run.State == claybot.RunCanceled:
		d := runs.RunCanceled{Output: r.Run.Output}
		if len(r.Replies) == 0 {
			d.Output = "" // there is no reply with it
		}
		next(claybot.EventRunCanceled, d)
	case r.Run.Awaiting != nil && len(r.Run.Awaiting.Questions) > 0:
		next(claybot.EventAwaitingInput, runs.AwaitingInput{Questions: r.Run.Awaiting.Questions})
	}
	return all, errors.Join(errs...)
}
