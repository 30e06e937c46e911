package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot/workspace"
)

// A link is the connection to one server, over and over again.
type link struct {
	m       *Manager
	server  Server
	red     redactor
	refused error // nil: it is connected by run

	kick  chan struct{}  // the server says that its list has changed
	retry chan struct{}  // a request to connect now
	turn  workspace.Turn // one at a time decides about tools, see decide

	unkept *unkept // by authorization alone: the tokens that are not stored yet

	tried chan struct{} // closed when the first try to connect has ended
	first sync.Once     // closes it

	mu     sync.Mutex       // of what follows
	live   *live            // nil while there is no connection
	asking map[*asking]bool // the calls that go on
	health
	listing
}

// The health of a link is how its connection is doing.
type health struct {
	state    string
	since    time.Time
	says     string
	restarts int
	lastErr  string
	stderr   string
}

// A listing is what is known of the tools of a server.
type listing struct {
	tools  []*tool
	off    []OffTool
	listed []*sdk.Tool // what the server said last
	print  string      // of tools and off, to detect a change
}

// A live is one connection.
type live struct {
	session *sdk.ClientSession
	process workspace.Process // nil without one, as pipe
	pipe    *pipe
	client  *http.Client // nil without one
	// calls ends when no call may go on, wire when nothing may.
	calls, wire context.Context //nolint:containedctx // the ends of calls that others make
	end, cut    context.CancelCauseFunc
	hang        func()                // ends the connection whatever the library does
	wrong       atomic.Pointer[error] // what the server answered by HTTP instead
	unanswered  atomic.Bool           // a call ended without an answer: the server may still work on it
}

func newLink(m *Manager, s Server) *link {
	l := &link{
		m: m, server: s, red: newRedactor(s.secrets()), health: health{state: StateStarting, since: time.Now()},
		kick: make(chan struct{}, 1), retry: make(chan struct{}, 1), turn: workspace.NewTurn(), unkept: new(unkept),
		tried: make(chan struct{}),
	}
	if s.Stopped {
		l.state = StateStopped
	}
	if err := s.Check(); err != nil {
		l.refuse(err)
	}
	return l
}

func (l *link) refuse(err error) {
	l.refused, l.state, l.lastErr = err, StateRefused, l.red.line(err.Error())
}

// run keeps the server connected until ctx ends.
func (l *link) run(ctx context.Context) {
	wait := backoffFirst
	for {
		began := time.Now()
		err := error(nil)
		if ctx.Err() == nil {
			err = l.once(ctx)
		}
		if ctx.Err() != nil {
			l.down(StateStopped, nil)
			return
		}
		if time.Since(began) >= steady {
			wait = backoffFirst
		}
		state := StateWaiting
		if errors.Is(err, errLogin) {
			state = StateLogin
		}
		l.down(state, err)
		l.m.log().Warn("failed to connect to MCP server", "server", l.server.Name, "err", l.red.line(err.Error()), "next", wait)
		again := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-l.retry:
		case <-again.C:
		}
		again.Stop()
		wait = min(2*wait, backoffMost)
		l.mu.Lock()
		l.restarts++
		l.mu.Unlock()
	}
}

// once connects, and returns when the connection has ended, with the reason.
func (l *link) once(ctx context.Context) error {
	l.mu.Lock()
	l.state, l.since = StateStarting, time.Now()
	l.mu.Unlock()
	c, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer l.shut(c)
	if err := l.list(ctx, c); err != nil {
		return err
	}
	l.up(c)
	l.m.log().Info("MCP server connected", "server", l.server.Name, "tools", len(l.offered()))
	gone := make(chan error, 1)
	go func() { gone <- c.session.Wait() }() // ends with the connection, which shut sees to
	return l.serve(ctx, c, gone)
}

// probe connects, lists the tools, and disconnects.
func (l *link) probe(ctx context.Context) error {
	c, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer l.shut(c)
	return l.list(ctx, c)
}

// serve lists tools again when the server says so, until the connection ends.
func (l *link) serve(ctx context.Context, c *live, gone <-chan error) error {
	pause := time.NewTimer(listPause)
	defer pause.Stop()
	for {
		kick := l.kick
		select {
		case <-pause.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-gone:
			return l.lost(c, err)
		}
		select {
		case <-kick:
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-gone:
			return l.lost(c, err)
		}
		if err := l.list(ctx, c); err != nil {
			return err
		}
		pause.Reset(listPause)
	}
}

func (l *link) lost(c *live, err error) error {
	switch {
	case c.pipe != nil && c.pipe.why.Load() != nil:
		return errors.New(*c.pipe.why.Load())
	case err != nil:
		return fmt.Errorf("the connection broke: %w", err)
	case c.process != nil:
		return fmt.Errorf("the server closed the connection; %s", exit(c.process))
	}
	return errors.New("the server closed the connection")
}

func (*link) me(version string) *sdk.Implementation {
	return &sdk.Implementation{Name: "claybot", Version: version}
}

// options offer nothing to a server: it may not ask a model or for files, and a person
// only as mayAsk allows.
func (l *link) options() *sdk.ClientOptions {
	o := &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			select {
			case l.kick <- struct{}{}:
			default: // one listing answers any number of them
			}
		},
	}
	if l.mayAsk() {
		o.ElicitationHandler = l.elicited
	}
	return o
}

