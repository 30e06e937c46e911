package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/egress"
)

// A reply is the body of a request to a callback.
type reply struct {
	ID      string               `json:"id"`
	Kind    claybot.OutgoingKind `json:"kind"`
	Hook    string               `json:"hook"`
	Channel string               `json:"channel"`
	// Delivery is the id of the request that this answers.
	Delivery string        `json:"delivery,omitempty"`
	Run      claybot.RunID `json:"run,omitempty"`
	Text     string        `json:"text"` // Markdown
	Part     int           `json:"part"`
	Parts    int           `json:"parts"`
	Resent   bool          `json:"resent,omitempty"`
	At       claybot.Time  `json:"at"`
}

// Split returns the whole text: a callback has no limit.
func (c *Connector) Split(text string) []string { return []string{text} }

// Resend implements connectors.Resender: the receiver knows a repeat by its webhook-id.
func (c *Connector) Resend(claybot.Outgoing) bool { return true }

// Send posts a message to the callback. Any status 2xx means that it arrived. Without a
// callback it stays in the history.
func (c *Connector) Send(ctx context.Context, o claybot.Outgoing) (receipt string, err error) {
	receipt = c.cfg.Name + "/" + o.ID
	if c.cfg.Callback == "" {
		return receipt, nil
	}
	if c.fault != nil {
		return "", &connectors.PermanentError{Err: c.fault}
	}
	req, wrote, err := c.request(ctx, o)
	if err != nil {
		return "", &connectors.PermanentError{Err: errors.New("the address of the callback is not valid")}
	}
	limited, cancel := context.WithTimeout(req.Context(), c.cfg.Within)
	defer cancel()
	resp, err := c.client.Do(req.WithContext(limited))
	switch {
	case err != nil && wrote.Load():
		return "", &connectors.AmbiguousError{Err: errors.New("callback: " + egress.Words(err))}
	case err != nil && ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", errors.New("callback: " + egress.Words(err))
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
	return receipt, c.judge(resp)
}

// request returns the signed request for a message, and whether any of it was written.
func (c *Connector) request(ctx context.Context, o claybot.Outgoing) (req *http.Request, wrote *atomic.Bool, err error) {
	delivery, _ := bytes.CutPrefix([]byte(o.Message), []byte(c.cfg.Name+"/"))
	body, err := json.Marshal(reply{
		ID: o.ID, Kind: o.Kind, Hook: c.cfg.Name, Channel: o.Route.ChannelID, Delivery: string(delivery), Run: o.Run, Text: o.Text,
		Part: o.Part, Parts: o.Parts, Resent: o.Resent, At: o.At,
	})
	if err != nil {
		return nil, nil, err
	}
	wrote = new(atomic.Bool)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { wrote.Store(true) }})
	req, err = http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.Callback, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "claybot")
	c.signer.sign(req.Header, o.ID, body, c.cfg.Now())
	return req, wrote, nil
}

// crowded is how long to wait after a 429 that names no time.
const crowded = 30 * time.Second

// judge reads the answer of the receiver.
func (c *Connector) judge(resp *http.Response) error {
	code := resp.StatusCode
	err := fmt.Errorf("the callback answers %d %s", code, http.StatusText(code))
	wait := after(resp.Header.Get("Retry-After"), c.cfg.Now())
	switch {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusTooManyRequests && wait == 0:
		return &connectors.RetryError{After: crowded, All: true, Err: err} // all channels have this callback
	case wait > 0 && (code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable):
		return &connectors.RetryError{After: wait, All: true, Err: err}
	case code == http.StatusGone:
		return &connectors.PermanentError{DeadRoute: true, Err: err}
	case code >= 300 && code < 400:
		return &connectors.PermanentError{Err: err, Fix: "redirects are not followed: configure the final address"}
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code >= 500:
		return err
	}
	return &connectors.PermanentError{Err: err}
}

// after reads the header Retry-After: seconds, or a date; at most a day.
func after(value string, now time.Time) time.Duration {
	const most = 24 * 60 * 60
	if n, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(n, 0), most)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, at.Sub(now)), most*time.Second)
	}
	return 0
}
