package webchat

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func event(run claybot.RunID, typ claybot.EventType, data string) claybot.Event {
	return claybot.Event{V: 1, Run: run, Type: typ, Data: json.RawMessage(data)}
}

func TestStreamShowsWhatHappens(t *testing.T) {
	m, srv := start(t)
	route := me.Route()
	c := open(t, srv.Client(), srv.URL+"/stream", "")
	m.chat.Accepted(me, claybot.AgentMessage{ID: "web/main/a", Type: claybot.MessageUser, Text: "hi <b>"})
	c.want(t, "user", `"text":"hi \u003cb\u003e"`)
	if err := m.chat.Typing(t.Context(), route); err != nil {
		t.Error(err)
	}
	c.want(t, "typing", "{}")
	m.chat.Observe(route, event("r1", claybot.EventToolCalled, `{"tool":"clock"}`))
	c.want(t, "event", `"tool":"clock"`)
	m.chat.Preview(route, "r1", 1, "**gro")
	c.want(t, "preview", `"text":"**gro"`)
	m.chat.Observe(route, event("r1", claybot.EventRunFinished, `{}`))
	c.want(t, "event", "RunFinished")
	m.say(t, me, "r1", "**grown**")
	if e := c.want(t, "message", `\u003cstrong\u003egrown`); e.id != "1" {
		t.Errorf("message has id %q, want its position 1", e.id)
	}
	if c.pings == 0 {
		t.Error("no ping at once")
	}
	// Another person's stream, and another conversation's, stay silent.
	m.chat.Accepted(claybot.User("web", "main", "you"), claybot.AgentMessage{Text: "not mine"})
	m.chat.Accepted(claybot.User("web", "other", "me"), claybot.AgentMessage{Text: "not here"})
	m.say(t, me, "r2", "end")
	c.want(t, "message", "end")
}

func TestLateReaderSeesTheWorkingRun(t *testing.T) {
	m, srv := start(t)
	route := me.Route()
	m.chat.Observe(route, event("r1", claybot.EventRunStarted, `{}`))
	for i := range 2 * keptEvents {
		m.chat.Observe(route, event("r1", claybot.EventToolCalled, fmt.Sprintf(`{"callId":"c%d"}`, i)))
	}
	m.chat.Preview(route, "r1", 2, "so f")
	m.chat.Preview(route, "r1", 2, "so far")
	c := open(t, srv.Client(), srv.URL+"/stream", "")
	for i := keptEvents; i < 2*keptEvents; i++ {
		c.want(t, "event", fmt.Sprintf(`"callId":"c%d"`, i))
	}
	c.want(t, "preview", `"so far"`)

	// A step whose text is complete grows no more, for early and late readers.
	m.chat.Observe(route, event("r1", claybot.EventAssistantMessage, `{"step":2,"text":"so **far**, so good"}`))
	c.want(t, "event", `"html":"\u003cp\u003eso \u003cstrong\u003efar`)
	m.chat.Preview(route, "r1", 2, "a straggler")
	m.chat.Preview(route, "r1", 3, "and on")
	c.want(t, "preview", `"and on"`)

	m.chat.Observe(route, event("r1", claybot.EventRunCanceled, `{}`))
	m.chat.Preview(route, "r1", 4, "a ghost")
	late := open(t, srv.Client(), srv.URL+"/stream", "")
	m.say(t, me, "r2", "next")
	late.want(t, "message", "next")
	c.want(t, "event", "RunCanceled")
	c.want(t, "message", "next")
}

func TestHubForgets(t *testing.T) {
	var h hub
	for i := range 2 * keptEnded {
		where := topic{"c" + strconv.Itoa(i), "me"}
		run := claybot.RunID(strconv.Itoa(i))
		h.observe(where, event(run, claybot.EventRunStarted, `{}`), 0, nil)
		h.grow(where, preview{Run: run, Step: 1, Text: "x"})
		if i%2 == 0 {
			h.observe(where, event(run, claybot.EventRunFailed, `{}`), 0, nil)
		} else {
			h.sent(where, claybot.Outgoing{Kind: claybot.OutgoingAnswer, Run: run})
		}
		h.grow(where, preview{Run: run, Step: 2, Text: "late"})
	}
	if len(h.topics) != 0 || len(h.ended) != keptEnded || len(h.order) != keptEnded {
		t.Errorf("kept %d topics, %d and %d ended runs", len(h.topics), len(h.ended), len(h.order))
	}
	where := topic{"big", "me"}
	for range 100 {
		h.observe(where, event("big", claybot.EventToolCalled, `{}`), 0, make([]byte, 20_000))
	}
	if rm := h.topics[where]; rm.size > keptBytes || len(rm.events) == 0 {
		t.Errorf("a late reader would get %d events, %d bytes", len(rm.events), rm.size)
	}
}

