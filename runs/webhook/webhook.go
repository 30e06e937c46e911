// Package webhook is a sink that posts events to an HTTP receiver, signed.
//
// One request carries events of one run, in the order of their seq:
//
//	POST <the configured address>
//	Content-Type: application/json
//	Claybot-Delivery: <run id>/<first seq>-<last seq>
//	Claybot-Timestamp: <unix seconds when it was sent>
//	Claybot-Signature: v1=<hex of HMAC-SHA256(secret, timestamp + "." + body)>
//
//	{"events":[{"v":1,"runId":"…","seq":7,"type":"ToolCalled","ts":…,"source":"outbox","data":{…}}]}
//
// Any status 2xx means that the receiver has them for good. Everything else,
// redirects included, means that the same events come again: a receiver knows
// what it has by run id and seq. Retry-After is honoured up to an hour. After
// 400, 413 and 422 fewer of them come at a time, down to one; the delivery id
// says which, and the same id always means the same events. A receiver checks each request with Verify, or does the same in its language.
//
// Neither the address nor the secret appears in errors. Only cmd and tests
// import this package.
package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

var _ runs.Sink = (*Sink)(nil)

// The headers of a request.
const (
	DeliveryHeader  = "Claybot-Delivery"
	TimestampHeader = "Claybot-Timestamp"
	SignatureHeader = "Claybot-Signature"
)

// Config of a Sink.
type Config struct {
	Name   string        // of the relay, for errors
	URL    string        // http or https, without user and password
	Secret string        // shared with the receiver; 32 random bytes are good
	Within time.Duration // for one request; 0: 10 s
	// Transport carries the requests; nil: a plain one that uses no proxy.
	Transport http.RoundTripper
}

// A Sink posts events to one receiver. It is safe for concurrent use.
type Sink struct {
	cfg    Config
	client *http.Client
}

// New returns the sink of a configuration. One that cannot work refuses all
// events with the reason.
func New(cfg Config) *Sink {
	if cfg.Within <= 0 {
		cfg.Within = 10 * time.Second
	}
	if cfg.Transport == nil {
		cfg.Transport = &http.Transport{
			ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: 90 * time.Second,
			TLSHandshakeTimeout: cfg.Within, MaxResponseHeaderBytes: 64 << 10,
		}
	}
	return &Sink{cfg: cfg, client: &http.Client{
		Transport:     cfg.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the connections that wait for a next request. A later Publish opens others.
func (s *Sink) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// check says what is wrong with the configuration.
func (s *Sink) check() error {
	u, err := url.Parse(s.cfg.URL)
	text := ""
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		text = "the address is not an http or https URL; correct it in the configuration"
	case u.User != nil:
		text = "the address holds a user or password; take it out, the signature proves the sender"
	case s.cfg.Secret == "":
		text = "there is no secret; set one in the configuration"
	default:
		return nil
	}
	e := s.fault(text)
	e.Refused = true
	return e
}

// Publish implements runs.Sink.
func (s *Sink) Publish(ctx context.Context, events []claybot.Event) error {
	if len(events) == 0 {
		return nil
	}
	if err := s.check(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, s.cfg.Within)
	defer cancel()
	body := encode(events)
	req, err := http.NewRequestWithContext(limited, http.MethodPost, s.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return s.fault("the request cannot be made")
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "claybot")
	req.Header.Set(DeliveryHeader, delivery(events))
	req.Header.Set(TimestampHeader, at)
	req.Header.Set(SignatureHeader, Sign(s.cfg.Secret, at, body))
	resp, err := s.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return s.fault("no answer within " + s.cfg.Within.String())
		}
		return s.fault(reason(err))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10) // so that the connection can be used again
	return s.judge(resp)
}

// judge reads the answer of the receiver.
func (s *Sink) judge(resp *http.Response) error {
	code := resp.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	e := s.fault(fmt.Sprintf("the receiver answers %d %s", code, http.StatusText(code)))
	e.After = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Refused = true
		e.Text += "; check that both sides have the same secret"
	case http.StatusNotFound, http.StatusGone:
		e.Refused = true
		e.Text += "; check the address, or take the relay out of the configuration"
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		e.Refused, e.Batch = true, true
		e.Text += "; it does not accept these events"
	}
	if code >= 300 && code < 400 {
		e.Text += "; redirects are not followed, configure the final address"
	}
	return e
}

func (s *Sink) fault(text string) *runs.SinkError {
	return &runs.SinkError{Text: "relay " + s.cfg.Name + ": " + text}
}

func encode(events []claybot.Event) []byte {
	body := []byte(`{"events":[`)
	for i, e := range events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, runs.Encode(e)...)
	}
	return append(body, "]}"...)
}

// delivery is the same for the same events.
func delivery(events []claybot.Event) string {
	return fmt.Sprintf("%s/%d-%d", events[0].Run, events[0].Seq, events[len(events)-1].Seq)
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(value string, now time.Time) time.Duration {
	const most = 24 * 60 * 60
	if n, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(max(n, 0), most)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
