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

type answer = map[string]any

// gateway is the part of a Server that has sessions. The server's lock guards it.
type gateway struct {
	sessions   map[string]*session
	sockets    []*socket
	identified time.Time
	started    int // sessions
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

func (s *Server) identify(c *socket, d json.RawMessage) {
	var p struct {
		Token      string `json:"token"`
		Intents    int    `json:"intents"`
		Properties answer `json:"properties"`
	}
	_ = json.Unmarshal(d, &p) // what is missing is refused
	s.identifies++
	switch {
	case s.refusing:
		c.send(9, false)
	case p.Token != s.cfg.Token || s.revoked:
		c.put(nil, 4004)
	case p.Properties == nil || p.Intents == 0:
		c.put(nil, 4002)
	case p.Intents&intentContent != 0 && s.cfg.NoContent:
		c.put(nil, 4014)
	case !s.identified.IsZero() && time.Since(s.identified) < 5*time.Second:
		s.hasty++
		c.send(9, false)
	case s.started >= s.cfg.Sessions:
		c.send(9, false)
	default:
		s.identified = time.Now()
		x := s.begin(p.Intents)
		x.on = c
		guilds := []answer{}
		seen := make(map[string]bool)
		for _, ch := range s.channels {
			if ch.guild != "" && !ch.gone && !seen[ch.guild] {
				seen[ch.guild] = true
				guilds = append(guilds, answer{"id": ch.guild, "unavailable": true})
			}
		}
		x.dispatch("READY", answer{
			"v": 10, "user": s.bot(), "guilds": guilds, "session_id": x.id, "resume_gateway_url": s.address(c), "application": answer{"id": s.cfg.Bot},
		})
		for id := range seen {
			x.dispatch("GUILD_CREATE", s.guildOf(id))
		}
	}
}

// address is where the gateway is, as the connection found it. The lock is held.
func (s *Server) address(*socket) string { return "ws://" + s.host + "/gateway" }

// begin makes a session. The lock is held.
func (s *Server) begin(intents int) *session {
	for _, x := range s.sessions { // one bot, one session
		x.ended = true
	}
	s.started++
	x := &session{id: s.next("session-"), intents: intents, left: time.Now()}
	s.sessions[x.id] = x
	return x
}

// Session starts a session without a connection, as one that an earlier process left, and
// returns its id and sequence. Host is where the gateway is reached.
func (s *Server) Session(host string, intents int) (id string, seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = host
	x := s.begin(intents)
	x.seq = 1 // READY
	return x.id, x.seq
}

// dispatch adds an event. The lock of the server is held.
func (x *session) dispatch(t string, d any) {
	if x.ended {
		return
	}
	x.seq++
	b, err := json.Marshal(answer{"op": 0, "t": t, "s": x.seq, "d": d})
	if err != nil {
		panic("discordtest: event: " + err.Error()) // a mistake of the test
	}
	x.events = append(x.events, event{x.seq, b})
	if x.on != nil {
		x.on.put(b, 0)
	}
}

func (s *Server) resume(c *socket, d json.RawMessage) {
	var p struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int64  `json:"seq"`
	}
	_ = json.Unmarshal(d, &p) // what is missing is refused
	x := s.sessions[p.Session]
	switch {
	case p.Token != s.cfg.Token || s.revoked:
		c.put(nil, 4004)
	case x == nil || x.ended || x.on == nil && time.Since(x.left) > s.cfg.Keep || p.Seq < x.named:
		if x != nil {
			x.ended = true
		}
		c.send(9, false)
	case p.Seq > x.seq:
		c.put(nil, 4007)
	default:
		if x.on != nil {
			go x.on.close()
		}
		s.resumed++
		x.on = c
		for _, e := range x.events {
			if e.seq > p.Seq {
				c.put(e.frame, 0)
			}
		}
		x.dispatch("RESUMED", answer{})
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

// Forbid takes the Message Content intent from the app; claims: which says that it has it.
func (s *Server) Forbid(claims bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.NoContent, s.cfg.ClaimContent = true, claims
}
