// Package anthropic speaks Anthropic's Messages API, and that of the servers
// that have the same.
//
// It guarantees what package provider does, and that half a tool call is an error. The
// beginning of each chat is marked for the provider's cache.
//
// Only main and tests import it; others know it as an llm.Model.
package anthropic

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/claybot/claybot/llm/provider"
)

// DefaultBaseURL is where Anthropic itself answers.
const DefaultBaseURL = "https://api.anthropic.com"

// DefaultMaxTokens bounds an answer where neither the request nor the
// configuration does, and the model may write as much.
const DefaultMaxTokens = 16_384

const version = "2023-06-01"

// A Config says where and how a model is reached. Only Model is required.
type Config struct {
	BaseURL string // with or without /v1 at the end; DefaultBaseURL
	Key     string // sent as x-api-key; none when empty
	KeyName string // where the key is set, for errors; the provider's variable when empty
	Model   string
	Headers map[string]string // added to each request; they win over the client's own

	// MaxTokens bounds an answer where the request does not: tokens; 0 means
	// DefaultMaxTokens. No bound is above what the model is known to write.
	MaxTokens int64

	Timeouts provider.Timeouts
	HTTP     http.RoundTripper // provider.NewTransport() when nil
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
	u, err := provider.Endpoint(cmp.Or(base, DefaultBaseURL), "/messages")
	if err != nil {
		return "", err
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/messages"), "/v1") + "/v1/messages"
	return u.String(), nil
}

// A Client is an llm.Model. It may be used by any number of goroutines.
type Client struct {
	*provider.Client
	api *api
}

type api struct {
	cfg Config
	of  string // of the states of its answers
}

// New returns a client. It does not connect; a configuration that Validate
// refuses makes every call fail.
func New(cfg Config) *Client {
	address, _ := endpoint(cfg.BaseURL) // without one, every call fails
	a := &api{cfg: cfg, of: provider.Of(address, cfg.Model)}
	return &Client{api: a, Client: provider.New(provider.Config{
		Of: a.of, State: fieldState, URL: address, Model: cfg.Model, Key: cfg.Key, Headers: cfg.Headers, Images: fieldImages, Documents: fieldDocuments, Timeouts: cfg.Timeouts, HTTP: cfg.HTTP, Log: cfg.Log,
	}, a)}
}

func (a *api) Authorize(h http.Header) {
	h.Set("Anthropic-Version", version)
	if a.cfg.Key != "" {
		h.Set("X-Api-Key", a.cfg.Key)
	}
}

func (a *api) NoStream(_ string, body []byte) *provider.Failure {
	if parseProblem(0, body).kind == "" {
		return nil
	}
	return provider.Said(a.Problem(0, body))
}

func (a *api) Begin() (provider.Stream, *provider.Answer) {
	s := &stream{api: a, blocks: map[int]*block{}}
	return s, &s.Answer
}
