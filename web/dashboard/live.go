package dashboard

import (
	"io"
	"net/http"
	"time"
)

const (
	// liveEvery is the shortest time between two notes that something changed.
	liveEvery = 500 * time.Millisecond
	livePing  = 15 * time.Second
	// liveWrite is how long one write to a reader may hang.
	liveWrite = 10 * time.Second
)

// live tells a page that something has changed, at once and then at most twice
// a second; what changed the page asks for itself. A reader that does not read
// is cut off: nothing waits for it, and a note is all the same however many
// there were.
func (b *healthPages) live(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies
	if r.Method == http.MethodHead {
		return // the same pattern serves it; it is never to be kept open
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // the server's is for requests; a writer without deadlines has none to lift
	say := func(frame string) bool {
		_ = rc.SetWriteDeadline(time.Now().Add(liveWrite)) // likewise
		_, err := io.WriteString(w, frame)
		return err == nil && rc.Flush() == nil
	}
	const changed = "event: changed\ndata: {}\n\n"
	// What changed between the page and this stream is covered by a first note.
	next := b.system.Changed()
	if !say("retry: 1000\n" + changed) {
		return
	}
	ping := time.NewTicker(livePing)
	defer ping.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-ping.C:
			if !say(": ping\n\n") {
				return
			}
			continue
		case <-next:
		}
		next = b.system.Changed() // before the note: what changes after it is seen
		if !say(changed) {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(liveEvery):
		}
	}
}
