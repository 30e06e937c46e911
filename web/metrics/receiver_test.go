package metrics

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A got is a span as a receiver reads it.
type got struct {
	trace, id, parent, name string
	kind                    int
	start, end              int64
	attrs                   map[string]any
	events                  []string
	failed                  bool
}

// A receiver takes traces, like a collector.
type receiver struct {
	*httptest.Server
	t      *testing.T
	answer func(n int, w http.ResponseWriter) bool // false: it has answered itself

	mu    sync.Mutex
	n     int
	spans []got
	heads []http.Header
	news  chan struct{} // one for each request that was taken
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{t: t, news: make(chan struct{}, 1000)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	r.heads = append(r.heads, req.Header)
	if err != nil || req.Method != http.MethodPost || req.URL.Path != "/v1/traces" || req.Header.Get("Content-Type") != "application/json" {
		r.t.Errorf("%s %s as %s: %v", req.Method, req.URL, req.Header.Get("Content-Type"), err)
	}
	if r.answer != nil && !r.answer(r.n, w) {
		return
	}
	spans, err := readTraces(body)
	if err != nil {
		r.t.Errorf("a request cannot be read: %v\n%s", err, body)
	}
	r.spans = append(r.spans, spans...)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}") // the test reads it
	r.news <- struct{}{}
}

// taken waits for n more requests, and returns all spans so far.
func (r *receiver) taken(n int) []got {
	r.t.Helper()
	for range n {
		select {
		case <-r.news:
		case <-time.After(time.Minute):
			r.t.Fatal("nothing was sent")
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

// readTraces decodes a body as the protocol says: every field has a name and a
// form of opentelemetry/proto/trace/v1/trace.proto in its JSON encoding, and
// all ids are whole.
func readTraces(body []byte) ([]got, error) {
	type keyValue struct {
		Key   string `json:"key"`
		Value struct {
			StringValue *string `json:"stringValue"`
			IntValue    *string `json:"intValue"`
			BoolValue   *bool   `json:"boolValue"`
		} `json:"value"`
	}
	var in struct {
		ResourceSpans []struct {
			Resource struct {
				Attributes []keyValue `json:"attributes"`
			} `json:"resource"`
			ScopeSpans []struct {
				Scope struct{ Name, Version string } `json:"scope"`
				Spans []struct {
					TraceID           string     `json:"traceId"`
					SpanID            string     `json:"spanId"`
					ParentSpanID      string     `json:"parentSpanId"`
					Name              string     `json:"name"`
					Kind              int        `json:"kind"`
					StartTimeUnixNano string     `json:"startTimeUnixNano"`
					EndTimeUnixNano   string     `json:"endTimeUnixNano"`
					Attributes        []keyValue `json:"attributes"`
					Events            []struct {
						TimeUnixNano string `json:"timeUnixNano"`
						Name         string `json:"name"`
					} `json:"events"`
					Status struct {
						Code    int    `json:"code"`
						Message string `json:"message"`
					} `json:"status"`
				} `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, err
	}
	var problems []error
	number := func(s string) int64 {
		n, err := strconv.ParseUint(s, 10, 63)
		problems = append(problems, err)
		return int64(n)
	}
	id := func(s string, size int) string {
		if b, err := hex.DecodeString(s); err != nil || len(b) != size || s == strings.Repeat("00", size) {
			problems = append(problems, fmt.Errorf("bad id %q", s))
		}
		return s
	}
	attributes := func(all []keyValue) map[string]any {
		m := make(map[string]any)
		for _, a := range all {
			if _, twice := m[a.Key]; twice {
				problems = append(problems, fmt.Errorf("%s is there twice", a.Key))
			}
			switch {
			case a.Value.StringValue != nil:
				m[a.Key] = *a.Value.StringValue
			case a.Value.IntValue != nil:
				m[a.Key] = number(*a.Value.IntValue)
			default:
				problems = append(problems, fmt.Errorf("%s has no value", a.Key))
			}
		}
		return m
	}
	var out []got
	for _, rs := range in.ResourceSpans {
		if attributes(rs.Resource.Attributes)["service.name"] != "claybot" {
			problems = append(problems, errors.New("no service.name"))
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				g := got{
					trace: id(s.TraceID, 16), id: id(s.SpanID, 8), parent: s.ParentSpanID, name: s.Name, kind: s.Kind,
					start: number(s.StartTimeUnixNano), end: number(s.EndTimeUnixNano), attrs: attributes(s.Attributes), failed: s.Status.Code == 2,
				}
				if s.ParentSpanID != "" {
					id(s.ParentSpanID, 8)
				}
				for _, e := range s.Events {
					number(e.TimeUnixNano)
					g.events = append(g.events, e.Name)
				}
				if g.end < g.start || s.Status.Code == 1 || s.Status.Message != "" {
					problems = append(problems, fmt.Errorf("odd span %s", s.Name))
				}
				out = append(out, g)
			}
		}
	}
	return out, errors.Join(problems...)
}
