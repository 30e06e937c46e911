package slacktest

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// maxSockets is how many sockets one app may have.
const maxSockets = 10

// delivery is the part of a Server that brings envelopes to sockets. The
// server's lock guards it.
type delivery struct {
	sockets []*socket            // open, oldest first
	queue   []*envelope          // for which no socket is open
	open    map[string]*envelope // not acknowledged
	acks    []Ack
	turn    int
	traffic Traffic
	zero    time.Time // since when no socket is open
	push    *pusher   // in place of sockets; nil: none
}

// An Ack is an acknowledgement that arrived.
type Ack struct {
	Envelope string
	Sent     time.Time // the first delivery
	At       time.Time
	Attempts int // deliveries
	Payload  string
}

// Traffic counts sockets and envelopes.
type Traffic struct {
	Opened    int           // sockets, ever
	Most      int           // at the same time
	Gap       time.Duration // without a socket, after the first one
	Requeued  int           // envelopes whose socket closed before their acknowledgement
	Repeated  int           // envelopes redelivered for lack of an acknowledgement
	Stray     int           // acknowledgements that fit no envelope of their socket, or answer where no answer is taken
	Unopened  int           // handshakes that were refused
	Delivered int           // writes of envelopes
	Dropped   int           // requests that were given up
}

type envelope struct {
	id       string
	kind     string
	made     time.Time
	payload  json.RawMessage
	accepts  bool // an answer in the acknowledgement
	attempts int
	sent     time.Time
	on       *socket
	due      time.Time // when it comes again
	timer    *time.Timer
}

func (e *envelope) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
}

// of is the kind of an envelope, and of an interaction its type.
func (e *envelope) of() string {
	var p struct{ Type string }
	if e.kind == "interactive" && json.Unmarshal(e.payload, &p) == nil { // a test may send anything
		return p.Type
	}
	return e.kind
}

func (e *envelope) frame() []byte {
	f := answer{"envelope_id": e.id, "type": e.kind, "payload": e.payload, "accepts_response_payload": e.accepts}
	if e.attempts > 1 {
		f["retry_attempt"], f["retry_reason"] = e.attempts-1, "timeout"
	}
	b, _ := json.Marshal(f) // the payload was marshalled before
	return b
}

// event wraps an event, when the app has subscribed to it. The lock is held.
func (s *Server) event(team string, e answer) {
	name, channel := s.subscription(e)
	if !s.hears(name, channel) {
		return
	}
	s.send("events_api", answer{
		"type": "event_callback", "team_id": team, "api_app_id": "A1", "event": e, "event_id": s.next("Ev"), "event_time": time.Now().Unix(),
		"authorizations": []answer{{"team_id": team, "user_id": s.cfg.BotUser, "is_bot": true}},
	})
}

// subscription is the name under which an app subscribes to an event, and the event's
// channel. The lock is held.
func (s *Server) subscription(e answer) (name, channel string) {
	name, _ = e["type"].(string)
	if name == "channel_left" || name == "group_left" {
		return name, "" // the last that the app hears of the channel
	}
	channel, _ = e["channel"].(string)
	if item, ok := e["item"].(answer); ok { // of a reaction
		channel, _ = item["channel"].(string)
	}
	if name == "message" {
		name = "message." + family[s.kind(channel)]
	}
	return name, channel
}

// lost forgets an envelope that is too old to be delivered, and reports whether
// it did. The lock is held.
func (s *Server) lost(e *envelope) bool {
	if s.cfg.Forget == 0 || time.Since(e.made) < s.cfg.Forget {
		return false
	}
	e.stop()
	delete(s.open, e.id)
	return true
}

// send makes an envelope and delivers it. The lock is held.
func (s *Server) send(kind string, payload any) string {
	b, err := json.Marshal(payload)
	if err != nil {
		panic("slacktest: payload: " + err.Error()) // a mistake of the test
	}
	e := &envelope{id: s.next("env-"), kind: kind, payload: b, made: time.Now()}
	switch e.of() {
	case "slash_commands", "view_submission", "block_suggestion":
		e.accepts = true
	}
	s.open[e.id] = e
	s.deliver(e)
	return e.id
}

// deliver hands an envelope to one socket, or keeps it. The lock is held.
func (s *Server) deliver(e *envelope) {
	if s.closed || s.lost(e) {
		return
	}
	if s.push != nil {
		s.hand(e)
		return
	}
	c := s.pick()
	if c == nil {
		e.on = nil
		s.queue = append(s.queue, e)
		return
	}
	e.attempts++
	e.on = c
	if e.attempts == 1 {
		e.sent = time.Now()
	}
	s.traffic.Delivered++
	c.put(e.frame())
	e.due = time.Now().Add(s.cfg.Redeliver)
	e.timer = time.AfterFunc(s.cfg.Redeliver, s.again)
}

// again delivers the envelopes that were not acknowledged in time, in order.
func (s *Server) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.unacked() {
		if e.on != nil && !time.Now().Before(e.due) {
			s.traffic.Repeated++
			s.deliver(e)
		}
	}
}

