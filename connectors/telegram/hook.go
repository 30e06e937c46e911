package telegram

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

const (
	// hookHeader is the header with the secret of a webhook (core.telegram.org/bots/api#setwebhook,
	// read 2026-11-28).
	hookHeader = "X-Telegram-Bot-Api-Secret-Token" // #nosec G101: a name
	// hookEvery is how often claybot looks whether the webhook is its own and works.
	hookEvery = 15 * time.Second
	// hookSoon is how often while updates do not arrive.
	hookSoon = 10 * time.Second
	// hookPath is the end of the address before the name of the connector.
	hookPath = "/hooks/"
	// hookHeld is how long the later updates of a person wait for one that could not be stored.
	hookHeld = 5 * time.Minute
	// hookAgain is when Telegram may repeat what could not be stored, in seconds.
	hookAgain = "5"
	// maxUpdateBytes is the largest update that is taken.
	maxUpdateBytes = 1 << 20
)

// setWebhook are the parameters of the method of that name.
type setWebhook struct {
	URL     string   `json:"url"`
	Secret  string   `json:"secret_token"`
	Allowed []string `json:"allowed_updates"`
}

// webhookInfo is the part of WebhookInfo that claybot reads
// (core.telegram.org/bots/api#webhookinfo, read 2026-11-28).
type webhookInfo struct {
	URL       string `json:"url"`
	Waiting   int    `json:"pending_update_count"`
	FailedAt  int64  `json:"last_error_date"` // Unix time
	FailedWhy string `json:"last_error_message"`
}

// hooked is the state of a webhook.
type hooked struct {
	intake connectors.Intake // by person
	bodies connectors.Bodies
	loop   atomic.Pointer[loop]
	took   atomic.Int64 // Unix time of the last update that was stored
}

// hookSecret is what Telegram sends with each update. It is derived from the token, so that all
// members and all starts have the same, and says nothing about the token.
func (c *Connector) hookSecret() string {
	m := hmac.New(sha256.New, []byte(c.cfg.Token))
	_, _ = io.WriteString(m, "claybot webhook "+c.cfg.Hook) // never fails
	return hex.EncodeToString(m.Sum(nil))
}

// Address implements connectors.Addressed: where Telegram sends updates; empty where claybot polls.
func (c *Connector) Address() string { return c.cfg.Hook }

// Limit implements connectors.Hooked.
func (c *Connector) Limit() int64 {
	if c.cfg.Hook == "" {
		return 0
	}
	return maxUpdateBytes
}

// listen takes the updates that Telegram sends to ServeHTTP until ctx is done, in place of polls. Telegram sends
// the next message of a chat only when the one before it was taken, and keeps other kinds of updates in
// queues of their own (WebhookActor.cpp and Client.cpp of github.com/tdlib/telegram-bot-api, read
// 2026-11-28).
func (l *loop) listen(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	l.listening = ctx
	defer l.aside.wait()
	l.hooked.loop.Store(l)
	l.hooked.intake.Open(l.handler)
	defer l.hooked.intake.Close()
	defer cancel() // requests end
	for known := ""; ctx.Err() == nil; {
		info, err := l.announce(ctx, known)
		pause := hookEvery
		switch {
		case err == nil:
			known = l.cfg.Hook
			l.back.Reset()
			if !l.look(ctx, info) {
				pause = hookSoon
			}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			if pause, err = l.failed(ctx, err); err != nil {
				return err
			}
		}
		if !connectors.Sleep(ctx, pause) {
			break
		}
	}
	return context.Cause(ctx)
}

// announce sets the webhook unless it is known to be set, and returns what Telegram says about it.
func (l *loop) announce(ctx context.Context, known string) (info webhookInfo, err error) {
	if known != "" {
		if err := l.send.call(ctx, "getWebhookInfo", nil, &info); err != nil || info.URL == known {
			return info, err
		}
		l.log.Warn("another program has changed the webhook of this bot; setting it again")
	}
	var done bool
	if err := l.send.call(ctx, "setWebhook", setWebhook{l.cfg.Hook, l.hookSecret(), updateKinds}, &done); err != nil {
		return info, err
	}
	l.log.Info("webhook set", "url", l.cfg.Hook)
	err = l.send.call(ctx, "getWebhookInfo", nil, &info)
	return info, err
}

