package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// A repeating proxy sends each POST twice, in a way that real ones do.
type repeating struct {
	how     string
	on      http.Handler
	givesUp chan struct{} // closed to end the first request of afterTimeout
	ended   chan struct{} // closed when it has ended
	again   chan struct{} // closed to send the second one
	answers [2]string
}

// The ways to repeat a POST.
const (
	afterTimeout = "after a time-out" // as proxy_next_upstream of nginx with timeout and non_idempotent
	afterLoss    = "after a loss"     // the answer was lost on its way to the proxy
	atOnce       = "at once"          // as a hedged request
)

func (x *repeating) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	send := func(ctx context.Context) *httptest.ResponseRecorder {
		again := req.Clone(ctx)
		again.Body = io.NopCloser(bytes.NewReader(body))
		w := httptest.NewRecorder()
		x.on.ServeHTTP(w, again)
		return w
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(req.Context())
	wg.Go(func() { x.answers[0] = send(ctx).Body.String() })
	switch x.how {
	case afterTimeout:
		<-x.givesUp
		cancel()
		wg.Wait()
		close(x.ended)
		<-x.again
	case afterLoss:
		wg.Wait()
	}
	got := send(req.Context())
	wg.Wait()
	cancel()
	x.answers[1] = got.Body.String()
	maps.Copy(w.Header(), got.Header())
	w.WriteHeader(got.Code)
	_, _ = w.Write(got.Body.Bytes()) // the client waits for it
}

// drive repeats a request when it waits for the tool, and then lets the tool go on.
func (x *repeating) drive(r *rig, p *press) {
	r.Helper()
	waiting := func(n int64) {
		r.until("all requests wait", func() bool { return r.watches.Load() == n })
	}
	p.wait(r.T)
	switch x.how {
	case afterTimeout:
		waiting(1)
		close(x.givesUp)
		<-x.ended
		r.unwatched()
		close(x.again)
		waiting(1)
	case atOnce:
		waiting(2)
	}
	p.letGo()
}

// A proxy that repeats a POST, although the daemon has it, starts one run, whose tool acts once. Without a key, two starts of a run
// are two messages: their answers come at once, so nothing tells a retry from another message with the same text.
func TestProxyThatRepeats(t *testing.T) {
	const completions, responses, starts = "/v1/chat/completions", "/v1/responses", "/agents/runs"
	const named = `{"model":"claybot","user":"t","input":"press"}`
	const keyless = `{"text":"press","descriptor":{"channelId":"t"}}`
	for _, tt := range []struct {
		how, path, body string
		key             bool
		runs            int
	}{
		{afterTimeout, completions, pressBody, false, 1},
		{afterTimeout, completions, pressBody, true, 1},
		{afterTimeout, responses, pressResponse, false, 1},
		{afterTimeout, responses, named, true, 1},
		{atOnce, completions, pressBody, false, 1},
		{atOnce, completions, pressBody, true, 1},
		{atOnce, responses, named, false, 1},
		{atOnce, responses, pressResponse, true, 1},
		{afterLoss, completions, pressBody, true, 1},
		{afterLoss, responses, pressResponse, true, 1},
		{afterLoss, starts, keyless, true, 1},
		{afterLoss, starts, `{"text":"press","descriptor":{"channelId":"t"},"idempotencyKey":"k"}`, false, 1},
		{afterLoss, starts, `{"text":"press"}`, true, 1},
		{atOnce, starts, keyless, true, 1},
		{afterLoss, starts, `{"text":"press"}`, false, 2},
	} {
		t.Run(fmt.Sprintf("%s, %s, %v", tt.how, tt.path, tt.key), func(t *testing.T) {
			r, p := withPress(t)
			to := &url.URL{Scheme: "http", Host: r.addr}
			proxy := &repeating{how: tt.how, givesUp: make(chan struct{}), ended: make(chan struct{}), again: make(chan struct{}), on: &httputil.ReverseProxy{
				Rewrite:       func(req *httputil.ProxyRequest) { req.SetURL(to) },
				FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Transport: r.http.Transport,
			}}
			srv := httptest.NewServer(proxy)
			defer srv.Close()
			req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+r.token)
			req.Header.Set("Content-Type", "application/json")
			if tt.key {
				req.Header.Set("Idempotency-Key", "k")
			}
			var g got
			var wg sync.WaitGroup
			wg.Go(func() {
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				b, err := io.ReadAll(resp.Body)
				if g = (got{resp.StatusCode, resp.Header, string(b)}); err != nil {
					t.Error(err)
				}
			})
			if tt.path == starts {
				p.letGo()
			} else {
				proxy.drive(r, p)
			}
			wg.Wait()
			switch tt.path {
			case starts:
				if g.code != http.StatusAccepted {
					t.Fatalf("%d %s", g.code, g.body)
				}
				var two [2]acceptedRun
				for i, a := range proxy.answers {
					r.read(a, &two[i])
				}
				if (two[0].Run == two[1].Run) != (tt.runs == 1) {
					t.Errorf("the two answers are %q", proxy.answers)
				}
				var list struct{ Runs []runRow }
				r.ask("GET", "/agents/runs", "", http.StatusOK, &list)
				for _, run := range list.Runs {
					r.ended(run.RunID)
				}
			default:
				if g.code != http.StatusOK || !strings.Contains(g.body, "pressed it") {
					t.Errorf("%d %s", g.code, g.body)
				}
			}
			if n, m := r.runs(), int(p.calls.Load()); n != tt.runs || m != tt.runs {
				t.Errorf("%d runs with %d calls of the tool, want %d of each", n, m, tt.runs)
			}
		})
	}
}
