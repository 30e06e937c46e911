package api_test

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

// An onlyFirst is a body that ends after what comes first.
type onlyFirst struct {
	io.ReadCloser
	read bool
}

func (f *onlyFirst) Read(b []byte) (int, error) {
	if f.read {
		return 0, io.ErrUnexpectedEOF
	}
	f.read = true
	return f.ReadCloser.Read(b)
}

// The client eventsource, at its defaults, reads each event of a run once and in order, although its connection was cut.
func TestEventSource(t *testing.T) {
	needClients(t)
	r := start(t)
	r.mind.plan("use a tool", llmtest.Use(claybot.ToolCall{ID: "c1", Name: "wait", Args: `{"seconds":0.01}`}), llmtest.Say("done"))
	letGo := r.mind.hold("use a tool", false)
	t.Cleanup(letGo)
	var connections atomic.Int32
	on := &httputil.ReverseProxy{
		Rewrite:       func(q *httputil.ProxyRequest) { q.SetURL(&url.URL{Scheme: "http", Host: r.addr}) },
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Transport: r.http.Transport,
		ModifyResponse: func(resp *http.Response) error {
			if connections.Add(1) == 1 {
				resp.Body = &onlyFirst{ReadCloser: resp.Body}
			} else {
				letGo()
			}
			return nil
		},
	}
	srv := httptest.NewServer(on)
	t.Cleanup(srv.Close)
	bin, err := filepath.Abs(clientsDir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := runIn(t, "testdata/clients", bin, r.token, "node", "events.cjs", bin, srv.URL+r.say("use a tool").Stream)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var got struct {
		IDs         []int
		Connections int
		Output      string
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	all := make([]int, len(got.IDs))
	for i := range all {
		all[i] = i + 1
	}
	if !slices.Equal(got.IDs, all) || len(all) < 6 || got.Connections != 2 || got.Output != "done" {
		t.Errorf("%+v", got)
	}
}
