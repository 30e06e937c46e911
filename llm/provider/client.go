// Package provider is the HTTP client that the clients of model providers share: one
// request at a time, a stream of server-sent events read to its end, the classes of what
// went wrong, retry hints, and redaction.
//
// It guarantees that an answer is complete: a stream that was cut and an answer that is no
// event stream are errors, never a shorter success. A call always ends, within the limits
// of Timeouts and MaxAnswer. Redirects to other hosts are not followed. No key, URL or
// provider body reaches an error or a log line.
//
// Only the implementations of llm import it; each brings its API.
package provider

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// An API is what the API of one provider does its own way. Its methods may be called by
// any number of goroutines.
type API interface {
	// Encode returns the body of a request without the given optional fields. Its messages are without the pictures and documents
	// that those leave out; see Client.Fit.
	Encode(r llm.Request, without uint32) ([]byte, error)
	// Authorize adds the headers that only this API has.
	Authorize(h http.Header)
	// Problem reads the body of an error with its status; status 0 stands for an error
	// inside of a stream, or instead of one.
	Problem(status int, body []byte) Problem
	// NoStream is the failure that the body of an answer of another media type stands for;
	// nil for none.
	NoStream(kind string, body []byte) *Failure
	// Begin returns an empty stream for one answer, and what it gathers.
	Begin() (Stream, *Answer)
}

// A Config says where and how a model is reached.
type Config struct {
	URL     string // of the operation; empty makes every call fail
	Model   string
	Key     string            // redacted
	Headers map[string]string // added to each request; they win over the client's own
	// Images is the optional field that stands for images, left out when a request has none.
	Images uint32
	// Documents is the optional field that stands for documents, left out in the same way.
	Documents uint32
	// Refused are the optional fields that the server is known not to accept.
	Refused uint32
	// State is the optional field that stands for the states of answers, left out when a request has
	// none of its own. Of is of whom they are, see Of.
	State uint32
	Of    string

	Timeouts Timeouts
	HTTP     http.RoundTripper // NewTransport() when nil
	Log      *slog.Logger      // discards when nil
}

// A Client is an llm.Model. It may be used by any number of goroutines.
type Client struct {
	Caller
	cfg     Config
	api     API
	refused atomic.Uint32 // optional fields that the server does not accept
	unread  unread
}

var _ llm.Fitter = (*Client)(nil)

// ErrState is why a state is not kept.
var ErrState = fmt.Errorf("it has more than %d KiB", MaxState>>10)

// MaxState is how many bytes a state has at most that is kept with an answer.
const MaxState = 256 << 10

// Of says of whom the states are that come from an address: the address, without what may be a secret, and
// the model.
func Of(address, model string) string {
	u, err := url.Parse(address)
	if err != nil {
		return model
	}
	return u.Host + u.Path + " " + model
}

// New returns a client. It does not connect.
func New(cfg Config, api API) *Client {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{Caller: *NewCaller(cfg.URL, cfg.Timeouts, cfg.HTTP, NewRedactor(cfg.Key, cfg.Headers)), cfg: cfg, api: api}
	c.refused.Store(cfg.Refused)
	return c
}

// Refused are the optional fields that the server is known not to accept, or was found not to.
func (c *Client) Refused() uint32 { return c.refused.Load() }

