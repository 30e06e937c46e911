package telegram

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// A sink is a Handler that keeps what it is given. fail, if set, is asked
// first, and so is answer about button presses.
type sink struct {
	mu      sync.Mutex
	fail    func(m claybot.AgentMessage) error
	answer  func(t connectors.Press) (connectors.PressResult, error)
	got     []claybot.AgentMessage
	to      []claybot.Descriptor
	presses []connectors.Press
	moved   []string
	routes  []string // changes of chats
	refuses int      // of the first changes of chats
	works   bool     // what a control stops has not ended
	missed  []connectors.Missed
	untold  int // how many calls of Missed fail first
	tooMany int // chats that Missed does not tell
}

// Recent lists nothing: Telegram cannot be asked for what was missed.
func (s *sink) Recent(context.Context, string, string, time.Time) ([]connectors.Chat, int, error) {
	return nil, 0, nil
}

// Missed takes a gap that people are to be told about.
func (s *sink) Missed(_ context.Context, m connectors.Missed) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.untold > 0 {
		s.untold--
		return 0, errors.New("the store fails")
	}
	s.missed = append(s.missed, m)
	return s.tooMany, nil
}

// Answer takes the first answer to each question.
func (s *sink) Answer(_ context.Context, t connectors.Press) (connectors.PressResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil {
		if became, err := s.answer(t); err != nil || became != (connectors.PressResult{}) {
			return became, err
		}
	}
	known := slices.ContainsFunc(s.presses, func(old connectors.Press) bool { return old.Answer.Question == t.Answer.Question })
	s.presses = append(s.presses, t)
	if known {
		return connectors.PressResult{Text: "This was answered already."}, nil
	}
	return connectors.PressResult{OK: true, Text: "Thank you."}, nil
}

func (s *sink) Post(_ context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		if err := s.fail(m); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(s.got, func(old claybot.AgentMessage) bool { return old.ID == m.ID }) {
		return nil // as the store does
	}
	s.got, s.to = append(s.got, m), append(s.to, to)
	return nil
}

func (s *sink) Hears(_ context.Context, _ claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	return !m.Context.Unaddressed, nil
}

func (s *sink) Moved(_ context.Context, _, from, to string, _ claybot.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = append(s.moved, from+">"+to)
	return nil
}

// RouteChanged implements connectors.RouteHandler.
func (s *sink) RouteChanged(_ context.Context, c connectors.RouteChange) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses > 0 {
		s.refuses--
		return errors.New("the store fails")
	}
	if c.Connector != "telegram" || time.Since(c.At.Time()).Abs() > 2*time.Minute {
		return fmt.Errorf("%+v", c)
	}
	s.routes = append(s.routes, c.ChannelID+": "+c.Dead)
	return nil
}

// Reacted implements connectors.ReactionHandler.
func (s *sink) Reacted(_ context.Context, x connectors.Reaction) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses > 0 {
		s.refuses--
		return false, errors.New("the store fails")
	}
	if x.Stop {
		s.routes = append(s.routes, fmt.Sprint("stop by ", x.UserID, " on ", x.Message, " in ", x.ChannelID, " group=", x.Group, " at=", x.At > 0))
		return s.works, nil
	}
	if x.Connector != "telegram" || x.Of != claybot.MessageID("telegram/1234567/"+x.ChannelID+"/"+x.Message) {
		return false, fmt.Errorf("%+v", x)
	}
	what := "+"
	if x.Removed {
		what = "-"
	}
	s.routes = append(s.routes, fmt.Sprint(what, x.Emoji[0], " by ", x.UserID, " on ", x.Message, " in ", x.ChannelID, " group=", x.Group))
	return true, nil
}

func (s *sink) texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, m := range s.got {
		out = append(out, m.Text)
	}
	return out
}

// A logbook is a log that can be read while it is written.
type logbook struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Reset forgets what was written.
func (l *logbook) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

// bubble runs a connector against an emulator inside a synctest bubble.
type bubble struct {
	t      *testing.T
	server *telegramtest.Server
	conn   *Connector
	sink   *sink
	logs   *logbook
	ended  chan error
	stop   context.CancelFunc
}

