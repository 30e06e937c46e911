package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// While people write, the token of a Telegram bot is issued anew and a Slack app gets other
// settings, again and again: every message is answered once, and those of a chat in order.
func TestReconnectUnderLoad(t *testing.T) {
	const rounds, chats, each = 8, 4, 20
	bot := telegramtest.New(telegramtest.Config{NoLimits: true})
	t.Cleanup(bot.Close)
	botURL, err := bot.Start()
	if err != nil {
		t.Fatal(err)
	}
	model := openaitest.New(openaitest.Config{})
	modelURL, stop, err := model.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	app := slacktest.New(slacktest.Config{Manifest: slack.Manifest, BotToken: "xoxb-not-real", AppToken: "xapp-not-real"})
	server := httptest.NewServer(app)
	t.Cleanup(server.Close)
	t.Cleanup(app.Close)
	token := filepath.Join(t.TempDir(), "token")
	issue := func(n int) {
		text := fmt.Sprintf("1234567:FAKE-token-of-number-%d", n)
		bot.Reissue(text)
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(n int) string {
		return fmt.Sprintf("access: {mode: open}\nagents: {default: {processBuffer: oneByOne}}\nmodel: {name: m, base_url: '%s'}\n"+
			"telegram: {token: 'file:%s', api_url: '%s'}\nslack: {bot_token: env:BOT, app_token: env:APP, api_url: '%s/api/', backfill: %v}\n",
			modelURL, token, botURL, server.URL, n%2 == 0)
	}
	issue(0)
	h := startDaemon(t, file(0), nil)
	var people sync.WaitGroup
	for c := range chats {
		people.Go(func() {
			for i := range each {
				id := int64(1001 + c)
				bot.Say(id, id, fmt.Sprint("t", i))
				app.DM(fmt.Sprint("U", c), fmt.Sprint("s", i))
				if _, err := bot.WaitSent(h.ctx, id, i/2); err != nil { // not all at once
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range rounds {
		issue(n + 1)
		h.reload(file(n+1), nil)
		if err := bot.WaitCalls(h.ctx, "getUpdates", 3*(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	people.Wait()
	for c := range chats {
		id := int64(1001 + c)
		var got, want []string
		sent, err := bot.WaitSent(h.ctx, id, each)
		if err != nil {
			t.Error(err)
		}
		for _, m := range sent {
			got = append(got, m.Text)
		}
		for i := range each {
			want = append(want, fmt.Sprint("echo: t", i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("chat %d: %q", id, got)
		}
		channel := fmt.Sprint("DU", c)
		if _, err := app.WaitPosted(h.ctx, channel, func(m slacktest.Message) bool { return m.Text == fmt.Sprint("echo: s", each-1) }); err != nil {
			t.Error(err)
		}
		got, want = nil, nil
		for _, m := range app.Posted(channel) {
			got = append(got, m.Text)
		}
		for i := range each {
			want = append(want, fmt.Sprint("echo: s", i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("channel %s: %q", channel, got)
		}
	}
}

// An account that a connector keeps, because its new one was refused, is given to no other: both
// stay as they are.
func TestExchangedAccounts(t *testing.T) {
	first, second := telegramtest.New(telegramtest.Config{Token: "11111:FAKE-token-for-the-tests"}), telegramtest.New(telegramtest.Config{Token: "22222:FAKE-token-for-the-tests"})
	t.Cleanup(first.Close)
	t.Cleanup(second.Close)
	urls := make([]string, 2)
	for i, s := range []*telegramtest.Server{first, second} {
		var err error
		if urls[i], err = s.Start(); err != nil {
			t.Fatal(err)
		}
	}
	file := func(a, b string, ua, ub int) (string, map[string]string) {
		text := fmt.Sprintf("model: demo\nconnectors:\n  a: {type: telegram, token: env:A, api_url: '%s'}\n  b: {type: telegram, token: env:B, api_url: '%s'}\n", urls[ua], urls[ub])
		return text, map[string]string{"A": a, "B": b}
	}
	text, vars := file("11111:FAKE-token-for-the-tests", "22222:FAKE-token-for-the-tests", 0, 1)
	h := startDaemon(t, text, vars)
	a, b := h.daemon.roster.of("a"), h.daemon.roster.of("b")
	h.reload(file("22222:FAKE-token-for-the-tests", "33333:FAKE-token-for-the-tests", 1, 0))
	if h.daemon.roster.of("a") != a || h.daemon.roster.of("b") != b {
		t.Error("a connector was replaced")
	}
	for _, want := range []string{"connector a goes on with its old settings, because the new ones were refused: the connector b still has that account", "connector b goes on with its old settings"} {
		if st := h.get("/status"); !strings.Contains(st, want) {
			t.Errorf("the status is %s, want %q", st, want)
		}
	}
	h.reload(file("22222:FAKE-token-for-the-tests", "11111:FAKE-token-for-the-tests", 1, 0))
	if h.daemon.roster.of("a") == a || h.daemon.roster.of("b") == b || strings.Contains(h.get("/status"), "goes on with its old settings") {
		t.Error("the two did not exchange their accounts")
	}
	if err := first.WaitCalls(h.ctx, "getUpdates", first.Calls("getUpdates")+1); err != nil {
		t.Error(err)
	}
}

// The end of the daemon waits for no platform that a reload asks about the next connector.
func TestStopWhileAsking(t *testing.T) {
	bot := telegramtest.New(telegramtest.Config{})
	t.Cleanup(bot.Close)
	url, err := bot.Start()
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 8)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the call is noticed
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	file := func(url string) string { return "model: demo\ntelegram: {token: env:A, api_url: '" + url + "'}\n" }
	vars := map[string]string{"A": telegramtest.Token}
	h := startDaemon(t, file(url), vars)
	h.daemon.patience = time.Hour
	hangups := make(chan os.Signal, 1)
	end := h.daemon.reloadOn(h.ctx, h.env, hangups)
	defer end()
	h.set(file(silent.URL), vars)
	hangups <- syscall.SIGHUP
	select {
	case <-asked:
	case <-h.ctx.Done():
		t.Fatal("the platform was not asked")
	}
	h.daemon.stopping <- struct{}{} // as claybot stop does
	select {
	case <-h.daemon.settled:
	case <-h.ctx.Done():
		t.Error("the reload goes on")
	}
}

// A webhook that takes no request, because the HTTP server is off, stays where nothing about it changes.
func TestReloadedWebhook(t *testing.T) {
	vars := map[string]string{"S": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	const file = "model: demo\nconnectors: {x: {type: webhook, secret: env:S}}\n"
	h := startDaemon(t, file, vars)
	before := h.daemon.roster.of("x")
	if got := before.Health().State; got != connectors.StateStopped {
		t.Errorf("it is %s", got)
	}
	h.reload(file+"log_level: debug\n", vars)
	if h.daemon.roster.of("x") != before {
		t.Error("it is replaced")
	}
	h.reload(strings.Replace(file, "env:S", "env:S, prompt: hi", 1), vars)
	if h.daemon.roster.of("x") == before {
		t.Error("with other settings, it stays")
	}
}

// A name that stands for another platform is not trusted as that while the former connector works.
func TestRetyped(t *testing.T) {
	bot := telegramtest.New(telegramtest.Config{})
	t.Cleanup(bot.Close)
	url, err := bot.Start()
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{"A": telegramtest.Token, "S": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	h := startDaemon(t, "model: demo\nconnectors: {x: {type: telegram, token: env:A, api_url: '"+url+"'}}\n", vars)
	before := h.daemon.roster.of("x")
	h.set("model: demo\nconnectors: {x: {type: webhook, secret: env:S}}\n", vars)
	if _, err := h.daemon.config.reload(h.env, false, func(next configs.Config) {
		h.daemon.retire(h.ctx, next)
		if h.daemon.roster.of("x") != nil || slices.Contains(h.daemon.admission().Trusted, "x") {
			t.Error("it is there, or trusted")
		}
	}); err != nil {
		t.Fatal(err)
	}
	h.daemon.reconnect(h.ctx)
	if now := h.daemon.roster.of("x"); now == nil || now == before || !slices.Contains(h.daemon.admission().Trusted, "x") {
		t.Errorf("after it: %v", now)
	}
}
