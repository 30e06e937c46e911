// Package anthropic speaks Anthropic's Messages API, and that of the servers
// that have the same.
//
// It guarantees what package openai does: an answer is complete, a stream that
// was cut and half a tool call are errors, a call always ends, and no key, URL
// or provider body reaches an error or a log line. The beginning of each chat is
// marked for the provider's cache.
//
// Only main and tests import it; others know it as an llm.Model.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot/llm"
)

// DefaultBaseURL is where Anthropic itself answers.
const DefaultBaseURL = "https://api.anthropic.com"

// DefaultMaxTokens bounds an answer where neither the request nor the
// configuration does, and the model may write as much.
const DefaultMaxTokens = 16_384

// version is the version of the API that is spoken.
const version = "2023-06-01"

// A Config says where and how a model is reached. Only Model is required.
type Config struct {
	BaseURL string // with or without /v1 at the end; DefaultBaseURL
	Key     string // sent as x-api-key; none when empty
	Model   string
	Headers map[string]string // added to each request; they win over the client's own

	// MaxTokens bounds an answer where the request does not: tokens; 0 means
	// DefaultMaxTokens. No bound is above what the model is known to write.
	MaxTokens int64

	Timeouts llm.Timeouts
	HTTP     http.RoundTripper // llm.NewTransport() when nil
	Log      *slog.Logger      // discards when nil
}

// Validate reports a configuration with which no call can succeed.
func (c Config) Validate() error {
	if c.Model == "" {
		return errors.New("model is not set")
	}
	_, err := endpoint(c.BaseURL)
	return err
}

// endpoint is the address of the API below a base URL, to which others add /v1
// and /messages.
func endpoint(base string) (string, error) {
	u, err := llm.Endpoint(cmp.Or(base, DefaultBaseURL), "/messages")
	if err != nil {
		return "", err
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/messages"), "/v1") + "/v1/messages"
	return u.String(), nil
}

// A Client is an llm.Model. It may be used by any number of goroutines.
type Client struct {
	cfg     Config
	caller  *llm.Caller
	valid   bool // the base URL is usable
	log     *slog.Logger
	refused atomic.Uint32 // optional fields that the server does not accept
}

var _ llm.Model = (*Client)(nil)

// New returns a client. It does not connect; a configuration that Validate
// refuses makes every call fail.
func New(cfg Config) *Client {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	address, err := endpoint(cfg.BaseURL)
	return &Client{
		cfg: cfg, log: cfg.Log, valid: err == nil,
		caller: llm.NewCaller(address, cfg.Timeouts, cfg.HTTP, llm.NewRedactor(cfg.Key, cfg.Headers)),
	}
}

// CloseIdleConnections closes the connections that no call uses.
func (c *Client) CloseIdleConnections() { c.caller.CloseIdleConnections() }

// Chat asks the model once and returns its complete answer; llm.Retried asks
// again. Only a request that the server refuses for an optional field is
// repeated without it. The error of a call that ctx ended also wraps the cause
// of ctx.
func (c *Client) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	if !c.valid || c.cfg.Model == "" {
		return llm.Response{}, llm.Failed(llm.Permanent, "the base URL or the model's name is not set properly")
	}
	step, cancel := c.caller.Within(ctx)
	defer cancel()
	var once uint32 // left out of this call only
	if !slices.ContainsFunc(r.Messages, func(m llm.Message) bool { return len(m.Images) > 0 }) {
		once = fieldImages
	}
	for {
		without := c.refused.Load() | once
		resp, fail := c.attempt(step, r, without)
		if fail == nil {
			return resp, nil
		}
		if ctx.Err() != nil {
			return c.spent(fail), fmt.Errorf("%w: %w", fail.Error, context.Cause(ctx))
		}
		if (fail.refused|fail.once)&^without == 0 {
			return c.spent(fail), fail.Error
		}
		once |= fail.once
		if always := fail.refused &^ without; always != 0 {
			c.refused.Or(always)
			c.log.Info("model server refuses an optional field; going on without it",
				"model", c.cfg.Model, "error", fail.Text)
		}
	}
}

// spent is the response beside a failure.
func (c *Client) spent(f *failure) llm.Response {
	return llm.Response{Model: c.cfg.Model, Asked: c.cfg.Model, Usage: f.usage}
}

// attempt makes one request, without the given optional fields, and reads its
// answer to the end.
func (c *Client) attempt(ctx context.Context, r llm.Request, without uint32) (llm.Response, *failure) {
	body, err := c.encode(r, without)
	if err != nil {
		return llm.Response{}, failed(llm.Permanent, "the request cannot be encoded; a tool's parameters may be no JSON")
	}
	x, broken := c.caller.Post(ctx, body, c.header())
	if broken != nil {
		return llm.Response{}, &failure{Error: broken}
	}
	defer x.Close()
	if x.Status() != http.StatusOK {
		return llm.Response{}, c.refusal(x)
	}
	if kind := x.Kind(); kind != "text/event-stream" {
		return llm.Response{}, c.noStream(kind, x.Problem())
	}
	out, fail := c.read(x, r)
	if fail == nil {
		x.Drain()
	}
	return out, fail
}

func (c *Client) header() http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream")
	h.Set("User-Agent", "claybot")
	h.Set("Anthropic-Version", version)
	if c.cfg.Key != "" {
		h.Set("X-Api-Key", c.cfg.Key)
	}
	for name, value := range c.cfg.Headers {
		h.Set(name, value)
	}
	return h
}

// refusal is the failure that a response with an error status stands for.
func (c *Client) refusal(x *llm.Exchange) *failure {
	f := c.problem(parseProblem(x.Status(), x.Problem()))
	f.Status = x.Status()
	f.RetryAfter = llm.RetryAfter(x.Header(), time.Now())
	if f.Class == llm.Transient && f.RetryAfter > 0 && (f.Status == http.StatusServiceUnavailable || f.Status == statusOverloaded) {
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
func (c *Client) noStream(kind string, body []byte) *failure {
	if p := parseProblem(0, body); p.kind != "" {
		p.inStream()
		return c.problem(p)
	}
	if kind == "text/html" {
		return failed(llm.Transient, "the server sent a web page instead of an event stream; check the base URL")
	}
	return failed(llm.Transient, "the server sent %q instead of an event stream; check the base URL", c.caller.Redactor.Short(kind))
}
