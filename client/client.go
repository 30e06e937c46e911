// Package client talks to a claybot daemon: it starts runs, follows them, and makes every other request of the
// HTTP API. The commands of claybot use it themselves.
//
// A Client may be used by several goroutines.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxAnswer bounds an answer in bytes.
const maxAnswer = 16 << 20

// A Client talks to one daemon.
type Client struct {
	http  *http.Client
	base  string
	token string
}

// New returns a client for the daemon at a base URL, such as http://127.0.0.1:8420, with the token that
// `claybot token create` has shown. It uses hc for its requests, or if that is nil a client without a time limit,
// as streams need.
func New(base, token string, hc *http.Client) *Client {
	if hc == nil {
		hc = new(http.Client)
	}
	return &Client{http: hc, base: strings.TrimSuffix(base, "/"), token: token}
}

// Close closes the connections that no request uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// An Error is a request that the daemon refuses.
type Error struct {
	Status  int               // of HTTP
	Code    string            // for programs; empty where something else than claybot answered
	Message string            // for people
	Fix     string            // how to go on
	Fields  map[string]string // the faults of single fields
	Retry   time.Duration     // after it, the same request may succeed; 0: unknown
}

// Error returns all of it in one line, without the faults of fields that the message names.
func (e *Error) Error() string {
	all := []string{e.Message}
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		if text := e.Fields[name]; !strings.Contains(e.Message, text) {
			all = append(all, name+": "+strings.TrimSuffix(text, ".")+".")
		}
	}
	return strings.TrimSpace(strings.Join(append(all, e.Fix), " "))
}

// Raw is an answer that is not JSON.
type Raw []byte

// Call makes a request with a JSON body, if in is not nil, and decodes the JSON answer into out, if not nil. A
// refusal is an *Error. A request that changes something is made once: whether to make it again is up to the
// caller.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := c.Request(ctx, method, path, body)
	if err != nil {
		return err
	}
	if out != nil {
		req.Header.Set("Prefer", "return=representation")
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the daemon's response: %w", err)
	}
	if resp.StatusCode >= 300 {
		return refusal(resp, b)
	}
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if raw, ok := out.(*Raw); ok {
		*raw = b
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("read the daemon's response: %w", err)
	}
	return nil
}

// Request makes a request for Do, with a body of JSON unless its Content-Type is changed; nil: none.
func (c *Client) Request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// Do makes a request of Request, such as one with other headers or the bytes of a file. The caller judges the status
// and closes the body.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("call the daemon: %w", err)
	}
	return resp, nil
}

// refusal reads the body of a failure.
func refusal(resp *http.Response, body []byte) *Error {
	var f struct {
		Error struct {
			Code, Message, Fix string
			Fields             map[string]string
		}
	}
	out := &Error{Status: resp.StatusCode}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		out.Retry = time.Duration(s) * time.Second
	}
	if json.Unmarshal(body, &f) == nil && f.Error.Message != "" {
		out.Code, out.Message, out.Fix, out.Fields = f.Error.Code, f.Error.Message, f.Error.Fix, f.Error.Fields
		return out
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	if strings.HasPrefix(line, "<") { // a page of a proxy
		line = ""
	}
	out.Message = cmp.Or(line, fmt.Sprintf("the daemon answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	return out
}