// Chat asks the model once and returns its complete answer; llm.Retried asks
// again. Only a request that the server refuses for an optional field is
// repeated without it. The error of a call that ctx ended also wraps the cause
// of ctx.
func (c *Client) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	if c.URL == "" || c.cfg.Model == "" {
		return llm.Response{}, llm.Failed(llm.Permanent, "the base URL or the model's name is not set properly")
	}
	step, cancel := c.Within(ctx)
	defer cancel()
	r = c.Fit(r)
	var (
		once    uint32         // left out of this call only
		doubted []llm.Document // of the request, the same
	)
	if !slices.ContainsFunc(r.Messages, func(m llm.Message) bool { return len(m.Images) > 0 }) {
		once = c.cfg.Images
	}
	if !slices.ContainsFunc(r.Messages, func(m llm.Message) bool { return len(m.Documents) > 0 }) {
		once |= c.cfg.Documents
	}
	if !slices.ContainsFunc(r.Messages, func(m llm.Message) bool { return m.State != nil && m.State.Of == c.cfg.Of }) {
		once |= c.cfg.State
	}
	for {
		without := c.refused.Load() | once
		try := r
		try.Messages = c.fitted(r.Messages, without, doubted)
		resp, fail := c.attempt(step, try, without)
		if fail == nil {
			c.unread.add(doubted)
			return resp, nil
		}
		if ctx.Err() != nil {
			return c.spent(fail), fmt.Errorf("%w: %w", fail.Error, context.Cause(ctx))
		}
		if fail.unexplained() { // it may be about a document: nothing is paid to find out
			fail.once = c.cfg.Documents
		}
		c.oneOf(fail, without)
		if (fail.refused|fail.once)&^without == 0 {
			return c.spent(fail), fail.Error
		}
		if fail.once&^without&c.cfg.Documents != 0 {
			switch all := documents(r.Messages); {
			case len(all) < 2:
				doubted = all
			case doubted == nil: // the others were read before
				doubted, fail.once = all[:1], fail.once&^c.cfg.Documents
			default: // none of them is sent, and it was not the newest alone
				doubted = all[1:]
			}
		}
		once |= fail.once
		if always := fail.refused &^ without; always != 0 {
			c.refused.Or(always)
			c.cfg.Log.Info("model server rejected an optional field; continuing without it",
				"model", c.cfg.Model, "error", fail.Text)
		}
	}
}

func (c *Client) spent(f *Failure) llm.Response {
	return llm.Response{Model: c.cfg.Model, Asked: c.cfg.Model, Usage: f.usage, Charged: f.usage.CostMicroUSD > 0}
}

// attempt makes one request, without the given optional fields, and reads its
// answer to the end.
func (c *Client) attempt(ctx context.Context, r llm.Request, without uint32) (llm.Response, *Failure) {
	body, err := c.api.Encode(r, without)
	if err != nil {
		return llm.Response{}, Failed(llm.Permanent, "the request cannot be encoded; a tool's parameters may be no JSON")
	}
	x, broken := c.Post(ctx, body, c.header("application/json", "text/event-stream"))
	if broken != nil {
		return llm.Response{}, &Failure{Error: broken}
	}
	defer x.Close()
	if x.Status() != http.StatusOK {
		return llm.Response{}, c.refusal(x)
	}
	if kind := x.Kind(); kind != "text/event-stream" {
		return c.whole(x, r, kind)
	}
	out, fail := c.read(x, r)
	if fail == nil {
		x.Drain()
	}
	return out, fail
}

// whole reads an answer that is no stream.
func (c *Client) whole(x *Exchange, r llm.Request, kind string) (llm.Response, *Failure) {
	if kind != "application/json" {
		return llm.Response{}, c.noStream(kind, x.Problem())
	}
	body, err := io.ReadAll(x)
	if err != nil {
		return llm.Response{}, &Failure{Error: x.Cut(err, len(body) == 0)}
	}
	s, a := c.api.Begin()
	a.delta = r.Delta
	switch fail, ok := s.Whole(body); {
	case !ok:
		return llm.Response{}, c.noStream(kind, body)
	case fail != nil:
		fail.usage = a.spent(s, r)
		return llm.Response{}, c.explained(fail.paid())
	}
	if _, whole := s.Stopped(); !whole {
		return llm.Response{}, (&Failure{Error: llm.Failed(llm.Transient, "the provider's answer was empty"), usage: a.spent(s, r)}).paid()
	}
	return c.response(s, a, r), nil
}

// Do makes one request for an answer that is no stream. The exchange must be closed when
// the error is nil; its status is 200 then.
func (c *Client) Do(ctx context.Context, body []byte, content, accept string) (*Exchange, *llm.Error) {
	x, broken := c.Post(ctx, body, c.header(content, accept))
	if broken != nil || x.Status() == http.StatusOK {
		return x, broken
	}
	defer x.Close()
	return nil, c.refusal(x).Error
}

func (c *Client) header(content, accept string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", content)
	h.Set("Accept", accept)
	h.Set("User-Agent", "claybot")
	c.api.Authorize(h)
	for name, value := range c.cfg.Headers {
		h.Set(name, value)
	}
	return h
}

