package webchat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

const (
	pingEvery = 15 * time.Second
	// writeWait is the deadline of one write to a reader.
	writeWait = 15 * time.Second
	// textEvery is the minimum time between two previews. Long texts are sent
	// less often, because each preview contains the whole text.
	textEvery = 50 * time.Millisecond
	// backlogPage is how many rows of the outbox are read per call.
	backlogPage = 64
	// readAgain is the pause after a failed read of the store.
	readAgain = time.Second
)

var errSlow = errors.New("reader is too slow")

// stream serves one reader until it disconnects, falls too far behind, or the server ends its
// request. It joins the hub before it reads the outbox, so it misses nothing, and reads the
// outbox by position, so it repeats nothing.
func (c *Chat) stream(w http.ResponseWriter, r *http.Request, d claybot.Descriptor, t Transcripts) error {
	after, err := position(r)
	if err != nil {
		return err
	}
	if !c.intake.Begun() {
		return errStopped
	}
	if r.Method == http.MethodHead { // matches the same pattern, and must not stay open
		w.Header().Set("Content-Type", "text/event-stream")
		return nil
	}

	if err := t.Opened(r.Context(), d); err != nil {
		c.log.Debug("failed to open stream", "conversation", d.ChannelID, "err", err)
		return errRead
	}
	out := newWriter(w)
	where := topic{d.ChannelID, d.UserID}
	reader := c.hub.join(where, out.abort)
	defer c.hub.leave(where, reader)
	if err := out.start(); err != nil {
		return err
	}
	s := stream{chat: c, d: d, t: t, out: out, reader: reader, after: after}
	return s.run(r.Context())
}

// position returns the position in the outbox after which a reader resumes: the
// larger one of Last-Event-ID and ?after.
func position(r *http.Request) (int64, error) {
	var n int64
	for _, s := range []string{r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")} {
		if s == "" {
			continue
		}
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 0 {
			return 0, bad("The position to go on after must be a number from 0.")
		}
		n = max(n, v)
	}
	return n, nil
}

// A stream is the state of one reader's connection, used by its goroutine.
type stream struct {
	chat   *Chat
	d      claybot.Descriptor
	t      Transcripts
	out    *writer
	reader *reader
	after  int64     // position in the outbox
	text   time.Time // when the next preview may be sent
	look   bool      // read the outbox in the next step, even without a wake-up
	retry  time.Time // earliest time of the next read; set after a failed read
	// amended are changes of messages that are to be shown, see Chat.Changed.
	amended []claybot.AgentMessage
}

// run writes to the stream until ctx is done. It leaves no goroutine behind.
func (s *stream) run(ctx context.Context) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	soon := time.NewTimer(time.Hour) // for a preview that is not due yet
	soon.Stop()
	defer soon.Stop()
	var look <-chan time.Time
	if s.chat.poll > 0 {
		ticker := time.NewTicker(s.chat.poll)
		defer ticker.Stop()
		look = ticker.C
	}
	// The end of ctx must not cancel the last reads; if the client is gone, the
	// write fails.
	reads := context.WithoutCancel(ctx)
	for {
		select {
		case <-ctx.Done():
			return s.last(reads)
		case <-ping.C:
			s.out.ping()
		case <-s.reader.wake:
		case <-soon.C:
		case <-look:
			s.look = true
		}
		wait, err := s.step(reads)
		if err != nil {
			return err
		}
		if wait > 0 {
			soon.Reset(wait)
		}
	}
}

// last writes the messages from just before the end: during a shutdown, claybot
// sends its last answers and then ends the streams.
func (s *stream) last(ctx context.Context) error {
	select {
	case <-s.reader.wake:
		_, err := s.step(ctx)
		return err
	default:
		return nil
	}
}

