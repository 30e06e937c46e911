package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/discord/discordtest"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// demoLimit is how long a scene may take before it counts as failed: many times
// what it takes, as it also plays where much else goes on.
const demoLimit = 3 * time.Minute

// endLimit is how long the end of a scene may take, also of one that failed.
const endLimit = 15 * time.Second

// A scene is a play that shows something and ends by itself. An error says that
// it did not go as it should.
type scene struct {
	name  string
	about string
	model func(openaitest.Request) openaitest.Reply
	play  func(ctx context.Context, s *stage) error
	// config is the configuration file, configure makes one where it depends on
	// this machine, and ready prepares the daemon before it works; all optional.
	config    string
	configure func(ctx context.Context, s *stage) (string, error)
	ready     func(s *stage) error
	vars      map[string]string // further environment
	// chats are the names of groups on Telegram in what the scene prints; the others have their ids.
	chats map[int64]string
	// discord: the scene plays on Discord as well. ordered: the play itself prints what Telegram
	// shows, so that the order of the lines is always the same.
	discord, ordered bool
}

// scenes are all that the demo can play; the first one is the default.
func scenes() []scene {
	return []scene{
		chatsScene(), subagentsScene(), cronScene(), planScene(), exploreScene(), toolsScene(), privacyScene(), groupsScene(),
		slackScene(), telegramScene(), discordScene(), flowScene(),
	}
}