// inBubble calls test with an emulator and a connector that is not running.
func inBubble(t *testing.T, cfg Config, test func(t *testing.T, b *bubble)) {
	t.Helper()
	inBubbleWith(t, telegramtest.Config{}, cfg, test)
}

// inBubbleWith is inBubble with an emulator of that configuration.
func inBubbleWith(t *testing.T, tc telegramtest.Config, cfg Config, test func(t *testing.T, b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{t: t, server: telegramtest.New(tc), sink: &sink{}, logs: &logbook{}}
		if cfg.Token == "" {
			cfg.Token = telegramtest.Token
		}
		cfg.BaseURL = "http://telegram.test"
		transport := b.server.Transport()
		cfg.HTTP = transport
		cfg.Log = slog.New(slog.NewTextHandler(b.logs, nil))
		b.conn = New(cfg)
		defer func() { // also behind a t.Fatal
			if b.stop != nil {
				_ = b.end()
			}
			transport.CloseIdleConnections()
			b.server.Close()
			if strange := b.server.Strange(); len(strange) > 0 {
				t.Errorf("calls that Telegram does not document: %q", strange)
			}
		}()
		test(t, b)
		if strings.Contains(b.logs.String(), "FAKE-telegram-token") {
			t.Errorf("the token is in the log: %s", b.logs)
		}
	})
}

// run starts the connector.
func (b *bubble) run() {
	ctx, stop := context.WithCancel(b.t.Context())
	b.stop, b.ended = stop, make(chan error, 1)
	go func() { b.ended <- b.conn.Run(ctx, b.sink) }()
}

// end stops the connector and returns what Run did.
func (b *bubble) end() error {
	b.stop()
	b.stop = nil
	return <-b.ended
}

func outgoing(chat, text string) claybot.Outgoing {
	return claybot.Outgoing{ID: "o1", Kind: claybot.OutgoingAnswer, Route: claybot.Route{Connector: "telegram", ChannelID: chat}, Text: text, Part: 1, Parts: 1}
}

func TestPrivateChat(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.AddPerson(7, "Ann", "ann")
		update := b.server.Say(7, 7, "hello")
		b.run()
		synctest.Wait()
		if len(b.sink.got) != 1 {
			t.Fatalf("posted %d messages, want 1", len(b.sink.got))
		}
		m, to := b.sink.got[0], b.sink.to[0]
		if want := claybot.User("telegram", "7", "7"); to != want {
			t.Errorf("for %+v, want %+v", to, want)
		}
		if want := claybot.MessageID(fmt.Sprintf("telegram/1234567/%d", update)); m.ID != want {
			t.Errorf("id %s, want %s", m.ID, want)
		}
		if !slices.Equal(m.Keys, []string{"telegram/1234567/7/1"}) || m.Text != "hello" || m.From.Name != "Ann" || m.Context.ReplyTo != "" || m.Context.Group || m.At == 0 {
			t.Errorf("got %+v", m)
		}
		if b.conn.Health().State != connectors.StateLive {
			t.Errorf("health %+v", b.conn.Health())
		}
		if len(b.server.Pending()) != 0 {
			t.Errorf("not confirmed: %v", b.server.Pending())
		}
		if n := len(b.server.Commands()); n != len(connectors.Commands) {
			t.Errorf("%d commands in the menu", n)
		}
		if err := b.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
}

// The first poll asks for an answer at once, so that a bot without messages
// is known to be live without waiting for a long poll to end.
func TestLiveAtOnce(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		start := time.Now()
		b.run()
		synctest.Wait()
		if h := b.conn.Health(); h.State != connectors.StateLive || time.Since(start) > 0 {
			t.Errorf("%+v after %v", h, time.Since(start))
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := b.server.Calls("getUpdates"); n < 28 || n > 32 {
			t.Errorf("%d polls in ten minutes, want one in 20 s", n)
		}
	})
}

