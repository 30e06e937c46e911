package web_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/claybot/claybot/web"
)

// A streaming is an answer that goes on.
type streaming struct {
	resp *http.Response
	r    *bufio.Reader
}

// open begins a request and returns when the answer has begun. It is given up
// with the test.
func open(t *testing.T, hc *http.Client, method, url string, head ...string) streaming {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	resp, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s = %s", method, url, resp.Status)
	}
	return streaming{resp, bufio.NewReader(resp.Body)}
}

// first reads the first event.
func (s streaming) first(t *testing.T) {
	t.Helper()
	if line, err := s.r.ReadString('\n'); err != nil || line != "data: "+treasure+"\n" {
		t.Fatalf("the stream begins with %q, %v", line, err)
	}
}

// rest reads until the stream ends, which it does by itself.
func (s streaming) rest() string {
	b, _ := io.ReadAll(s.r) // a connection that was cut is an end as well
	return string(b)
}

// Whatever ends a credential ends the streams that were opened with it, and no
// others; they say nothing more.
func TestEndOfCredentialsCutsStreams(t *testing.T) {
	type streams = map[string]streaming
	all := []string{"reader", "operator", "owner", "cookie", "other cookie"}
	for name, tc := range map[string]struct {
		end  func(t *testing.T, w *world, b *http.Client)
		cuts []string
	}{
		"revoke": {func(t *testing.T, w *world, _ *http.Client) { w.ask(t, "DELETE", "/tokens/reader", "") }, []string{"reader"}},
		"rotate": {func(t *testing.T, w *world, _ *http.Client) { w.ask(t, "POST", "/tokens/operator/rotate", "") }, []string{"operator"}},
		"logout": {func(t *testing.T, w *world, b *http.Client) { do(t, b, "POST", w.url("/logout"), "", same...) }, []string{"cookie"}},
		"logout of all": {func(t *testing.T, w *world, b *http.Client) {
			if got := do(t, b, "POST", w.url("/logout?all=1"), "", same...); got.code != 204 {
				t.Errorf("logout = %v", got)
			}
		}, []string{"cookie", "other cookie"}},
		"owner": {func(t *testing.T, w *world, b *http.Client) {
			// A caller that rotates its own token gets the answer all the same.
			if got := do(t, b, "POST", w.url("/tokens/owner/rotate"), "", same...); got.code != 200 {
				t.Errorf("rotate = %v", got)
			}
		}, []string{"owner", "cookie", "other cookie"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, stop := start(t, t.TempDir(), nil)
			b, other := w.loggedIn(t), w.loggedIn(t)
			reader, operator := "Bearer "+w.token(t, "reader", web.Read), "Bearer "+w.token(t, "operator", web.Operate)
			open := streams{
				"reader":       open(t, browser(t), "GET", w.url("/stream"), "Authorization", reader),
				"operator":     open(t, browser(t), "POST", w.url("/stream"), "Authorization", operator),
				"owner":        open(t, browser(t), "GET", w.url("/stream"), "Authorization", "Bearer "+w.owner(t)),
				"cookie":       open(t, b, "GET", w.url("/stream"), same...),
				"other cookie": open(t, other, "GET", w.url("/chat/stream"), same...),
			}
			for _, s := range open {
				s.first(t)
			}
			tc.end(t, w, b)
			for _, who := range tc.cuts {
				if rest := open[who].rest(); strings.Contains(rest, "last words") {
					t.Errorf("the stream of %s said %q after its end", who, rest)
				}
				if err := <-w.ends; err == nil {
					t.Errorf("the handler of %s could write after the end", who)
				}
				delete(open, who)
			}
			if len(open) != len(all)-len(tc.cuts) || len(w.ends) != 0 {
				t.Errorf("%d streams ended, %d more", len(tc.cuts), len(w.ends))
			}
			go stop()
			for who, s := range open {
				if rest := s.rest(); !strings.Contains(rest, "last words") {
					t.Errorf("the stream of %s had ended: %q", who, rest)
				}
			}
		})
	}
}

// A handler that waits for a client who does not read is cut as well.
func TestEndOfCredentialsCutsWritesThatWait(t *testing.T) {
	w, _ := start(t, t.TempDir(), nil)
	s := open(t, browser(t), "GET", w.url("/deaf"), "Authorization", "Bearer "+w.token(t, "reader", web.Read))
	if _, err := s.r.ReadByte(); err != nil {
		t.Fatal(err)
	}
	w.ask(t, "DELETE", "/tokens/reader", "")
	if err := <-w.ends; err == nil {
		t.Error("the handler went on")
	}
	if n, err := io.Copy(io.Discard, s.r); err == nil {
		t.Errorf("the answer ended in order after %d bytes more", n)
	}
}
