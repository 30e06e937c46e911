package chromium

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot/devices"
)

// A watch is what is known of a tab by its events.
type watch struct {
	mu       sync.Mutex
	main     cdp.FrameID
	loading  bool
	inFlight map[network.RequestID]time.Time
	faults   []string
	crashed  bool
	changed  chan struct{} // has one when something happened
}

func newWatch() *watch {
	return &watch{inFlight: make(map[network.RequestID]time.Time), changed: make(chan struct{}, 1)}
}

func (w *watch) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faultLocked(format, args...)
}

func (w *watch) faultLocked(format string, args ...any) {
	if len(w.faults) < 5*devices.MaxFaults {
		w.faults = append(w.faults, devices.Line(fmt.Sprintf(format, args...), devices.MaxFault))
	}
}

func (w *watch) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.faults
	w.faults = nil
	return all
}

func (w *watch) gone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.crashed
}

// hanging is after how long an answer is not waited for any more.
const hanging = 5 * time.Second

func (w *watch) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, began := range w.inFlight {
		if time.Since(began) > hanging {
			delete(w.inFlight, id)
		}
	}
	return w.crashed || !w.loading && len(w.inFlight) == 0
}

// see is told each event of the tab. It must not block.
func (w *watch) see(ev any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := ev.(type) {
	case *network.EventRequestWillBeSent:
		if e.Type != network.ResourceTypeEventSource && e.Type != network.ResourceTypePing {
			w.inFlight[e.RequestID] = time.Now()
		}
	case *network.EventLoadingFinished:
		delete(w.inFlight, e.RequestID)
	case *network.EventLoadingFailed:
		delete(w.inFlight, e.RequestID)
	case *network.EventResponseReceived:
		w.answered(e)
	case *page.EventFrameStartedLoading:
		w.loading = w.loading || e.FrameID == w.main
	case *page.EventFrameStoppedLoading:
		w.loading = w.loading && e.FrameID != w.main
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil && x.Description != "" {
			text, _, _ = strings.Cut(x.Description, "\n")
		}
		w.faultLocked("a script failed: %s", text)
	case *inspector.EventTargetCrashed:
		w.crashed = true
	default:
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// answered tells of answers that are errors.
func (w *watch) answered(e *network.EventResponseReceived) {
	switch status := e.Response.Status; {
	case e.Type == network.ResourceTypeDocument && e.FrameID == w.main && status >= 400:
		w.faultLocked("the server answered with error %d", status)
	case (e.Type == network.ResourceTypeXHR || e.Type == network.ResourceTypeFetch) && status >= 500:
		if u, err := url.Parse(e.Response.URL); err == nil {
			w.faultLocked("a request to %s was answered with error %d", u.Path, status)
		}
	}
}

// guard answers what the browser asks: whether a request may go out, what becomes
// of a dialog, a window, a download. It begins when guard returns and ends with
// ctx; wg is done then.
func (w *watch) guard(ctx context.Context, r reach, own target.ID, wg *sync.WaitGroup) {
	each(wg, chromedp.Events(ctx, fetch.RequestPaused), func(e fetch.EventRequestPaused) { w.decide(ctx, r, e) })
	each(wg, chromedp.Events(ctx, page.JavascriptDialogOpening), func(e page.EventJavascriptDialogOpening) {
		leaving := e.Type == page.DialogTypeBeforeunload
		if !leaving {
			w.fault("a dialog was dismissed: %s", devices.Line(e.Message, 120))
		}
		_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: leaving}) // it may be gone
	})
	each(wg, chromedp.BrowserEvents(ctx, target.TargetCreated), func(e target.EventTargetCreated) {
		if e.TargetInfo.Type == "page" && e.TargetInfo.TargetID != own {
			w.fault("a window was closed that the page opened")
			_, _ = chromedp.CallBrowser(ctx, target.CloseTarget, target.CloseTargetParams{TargetID: e.TargetInfo.TargetID}) // it may be gone
		}
	})
	each(wg, chromedp.BrowserEvents(ctx, browser.DownloadWillBegin), func(e browser.EventDownloadWillBegin) {
		w.fault("a download was refused: %s", devices.Line(e.SuggestedFilename, 80))
	})
}

// each calls do for the events until they end.
func each[E any](wg *sync.WaitGroup, events iter.Seq2[E, error], do func(E)) {
	wg.Go(func() {
		for e, err := range events {
			if err != nil {
				return
			}
			do(e)
		}
	})
}

func (w *watch) decide(ctx context.Context, r reach, e fetch.EventRequestPaused) {
	if passes(r, e) {
		_, _ = chromedp.Call(ctx, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: e.RequestID}) // it may be gone
		return
	}
	where := "another address"
	if u, err := url.Parse(e.Request.URL); err == nil {
		if where = u.Scheme + ":"; u.Host != "" {
			where = u.Host
		}
	}
	w.fault("not reached, it is outside of the hosts: %s", devices.Line(where, 120))
	reason := network.ErrorReasonBlockedByClient
	if e.ResourceType == network.ResourceTypeDocument {
		reason = network.ErrorReasonAborted // the page stays as it is
	}
	_, _ = chromedp.Call(ctx, fetch.FailRequest, fetch.FailRequestParams{RequestID: e.RequestID, ErrorReason: reason})
}

// passes reports whether a request may go out: to what may be reached, or to what
// is within the page itself.
func passes(r reach, e fetch.EventRequestPaused) bool {
	if r.allows(e.Request.URL) {
		return true
	}
	scheme, _, _ := strings.Cut(e.Request.URL, ":")
	switch strings.ToLower(scheme) {
	case "data", "blob":
		return e.ResourceType != network.ResourceTypeDocument
	case "about":
		return true
	}
	return false
}