// step writes everything that is queued. It returns how long a preview has to
// wait, if any.
func (s *stream) step(ctx context.Context) (time.Duration, error) {
	now := time.Now()
	b := s.chat.hub.take(s.reader, !now.Before(s.text))
	if b.cut {
		return 0, errSlow
	}
	for _, f := range b.frames {
		s.out.frame(f)
	}
	if b.typing {
		s.out.frame([]byte("event: typing\ndata: {}\n\n"))
	}
	if b.text != nil {
		s.grow(*b.text)
		s.text = now.Add(pause(len(b.text.Text)))
	}
	s.amended = append(s.amended, b.amended...)
	s.look = s.look || b.more || len(s.amended) > 0
	if err := s.read(ctx); err != nil {
		return 0, err
	}
	if err := s.out.flush(); err != nil {
		return 0, err
	}
	wait := time.Duration(0)
	if b.later {
		wait = max(time.Until(s.text), time.Millisecond)
	}
	if s.look {
		again := max(time.Until(s.retry), time.Millisecond)
		if wait == 0 || again < wait {
			wait = again
		}
	}
	return wait, nil
}

// read writes new messages of the outbox, if a read is due. A failed read does not
// end the stream, because a reconnecting client would miss transient events: the
// reader gets one notice, and the read is retried.
func (s *stream) read(ctx context.Context) error {
	if !s.look || time.Now().Before(s.retry) {
		return nil
	}
	err := s.amendments(ctx)
	if err == nil {
		err = s.backlog(ctx)
	}
	switch {
	case err == nil:
		s.look, s.retry = false, time.Time{}
	case !errors.Is(err, storage.ErrBusy):
		return err
	default:
		if s.retry.IsZero() {
			s.out.frame([]byte("event: away\ndata: {}\n\n"))
		}
		s.retry = time.Now().Add(readAgain)
	}
	return nil
}

func (s *stream) grow(p preview) {
	if s.chat.html {
		p.HTML = connectors.Render(p.Text, page)
	}
	s.out.frame(frame("preview", "", p))
}

// backlog writes what the outbox has after the reader's position.
func (s *stream) backlog(ctx context.Context) error {
	for {
		sent, err := s.t.SentAfter(ctx, s.d, s.after, backlogPage)
		if err != nil && !errors.Is(err, storage.ErrNotFound) { // no messages yet
			return fmt.Errorf("read outbox after %d: %w", s.after, err)
		}
		for _, o := range sent {
			s.after = max(s.after, o.N)
			if ours(s.d, o) {
				s.out.frame(frame("message", strconv.FormatInt(o.N, 10), s.chat.saidView(o)))
			}
		}
		if len(sent) < backlogPage {
			return nil
		}
		if err := s.out.flush(); err != nil {
			return err
		}
	}
}

// pause returns the time between two previews of n bytes: 50 ms for short
// texts, half a second for 90 kB.
func pause(n int) time.Duration {
	return textEvery + min(time.Duration(n/1024)*5*time.Millisecond, 450*time.Millisecond)
}

// A writer buffers frames and sends them, with a deadline of writeWait for each
// flush.
type writer struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf bytes.Buffer
}

func newWriter(w http.ResponseWriter) *writer {
	return &writer{w: w, rc: http.NewResponseController(w)}
}

// start sends the headers, a first ping and the reconnection time.
func (w *writer) start() error {
	h := w.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")      // proxies
	_ = w.rc.SetReadDeadline(time.Time{}) // the server's deadline is for ordinary requests
	w.w.WriteHeader(http.StatusOK)
	w.buf.WriteString("retry: 1000\n")
	w.ping()
	return w.flush()
}

func (w *writer) ping()          { w.buf.WriteString(": ping\n\n") }
func (w *writer) frame(f []byte) { w.buf.Write(f) }

// flush sends the buffered frames.
func (w *writer) flush() error {
	if w.buf.Len() == 0 {
		return nil
	}
	_ = w.rc.SetWriteDeadline(time.Now().Add(writeWait)) // without deadlines a dead peer is TCP's affair
	_, err := w.w.Write(w.buf.Bytes())
	w.buf.Reset()
	if w.buf.Cap() > bufferLimit {
		w.buf = bytes.Buffer{}
	}
	if err != nil {
		return err
	}
	return w.rc.Flush()
}

// abort aborts a blocked write. It is called from other goroutines.
func (w *writer) abort() {
	_ = w.rc.SetWriteDeadline(time.Now()) // without deadlines a dead peer is TCP's affair
}
