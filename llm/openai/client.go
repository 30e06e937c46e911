// Package openai speaks to every server that has OpenAI's chat completions API:
// OpenAI itself, OpenRouter, Ollama, vLLM and many others.
//
// It guarantees that an answer is complete: a stream that was cut, an answer
// that is no event stream and half a tool call are errors, never a shorter
// success. A call always ends, within the limits of time and size that Timeouts
// and llm.MaxAnswer state. Redirects to other hosts are not
// followed. No key, URL or provider body reaches an error or a log line.
//
// Only main and tests import it; others know it as an llm.Model.
package openai

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

	"github.com/claybot/claybot/llm"
)

// DefaultBaseURL is where OpenAI itself answers.
const DefaultBaseURL = "https://api.openai.com/v1"

// Timeouts bound the phases of a call. Zero fields mean the default.
type Timeouts = llm.Timeouts

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
	MaxTokens      int64 // bound of an answer where the request sets none; not sent when 0

	Timeouts Timeouts
	HTTP     http.RoundTripper // llm.NewTransport() when nil
	Log      *slog.Logger      // discards when nil
}

// Validate reports a configuration with which no call can succeed.
func (c Config) Validate() error {
	if c.Model == "" {
		return errors.New("model is not set")
	}
	if _, err := llm.Endpoint(cmp.Or(c.BaseURL, DefaultBaseURL), chatPath); err != nil {
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
	caller   *llm.Caller
	valid    bool // the base URL is usable
	fallback bool
	log      *slog.Logger
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
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{cfg: cfg, log: cfg.Log}
	address := ""
	if u, err := llm.Endpoint(cfg.BaseURL, chatPath); err == nil {
		address, c.valid = u.String(), true
		c.fallback = cfg.SystemFallback == FallbackAlways || cfg.SystemFallback != FallbackNever && !honoursSystem(u.Hostname())
	}
	c.caller = llm.NewCaller(address, cfg.Timeouts, cfg.HTTP, llm.NewRedactor(cfg.Key, cfg.Headers))
	return c
}

const chatPath = "/chat/completions"

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