// look judges whether updates arrive: not while some wait that Telegram failed to deliver since the
// last one that came, however long ago, because it tries each of them again only every two minutes.
func (l *loop) look(ctx context.Context, info webhookInfo) bool {
	if info.Waiting > 0 && info.FailedAt > l.hooked.took.Load() {
		l.pulse.Fail(fmt.Sprintf("telegram: updates cannot be delivered to %s (%d waiting): %s; check that the address leads to claybot and has a valid certificate",
			l.cfg.Hook, info.Waiting, connectors.OneLine(l.send.clean(info.FailedWhy), 200)))
		return false
	}
	l.completed(ctx)
	l.pulse.OK()
	return true
}

// ServeHTTP takes one update of a webhook, and answers with success only when it is durable. Telegram
// repeats it after any other answer.
func (c *Connector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	given := r.Header.Values(hookHeader)
	if len(given) != 1 || !hmac.Equal([]byte(given[0]), []byte(c.hookSecret())) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, release, err := c.hooked.bodies.Read(w, r, maxUpdateBytes, true)
	defer release()
	if errors.Is(err, connectors.ErrBodies) {
		w.Header().Set("Retry-After", hookAgain)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	u, err := readUpdate(body)
	if err != nil || u.UpdateID <= 0 {
		c.figures.broken.Add(1)
		c.log.Warn("skipped an unreadable update", "update", u.UpdateID)
		return // a repeat would be as unreadable
	}
	p, ok := u.lane()
	if l := c.hooked.loop.Load(); ok && l != nil {
		p, ok = l.lane(&u)
	}
	if !ok {
		c.figures.ignored.Add(1)
		return
	}
	_, leave, err := c.hooked.intake.Enter(r.Context(), fmt.Sprintf("%d/%d", p.chat, p.user))
	if err == nil {
		defer leave()
		err = c.hooked.loop.Load().takeNext(r.Context(), p, &u)
	}
	if err != nil {
		w.Header().Set("Retry-After", hookAgain)
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// errBehind refuses an update because an earlier one of the same person is to come again.
var errBehind = errors.New("an earlier update comes first")

// A held is an update that could not be stored.
type held struct {
	update int64
	at     time.Time
}

// takeNext takes an update unless an earlier one of the same person could not be stored: Telegram repeats
// that, but only messages of the chat wait for it there.
func (l *loop) takeNext(ctx context.Context, p person, u *update) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.listening, func() { cancel(context.Cause(l.listening)) })()
	kept, _ := l.held.Load(p)
	before, behind := kept.(held)
	if behind && u.UpdateID > before.update && time.Since(before.at) < hookHeld {
		return errBehind
	}
	err := l.take(ctx, u)
	switch {
	case err != nil:
		l.held.Store(p, held{u.UpdateID, time.Now()})
	case behind && u.UpdateID >= before.update: // an earlier one that comes late leaves it waiting
		l.held.Delete(p)
	}
	return err
}

// take makes an update durable.
func (l *loop) take(ctx context.Context, u *update) error {
	err := l.overhear(ctx, *u)
	if err == nil {
		err = l.deliver(ctx, u)
	}
	switch {
	case err == nil:
		l.hooked.took.Store(time.Now().Unix())
		return nil
	case storage.ClassOf(err) == storage.ClassMessage: // permanent: other updates must not wait
		l.figures.broken.Add(1)
		l.log.Error("update cannot be handled, skipped", "update", u.UpdateID, "err", err)
		return nil
	case !errors.Is(err, context.Canceled):
		l.log.Error("failed to store an update; Telegram repeats it", "update", u.UpdateID, "err", err)
		l.pulse.Fail("telegram: messages cannot be stored and wait at Telegram: " + storage.Plain(err))
	}
	return err
}