// Readers that break off anywhere and resume by Last-Event-ID get every
// message once and in order while messages keep coming.
func TestNoGapNoDuplicate(t *testing.T) {
	const messages, readers = 150, 8
	m, srv := start(t)
	m.say(t, me, "r", "before anybody reads")
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			last := ""
			for n := 1; n <= messages; {
				c := open(t, srv.Client(), srv.URL+"/stream?after=0", last)
				for stop := n + rng.IntN(40); n <= messages && n <= stop; n++ {
					e, err := c.next()
					if err != nil || e.id != strconv.Itoa(n) {
						t.Errorf("reader %d got %q, %v; want %d", i, e.id, err, n)
						return
					}
					last = e.id
				}
				c.close()
			}
		})
	}
	for i := 2; i <= messages; i++ {
		m.say(t, me, "r", fmt.Sprintf("number %d", i))
	}
	wg.Wait()
}

func TestPosition(t *testing.T) {
	for _, tc := range []struct {
		header, query string
		want          int64
		bad           bool
	}{
		{"", "", 0, false},
		{"7", "", 7, false},
		{"7", "9", 9, false},
		{"9", "7", 9, false},
		{"x", "", 0, true},
		{"", "-1", 0, true},
		{"99999999999999999999", "", 0, true},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "/stream?after="+tc.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Last-Event-ID", tc.header)
		got, err := position(r)
		if got != tc.want || (err != nil) != tc.bad {
			t.Errorf("position(%q, %q) = %d, %v", tc.header, tc.query, got, err)
		}
	}
}

// A reader that takes nothing is cut; it holds up neither the sender nor the
// others.
func TestSlowReaderIsCut(t *testing.T) {
	m, srv := start(t)
	slow, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Close() }()
	if _, err := fmt.Fprint(slow, "GET /stream HTTP/1.1\r\nHost: x\r\nX-Login: me\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp := bufio.NewReader(slow)
	for { // it is in when the first ping came
		s, err := resp.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if s == ": ping\n" {
			break
		}
	}
	quick := open(t, srv.Client(), srv.URL+"/stream", "")
	text := strings.Repeat("x", 60_000)
	for i := 0; readers(m.chat) > 1; i++ {
		if i == 2000 {
			t.Fatal("120 MB were queued for a reader that takes nothing")
		}
		m.chat.Accepted(me, claybot.AgentMessage{Text: strconv.Itoa(i) + text})
		quick.want(t, "user", `"text":"`+strconv.Itoa(i)+"x")
	}
	m.say(t, me, "r", "the quick one is still there")
	quick.want(t, "message", "still there")
}

func readers(c *Chat) int {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	n := 0
	for _, rm := range c.hub.topics {
		for r := range rm.readers {
			if !r.cut {
				n++
			}
		}
	}
	return n
}

// A listener hands out the ends of pipes, so that a server works in a bubble.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *listener) Close() error   { close(l.done); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// bubble serves a chat inside a synctest bubble and calls fn. All that the chat
// started must have ended afterwards: a goroutine that stays fails the test.
func bubble(t *testing.T, fn func(t *testing.T, m *memory, hc *http.Client)) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{chat: New(Config{})}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = m.chat.Run(ctx, m) }() // its result is tested elsewhere
		synctest.Wait()
		l := &listener{conns: make(chan net.Conn), done: make(chan struct{})}
		srv := &http.Server{Handler: m.chat.Handler(m, m, login), ReadTimeout: time.Second, WriteTimeout: time.Second, ReadHeaderTimeout: time.Second}
		go func() { _ = srv.Serve(l) }() // ends with Close
		tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			a, b := net.Pipe()
			l.conns <- b
			return a, nil
		}}
		fn(t, m, &http.Client{Transport: tr})
		tr.CloseIdleConnections()
		cancel()
		synctest.Wait()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestPingsOutliveTheServersTimeouts(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, hc *http.Client) {
		c := open(t, hc, "http://chat/stream", "")
		begin := time.Now()
		go func() {
			time.Sleep(10*pingEvery + time.Second)
			m.say(t, me, "r", "after a long time")
		}()
		c.want(t, "message", "after a long time")
		if got := time.Since(begin); c.pings != 11 || got != 10*pingEvery+time.Second {
			t.Errorf("%d pings in %v, want one at once and 10 later", c.pings, got)
		}
		c.close()
	})
}