// Whatever message of a batch the store refuses, nothing is confirmed until
// all are durable, and nothing is lost.
func TestRefusedPostKeepsTheOffset(t *testing.T) {
	const n = 6
	for k := range n {
		inBubble(t, Config{}, func(t *testing.T, b *bubble) {
			for i := range n {
				b.server.Say(int64(10+i%3), int64(10+i%3), fmt.Sprintf("m%d", i))
			}
			broken := true
			b.sink.fail = func(m claybot.AgentMessage) error {
				if broken && m.Text == fmt.Sprintf("m%d", k) {
					return errors.New("disk full")
				}
				return nil
			}
			b.run()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if got := len(b.server.Pending()); got != n {
				t.Errorf("k=%d: %d updates wait, want all %d", k, got, n)
			}
			if h := b.conn.Health(); h.State != connectors.StateFailing || !strings.Contains(h.Err, "disk full") {
				t.Errorf("k=%d: health %+v", k, h)
			}
			b.sink.mu.Lock()
			broken = false
			b.sink.mu.Unlock()
			time.Sleep(31 * time.Second)
			synctest.Wait()
			if len(b.server.Pending()) != 0 || len(b.sink.got) != n {
				t.Errorf("k=%d: %d wait, %d arrived", k, len(b.server.Pending()), len(b.sink.got))
			}
			for chat := range 3 { // in order within a chat
				a, z := slices.Index(b.sink.texts(), fmt.Sprintf("m%d", chat)), slices.Index(b.sink.texts(), fmt.Sprintf("m%d", chat+3))
				if a > z {
					t.Errorf("k=%d: out of order: %v", k, b.sink.texts())
				}
			}
		})
	}
}

// Messages of different people are posted at the same time: a store with
// group commit then needs one sync for all.
func TestPostsConcurrently(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		const n = 20
		for i := range n {
			b.server.Say(int64(10+i), int64(10+i), "x")
		}
		together := &meeting{want: n, all: make(chan struct{})}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		done := make(chan error, 1)
		go func() { done <- b.conn.Run(ctx, together) }()
		<-together.all
		stop()
		<-done
	})
}

// A meeting is a Handler whose posts return when want of them are under way.
type meeting struct {
	mu   sync.Mutex
	want int
	all  chan struct{}
}

func (m *meeting) Post(ctx context.Context, _ claybot.Descriptor, _ claybot.AgentMessage) error {
	m.mu.Lock()
	if m.want--; m.want == 0 {
		close(m.all)
	}
	m.mu.Unlock()
	select {
	case <-m.all:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *meeting) Answer(context.Context, connectors.Press) (connectors.PressResult, error) {
	return connectors.PressResult{}, errors.New("there are no questions")
}

func (m *meeting) Hears(_ context.Context, _ claybot.Descriptor, x claybot.AgentMessage) (bool, error) {
	return !x.Context.Unaddressed, nil
}

func (m *meeting) Moved(context.Context, string, string, string, claybot.Time) error { return nil }

func TestBadToken(t *testing.T) {
	for _, token := range []string{"", "nonsense", "12:", "x:y", "12:a/b", "1234567:WRONG-telegram-token"} {
		t.Run(token, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := telegramtest.New(telegramtest.Config{})
				transport := server.Transport()
				c := New(Config{Token: token, BaseURL: "http://telegram.test", HTTP: transport})
				err := c.Run(t.Context(), &sink{})
				var stop *connectors.PermanentError
				if !errors.As(err, &stop) || stop.Fix == "" {
					t.Fatalf("got %v", err)
				}
				if h := c.Health(); h.State != connectors.StateStopped || h.Err != err.Error() {
					t.Errorf("health %+v", h)
				}
				if len(token) > 5 && strings.Contains(err.Error(), token) {
					t.Errorf("the token is in %q", err)
				}
				transport.CloseIdleConnections()
				server.Close()
			})
		})
	}
}

func TestBadAddress(t *testing.T) {
	c := New(Config{Token: telegramtest.Token, BaseURL: "ftp:// nowhere"})
	var stop *connectors.PermanentError
	if err := c.Run(t.Context(), &sink{}); !errors.As(err, &stop) {
		t.Errorf("Run returned %v", err)
	}
	if _, err := c.Send(t.Context(), outgoing("7", "x")); !errors.As(err, &stop) || strings.Contains(err.Error(), "FAKE") {
		t.Errorf("Send returned %v", err)
	}
}

