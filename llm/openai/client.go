// Package openai speaks to every server that has OpenAI's chat completions API:
// OpenAI itself, OpenRouter, Ollama, vLLM and many others; and OpenAI's Responses API.
//
// It guarantees what package provider does, and that half a tool call is an error.
//
// Only main and tests import it; others know it as an llm.Model.
package openai

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/provider"
)

// DefaultBaseURL is where OpenAI itself answers.
const DefaultBaseURL = "https://api.openai.com/v1"

// Timeouts bound the phases of a call. Zero fields mean the default.
type Timeouts = provider.Timeouts

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
	KeyName string // where the key is set, for errors; the provider's variable when empty
	Model   string
	Headers map[string]string // added to each request; they win over the client's own

	// Quirks are those of the server; nil: as far as its address says them.
	Quirks         *llm.Quirks
	SystemFallback Fallback
	MaxTokens      int64 // bound of an answer where the request sets none; not sent when 0

	Timeouts Timeouts
	HTTP     http.RoundTripper // provider.NewTransport() when nil
	Log      *slog.Logger      // discards when nil
}

// Validate reports a configuration with which no call can succeed.
func (c Config) Validate() error {
	if c.Model == "" {
		return errors.New("model is not set")
	}
	if _, err := provider.Endpoint(cmp.Or(c.BaseURL, DefaultBaseURL), chatPath); err != nil {
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
	*provider.Client
	api *api
}

type api struct {
	cfg      Config
	quirks   llm.Quirks
	of       string      // of the states of its answers
	refused  refusals    // states that the server did not take back
	reasons  atomic.Bool // it gives the reasons of ends
	fallback bool
	tools    toolsCache
}

// New returns a client. It does not connect; a configuration that Validate
// refuses makes every call fail.
func New(cfg Config) *Client {
	cfg.BaseURL = cmp.Or(cfg.BaseURL, DefaultBaseURL)
	if cfg.Quirks == nil {
		q := llm.QuirksAt(cfg.BaseURL)
		cfg.Quirks = &q
	}
	a, address := &api{cfg: cfg, quirks: *cfg.Quirks}, ""
	if u, err := a.endpoint(); err == nil {
		address = u.String()
		a.fallback = cfg.SystemFallback == FallbackAlways || cfg.SystemFallback != FallbackNever && !a.quirks.System && !honoursSystem(u.Hostname())
	}
	a.of = provider.Of(address, cfg.Model)
	var refused uint32
	if a.quirks.NoDocuments {
		refused = fieldDocuments
	}
	return &Client{api: a, Client: provider.New(provider.Config{
		Of: a.of, Refused: refused, State: fieldState, URL: address, Model: cfg.Model, Key: cfg.Key, Headers: cfg.Headers, Images: fieldImages, Documents: fieldDocuments, Timeouts: cfg.Timeouts, HTTP: cfg.HTTP, Log: cfg.Log,
	}, a)}
}

const chatPath = "/chat/completions"

// endpoint is the address of the operation.
func (a *api) endpoint() (*url.URL, error) {
	base := a.cfg.BaseURL
	if u, err := url.Parse(base); err == nil && strings.Trim(u.Path, "/") == "" {
		base = strings.TrimSuffix(base, "/") + a.quirks.BasePath
	}
	u, err := provider.Endpoint(base, a.path())
	if err == nil && strings.Contains(u.Path, "/deployments/") && u.RawQuery == "" {
		u.RawQuery = a.quirks.Query
	}
	return u, err
}

func (a *api) path() string {
	if a.quirks.Responses {
		return responsesPath
	}
	return chatPath
}

func (a *api) Authorize(h http.Header) {
	switch {
	case a.cfg.Key == "":
	case a.quirks.KeyHeader != "":
		h.Set(a.quirks.KeyHeader, a.cfg.Key)
	default:
		h.Set("Authorization", "Bearer "+a.cfg.Key)
	}
}

func (a *api) NoStream(kind string, body []byte) *provider.Failure {
	switch {
	case kind == "application/json" && bytes.Contains(body, []byte(`"error"`)):
		return provider.Said(a.Problem(0, body))
	}
	return nil
}

func (a *api) Begin() (provider.Stream, *provider.Answer) {
	if a.quirks.Responses {
		s := &responsesStream{api: a, items: make(map[int]*growing)}
		return s, &s.Answer
	}
	s := &stream{assembler: assembler{Answer: new(provider.Answer)}, api: a}
	return s, s.Answer
}

// honoursSystem reports a host that is known to honour the system role, and is no preset.
func honoursSystem(host string) bool {
	for _, known := range [...]string{"x.ai", "groq.com"} {
		if host == known || strings.HasSuffix(host, "."+known) {
			return true
		}
	}
	return false
}
