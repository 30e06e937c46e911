package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/nodes"
)

// greeted runs a daemon with a Telegram bot on a terminal, until it is ready and act returns, and
// returns what the terminal shows. Nothing that is secret is in the log.
func greeted(t *testing.T, dir string, s *telegramtest.Server, vars map[string]string, terminal bool, act func(ctx context.Context, d *daemon, shown <-chan string)) {
	t.Helper()
	address, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := map[string]string{
		"CLAYBOT_DATA_DIR": filepath.Join(dir, "data"), "CLAYBOT_HTTP_ADDR": "off", "HOME": dir, "CLAYBOT_MODEL": "demo",
		"TELEGRAM_BOT_TOKEN": telegramtest.Token, "TELEGRAM_API_URL": address, "CLAYBOT_CONFIG": filepath.Join(dir, "claybot.yaml"),
	}
	for k, v := range vars {
		all[k] = v
	}
	if err := os.WriteFile(all["CLAYBOT_CONFIG"], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := &env{cli: &cli{}, out: new(bytes.Buffer), err: new(bytes.Buffer), lookup: func(name string) (string, bool) { v, ok := all[name]; return v, ok }}
	c, _, err := e.load()
	if err != nil {
		t.Fatal(err)
	}
	var log logText
	d, err := openDaemon(ctx, c, slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan string, 10)
	if terminal {
		d.greet = func(text string) { shown <- text }
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.run(running) }()
	act(ctx, d, shown)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	d.close()
	if m := pairingLink.FindString(log.String()); m != "" {
		t.Errorf("a pairing link is in the log: %s", m)
	}
}

var pairingLink = regexp.MustCompile(`start=[A-Z2-9]{16}`)

// A bot to which no person has access shows a link on the terminal, which gives access. A restart
// shows the same one, because it may have been passed on, and none once a person has access.
func TestWelcome(t *testing.T) {
	sent := make(chan telegramtest.Message, 10)
	dir, s := t.TempDir(), telegramtest.New(telegramtest.Config{OnMessage: func(m telegramtest.Message) { sent <- m }})
	defer s.Close()
	var code string
	greeted(t, dir, s, nil, true, func(ctx context.Context, _ *daemon, shown <-chan string) {
		select {
		case text := <-shown:
			code = strings.TrimPrefix(pairingLink.FindString(text), "start=")
			if !strings.Contains(text, "No person has access to telegram yet. Open this link in Telegram and press Start. It gives one person access, once, within 15 minutes:\n\nhttps://t.me/claybot?start=") || !strings.Contains(text, "▀") {
				t.Errorf("the terminal shows %q", text)
			}
		case <-ctx.Done():
			t.Fatal("no link")
		}
	})
	greeted(t, dir, s, nil, true, func(ctx context.Context, _ *daemon, shown <-chan string) {
		select {
		case text := <-shown:
			if again := strings.TrimPrefix(pairingLink.FindString(text), "start="); again != code || len(code) != 16 {
				t.Errorf("after a restart the link has %q, before %q", again, code)
			}
		case <-ctx.Done():
			t.Fatal("no link after a restart")
		}
		s.Say(7, 7, "/start "+code)
		select {
		case m := <-sent:
			if !strings.HasPrefix(m.Text, "Your access is approved") || m.ChatID != 7 {
				t.Errorf("the bot says %+v", m)
			}
		case <-ctx.Done():
			t.Error("no access")
		}
	})
	greeted(t, dir, s, nil, true, noWelcome(t))
}

// noWelcome waits until claybot has decided to show no link.
func noWelcome(t *testing.T) func(ctx context.Context, d *daemon, shown <-chan string) {
	return func(ctx context.Context, d *daemon, shown <-chan string) {
		if d.greet != nil {
			d.welcomeAll(ctx, nil)
		}
		if ctx.Err() != nil {
			t.Error("claybot does not decide")
		}
		if open, found, err := d.system.People.Invited(ctx, "telegram"); found || err != nil {
			t.Errorf("an invitation %+v, %v", open, err)
		}
		if len(shown) > 0 {
			t.Errorf("the terminal shows %q", <-shown)
		}
	}
}

// Without need for a link, or a terminal, none is made.
func TestNoWelcome(t *testing.T) {
	refused := telegramtest.Fault{Times: -1, Status: http.StatusUnauthorized, Description: "Unauthorized"}
	for name, tt := range map[string]struct {
		vars       map[string]string
		fault      *telegramtest.Fault
		noTerminal bool
	}{
		"allowed by the configuration": {vars: map[string]string{"CLAYBOT_ALLOW": "telegram:7"}},
		"open to all":                  {vars: map[string]string{"CLAYBOT_ACCESS": "open"}},
		"a list":                       {vars: map[string]string{"CLAYBOT_ACCESS": "allowlist"}},
		"a refused token":              {fault: &refused},
		"no terminal":                  {noTerminal: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := telegramtest.New(telegramtest.Config{})
			defer s.Close()
			if tt.fault != nil {
				s.Fail(*tt.fault)
			}
			greeted(t, t.TempDir(), s, tt.vars, !tt.noTerminal, noWelcome(t))
		})
	}
}

// Links go to what is a terminal alone.
func TestTerminal(t *testing.T) {
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close() //nolint:errcheck // nothing was written
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	for name, tt := range map[string]struct {
		e    env
		want any
	}{
		"both":           {env{out: device, err: device}, device},
		"a file of logs": {env{out: device, err: file}, device},
		"a file alone":   {env{out: file, err: file}, nil},
		"a pipe":         {env{out: new(bytes.Buffer), err: new(bytes.Buffer)}, nil},
	} {
		if got := tt.e.terminal(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A bot that was stopped when claybot started shows its link once it is started.
func TestWelcomeOfAStartedBot(t *testing.T) {
	dir, s := t.TempDir(), telegramtest.New(telegramtest.Config{})
	defer s.Close()
	bot := nodes.Key{Kind: nodes.Connector, Name: "telegram"}
	greeted(t, dir, s, nil, false, func(ctx context.Context, d *daemon, _ <-chan string) {
		if _, err := d.stores.orders.Stop(ctx, bot, "test"); err != nil {
			t.Fatal(err)
		}
	})
	greeted(t, dir, s, nil, true, func(ctx context.Context, d *daemon, shown <-chan string) {
		d.welcomeAll(ctx, nil)
		if len(shown) > 0 {
			t.Errorf("a stopped bot shows %q", <-shown)
		}
		if _, err := d.stores.orders.Start(ctx, bot); err != nil {
			t.Fatal(err)
		}
		d.applyOrders(ctx)
		select {
		case text := <-shown:
			if !pairingLink.MatchString(text) {
				t.Errorf("the terminal shows %q", text)
			}
		case <-ctx.Done():
			t.Error("no link")
		}
	})
}
