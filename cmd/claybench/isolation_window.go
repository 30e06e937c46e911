package main

import (
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// A window stands between the daemon and the emulated Telegram. It notes when each
// message is handed out for the first time, when the first reply to it comes, and how
// long the daemon lets pass between two polls.
type window struct {
	server *telegramtest.Server

	mu      sync.Mutex
	handed  map[string]time.Time // by marker
	replied map[string]time.Time // by marker
	idle    time.Time            // since when no poll is open; zero while one is
	held    time.Duration        // the longest time without a poll
}

func newWindow() *window {
	w := &window{handed: make(map[string]time.Time), replied: make(map[string]time.Time)}
	w.server = telegramtest.New(telegramtest.Config{NoJournal: true, NoLimits: true, OnMessage: w.reply})
	return w
}

// ServeHTTP lets the emulator answer.
func (w *window) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(path.Base(r.URL.Path), "getUpdates") {
		w.poll()
		rw = &poller{rw, w}
	}
	w.server.ServeHTTP(rw, r)
}

// A poller is who gets the answer to a poll.
type poller struct {
	http.ResponseWriter
	window *window
}

// Write notes what is handed out at the moment in which it is.
func (p *poller) Write(b []byte) (int, error) {
	p.window.handOut(string(b))
	return p.ResponseWriter.Write(b)
}

func (w *window) poll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.idle.IsZero() {
		w.held, w.idle = max(w.held, time.Since(w.idle)), time.Time{}
	}
}

func (w *window) handOut(updates string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = time.Now()
	firstOf(w.handed, updates, w.idle)
}

func (w *window) reply(m telegramtest.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	firstOf(w.replied, m.Text, time.Now())
}

// firstOf keeps the first time of each marker in a text.
func firstOf(times map[string]time.Time, text string, at time.Time) {
	for _, m := range marker.FindAllString(text, -1) {
		if _, known := times[m]; !known {
			times[m] = at
		}
	}
}

// longest is the longest time without a poll since it was last asked for, and that of
// the present if there is none.
func (w *window) longest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.held
	if !w.idle.IsZero() {
		d = max(d, time.Since(w.idle))
	}
	w.held = 0
	return d
}

// took is how long the first reply to a message took, from the moment in which the
// message was handed out; false while there is none.
func (w *window) took(marker string) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from, to := w.handed[marker], w.replied[marker]
	return to.Sub(from), !from.IsZero() && !to.IsZero()
}

// came reports whether a reply to a message has come.
func (w *window) came(marker string) bool {
	_, ok := w.took(marker)
	return ok
}
