package dashboard_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
)

// watch turns what goes wrong in the browser into problems, which fail the test: a
// script that throws, an error on the console, a refusal by the policy of the page,
// and a request that fails. A form that the server refuses is none of these: the
// page shows why.
func (b *browser) watch(ev any) {
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		b.problem(fmt.Sprint("a script failed: ", e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError || len(e.Args) == 0 {
			return
		}
		words := string(e.Args[0].Value)
		if !strings.HasPrefix(words, `"Response Status Error Code 4`) { // htmx logs a refused form
			b.problem("the console has an error: " + words)
		}
	case *log.EventEntryAdded:
		if e.Entry.Source == "security" || e.Entry.Level == "error" && e.Entry.Source != "network" { // requests: see below
			b.problem(fmt.Sprintf("the browser logged: %s: %s", e.Entry.Source, e.Entry.Text))
		}
	case *network.EventRequestWillBeSent:
		b.mu.Lock()
		b.requests[e.RequestID] = request{*e.Request, time.UnixMicro(int64(float64(e.WallTime) * 1e6))}
		b.mu.Unlock()
	case *network.EventResponseReceived:
		if r := b.request(e.RequestID); e.Response.Status >= 500 || e.Response.Status >= 400 && r.Method == http.MethodGet {
			b.failed(r, fmt.Sprintf("%s %s: status %d", r.Method, e.Response.URL, e.Response.Status))
		}
	case *network.EventLoadingFailed:
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" { // else the page was left
			r := b.request(e.RequestID)
			b.failed(r, fmt.Sprintf("%s %s: %s", r.Method, r.URL, e.ErrorText))
		}
	}
}

// A request of the page, and when it was made.
type request struct {
	network.Request
	at time.Time
}

func (b *browser) request(id network.RequestID) request {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, ok := b.requests[id]; ok {
		return r
	}
	return request{network.Request{Method: http.MethodGet}, time.Now()}
}

// failed notes a request that failed, unless that is what the test is about. The browser
// may report it late, so what counts is when the request was made.
func (b *browser) failed(r request, what string) {
	b.mu.Lock()
	excused := b.excused != "" || r.at.Before(b.excusedUntil)
	b.mu.Unlock()
	if !excused {
		b.problem("a request failed: " + what)
	}
}

// excuse lets requests fail from now on, for the reason given; empty: those that are made
// from now on may not.
func (b *browser) excuse(why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.excused = why; why == "" {
		b.excusedUntil = time.Now()
	}
}

func (b *browser) problem(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, what)
}
