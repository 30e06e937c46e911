// Package openai speaks to every server that has OpenAI's chat completions API:
// OpenAI itself, OpenRouter, Ollama, vLLM and many others.
//
// It guarantees that an answer is complete: a stream that was cut, an answer
// that is no event stream and half a tool call are errors, never a shorter
// success. A call always ends, within the limits of time and size that Timeouts
// and the constants of this package state. Redirects to other hosts are not
// followed. No key, URL or provider body reaches an error or a log line.
//
// Only main and tests import it; others know it as an llm.Model.
package openai

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot/llm"
)

// DefaultBaseURL is where OpenAI itself answers.
const DefaultBaseURL = "https://api.openai.com/v1"

// Timeouts bound the phases of a call. Zero fields mean the default.
type Timeouts struct {
	Header time.Duration // request sent to first header, dialing included; 60 s
	Idle   time.Duration // between two bytes of the answer; 120 s
	Step   time.Duration // the whole call with all its tries; 10 min
}

// A Fallback says whether the system prompt is sent a second time, as the first
// message of the user, for servers and models that ignore the system role.
type Fallback string

// The modes of the fallback. Auto, the zero value, leaves it out for providers
// known to honour the system role and sends it to all others.
const (
	FallbackAuto   Fallback = "auto"
	FallbackAlways Fallback = "always"
	FallbackNever  Fallback = "never"
)

// A Config says where and how a model is reached. Only Model is required.
type Config struct {
	BaseURL string // with or without a slash at the end; DefaultBaseURL
	Key     string // sent as bearer token; none when empty
	Model   string
	Headers map[string]string // added to each request; they win over the client's own

	SystemFallback Fallback
	MaxTokens      int // bound of an answer; not sent when 0

	Timeouts Timeouts
	HTTP     http.RoundTripper // NewTransport() when nil
	Log      *slog.Logger      // discards when nil
}

// Validate reports a configuration with which no call can succeed.
func (c Config) Validate() error {
	if c.Model == "" {
		return errors.New("model is not set")
	}
	if _, err := endpoint(c.BaseURL); err != nil {
		return err
	}
	switch c.SystemFallback {
	case "", FallbackAuto, FallbackAlways, FallbackNever:
		return nil
	}
	return fmt.Errorf("system fallback %q: want auto, always or never", c.SystemFallback)
}

// A Client is an llm.Model. It may be used by any number of goroutines.
type Client struct {
	cfg      Config
	url      string // empty when the base URL is unusable
	fallback bool
	http     *http.Client
	log      *slog.Logger
	redact   *strings.Replacer
	tools    toolsCache
	refused  atomic.Uint32 // optional fields that the server does not accept
}

var _ llm.Model = (*Client)(nil)

// New returns a client. It does not connect; a configuration that Validate
// refuses makes every call fail.
func New(cfg Config) *Client {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	if cfg.HTTP == nil {
		cfg.HTTP = NewTransport()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&cfg.Timeouts.Header, time.Minute)
	def(&cfg.Timeouts.Idle, 2*time.Minute)
	def(&cfg.Timeouts.Step, 10*time.Minute)
	c := &Client{
		cfg:    cfg,
		http:   &http.Client{Transport: cfg.HTTP, CheckRedirect: checkRedirect},
		log:    cfg.Log,
		redact: secretsOf(cfg),
	}
	if u, err := endpoint(cfg.BaseURL); err == nil {
		c.url = u.String()
		c.fallback = cfg.SystemFallback == FallbackAlways || cfg.SystemFallback != FallbackNever && !honoursSystem(u.Hostname())
	}
	return c
}

// CloseIdleConnections closes the connections that no call uses.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// Chat asks the model and returns its complete answer. It tries up to three
// times where that can help; each try tells r.Delta its text from offset 0. The
// error of a call that ctx ended also wraps the cause of ctx.
func (c *Client) Chat(ctx context.Context, r llm.Request) (llm.Response, error) {
	if c.url == "" || c.cfg.Model == "" {
		return llm.Response{}, &llm.Error{Class: llm.Permanent, Text: "the base URL or the model's name is not set properly"}
	}
	step, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeouts.Step, errStep)
	defer cancel()
	for try := 1; ; {
		without := c.refused.Load()
		resp, fail := c.attempt(step, r, without)
		if fail == nil {
			return resp, nil
		}
		if ctx.Err() != nil {
			return llm.Response{}, fmt.Errorf("%w: %w", fail.Error, context.Cause(ctx))
		}
		if fail.refused&^without != 0 {
			c.refused.Or(fail.refused)
			c.log.Info("model server refuses an optional field; going on without it",
				"model", c.cfg.Model, "error", fail.Text)
			continue
		}
		wait, again := backoff(step, try, fail.Error)
		c.log.Warn("model call failed", "model", c.cfg.Model, "agent", r.Agent, "run", r.Run, "try", try,
			"class", fail.Class, "status", fail.Status, "again", again, "wait", wait, "error", fail.Text)
		if !again {
			return llm.Response{}, fail.Error
		}
		if !sleep(step, wait) {
			return llm.Response{}, fmt.Errorf("%w: %w", fail.Error, context.Cause(step))
		}
		try++
	}
}

// endpoint returns the address of chat completions below a base URL.
func endpoint(base string) (*url.URL, error) {
	if base == "" {
		base = DefaultBaseURL
	}
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The text of base stays out: it may hold a password.
		return nil, errors.New("base URL is not an http or https address")
	}
	const suffix = "/chat/completions"
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), suffix) + suffix
	u.RawPath, u.Fragment = "", ""
	return u, nil
}

// honoursSystem reports providers that are known to honour the system role.
func honoursSystem(host string) bool {
	for _, known := range [...]string{
		"openai.com", "openai.azure.com", "anthropic.com", "googleapis.com", "mistral.ai",
		"deepseek.com", "x.ai", "groq.com", "openrouter.ai",
	} {
		if host == known || strings.HasSuffix(host, "."+known) {
			return true
		}
	}
	return false
}
