package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// errClosed means that a socket closed before an acknowledgement was written.
var errClosed = errors.New("socket is closed")

// reasonCrowded is the reason of a disconnect when the app has more sockets than
// Slack allows.
const reasonCrowded = "too_many_websockets"

var errCrowded = errors.New("slack allows an app 10 sockets, and more are asked for: run fewer nodes with this app, or stop the other program that uses it")

// A frame is one Socket Mode message, with the fields of all types.
type frame struct {
	Type       string          `json:"type"`
	EnvelopeID string          `json:"envelope_id"`
	Payload    json.RawMessage `json:"payload"`
	Accepts    bool            `json:"accepts_response_payload"` // the acknowledgement may carry an answer

	Reason string `json:"reason"` // of a disconnect

	NumConnections int `json:"num_connections"` // of a hello
	DebugInfo      struct {
		ApproximateConnectionTime int `json:"approximate_connection_time"` // seconds
	} `json:"debug_info"`
}

// A socket is one open connection, from hello until it is closed. One
// goroutine reads; acknowledgements are written by another one.
type socket struct {
	conn   *websocket.Conn
	hello  frame
	opened time.Time
	alive  func() // called for every frame and ping

	acks   chan ack
	once   sync.Once
	closed chan struct{}
	writer sync.WaitGroup
}

// An ack is one acknowledgement to be written.
type ack struct {
	Envelope string `json:"envelope_id"`
	// Payload is the response to a submitted form. Slack silently drops large
	// ones.
	Payload any `json:"payload,omitempty"`

	written chan error
}

// open gets a new address, connects to it and waits for hello.
func (c *Connector) open(ctx context.Context) (*socket, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	address, err := c.socketAddress(ctx)
	if err != nil {
		return nil, err
	}
	// The address is a secret, and errors of url.Parse and of the dialer may
	// quote it.
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return nil, errors.New(methodConnect + ": the answer holds no socket address")
	}
	conn, resp, err := c.dialer.DialContext(ctx, address, nil)
	if resp != nil {
		_ = resp.Body.Close() // in memory
	}
	if err != nil {
		if resp != nil {
			return nil, fmt.Errorf("open socket: HTTP status %d", resp.StatusCode)
		}
		return nil, fmt.Errorf("open socket: %w", c.clean(err))
	}
	s := &socket{conn: conn, opened: time.Now(), alive: c.pulse.OK, acks: make(chan ack), closed: make(chan struct{})}
	if err := s.greet(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// errSocketsOff is the error of an app whose Socket Mode is off.
var errSocketsOff = &connectors.PermanentError{
	Says: texts.StoppedSocketMode,
	Err:  errors.New("socket mode is switched off for the app"),
	Fix:  "switch it on at api.slack.com/apps, Socket Mode, and " + connectors.Reload,
}

// SocketsOff reports whether an error says that the Socket Mode of the app is off.
func SocketsOff(err error) bool { return errors.Is(err, errSocketsOff) }

// socketAddress gets the address of a socket, which is a secret and counts once; errSocketsOff if Socket
// Mode is off.
//
// Shapes: docs.slack.dev/reference/methods/apps.connections.open, read 2026-11-30: it refuses
// with socket_mode_not_enabled.
func (c *Connector) socketAddress(ctx context.Context) (string, error) {
	_, address, err := c.api.StartSocketModeContext(ctx)
	if code, _ := judge(err); code == "socket_mode_not_enabled" {
		return "", errSocketsOff
	}
	if err != nil {
		return "", c.refused(methodConnect, c.cfg.AppTokenName, err)
	}
	return address, nil
}

// greet waits for hello. A socket is not usable before.
func (s *socket) greet(ctx context.Context) error {
	s.conn.SetReadLimit(maxFrameBytes)
	s.conn.SetPingHandler(s.ping)
	defer context.AfterFunc(ctx, func() { _ = s.conn.Close() })() // its reader reports the end
	f, err := s.next()
	if err != nil {
		return fmt.Errorf("wait for hello: %w", err)
	}
	if f.Type == "disconnect" {
		if err := dismissed(f.Reason); err != nil {
			return err
		}
		if f.Reason == reasonCrowded {
			return errCrowded
		}
		return fmt.Errorf("wait for hello: dismissed: %s", word(f.Reason))
	}
	if f.Type != "hello" {
		return errors.New("wait for hello: another frame came first")
	}
	s.hello = f
	s.writer.Go(s.write)
	return nil
}

// dismissed returns the error of a permanent disconnect, nil for others.
func dismissed(reason string) error {
	if reason != "link_disabled" {
		return nil
	}
	return errSocketsOff
}

// lifetime returns the approximate time that Slack keeps the socket open; zero
// if unknown.
func (s *socket) lifetime() time.Duration {
	return time.Duration(s.hello.DebugInfo.ApproximateConnectionTime) * time.Second
}

// next reads one frame. It returns an empty frame for invalid JSON, which
// cannot be acknowledged.
func (s *socket) next() (frame, error) {
	s.extend()
	_, data, err := s.conn.ReadMessage()
	if err != nil {
		return frame{}, readError(err)
	}
	var f frame
	if connectors.Decode(data, &f) != nil {
		f = frame{}
	}
	return f, nil
}

// readError describes why a socket ended, without the text of the close frame,
// which is untrusted.
func readError(err error) error {
	var end *websocket.CloseError
	if errors.As(err, &end) {
		return fmt.Errorf("socket closed by slack: code %d", end.Code)
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("socket silent for %v", silence)
	}
	return fmt.Errorf("read socket: %w", err)
}

// read passes frames to take until the socket ends or take returns an error,
// and closes the socket.
func (s *socket) read(take func(frame) error) error {
	defer s.close()
	for {
		f, err := s.next()
		if err != nil {
			return err
		}
		s.alive()
		if err := take(f); err != nil {
			return err
		}
	}
}

func (s *socket) extend() { _ = s.conn.SetReadDeadline(time.Now().Add(silence)) } // a dead socket shows at the read

// ping answers a ping and extends the read deadline.
func (s *socket) ping(data string) error {
	s.extend()
	s.alive()
	err := s.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout))
	if errors.Is(err, websocket.ErrCloseSent) {
		return nil
	}
	return err
}

// ack returns nil when the acknowledgement of an envelope has been written.
func (s *socket) ack(envelope string, payload any) error {
	a := ack{Envelope: envelope, Payload: payload, written: make(chan error, 1)}
	select {
	case s.acks <- a:
		return <-a.written
	case <-s.closed:
		return errClosed
	}
}

// write is the only writer of a socket.
func (s *socket) write() {
	for {
		select {
		case a := <-s.acks:
			_ = s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // a dead socket shows at the write
			a.written <- s.conn.WriteJSON(a)
		case <-s.closed:
			return
		}
	}
}

// close closes the socket and stops its writer. It may be called more than
// once, from any goroutine.
func (s *socket) close() {
	s.once.Do(func() {
		close(s.closed)
		_ = s.conn.Close() // nothing can be done about a failure
	})
	s.writer.Wait()
}