func TestGrowingTextIsCoalesced(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, hc *http.Client) {
		c := open(t, hc, "http://chat/stream", "")
		go func() {
			for i := range 1000 { // one word each millisecond
				m.chat.Preview(me.Route(), "r1", 1, strings.Repeat("w", i+1))
				time.Sleep(time.Millisecond)
			}
			m.say(t, me, "r1", "all")
		}()
		var at []time.Time
		for {
			e, err := c.next()
			if err != nil {
				t.Fatal(err)
			}
			if e.event == "message" {
				break
			}
			at = append(at, time.Now())
		}
		if len(at) < 15 || len(at) > 21 {
			t.Errorf("%d states of the text in one second, want about 20", len(at))
		}
		for i := range at[1:] {
			if d := at[i+1].Sub(at[i]); d < textEvery {
				t.Errorf("states %v apart", d)
			}
		}
		// The last state waits until it is due, without anything else coming.
		m.chat.Preview(me.Route(), "r2", 1, "a")
		m.chat.Preview(me.Route(), "r2", 1, "ab")
		e, err := c.next()
		if err == nil && e.data == `{"run":"r2","step":1,"text":"a"}` {
			e, err = c.next()
		}
		if want := `{"run":"r2","step":1,"text":"ab"}`; err != nil || e.data != want {
			t.Errorf("got %v, %v; want %s", e, err, want)
		}
		c.close()
	})
}

func TestStreamEndsWithItsRequestAndLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, m *memory, hc *http.Client) {
		gone := open(t, hc, "http://chat/stream", "")
		m.chat.Preview(me.Route(), "r1", 1, "a")
		gone.want(t, "preview", `"a"`)
		m.chat.Preview(me.Route(), "r1", 1, "ab") // its timer runs when the client goes
		gone.close()
		synctest.Wait()
		if n := readers(m.chat); n != 0 {
			t.Errorf("%d readers left", n)
		}
		stays := open(t, hc, "http://chat/stream", "")
		stays.want(t, "preview", `"ab"`)
		// The chat takes nothing more, but the last runs still answer.
		m.chat.intake.Close()
		m.say(t, me, "r1", "the last words")
		stays.want(t, "message", "the last words")
		late := open(t, hc, "http://chat/stream?after=0", "")
		late.want(t, "message", `"message":"answered-by-r1"`)
		late.close()
		stays.close()
		synctest.Wait()
		if n := readers(m.chat); n != 0 {
			t.Errorf("%d readers left in the end", n)
		}
	})
}

// What was said just before the server ended its streams is not left out.
func TestTheLastWordsAreWritten(t *testing.T) {
	m := &memory{chat: New(Config{})}
	m.chat.intake.Open(m)
	m.say(t, me, "r1", "goodbye")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 { // the end and the news are found in any order
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/stream", nil)
		r.Header.Set("X-Login", "me")
		m.chat.Handler(m, m, login).ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), "goodbye") {
			t.Fatalf("the stream was %q", w.Body)
		}
	}
}

func TestPause(t *testing.T) {
	for _, tc := range []struct {
		n    int
		want time.Duration
	}{{0, 50 * time.Millisecond}, {500, 50 * time.Millisecond}, {10 << 10, 100 * time.Millisecond}, {1 << 20, 500 * time.Millisecond}} {
		if got := pause(tc.n); got != tc.want {
			t.Errorf("pause(%d) = %v, want %v", tc.n, got, tc.want)
		}
	}
}

