package discordtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// The intents that events and contents need.
const (
	intentGuilds          = 1 << 0
	intentGuildMessages   = 1 << 9
	intentGuildReactions  = 1 << 10
	intentDirectMessages  = 1 << 12
	intentDirectReactions = 1 << 13
	intentContent         = 1 << 15
)

// knownIntents are all that a bot may ask for; maxPayloads is how many it may send in a minute.
//
// docs.discord.com/developers/events/gateway, List of Intents and Rate Limiting, read 2026-11-28.
const (
	knownIntents = 1<<17 - 1 | 1<<20 | 1<<21 | 1<<24 | 1<<25
	maxPayloads  = 120
)

type answer = map[string]any

// gateway is the part of a Server that has sessions. The server's lock guards it.
type gateway struct {
	sessions   map[string]*session
	sockets    []*socket
	identified time.Time
	started    int         // sessions
	day        []time.Time // starts of a day, which begins with the first
	resumed    int
	hasty      int // identifies
	identifies int
	refusing   bool          // identifies are answered with Invalid Session
	host       string        // at which it is reached
	mute       bool          // heartbeats are not acknowledged
	slow       time.Duration // that the next resume takes
}

// A session is what a connection may resume.
type session struct {
	id      string
	intents int
	seq     int64
	named   int64 // by a heartbeat: what is before is not kept
	events  []event
	on      *socket   // nil: none
	left    time.Time // by its connection
	ended   bool
}

type event struct {
	seq   int64
	frame []byte
}

// A socket is one connection of the bot.
type socket struct {
	conn   *websocket.Conn
	wake   chan struct{}
	closed chan struct{}
	once   sync.Once

	sent []time.Time // payloads of the bot within a minute; guarded by the server

	mu     sync.Mutex
	frames [][]byte
	code   int // of the close frame, once the frames are written
}

func (c *socket) put(frame []byte, code int) {
	c.mu.Lock()
	if frame != nil {
		c.frames = append(c.frames, frame)
	}
	c.code = max(c.code, code)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *socket) send(op int, d any) {
	b, _ := json.Marshal(answer{"op": op, "d": d, "s": nil, "t": nil}) // always marshals
	c.put(b, 0)
}

func (c *socket) close() {
	c.once.Do(func() {
		close(c.closed)
		_ = c.conn.Close() // the peer may be gone
	})
}

// write is the writer of a socket.
func (c *socket) write() {
	defer c.close()
	for {
		select {
		case <-c.closed:
			return
		case <-c.wake:
		}
		c.mu.Lock()
		frames, code := c.frames, c.code
		c.frames = nil
		c.mu.Unlock()
		for _, f := range frames {
			if c.conn.WriteMessage(websocket.TextMessage, f) != nil {
				return
			}
		}
		if code != 0 {
			_ = c.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, "closed"), time.Now().Add(time.Second)) // it is closed anyway
			return
		}
	}
}

// serveGateway is one connection.
func (s *Server) serveGateway(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	refused := s.closed || s.down
	if !refused {
		s.running.Add(1)
	}
	s.mu.Unlock()
	if refused || r.FormValue("v") != "10" || r.FormValue("encoding") != "json" {
		if !refused {
			s.running.Done()
		}
		http.Error(w, "refused", http.StatusServiceUnavailable)
		return
	}
	defer s.running.Done()
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	c := &socket{conn: conn, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	s.mu.Lock()
	s.sockets = append(s.sockets, c)
	s.mu.Unlock()
	defer s.part(c)
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(c.write)
	defer c.close()
	c.send(10, answer{"heartbeat_interval": s.cfg.Heartbeat.Milliseconds()})
	for {
		_ = conn.SetReadDeadline(time.Now().Add(3 * s.cfg.Heartbeat / 2)) // a beat that is missing ends the connection
		_, data, err := conn.ReadMessage()
		if err != nil {
			return
		}
		if len(data) > 4096 {
			c.put(nil, 4002)
			continue
		}
		var p struct {
			Op int             `json:"op"`
			D  json.RawMessage `json:"d"`
		}
		if json.Unmarshal(data, &p) != nil {
			c.put(nil, 4002)
			continue
		}
		s.received(c, p.Op, p.D)
	}
}

// part ends a connection; its session stays for a while.
func (s *Server) part(c *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.sockets {
		if other == c {
			s.sockets = append(s.sockets[:i:i], s.sockets[i+1:]...)
			break
		}
	}
	for _, x := range s.sessions {
		if x.on == c {
			x.on, x.left = nil, time.Now()
		}
	}
	s.change()
}

// drop closes all connections, with a close code or without. The lock is held.
func (s *Server) drop(code int) {
	for _, c := range s.sockets {
		if code == 0 {
			go c.close()
		} else {
			c.put(nil, code)
		}
	}
}

// received takes a payload of the bot.
func (s *Server) received(c *socket, op int, d json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.change()
	now := time.Now()
	for len(c.sent) > 0 && now.Sub(c.sent[0]) >= time.Minute {
		c.sent = c.sent[1:]
	}
	if c.sent = append(c.sent, now); len(c.sent) > maxPayloads {
		c.put(nil, 4008)
		return
	}
	switch op {
	case 1:
		var seq *int64
		_ = json.Unmarshal(d, &seq) // null for none
		for _, x := range s.sessions {
			if x.on == c && seq != nil {
				x.named = max(x.named, *seq)
			}
		}
		if !s.mute {
			c.send(11, nil)
		}
	case 2:
		s.identify(c, d)
	case 6:
		slow := s.slow
		s.slow = 0
		if slow == 0 {
			s.resume(c, d)
			return
		}
		time.AfterFunc(slow, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			defer s.change()
			if slices.Contains(s.sockets, c) {
				s.resume(c, d)
			}
		})
	default:
		c.put(nil, 4001)
	}
}

