package slack

import (
	"bytes"
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
	"github.com/claybot/claybot/connectors/connectorstest"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

const (
	botToken = "xoxb-canary-bot"
	appToken = "xapp-canary-app"
)

// A world is a connector and a Slack in a bubble, with a network in memory.
type world struct {
	*Connector
	t       *testing.T
	cfg     Config
	slack   *slacktest.Server
	inbox   *inbox
	handler connectors.Handler // of the connector; the inbox
	logs    *logbook
	ended   chan error // what Run returned
	stop    context.CancelFunc
}

// inWorld runs a test in a bubble. The connector runs once start is called.
func inWorld(t *testing.T, sc slacktest.Config, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sc.BotToken, sc.AppToken = botToken, appToken
		if sc.Manifest == "" {
			sc.Manifest = Manifest
		}
		server := slacktest.New(sc)
		pipe := connectorstest.NewPipe()
		httpd := &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
		var serving sync.WaitGroup
		serving.Go(func() { _ = httpd.Serve(pipe) }) // ends with the listener
		transport := &http.Transport{DialContext: pipe.Dial}
		logs := &logbook{}
		cfg := Config{
			BotToken: botToken, AppToken: appToken, APIURL: "http://slack.test/api", HTTP: transport, Dial: pipe.Dial,
			Log: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		}
		w := &world{
			Connector: New(cfg), t: t, cfg: cfg, slack: server, inbox: newInbox(), logs: logs, ended: make(chan error, 1), stop: func() {},
		}
		w.handler = w.inbox
		defer func() {
			w.stop()
			server.Close()
			transport.CloseIdleConnections()
			if err := httpd.Close(); err != nil {
				t.Errorf("close server: %v", err)
			}
			serving.Wait()
			if strange := server.Strange(); len(strange) > 0 {
				t.Errorf("calls that Slack does not document: %q", strange)
			}
			noCanary(t, "log", logs.String())
		}()
		test(t, w)
	})
}

// start runs the connector until the end of the test.
func (w *world) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.ended <- w.Run(ctx, w.handler)
	}()
	w.stop = func() { cancel(); <-done }
	synctest.Wait()
}

// restart ends the connector and runs another one, which knows nothing.
func (w *world) restart(t *testing.T) {
	t.Helper()
	w.stop()
	<-w.ended
	w.Connector = New(w.cfg)
	w.start(t)
}

// settled waits until all envelopes are acknowledged.
func (w *world) settled(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := w.slack.WaitAcked(ctx); err != nil {
		t.Fatalf("%v; unacked %v", err, w.slack.Unacked())
	}
}

// An inbox keeps what was posted, each id once, as a store does.
type inbox struct {
	mu     sync.Mutex
	known  map[claybot.MessageID]bool
	got    []incoming
	posts  int
	routes []string // changes of channels

	tries, refuses int                                                     // calls with changes, and how many of the first fail
	unrated        bool                                                    // no feedback is taken
	before         func(ctx context.Context, m claybot.AgentMessage) error // called first

	strangers []string // who may not write
	homeless  error    // why no person has a page

	open     map[string]claybot.Question // asked
	owner    string                      // who may answer
	answers  map[string]claybot.Answer
	presses  []connectors.Press
	deciding func(ctx context.Context) error // called first
}

func newInbox() *inbox {
	return &inbox{
		known: make(map[claybot.MessageID]bool), open: make(map[string]claybot.Question), owner: "U1",
		answers: make(map[string]claybot.Answer),
	}
}

// Answer takes the first valid answer of who may give it.
func (b *inbox) Answer(ctx context.Context, t connectors.Press) (connectors.PressResult, error) {
	b.mu.Lock()
	b.presses = append(b.presses, t)
	deciding := b.deciding
	b.mu.Unlock()
	if deciding != nil {
		if err := deciding(ctx); err != nil {
			return connectors.PressResult{}, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	q, ok := b.open[t.Answer.Question]
	_, late := b.answers[t.Answer.Question]
	switch {
	case !ok || t.UserID != b.owner:
		return connectors.PressResult{Text: "This is not for you."}, nil
	case late:
		return connectors.PressResult{Text: "Already answered."}, nil
	}
	v, err := q.Check(t.Answer.Text, nil)
	if err != nil {
		return connectors.PressResult{Again: true, Text: err.Error()}, nil
	}
	b.answers[t.Answer.Question] = claybot.Answer{Question: t.Answer.Question, Value: v, By: t.UserID, Reason: t.Answer.Reason, Scope: t.Answer.Scope}
	return connectors.PressResult{OK: true, Text: "Thank you."}, nil
}

// decide makes fn be called before an answer is taken.
func (b *inbox) decide(fn func(ctx context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deciding = fn
}

// asked makes a question one that can be answered.
func (b *inbox) asked(q claybot.Question) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[q.ID] = q
}

// answer is what was stored for a question.
func (b *inbox) answer(q string) (claybot.Answer, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, ok := b.answers[q]
	return a, ok
}

// pressed returns the button presses that reached the store.
func (b *inbox) pressed() []connectors.Press {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]connectors.Press(nil), b.presses...)
}