// put is say by another node: this one sends nothing.
func (m *memory) put(d claybot.Descriptor, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := int64(len(m.outbox) + 1)
	m.outbox = append(m.outbox, claybot.Outgoing{ID: fmt.Sprintf("out-%d", n), N: n, Kind: claybot.OutgoingAnswer, Route: d.Route(), Text: text, At: claybot.Time(n)})
}

// What another node has put into the outbox is shown when this one is told to
// look, to all readers of the channel, once.
func TestLook(t *testing.T) {
	m, srv := start(t)
	c := open(t, srv.Client(), srv.URL+"/stream", "")
	m.say(t, me, "r", "first")
	c.want(t, "message", "first")
	for i := range 20 {
		m.put(me, fmt.Sprint("elsewhere ", i))
		m.chat.Look(me.ChannelID)
		m.chat.Look(me.ChannelID)
		m.chat.Look("no channel")
		c.want(t, "message", fmt.Sprint("elsewhere ", i))
	}
}

// Without hints a stream looks by itself.
func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{chat: New(Config{Poll: 2 * time.Second})}
		ctx, cancel := context.WithCancel(t.Context())
		m.chat.intake.Open(m)
		w := httptest.NewRecorder()
		done := make(chan error, 1)
		go func() {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/stream", nil)
			done <- m.chat.stream(w, r, me, m)
		}()
		synctest.Wait()
		m.put(me, "elsewhere")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if n := strings.Count(w.Body.String(), "elsewhere"); n != 1 {
			t.Errorf("shown %d times:\n%s", n, w.Body)
		}
	})
}

// An absent is an outbox whose store does not answer for a while.
type absent struct {
	*memory
	mu    sync.Mutex
	err   error
	reads int
}

func (a *absent) set(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err, a.reads = err, 0
}

func (a *absent) SentAfter(ctx context.Context, d claybot.Descriptor, n int64, limit int) ([]claybot.Outgoing, error) {
	a.mu.Lock()
	a.reads++
	err := a.err
	a.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return a.memory.SentAfter(ctx, d, n, limit)
}

func (a *absent) asked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reads
}

// A recording keeps a stream while it is written.
type recording struct {
	mu  sync.Mutex
	rec *httptest.ResponseRecorder
}

func (p *recording) Header() http.Header { return p.rec.Header() }

func (p *recording) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rec.Write(b)
}

func (p *recording) WriteHeader(code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rec.WriteHeader(code)
}

func (p *recording) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rec.Flush()
}

func (p *recording) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rec.Body.String()
}

// A store that does not answer does not end a stream: it says so once, shows what
// comes without the store, leaves the store alone meanwhile, and goes on by itself.
func TestStreamOutlivesTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &absent{memory: &memory{chat: New(Config{})}}
		ctx, cancel := context.WithCancel(t.Context())
		a.chat.intake.Open(a)
		w := &recording{rec: httptest.NewRecorder()}
		done := make(chan error, 1)
		go func() {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/stream", nil)
			done <- a.chat.stream(w, r, me, a)
		}()
		synctest.Wait()
		a.set(storage.Unanswered(errors.New("connection refused")))
		a.put(me, "while it is away")
		for range 100 { // ten seconds
			a.chat.Look(me.ChannelID)
			time.Sleep(100 * time.Millisecond)
		}
		if err := a.chat.Typing(ctx, me.Route()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := a.asked(); n < 8 || n > 12 {
			t.Errorf("the store was asked %d times in ten seconds", n)
		}
		if body := w.String(); strings.Count(body, "event: away\n") != 1 || strings.Contains(body, "while it") || !strings.Contains(body, "event: typing\n") {
			t.Errorf("without the store:\n%s", body)
		}
		a.set(nil)
		time.Sleep(readAgain)
		synctest.Wait()
		if body := w.String(); strings.Count(body, "while it is away") != 1 {
			t.Errorf("it is to be shown once:\n%s", body)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := a.asked(); n > 2 {
			t.Errorf("it goes on asking: %d times", n)
		}
		a.set(storage.ErrDamaged) // which does not pass
		a.chat.Look(me.ChannelID)
		if err := <-done; !errors.Is(err, storage.ErrDamaged) {
			t.Errorf("a damaged store ends it with %v", err)
		}
		cancel()
	})
}
