package openai

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

// A failure is a failed attempt.
type failure struct {
	*llm.Error
	refused uint32        // optional fields that the server does not accept
	once    uint32        // optional fields that it does not accept as they are in this request
	usage   claybot.Usage // what was read before it failed
}

func failed(class llm.Class, format string, args ...any) *failure {
	return &failure{Error: llm.Failed(class, format, args...)}
}

// attempt makes one request, without the given optional fields, and reads its
// answer to the end.
func (c *Client) attempt(ctx context.Context, r llm.Request, without uint32) (llm.Response, *failure) {
	body, err := c.encode(r, without)
	if err != nil {
		return llm.Response{}, failed(llm.Permanent, "the request cannot be encoded; a tool's parameters may be no JSON")
	}
	x, broken := c.caller.Post(ctx, body, c.header("application/json", "text/event-stream"))
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

func (c *Client) header(content, accept string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", content)
	h.Set("Accept", accept)
	h.Set("User-Agent", "claybot")
	if c.cfg.Key != "" {
		h.Set("Authorization", "Bearer "+c.cfg.Key)
	}
	for name, value := range c.cfg.Headers {
		h.Set(name, value)
	}
	return h
}

// refusal is the failure that a response with an error status stands for.
func (c *Client) refusal(x *llm.Exchange) *failure {
	p := parseProblem(x.Status(), x.Problem())
	f := c.problem(p)
	f.Status = p.status
	f.RetryAfter = llm.RetryAfter(x.Header(), time.Now())
	if f.Class == llm.Transient && p.status == http.StatusServiceUnavailable && f.RetryAfter > 0 {
		f.Class = llm.Rate
	}
	switch x.Header().Get("X-Should-Retry") {
	case "true":
		if f.Class == llm.Permanent {
			f.Class = llm.Transient
		}
	case "false":
		if f.Class != llm.Context {
			f.Class = llm.Permanent
		}
	}
	return f
}

// problem turns what the server says into a failure.
func (c *Client) problem(p problem) *failure {
	text := p.sentence()
	if m := c.short(p.message); m != "" {
		text += ": " + m
	}
	f := &failure{Error: &llm.Error{Class: p.class(), Account: p.account(), Text: text}}
	f.refused, f.once = p.refused()
	return f
}

// noStream is the failure of a response that is no event stream.
func (c *Client) noStream(kind string, body []byte) *failure {
	switch {
	case kind == "application/json" && bytes.Contains(body, []byte(`"choices"`)):
		return failed(llm.Transient, "the server ignores \"stream\": it sent its answer as one JSON object")
	case kind == "application/json" && bytes.Contains(body, []byte(`"error"`)):
		p := parseProblem(0, body)
		p.inStream()
		return c.problem(p)
	case kind == "text/html":
		return failed(llm.Transient, "the server sent a web page instead of an event stream; check the base URL")
	}
	return failed(llm.Transient, "the server sent %q instead of an event stream; check the base URL", c.short(kind))
}

// short makes a provider's message fit for an error.
func (c *Client) short(s string) string { return c.caller.Redactor.Short(s) }
