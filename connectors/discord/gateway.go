package discord

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

// The intents that the bot asks for; that of contents is privileged.
const (
	intentGuilds           = 1 << 0
	intentGuildMessages    = 1 << 9
	intentGuildReactions   = 1 << 10
	intentDirectMessages   = 1 << 12
	intentDirectReactions  = 1 << 13
	intentContent          = 1 << 15
	intents                = intentGuilds | intentGuildMessages | intentGuildReactions | intentDirectMessages | intentDirectReactions
	flagContent            = 1 << 18 // of an application, in few servers
	flagContentLimited     = 1 << 19
	closeAuthentication    = 4004
	closeInvalidSequence   = 4007
	closeSessionTimeout    = 4009
	closeInvalidShard      = 4010
	closeShardingRequired  = 4011
	closeInvalidVersion    = 4012
	closeInvalidIntents    = 4013
	closeDisallowedIntents = 4014
)

// A gateway keeps one session open: it identifies, resumes after each end of a connection, and
// starts another session, with a backfill, when Discord does not resume.
type gateway struct {
	*Connector
	recv   *receiver
	keep   *keeper
	good   connectors.Watermark // when all that had come was stored last; the reader's own, and a fill's while the position is held
	fills  sync.WaitGroup
	newest *filling
	life   context.Context // of run
	asked  int             // for intents
	url    string
	pos    *position
	open   bool      // there is a gap before the session that is about to be resumed
	up     bool      // READY or RESUMED came on this connection
	failed int       // dials in a row
	since  time.Time // the last identify
	back   connectors.Backoff
}

// errAgain ends a connection on which nothing is wrong.
var errAgain = errors.New("discord: the gateway asked to connect again")

// errNoSession ends a connection on which Discord starts or resumes no session.
var errNoSession = errors.New("discord: the gateway starts no session")

// run works until ctx is done or a permanent error.
func (g *gateway) run(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	g.life, g.newest = ctx, &filling{cancel: func() {}, whole: true}
	defer g.fills.Wait()
	defer end() // jobs and fills retry until it is done
	s, restored, err := g.keep.read(ctx)
	if err != nil {
		return err
	}
	g.recv.back.floor = restored
	if s.ID != "" && s.Intents+s.Open == g.asked {
		g.pos, g.open = newPosition(s, g.keep.nudge), s.Open != 0
		g.keep.follow(g.pos)
	}
	for {
		err := g.connect(ctx)
		var stop *connectors.PermanentError
		var retry *connectors.RetryError
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &stop):
			return err
		case errors.Is(err, errAgain):
			g.log.Debug("connecting to the gateway again", "err", err)
			if !connectors.Sleep(ctx, time.Second+rand.N(4*time.Second)) { // as Discord asks after an invalid session
				return context.Cause(ctx)
			}
			continue
		}
		g.pulse.Fail(err.Error())
		pause := g.back.Next(0)
		switch {
		case errors.Is(err, errNoSession):
			pause *= refusedSlower
		case errors.As(err, &retry):
			pause = g.back.Next(retry.After)
		}
		g.log.Warn("gateway connection ended", "err", err, "wait", pause)
		if !connectors.Sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// connect opens one connection and reads it to its end.
func (g *gateway) connect(ctx context.Context) error {
	address := ""
	if g.pos != nil && g.failed < freshURL {
		address = g.pos.session.URL
	}
	if address == "" {
		if err := g.look(ctx); err != nil {
			g.failed++
			return err
		}
		address = g.url
	}
	s, err := g.dial(ctx, address)
	if err != nil {
		g.failed++
		return err
	}
	g.failed, g.up = 0, false
	ctx, cancel := context.WithCancel(ctx)
	var side sync.WaitGroup
	defer side.Wait()
	defer cancel()
	defer s.close()
	defer context.AfterFunc(ctx, s.close)()
	side.Go(func() { s.beats(ctx) })
	if err := g.greet(ctx, s); err != nil {
		return err
	}
	return g.read(ctx, s)
}