// inTurn plays acts one after another, until one fails.
func inTurn(acts ...func(context.Context, *stage) error) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		for _, act := range acts {
			if err := act(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
}

type demoCmd struct {
	Scene string `placeholder:"NAME" help:"Name of the scene, or list to print them all. Default: chats."`
	Nodes int    `placeholder:"N" help:"Number of cluster members over one PostgreSQL, 2 to 9; the demo kills and freezes some."`
}

// Run plays a scene: the real daemon, emulated platforms, scripted people. It
// fails when the scene did not go as it should.
func (c demoCmd) Run(e *env) error {
	if c.Nodes != 0 {
		if c.Scene != "" {
			return usageError{errors.New("--nodes is a scene of its own; leave --scene out")}
		}
		return playNodes(e, c.Nodes)
	}
	all := scenes()
	c.Scene = cmp.Or(c.Scene, all[0].name)
	if c.Scene == "list" {
		for _, s := range all {
			fmt.Fprintf(e.out, "%-10s %s\n", s.name, s.about)
		}
		return nil
	}
	i := slices.IndexFunc(all, func(s scene) bool { return s.name == c.Scene })
	if i < 0 {
		return usageError{fmt.Errorf("there is no scene %.80q; see: claybot demo --scene list", c.Scene)}
	}
	// Who interrupts it, or does not read on, still gets what it made cleared away.
	calm, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	ctx, cancel := context.WithTimeout(calm, demoLimit)
	defer cancel()
	s, err := openStage(ctx, all[i], e)
	if err != nil {
		return err
	}
	s.say("--", "scene %s: %s", all[i].name, all[i].about)
	err = all[i].play(ctx, s)
	err = errors.Join(err, s.close(ctx))
	if err != nil {
		return fmt.Errorf("the scene did not go as it should: %w", err)
	}
	s.say("--", "the scene went as it should: %s", s.tally())
	return nil
}

// A stage is the daemon with emulated platforms around it, in a temporary
// directory that is removed at the end.
type stage struct {
	telegram *telegramtest.Server
	slack    *slacktest.Server
	discord  *discordtest.Server // nil for most scenes
	model    *openaitest.Server
	client   *client
	dialed   chan struct{} // closed when client is there

	chats  map[int64]string
	topics map[int64]string // the names of those on Telegram
	out    io.Writer
	began  time.Time
	dir    string
	daemon *daemon
	ended  chan error
	stops  []func()

	mu       sync.Mutex
	in, sent int

	direct string // the channel of the direct chat on Slack
}

// openStage starts the platforms and the daemon for a scene.
func openStage(ctx context.Context, sc scene, e *env) (_ *stage, err error) {
	s := &stage{chats: sc.chats, out: e.out, began: time.Now(), ended: make(chan error, 1), dialed: make(chan struct{})}
	defer func() {
		if err != nil {
			s.strike()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "claybot-demo-"); err != nil {
		return nil, err
	}
	var onTelegram func(telegramtest.Message)
	if !sc.ordered {
		onTelegram = s.onTelegram
	}
	s.telegram = telegramtest.New(telegramtest.Config{OnMessage: onTelegram})
	s.stops = append(s.stops, s.telegram.Close)
	vars := map[string]string{"CLAYBOT_DATA_DIR": filepath.Join(s.dir, "data"), "CLAYBOT_HTTP_ADDR": "off", "CLAYBOT_LOG_LEVEL": "error"}
	maps.Copy(vars, sc.vars)
	telegramURL, err := s.telegram.Start()
	if err != nil {
		return nil, err
	}
	vars["TELEGRAM_BOT_TOKEN"], vars["TELEGRAM_API_URL"] = telegramtest.Token, telegramURL
	if sc.discord {
		s.discord = discordtest.New(discordtest.Config{})
		s.stops = append(s.stops, s.discord.Close)
		vars["DISCORD_BOT_TOKEN"] = discordtest.Token
		if vars["DISCORD_API_URL"], err = s.discord.Start(); err != nil {
			return nil, err
		}
	}
	s.slack = slacktest.New(slacktest.Config{Manifest: slack.Manifest})
	s.stops = append(s.stops, s.slack.Close)
	slackURL, stop, err := listenLocal(s.slack)
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, stop)
	vars["SLACK_BOT_TOKEN"], vars["SLACK_APP_TOKEN"], vars["SLACK_API_URL"] = "xoxb-test", "xapp-test", slackURL+"/api/"
	s.model = openaitest.New(openaitest.Config{Reply: sc.model})
	modelURL, stop, err := s.model.Start()
	if err != nil {
		return nil, err
	}
	s.stops = append(s.stops, stop)
	vars["OPENAI_API_KEY"], vars["OPENAI_BASE_URL"] = "sk-test-not-a-key", modelURL
	if sc.configure != nil {
		if sc.config, err = sc.configure(ctx, s); err != nil {
			return nil, err
		}
	}
	return s, s.start(ctx, e, sc, vars)
}

// start runs the daemon in this process, as a scene needs no other, with the
// settings that a real one would get from its environment.
func (s *stage) start(ctx context.Context, e *env, sc scene, vars map[string]string) error {
	file := ""
	if sc.config != "" {
		file = filepath.Join(s.dir, "claybot.yaml")
		if err := os.WriteFile(file, []byte(sc.config), 0o600); err != nil {
			return err
		}
	}
	cfg, warnings, err := configs.Load(file, func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
	if err != nil {
		return configError{err}
	}
	if s.daemon, err = openDaemon(ctx, cfg, newLog(e.err, cfg), nil); err != nil {
		return err
	}
	for _, w := range warnings {
		return fmt.Errorf("the scene's configuration: %s", w)
	}
	if sc.ready != nil {
		if err := sc.ready(s); err != nil {
			return err
		}
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.stops = append(s.stops, cancel)
	go func() { s.ended <- s.daemon.run(life) }()
	select {
	case <-s.daemon.listeners.web.Up():
	case err := <-s.ended:
		s.ended <- err
		return err
	}
	if s.client, err = dial(cfg.DataDir); err != nil {
		return err
	}
	close(s.dialed)
	return nil
}

// close ends the daemon in order and strikes the stage.
func (s *stage) close(ctx context.Context) error {
	s.stops[len(s.stops)-1]() // the daemon's
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	var err error
	select {
	case err = <-s.ended:
		s.daemon.close()
	case <-ctx.Done():
		err = errors.New("the daemon did not end")
	}
	s.strike()
	return err
}

func (s *stage) strike() {
	for _, stop := range slices.Backward(s.stops) {
		stop()
	}
	_ = os.RemoveAll(s.dir) // a leftover in the temporary directory does no harm
}

// say prints one line of the play.
func (s *stage) say(who, format string, args ...any) {
	text := strings.ReplaceAll(plain(fmt.Sprintf(format, args...)), "\n", "\n"+strings.Repeat(" ", 34))
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%6.2fs  %-24s %s\n", time.Since(s.began).Seconds(), who, text)
}

// said counts a message of a person and prints it.
func (s *stage) said(where, text string) {
	s.mu.Lock()
	s.in++
	s.mu.Unlock()
	s.say(where+" >", "%s", text)
}

// heard counts a message of the bot and prints it.
func (s *stage) heard(where, text string) {
	s.mu.Lock()
	s.sent++
	s.mu.Unlock()
	s.say(where+" < bot", "%s", text)
}

func (s *stage) tally() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("%d messages in, %d messages and edits out, %d model calls", s.in, s.sent, s.model.Calls())
}

// onTelegram prints what the bot sends; edits are the growing answer.
func (s *stage) onTelegram(m telegramtest.Message) {
	where := "telegram"
	if m.Edits > 0 {
		where = "telegram (edit)"
	}
	if m.ChatID != telegramPerson {
		where += " " + cmp.Or(s.topics[m.ThreadID], s.chats[m.ChatID], fmt.Sprint(m.ChatID))
	}
	text := m.Text
	if m.File != nil {
		text = fmt.Sprintf("[%s, %d bytes] %s", m.File.Name, len(m.File.Data), text)
	}
	s.heard(where, withButtons(text, m.Buttons()))
}

// withButtons is a text with what stands on the buttons below it.
func withButtons(text string, buttons []string) string {
	if len(buttons) == 0 {
		return text
	}
	return text + "\n [" + strings.Join(buttons, "] [") + "]"
}

// listenLocal serves h on a free port of the loopback address.
func listenLocal(h http.Handler) (url string, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // ends with Close
	}()
	return "http://" + l.Addr().String(), func() { _ = srv.Close(); <-done }, nil
}