// connect reaches the server and says hello.
func (l *link) connect(ctx context.Context) (*live, error) {
	c := new(live)
	c.calls, c.end = context.WithCancelCause(ctx)
	// What shut does goes on after ctx.
	c.wire, c.cut = context.WithCancelCause(context.WithoutCancel(ctx))
	transport, err := l.transport(ctx, c)
	if err == nil {
		c.session, err = l.hello(ctx, c, transport)
	}
	if err == nil {
		return c, nil
	}
	if c.hang != nil {
		c.hang()
		l.keepStderr(c)
	}
	c.end(errClosed)
	c.leave()
	return nil, err
}

// leave ends what goes on over HTTP, and closes the connections.
func (c *live) leave() {
	c.cut(errClosed)
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
}

func (l *link) transport(ctx context.Context, c *live) (sdk.Transport, error) {
	if l.server.URL == "" {
		ctx, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		p, err := l.start(ctx)
		if err != nil {
			return nil, err
		}
		c.process = p
		stream := newPipe(p)
		c.pipe = stream
		c.hang = func() { _ = stream.Close() } // what does not end is no longer listened to
		return pipeTransport{stream}, nil
	}
	c.hang = func() { c.cut(errClosed) }
	client, err := l.client(c.wire, &c.wrong)
	if err != nil {
		return nil, err
	}
	c.client = client
	oauth, err := l.authorization(c.wire, client)
	if err != nil {
		return nil, err
	}
	if kept, ok := oauth.(*keptLogin); ok {
		if err := kept.load(); err != nil {
			return nil, err
		}
	}
	t := &sdk.StreamableClientTransport{Endpoint: l.server.URL, HTTPClient: client, MaxEventSize: MaxMessage}
	if oauth != nil {
		t.OAuthHandler = oauth
	}
	return t, nil
}

func (l *link) hello(ctx context.Context, c *live, transport sdk.Transport) (*sdk.ClientSession, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	type result struct {
		session *sdk.ClientSession
		err     error
	}
	done := make(chan result, 1)
	go func() {
		session, err := sdk.NewClient(l.me(l.m.cfg.Version), l.options()).Connect(ctx, transport, nil)
		done <- result{session, err}
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		c.hang() // frees the library, wherever it waits
		r = <-done
	}
	switch {
	case r.err == nil:
		return r.session, nil
	case c.pipe != nil && c.pipe.why.Load() != nil:
		return nil, errors.New(*c.pipe.why.Load())
	case errors.Is(r.err, errLogin):
		return nil, fmt.Errorf("%w: claybot mcp login %s", errLogin, l.server.Name)
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return nil, fmt.Errorf("the server did not introduce itself within %s", helloTimeout)
	case c.process != nil && errors.Is(r.err, sdk.ErrConnectionClosed):
		return nil, fmt.Errorf("the server closed the connection instead of introducing itself; %s", exit(c.process))
	}
	// The library has two ways to learn that a message was not answered as it should
	// be, and only one of them brings the reason.
	if wrong := c.wrong.Load(); wrong != nil && errors.Is(r.err, sdk.ErrConnectionClosed) {
		return nil, fmt.Errorf("connect: %w", *wrong)
	}
	return nil, fmt.Errorf("connect: %w", r.err)
}

// shut ends a connection, politely at first, within a few seconds.
func (l *link) shut(c *live) {
	l.mu.Lock()
	l.live = nil
	l.mu.Unlock()
	c.end(errClosed)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.session.Close() // it says what is known
	}()
	for _, then := range []func(){c.hang, func() {
		l.m.log().Error("MCP connection does not close, abandoned", "server", l.server.Name)
	}} {
		late := time.NewTimer(closeTimeout)
		select {
		case <-done:
			late.Stop()
		case <-late.C:
			then()
			continue
		}
		break
	}
	c.hang()
	c.leave()
	l.keepStderr(c)
}

func (l *link) keepStderr(c *live) {
	if c.process == nil {
		return
	}
	words := l.words(c.process)
	l.mu.Lock()
	l.stderr = words
	l.mu.Unlock()
}

func (l *link) words(p workspace.Process) string {
	all := []rune(plain(l.red.clean(p.Stderr()), 4*tailBytes))
	return string(all[max(0, len(all)-maxWords):])
}

func (l *link) up(c *live) {
	says := ""
	if r := c.session.InitializeResult(); r != nil && r.ServerInfo != nil {
		says = l.red.line(plain(r.ServerInfo.Name, 80) + " " + plain(r.ServerInfo.Version, 40))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live, l.says, l.state, l.since, l.lastErr = c, says, StateConnected, time.Now(), ""
	l.first.Do(func() { close(l.tried) })
}

func (l *link) down(state string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.live, l.state, l.since = nil, state, time.Now()
	l.first.Do(func() { close(l.tried) })
	if err != nil {
		l.lastErr = l.red.line(err.Error())
	}
}

func (l *link) offered() []*tool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools
}

func (l *link) status() ServerStatus {
	l.mu.Lock()
	s := ServerStatus{
		Name: plain(l.server.Name, 40), Transport: l.server.transport(), State: l.state, Since: l.since, Says: l.says,
		Tools: []string{}, Off: slices.Clone(l.off), OffHash: offHash(l.off), Restarts: l.restarts, LastError: l.lastErr, Stderr: l.stderr,
	}
	for _, t := range l.tools {
		s.Tools = append(s.Tools, t.spec.Name)
	}
	live := l.live
	l.mu.Unlock()
	if l.refused == nil {
		s.Target = l.server.target()
	}
	if live != nil && live.process != nil {
		s.Stderr = l.words(live.process)
	}
	return s
}

func (l *link) now() (*live, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live, l.state
}

var _ http.RoundTripper = (*fenced)(nil)