// look asks for the address of the gateway, and waits until another session may be started.
func (g *gateway) look(ctx context.Context) error {
	var found struct {
		URL   string `json:"url"`
		Limit struct {
			Total     int   `json:"total"`
			Remaining int   `json:"remaining"`
			Reset     int64 `json:"reset_after"` // milliseconds
		} `json:"session_start_limit"`
	}
	err := g.api.do(ctx, call{method: "GET", what: "get gateway", path: "/gateway/bot"}, &found)
	if err != nil {
		return g.judge(err)
	}
	if g.pos == nil && found.Limit.Total > 0 && found.Limit.Remaining <= 0 {
		return &connectors.RetryError{
			After: time.Duration(found.Limit.Reset) * time.Millisecond,
			Err:   errors.New("discord: the bot has started as many sessions as Discord allows in a day; it waits until it may start another one"),
		}
	}
	g.url = found.URL
	return nil
}

// greet resumes the session, or starts one.
func (g *gateway) greet(ctx context.Context, s *socket) error {
	if g.pos != nil {
		s.pos.Store(g.pos)
		return s.send(opResume, map[string]any{"token": g.cfg.Token, "session_id": g.pos.session.ID, "seq": g.pos.received})
	}
	if pause := identifyEvery - time.Since(g.since); !g.since.IsZero() && pause > 0 && !connectors.Sleep(ctx, pause) {
		return context.Cause(ctx)
	}
	g.since = time.Now()
	return s.send(opIdentify, map[string]any{
		"token": g.cfg.Token, "intents": g.asked,
		"properties": map[string]string{"os": "linux", "browser": "claybot", "device": "claybot"},
	})
}

// read takes payloads until the connection ends.
func (g *gateway) read(ctx context.Context, s *socket) error {
	for {
		p, err := s.next()
		if err != nil {
			return g.ended(s, err)
		}
		switch p.Op {
		case opHeartbeat:
			if err := s.beat(); err != nil {
				return err
			}
		case opHeartbeatAck:
			g.alive(ctx, s.acknowledged())
		case opReconnect:
			if !g.up {
				return errNoSession
			}
			return errAgain
		case opInvalidSession:
			var resumable bool
			_ = connectors.Decode(p.D, &resumable) // absent: not
			refused := !g.up && (g.pos == nil || resumable)
			if !resumable {
				g.forget()
			}
			if refused {
				return errNoSession
			}
			return errAgain
		case opDispatch:
			s.busy.Store(true)
			g.dispatch(ctx, p)
			s.busy.Store(false)
			s.pos.Store(g.pos)
		}
	}
}

// alive notes that the heartbeat of a time was acknowledged. Before READY or RESUMED it says nothing:
// Discord acknowledges heartbeats while it delivers no events, and may still refuse the resume.
func (g *gateway) alive(ctx context.Context, sent time.Time) {
	if !g.up {
		return
	}
	g.pulse.OK()
	if g.pos == nil || sent.IsZero() {
		return
	}
	good := g.pos.caught(sent)
	if good.IsZero() {
		return
	}
	if err := g.good.Advance(ctx, good, false); err != nil {
		g.log.Warn("failed to save the time of the last connection", "err", err)
	}
}

// dispatch takes one event. The two that are about the session itself are taken here.
func (g *gateway) dispatch(ctx context.Context, p payload) {
	if g.open { // the session is resumed
		g.open = false
		g.fill(g.pos, nil, false)
	}
	switch p.T {
	case "READY":
		var ready struct {
			ID     string `json:"session_id"`
			URL    string `json:"resume_gateway_url"`
			Guilds []struct {
				ID string `json:"id"`
			} `json:"guilds"`
		}
		if connectors.Decode(p.D, &ready) != nil || ready.ID == "" {
			g.log.Warn("the gateway sent no session")
			return
		}
		for _, guild := range ready.Guilds {
			g.recv.guilds.Store(guild.ID, true)
		}
		g.up = true
		g.ready(session{ID: ready.ID, URL: ready.URL, Seq: p.Seq, Open: g.asked})
	case "RESUMED":
		g.pos.begin(p.Seq, 0)
		g.up = true
	default:
		if g.pos == nil {
			return // before a session, there is none
		}
		g.pulse.Seen() // take waits while too many events do
		g.recv.take(g.life, g.pos, p)
	}
	g.back.Reset()
	g.pulse.OK()
}