func TestBrokenUpdatesArePassed(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "before")
		for _, body := range []string{
			`{"update_id":%d,"message":"nonsense"}`,
			`{"update_id":%d,"message":{"message_id":"x"}}`,
			`{"update_id":%d}`,
			`{"update_id":%d,"something_new":{"a":[1,2,{}]}}`,
			`{"id":%d}`,
			`[%d]`,
		} {
			b.server.DeliverRaw(func(id int64) string { return fmt.Sprintf(body, id) })
		}
		// One field of an unexpected type does not lose a readable message.
		b.server.DeliverRaw(func(id int64) string {
			return fmt.Sprintf(`{"update_id":%d,"message":{"message_id":9,"chat":{"id":7,"type":"private"},"from":{"id":7},"text":"readable","date":"soon"}}`, id)
		})
		b.server.Say(7, 7, "behind")
		b.run()
		synctest.Wait()
		if got := b.sink.texts(); !slices.Equal(got, []string{"before", "readable", "behind"}) {
			t.Errorf("got %q", got)
		}
		if _, ignored, broken := b.conn.Figures(); ignored != 2 || broken != 4 {
			t.Errorf("%d ignored, %d broken", ignored, broken)
		}
		if len(b.server.Pending()) != 0 {
			t.Errorf("not confirmed: %v", b.server.Pending())
		}
	})
}

// Messages in groups wait until the bot knows its own name.
func TestGroupsWaitForTheName(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Fail(telegramtest.Fault{Method: "getMe", Status: 502, Body: "oops", Times: 3})
		b.server.Mention(-100, 7, "are you there?")
		b.run()
		synctest.Wait()
		if len(b.sink.got) != 0 || len(b.server.Pending()) != 1 {
			t.Errorf("posted without a name: %q", b.sink.texts())
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := b.sink.texts(); !slices.Equal(got, []string{"are you there?"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestMigration(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		b.server.Say(-5, 7, "before")
		b.run()
		synctest.Wait()
		b.server.Migrate(-5, -1000000000005)
		receipt, err := b.conn.Send(t.Context(), outgoing("-5", "still here"))
		if err != nil || receipt == "" {
			t.Fatalf("got %q, %v", receipt, err)
		}
		if got := b.server.Sent(-1000000000005); len(got) != 1 || got[0].Text != "still here" {
			t.Errorf("the new chat shows %+v", got)
		}
		synctest.Wait()
		if len(b.sink.moved) < 2 || b.sink.moved[0] != "-5>-1000000000005" {
			t.Errorf("moved: %v", b.sink.moved)
		}
		if _, err := b.conn.Send(t.Context(), func() claybot.Outgoing { o := outgoing("-5", "x"); o.Edit = "3"; return o }()); !errors.Is(err, connectors.ErrEditGone) {
			t.Errorf("an edit in the old chat: %v", err)
		}
	})
}

// No failure of any call may show the token.
func TestNoTokenInErrors(t *testing.T) {
	const canary = "FAKE-telegram-token"
	faults := []telegramtest.Fault{
		{Hang: true},
		{Drop: true},
		{Lost: true},
		{Cut: true},
		{Status: 500, Body: "GET /bot" + telegramtest.Token + "/x"},
		{Status: 400, Description: "Bad Request: token " + telegramtest.Token + " in /bot" + telegramtest.Token},
		{Status: 401, Description: telegramtest.Token},
		{Status: 302, Body: telegramtest.Token},
		{Status: 429, RetryAfter: 1, Description: telegramtest.Token},
	}
	for i, f := range faults {
		inBubble(t, Config{}, func(t *testing.T, b *bubble) {
			b.server.Say(7, 7, "hi")
			f.Times = -1
			b.server.Fail(f)
			b.run()
			_, err := b.conn.Send(t.Context(), outgoing("7", "x"))
			typing := b.conn.Typing(t.Context(), outgoing("7", "").Route)
			synctest.Wait()
			text := fmt.Sprint(err, typing, b.conn.Health())
			if err == nil || strings.Contains(text, canary) {
				t.Errorf("fault %d: %s", i, text)
			}
		})
	}
	for _, transport := range []http.RoundTripper{
		roundTrip(func(r *http.Request) (*http.Response, error) { return nil, fmt.Errorf("lost %s", r.URL) }),
		nil,
	} {
		c := New(Config{Token: telegramtest.Token, BaseURL: "http://127.0.0.1:1", HTTP: transport})
		if _, err := c.Send(t.Context(), outgoing("7", "x")); err == nil || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "sendMessage\":") {
			t.Errorf("got %v", err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