func (b *inbox) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	if b.before != nil {
		if err := b.before(ctx, m); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.posts++
	if !b.known[m.ID] {
		b.known[m.ID] = true
		b.got = append(b.got, incoming{to: to, message: m})
	}
	return nil
}

func (b *inbox) Hears(_ context.Context, _ claybot.Descriptor, m claybot.AgentMessage) (bool, error) {
	return !m.Context.Unaddressed, nil
}

func (b *inbox) Moved(_ context.Context, _, from, to string, _ claybot.Time) error {
	return b.changed(from + " > " + to)
}

// RouteChanged implements connectors.RouteHandler.
func (b *inbox) RouteChanged(_ context.Context, c connectors.RouteChange) error {
	if c.Connector != "slack" || time.Since(c.At.Time()).Abs() > time.Minute {
		return fmt.Errorf("%+v", c)
	}
	return b.changed(c.ChannelID + ": " + c.Dead)
}

// Reacted implements connectors.ReactionHandler.
func (b *inbox) Reacted(_ context.Context, x connectors.Reaction) (bool, error) {
	if x.Connector != "slack" || time.Since(x.At.Time()).Abs() > time.Minute {
		return false, fmt.Errorf("%+v", x)
	}
	what := "+"
	switch {
	case x.Stop && x.Thread != "":
		return true, b.changed(fmt.Sprint("stop ", x.Thread, " ", x.Message == x.Thread, " by ", x.UserID, " in ", x.ChannelID, " group=", x.Group))
	case x.Stop:
		what = "stop "
	case x.Removed:
		what = "-"
	}
	return !b.unrated && !x.Removed, b.changed(fmt.Sprint(what, x.Emoji, " by ", x.UserID, " of=", x.Of != "", " group=", x.Group, " outsider=", x.Outsider))
}

// Welcome implements connectors.VisitHandler.
func (b *inbox) Welcome(d claybot.Descriptor, outsider bool) bool {
	return !outsider && !slices.Contains(b.strangers, d.UserID)
}

// Home implements connectors.VisitHandler.
func (b *inbox) Home(_ context.Context, d claybot.Descriptor, outsider bool) ([]connectors.HomeSection, error) {
	switch {
	case b.homeless != nil:
		return nil, b.homeless
	case !b.Welcome(d, outsider):
		return nil, nil
	}
	return []connectors.HomeSection{{Title: "Your tasks", Text: "- **tea** of " + d.UserID + "\n- <!channel>"}, {Title: "Long", Text: strings.Repeat("word ", 5_000)}}, nil
}

// changed keeps a change of a channel. The first calls fail if the inbox is to refuse them.
func (b *inbox) changed(what string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries++
	if b.tries <= b.refuses {
		return errors.New("disk full")
	}
	b.routes = append(b.routes, what)
	return nil
}

// news returns the changes of channels, each once in a row.
func (b *inbox) news() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Compact(slices.Clone(b.routes))
}

func (b *inbox) texts() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, in := range b.got {
		out = append(out, in.message.Text)
	}
	return out
}

func (b *inbox) all() []incoming {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]incoming(nil), b.got...)
}

// A logbook keeps log lines.
type logbook struct {
	mu sync.Mutex
	b  bytes.Buffer
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

// noCanary fails when a secret shows.
func noCanary(t *testing.T, where, text string) {
	t.Helper()
	for _, secret := range []string{"canary", "ticket", "response-secret"} {
		if bytes.Contains([]byte(text), []byte(secret)) {
			t.Errorf("%s shows a secret (%s): %s", where, secret, text)
		}
	}
}
