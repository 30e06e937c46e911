package connectors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// A Request is one call of the API of a platform.
type Request struct {
	Method, Address string
	JSON            any   // the body; nil for none
	Form            *Form // in its place
	Limit           int64 // of the answer, in bytes
}

// An Answer is the whole response to a Request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Exchange makes one call with send, which may add to the header. After an error, left reports whether the
// request may have reached the platform: a form does as a whole.
func Exchange(ctx context.Context, send func(*http.Request) (*http.Response, error), r Request) (a Answer, left bool, err error) {
	var body io.Reader
	kind := "application/json"
	switch {
	case r.Form != nil:
		body, kind = r.Form, r.Form.kind
	case r.JSON != nil:
		data, err := json.Marshal(r.JSON)
		if err != nil {
			return a, false, err
		}
		body = bytes.NewReader(data)
	}
	var wrote atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), r.Method, r.Address, body)
	if err != nil {
		return a, false, errors.New("unusable address") // which the error would quote
	}
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	if r.Form != nil {
		req.ContentLength = r.Form.rest.Load()
	}
	resp, err := send(req)
	if err != nil && r.Form != nil {
		return a, r.Form.rest.Load() <= 0, err
	}
	if err != nil {
		return a, wrote.Load(), err
	}
	defer func() { _ = resp.Body.Close() }() // the answer was read, or its loss is reported
	a.Status, a.Header = resp.StatusCode, resp.Header
	var answer bytes.Buffer
	if n := resp.ContentLength; n > 0 && n <= r.Limit {
		answer.Grow(int(n) + bytes.MinRead)
	}
	if _, err = answer.ReadFrom(io.LimitReader(resp.Body, r.Limit)); err != nil {
		err = fmt.Errorf("the answer was cut: %w", err)
	}
	a.Body = answer.Bytes()
	return a, true, err
}

// A Form is a form with a file as its last field. It is read once.
type Form struct {
	io.Reader
	kind string
	rest atomic.Int64 // bytes that are not read yet; the transport reads on another goroutine
}

// NewForm returns a form with a file of size bytes. Fields without a value are left out.
func NewForm(fields [][2]string, field, name string, file io.Reader, size int64) (*Form, error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		if f[1] == "" {
			continue
		}
		if err := w.WriteField(f[0], f[1]); err != nil {
			return nil, err
		}
	}
	if _, err := w.CreateFormFile(field, name); err != nil {
		return nil, err
	}
	before := b.Len()
	if err := w.Close(); err != nil {
		return nil, err
	}
	head, tail := bytes.NewReader(b.Bytes()[:before]), bytes.NewReader(b.Bytes()[before:])
	f := &Form{Reader: io.MultiReader(head, io.LimitReader(file, size), tail), kind: w.FormDataContentType()}
	f.rest.Store(int64(b.Len()) + size)
	return f, nil
}

// Read implements io.Reader.
func (f *Form) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	f.rest.Add(-int64(n))
	return n, err
}