// Sessions counts the sessions that were started, and the resumes.
func (s *Server) Sessions() (started, resumed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started, s.resumed
}

// Hasty counts the identifies that came within five seconds of another one.
func (s *Server) Hasty() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasty
}

// Expire ends all sessions, so that none can be resumed.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		x.ended = true
	}
}

// Disconnect closes the connections, with a close code or without.
func (s *Server) Disconnect(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(code)
}

// Ask sends an opcode without data, such as 7 to reconnect, or 1 for a heartbeat.
func (s *Server) Ask(op int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.sockets {
		c.send(op, nil)
	}
}

// Mute makes the gateway acknowledge no heartbeat, or acknowledge them again.
func (s *Server) Mute(mute bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = mute
}

// Behind counts the events of the present session after a sequence.
func (s *Server) Behind(id string, seq int64) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if x.ended {
			continue
		}
		if x.id != id {
			return len(x.events)
		}
		for _, e := range x.events {
			if e.seq > seq {
				n++
			}
		}
	}
	return n
}

// Dispatch sends an event as it is.
func (s *Server) Dispatch(t string, d any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emit(0, t, d)
}

// Frame sends bytes that are no event.
func (s *Server) Frame(frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.sockets {
		c.put(frame, 0)
	}
}

// emit sends an event to the sessions that have an intent; 0 is no intent. The lock is held.
func (s *Server) emit(intent int, t string, d any) {
	for _, x := range s.sessions {
		if intent != 0 && x.intents&intent == 0 {
			continue
		}
		e := d
		if m, ok := d.(answer); ok && x.intents&intentContent == 0 && strings.HasPrefix(t, "MESSAGE_") && m["content"] != nil && !s.plain(m) {
			hidden := answer{}
			for k, v := range m {
				hidden[k] = v
			}
			hidden["content"], hidden["attachments"], hidden["components"] = "", []answer{}, []answer{}
			e = hidden
		}
		x.dispatch(t, e)
	}
	s.change()
}

// plain reports whether the bot may read a message without the intent. The lock is held.
func (s *Server) plain(m answer) bool {
	if m["guild_id"] == nil {
		return true
	}
	if author, _ := m["author"].(answer); author["id"] == s.cfg.Bot {
		return true
	}
	mentions, _ := m["mentions"].([]answer)
	for _, u := range mentions {
		if u["id"] == s.cfg.Bot {
			return true
		}
	}
	return false
}

// Unnamed counts the events of the present session that no heartbeat has named: claybot names
// those before which everything is stored.
func (s *Server) Unnamed() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		for _, e := range x.events {
			if !x.ended && e.seq > x.named {
				n++
			}
		}
	}
	return n
}

// Kept reports whether a heartbeat of the present session has named an event after READY.
func (s *Server) Kept() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.sessions {
		if !x.ended && len(x.events) > 0 && x.named > x.events[0].seq {
			return true
		}
	}
	return false
}

// Forbid takes the Message Content intent from the app; claims: which says that it has it.
func (s *Server) Forbid(claims bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.NoContent, s.cfg.ClaimContent = true, claims
}