func (s *Server) pick() *socket {
	if len(s.sockets) == 0 {
		return nil
	}
	switch s.cfg.Pick {
	case Oldest:
		return s.sockets[0]
	case Newest:
		return s.sockets[len(s.sockets)-1]
	}
	s.turn++
	return s.sockets[s.turn%len(s.sockets)]
}

// A socket is one connection of the app.
type socket struct {
	conn   *websocket.Conn
	wake   chan struct{}
	closed chan struct{}
	once   sync.Once

	mu     sync.Mutex
	frames [][]byte
	frozen bool
}

func (c *socket) put(frame []byte) {
	c.mu.Lock()
	c.frames = append(c.frames, frame)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take returns what is to be written. A frozen socket swallows it.
func (c *socket) take() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	frames := c.frames
	c.frames = nil
	if c.frozen {
		return nil
	}
	return frames
}

// dead reports whether the socket is frozen.
func (c *socket) dead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen
}

func (c *socket) close() {
	c.once.Do(func() {
		close(c.closed)
		_ = c.conn.Close() // the peer may be gone
	})
}

func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	if f := s.fault("socket", ""); s.isDown() || f.Status != 0 || !s.admit(r.FormValue("ticket")) {
		s.mu.Lock()
		s.traffic.Unopened++
		s.mu.Unlock()
		http.Error(w, "refused", max(f.Status, http.StatusForbidden))
		return
	}
	defer s.running.Done()
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	c := &socket{conn: conn, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	defer c.close()
	if !s.join(c) {
		return
	}
	defer s.part(c)
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() { c.write(s.cfg.Ping) })
	defer c.close()
	for {
		_, data, err := conn.ReadMessage()
		if err != nil {
			return
		}
		var a struct {
			Envelope string          `json:"envelope_id"`
			Payload  json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(data, &a) == nil {
			s.acked(c, a.Envelope, a.Payload)
		}
	}
}

// admit takes a ticket, which works once, and counts the handler in.
func (s *Server) admit(ticket string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.tickets[ticket] {
		return false
	}
	delete(s.tickets, ticket)
	s.running.Add(1)
	return true
}

// join greets a socket and gives it what waits.
func (s *Server) join(c *socket) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if len(s.sockets) == maxSockets {
		_ = c.conn.WriteJSON(answer{"type": "disconnect", "reason": "too_many_websockets"}) // it is closed anyway
		return false
	}
	s.sockets = append(s.sockets, c)
	s.traffic.Opened++
	s.traffic.Most = max(s.traffic.Most, len(s.sockets))
	if !s.zero.IsZero() {
		s.traffic.Gap += time.Since(s.zero)
		s.zero = time.Time{}
	}
	hello, _ := json.Marshal(answer{ // strings and numbers always marshal
		"type": "hello", "num_connections": len(s.sockets), "connection_info": answer{"app_id": "A1"},
		"debug_info": answer{"host": "applink-1", "approximate_connection_time": int(s.cfg.ConnectionTime / time.Second)},
	})
	c.put(hello)
	waiting := s.queue
	s.queue = nil
	for _, e := range waiting {
		s.deliver(e)
	}
	s.change()
	return true
}

// part gives the envelopes of a closed socket to others.
func (s *Server) part(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.sockets {
		if other == c {
			s.sockets = append(s.sockets[:i:i], s.sockets[i+1:]...)
			break
		}
	}
	if len(s.sockets) == 0 {
		s.zero = time.Now()
	}
	for _, e := range s.unacked() {
		if e.on == c {
			e.stop()
			e.on = nil
			s.traffic.Requeued++
			s.deliver(e)
		}
	}
	s.change()
}

func (s *Server) acked(c *socket, id string, payload json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.open[id]
	switch {
	case c.dead(): // lost on the way
		return
	case e == nil || e.on != c:
		s.traffic.Stray++
		return
	}
	s.confirm(e, payload)
}

// confirm notes the acknowledgement of an envelope. The lock is held.
func (s *Server) confirm(e *envelope, payload json.RawMessage) {
	if len(payload) > 0 && !e.accepts {
		s.traffic.Stray++
	}
	if e.of() == "block_suggestion" { // docs.slack.dev/reference/interaction-payloads/block_suggestion-payload, read 2026-11-30
		var said struct{ Options []object }
		if json.Unmarshal(payload, &said) != nil || said.Options == nil {
			s.complain("block_suggestion: the answer has no options: %s", payload)
		}
	}
	if r := s.replies[e.id]; r != nil {
		r.came, r.payload = true, payload
	}
	e.stop()
	delete(s.open, e.id)
	s.acks = append(s.acks, Ack{Envelope: e.id, Sent: e.sent, At: time.Now(), Attempts: e.attempts, Payload: string(payload)})
	s.change()
}

// write is the writer of a socket; it pings as well.
func (c *socket) write(ping time.Duration) {
	defer c.close()
	ticker := time.NewTicker(ping)
	defer ticker.Stop()
	for {
		select {
		case <-c.closed:
			return
		case <-ticker.C:
			if c.dead() {
				continue
			}
			if c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second)) != nil {
				return
			}
		case <-c.wake:
			for _, f := range c.take() {
				if f == nil { // the end
					return
				}
				if c.conn.WriteMessage(websocket.TextMessage, f) != nil {
					return
				}
			}
		}
	}
}