// ready follows a new session, with a gap before it. It is kept from its beginning.
func (g *gateway) ready(s session) {
	if g.recv.pos != nil {
		s.At = g.recv.pos.session.At // its gap may still be open
	}
	g.pos = newPosition(s, g.keep.nudge)
	g.fill(g.pos, g.recv.pos, true)
	g.keep.follow(g.pos)
}

// A filling is a backfill under way, or one that has ended.
type filling struct {
	cancel context.CancelFunc
	read   chan struct{} // closed once what was missed is read, or is left to the next one
	whole  bool          // it is read; set before
	done   chan struct{} // closed once what came in the sessions before is stored as well
}

// fill closes the gap before a session: it reads what was missed, and waits for what came in the
// sessions before, if any. It cancels an earlier fill that still reads: the time of the last delivery
// stands until a gap is closed, so this gap includes that one. Live messages wait for the reading alone,
// and what came in the sessions before may be among them. started says that the session has just begun,
// and is not resumed.
func (g *gateway) fill(pos, before *position, started bool) {
	life := g.life // the work outlives the connection
	reading, cancel := context.WithCancel(life)
	now := time.Now()
	fill, earlier := g.recv.back.begin(), g.newest
	earlier.cancel()
	this := &filling{cancel: cancel, read: make(chan struct{}), done: make(chan struct{})}
	g.newest = this
	g.fills.Go(func() {
		defer close(this.done)
		if !wait(life, earlier.read) {
			return
		}
		var from time.Time // when the gateway delivered last; zero: never. A gap without it would not be read
		ok := connectors.Retry(reading, g.log, "time of the last connection unknown, retrying", func() (err error) {
			from, err = g.good.Last(reading)
			return err
		})
		if ok && from.IsZero() && before != nil && before.session.At > 0 {
			from = time.Unix(before.session.At, 0) // nothing else was stored before a kill
		}
		if ok && before == nil && from.IsZero() {
			if err := g.good.Advance(life, now, true); err != nil {
				g.log.Warn("failed to save the time of the last connection", "err", err)
			}
		}
		fill(reading, from, started && earlier.whole) // also if it is cancelled: live messages wait
		this.whole = reading.Err() == nil
		close(this.read)
		if wait(life, earlier.done) && (before == nil || wait(life, before.drained())) && reading.Err() == nil {
			pos.release()
		}
	})
}

// wait waits for a channel that is closed, unless it is nil, and reports whether ctx is alive.
func wait(ctx context.Context, closed <-chan struct{}) bool {
	if closed != nil {
		select {
		case <-closed:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// forget gives a session up that Discord does not resume.
func (g *gateway) forget() {
	if g.pos != nil {
		g.recv.pos = g.pos
	}
	g.pos, g.open = nil, false
}

// ended returns why a connection ended.
func (g *gateway) ended(s *socket, err error) error {
	var end *websocket.CloseError
	switch {
	case s.silent.Load():
		return errors.New("discord: the gateway acknowledged no heartbeat")
	case !errors.As(err, &end):
		return fmt.Errorf("discord: read the gateway: %w", bare(err))
	}
	switch end.Code {
	case closeAuthentication:
		return g.tokenRefused()
	case closeDisallowedIntents:
		return &connectors.PermanentError{
			Says: texts.StoppedIntents,
			Err:  errors.New("discord: the app may not use the Message Content intent (4014)"),
			Fix:  "switch it on at discord.com/developers/applications, Bot, Privileged Gateway Intents, and " + connectors.Reload,
		}
	case closeShardingRequired:
		return &connectors.PermanentError{Err: errors.New("discord: the bot is in so many servers that Discord wants several connections (4011), which claybot does not open")}
	case closeInvalidShard, closeInvalidVersion, closeInvalidIntents:
		return &connectors.PermanentError{Err: fmt.Errorf("discord: the gateway refuses this version of claybot (%d)", end.Code), Fix: "update claybot"}
	case closeInvalidSequence, closeSessionTimeout:
		g.forget()
	}
	return fmt.Errorf("discord: the gateway closed the connection: code %d", end.Code)
}