func (c *Client) refusal(x *Exchange) *Failure {
	f := c.failure(c.api.Problem(x.Status(), x.Problem()))
	f.Status = x.Status()
	now := time.Now()
	f.RetryAfter = cmp.Or(RetryAfter(x.Header(), now), f.RetryAfter)
	if f.Class == llm.Rate && f.RetryAfter == 0 {
		f.RetryAfter = limited(x.Header(), now)
	}
	if f.Class == llm.Transient && f.RetryAfter > 0 && (f.Status == http.StatusServiceUnavailable || f.Status == StatusOverloaded) {
		f.Class = llm.Rate
	}
	switch x.Header().Get("X-Should-Retry") {
	case "true":
		if f.Class == llm.Permanent && !f.Account {
			f.Class = llm.Transient
		}
	case "false":
		// A limit that lasts for hours is told in this way, too.
		if f.Class != llm.Context && f.Class != llm.Rate {
			f.Class = llm.Permanent
		}
	}
	return f
}

// noStream is the failure of a response that is no event stream.
func (c *Client) noStream(kind string, body []byte) *Failure {
	if f := c.api.NoStream(kind, body); f != nil {
		return c.explained(f)
	}
	if kind == "text/html" {
		return Failed(llm.Permanent, "the server sent a web page instead of an event stream; check the base URL")
	}
	return Failed(llm.Transient, "the server sent %q instead of an event stream; check the base URL", c.Redactor.Short(kind)).paid()
}

func (c *Client) read(x *Exchange, r llm.Request) (llm.Response, *Failure) {
	events := NewEventReader(x)
	defer events.Close()
	s, a := c.api.Begin()
	a.delta = r.Delta
	var end error
	for !a.Done && end == nil {
		var data []byte
		if data, end = events.Next(); end == nil {
			stopped := a.Stop != ""
			a.Grown = false
			if fail := s.Take(data); fail != nil {
				fail.usage = a.spent(s, r)
				return llm.Response{}, c.explained(fail.paid())
			}
			switch {
			case !stopped && a.Stop != "":
				x.Tail()
			case a.Grown:
				x.Progress()
			}
		}
	}
	if _, whole := s.Stopped(); whole && !errors.Is(end, ErrTooLarge) && !errors.Is(end, ErrLineTooLong) {
		return c.response(s, a, r), nil
	}
	fail := &Failure{Error: x.Cut(end, a.Events == 0), usage: a.spent(s, r)}
	fail.Paid = a.Events > 0 && (end == nil || errors.Is(end, io.EOF)) && !x.Ended() // an end in good order
	return llm.Response{}, fail
}

// response makes the answer of a complete stream. An answer that ended by length or
// filter has no calls: the last one may be half, and to act on a part of what was meant
// is worse than to ask again.
func (c *Client) response(s Stream, a *Answer, r llm.Request) llm.Response {
	usage := s.Usage()
	stop, _ := s.Stopped()
	resp := llm.Response{Text: a.Text(), Model: a.Model, Asked: c.cfg.Model, Usage: usage, Charged: a.Charged, Stop: stop}
	if resp.Model == "" {
		resp.Model = c.cfg.Model
	}
	if resp.Stop == llm.StopEnd {
		resp.Calls = a.Finish(fmt.Sprintf("%s/%d", r.Run, len(r.Messages)), r.Messages)
		if len(resp.Calls) > 0 {
			resp.Stop = llm.StopTools
		}
	}
	switch data, err := s.State(resp.Calls); {
	case err != nil, len(data) > MaxState:
		c.cfg.Log.Warn("what the model wants back with its answer is not kept", "model", c.cfg.Model, "error", cmp.Or(err, ErrState))
	case len(data) > 0:
		resp.State = &claybot.ModelState{Of: c.cfg.Of, Data: bytes.ToValidUTF8(data, []byte("\uFFFD"))}
	}
	if resp.Text == "" && len(resp.Calls) == 0 && a.Refusal.Len() > 0 {
		resp.Text, resp.Stop = a.Refusal.String(), llm.StopFilter
	}
	if usage.Input == 0 && usage.Output == 0 {
		resp.Usage = a.estimate(r, resp)
		if resp.Charged {
			resp.Usage.CostMicroUSD = usage.CostMicroUSD
		}
	}
	return resp
}
