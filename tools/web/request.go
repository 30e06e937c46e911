package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// The tools of the http nodes of workflows, by what a request that was cut off may have done.
const (
	RequestRead  = "http_read"  // no effect: GET and HEAD
	RequestKeyed = "http_keyed" // an effect that the key in a header has happen once
	RequestOnce  = "http_once"
)

// RequestTools are their names. No model has one, and no node of the kind tool names one: the operator who wrote
// the workflow chose the host.
var RequestTools = []string{RequestRead, RequestKeyed, RequestOnce}

// A RequestConfig says how http nodes make requests.
type RequestConfig struct {
	// Policy says which hosts may be reached besides public ones.
	Policy egress.Policy
	// Secret returns the secret that a header refers to.
	Secret func(reference string) (string, error)
}

// A Request is what an http node asks for. Secrets are headers whose values are references, such as
// env:NAME, which are replaced when the request is made, so that no record has them. Those of the
// workflow's own text alone are there: no value of a template becomes one.
type Request struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Secrets map[string]string `json:"secrets,omitempty"`
	Body    any               `json:"body,omitempty"` // JSON, or a text
}

// The limits of a request.
const (
	requestTime = 30 * time.Second
	maxResponse = 1 << 20 // bytes of a body
)

// Requests returns the tools of http nodes.
func Requests(c RequestConfig) []tools.Tool {
	r := requester{c}
	return []tools.Tool{r.tool(RequestRead, tools.ReadOnly), r.tool(RequestKeyed, tools.Idempotent), r.tool(RequestOnce, tools.Once)}
}

type requester struct{ cfg RequestConfig }

func (r requester) tool(name string, effect tools.Effect) tools.Tool {
	return tools.New(tools.Spec{
		Tool:   llm.Tool{Name: name, Description: "Makes a request of a workflow."},
		Effect: effect, Timeout: requestTime + 5*time.Second, Scopes: []string{tools.ScopeWeb}, Class: tools.Outward,
		Subject: subject,
		Listed:  func(tools.Env, json.RawMessage) bool { return true }, // the operator wrote the host
	}, r.do)
}

func (r requester) do(ctx context.Context, _ tools.Env, in Request) (tools.Result, error) {
	if err := checkAddress(in.URL); err != nil {
		return tools.Result{}, err
	}
	policy := r.cfg.Policy
	policy.Public, policy.AnyPort = true, true // the host is the operator's choice
	door, err := egress.New(policy)
	if err != nil {
		return tools.Result{}, fmt.Errorf("make the door of a request: %w", err)
	}
	req, secrets, err := r.request(ctx, in)
	if err != nil {
		return tools.Result{}, err
	}
	resp, err := door.Client(egress.Limits{Timeout: requestTime, MaxBytes: maxResponse, NoRedirects: true}).Do(req)
	if err != nil {
		return tools.Result{}, fault(err)
	}
	defer resp.Body.Close() // it was only read
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return tools.Result{}, fault(err)
	}
	text := strings.ToValidUTF8(string(data), "\uFFFD")
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return tools.Result{Untrusted: true}, &tools.Fault{
			Code: "http", Text: fmt.Sprintf("status %d: %s", resp.StatusCode, llm.Cut(text, 300, 300, func(int) string { return " …" })),
			Retriable: resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests,
		}
	}
	return tools.Result{Text: answerOf(resp, text), Untrusted: true}, nil
}

// request makes the request with its secrets.
func (r requester) request(ctx context.Context, in Request) (req *http.Request, secrets []string, err error) {
	var body io.Reader
	kind := ""
	switch b := in.Body.(type) {
	case nil:
	case string:
		body, kind = strings.NewReader(b), "text/plain; charset=utf-8"
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return nil, nil, err
		}
		body, kind = bytes.NewReader(raw), "application/json"
	}
	if req, err = http.NewRequestWithContext(ctx, in.Method, in.URL, body); err != nil {
		return nil, nil, &tools.Fault{Code: faultAddress, Text: "the request cannot be made: " + egress.Words(err)}
	}
	req.Header.Set("User-Agent", "claybot (+https://github.com/claybot/claybot)")
	if span := claybot.TraceOf(ctx).String(); span != "" {
		req.Header.Set("Traceparent", span)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for name, value := range in.Headers {
		req.Header.Set(name, value)
	}
	for name, reference := range in.Secrets {
		secret, err := r.cfg.Secret(reference)
		if err != nil {
			return nil, nil, &tools.Fault{Code: faultAddress, Text: fmt.Sprintf("the header %.64q: %v", name, err)}
		}
		secrets = append(secrets, secret)
		req.Header.Set(name, secret)
	}
	return req, secrets, nil
}

// answerOf is an answer as templates read it: its status, and its body as JSON where it is JSON.
func answerOf(resp *http.Response, text string) string {
	var body any = text
	if d := json.NewDecoder(strings.NewReader(text)); strings.Contains(resp.Header.Get("Content-Type"), "json") {
		d.UseNumber()
		var v any
		if d.Decode(&v) == nil {
			body = v
		}
	}
	b, err := json.Marshal(map[string]any{"status": resp.StatusCode, "type": resp.Header.Get("Content-Type"), "body": body})
	if err != nil {
		return text
	}
	return string(b)
}
