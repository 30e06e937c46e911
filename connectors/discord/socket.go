package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/claybot/claybot/connectors"
)

// The opcodes of the gateway.
//
// Payloads and close codes: docs.discord.com/developers/events/gateway and
// …/topics/opcodes-and-status-codes, read 2026-11-28.
const (
	opDispatch       = 0
	opHeartbeat      = 1
	opIdentify       = 2
	opResume         = 6
	opReconnect      = 7
	opInvalidSession = 9
	opHello          = 10
	opHeartbeatAck   = 11
)

// A payload is one message of the gateway.
type payload struct {
	Op  int             `json:"op"`
	D   json.RawMessage `json:"d"`
	Seq int64           `json:"s,omitempty"`
	T   string          `json:"t,omitempty"`
}

// A socket is one connection to the gateway, from hello until it is closed. One goroutine
// reads it, another one sends heartbeats.
type socket struct {
	conn  *websocket.Conn
	every time.Duration // between heartbeats

	writing sync.Mutex
	beaten  []time.Time              // heartbeats without an acknowledgement; guarded by writing
	acked   atomic.Bool              // the last heartbeat
	busy    atomic.Bool              // the reader hands an event over, and reads nothing
	silent  atomic.Bool              // closed for lack of an acknowledgement
	pos     atomic.Pointer[position] // that heartbeats name; nil before a session
}

// dial connects to an address of the gateway and waits for hello.
func (c *Connector) dial(ctx context.Context, address string) (*socket, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "wss" && (u.Scheme != "ws" || !strings.HasPrefix(c.cfg.BaseURL, "http://")) {
		return nil, errors.New("discord: the gateway has no usable address")
	}
	u.RawQuery = url.Values{"v": {"10"}, "encoding": {"json"}}.Encode()
	conn, resp, err := c.dialer.DialContext(ctx, u.String(), nil)
	if resp != nil {
		_ = resp.Body.Close() // in memory
	}
	if err != nil {
		if resp != nil {
			return nil, fmt.Errorf("discord: open the gateway: HTTP status %d", resp.StatusCode)
		}
		return nil, fmt.Errorf("discord: open the gateway: %w", bare(err))
	}
	s := &socket{conn: conn}
	s.acked.Store(true)
	conn.SetReadLimit(maxFrameBytes)
	stop := context.AfterFunc(ctx, s.close) // the read reports the end
	defer stop()
	p, err := s.next()
	var hello struct {
		Interval int64 `json:"heartbeat_interval"`
	}
	if err == nil && (p.Op != opHello || connectors.Decode(p.D, &hello) != nil || hello.Interval <= 0) {
		err = errors.New("another payload came first")
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("discord: wait for hello: %w", err)
	}
	s.every = min(time.Duration(hello.Interval)*time.Millisecond, beatMost)
	return s, nil
}

// next reads one payload; an empty one if it cannot be decoded.
func (s *socket) next() (payload, error) {
	_, data, err := s.conn.ReadMessage()
	if err != nil {
		return payload{}, err
	}
	p := payload{Op: -1}
	if connectors.Decode(data, &p) != nil {
		p = payload{Op: -1}
	}
	return p, nil
}

// send writes one payload.
func (s *socket) send(op int, d any) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if op == opHeartbeat {
		s.beaten = append(s.beaten, time.Now())
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // a dead socket shows at the write
	err := s.conn.WriteJSON(map[string]any{"op": op, "d": d})
	if err != nil {
		return fmt.Errorf("discord: write to the gateway: %w", bare(err))
	}
	return nil
}

// beat sends one heartbeat. It names the event at which a restart resumes, not the last that came:
// what Discord keeps for a resume then has all that is not stored.
func (s *socket) beat() error {
	if pos := s.pos.Load(); pos != nil {
		return s.send(opHeartbeat, pos.kept.Load())
	}
	return s.send(opHeartbeat, nil)
}

// acknowledged notes an acknowledgement, and returns when its heartbeat was sent: what Discord sent
// before that came before the acknowledgement. It is zero for one too many.
func (s *socket) acknowledged() (sent time.Time) {
	s.acked.Store(true)
	s.writing.Lock()
	defer s.writing.Unlock()
	if len(s.beaten) > 0 {
		sent, s.beaten = s.beaten[0], s.beaten[1:]
	}
	return sent
}

// beats sends heartbeats until ctx is done. It closes a socket on which the last one was not
// acknowledged, unless the reader is why.
func (s *socket) beats(ctx context.Context) {
	timer := time.NewTimer(rand.N(s.every))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if !s.acked.CompareAndSwap(true, false) && !s.busy.Load() {
			s.silent.Store(true)
			s.close()
			return
		}
		if s.beat() != nil {
			s.close()
			return
		}
		timer.Reset(s.every)
	}
}

// close ends the connection without a close frame: after one with the code 1000, Discord would
// end the session.
func (s *socket) close() { _ = s.conn.Close() } // nothing can be done about a failure
