package main

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
)

// A reload changes the level of all loggers.
func TestLogLevelChanges(t *testing.T) {
	var out bytes.Buffer
	c := configs.Default()
	c.Log.Format = "json"
	log := newLog(&out, c)
	part := log.With("part", "a").WithGroup("g")
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelDebug, slog.LevelError} {
		c.Log.Level = level
		setLevel(log, c)
		out.Reset()
		log.Debug("one")
		part.Debug("two")
		part.Info("three")
		if lines := strings.Count(out.String(), "\n"); lines != map[slog.Level]int{slog.LevelInfo: 1, slog.LevelDebug: 3, slog.LevelError: 0}[level] {
			t.Errorf("at %s: %s", level, out.String())
		}
	}
}

func TestLogValues(t *testing.T) {
	const token = "123456:AA-a-test-token-and-nothing-else"
	c := configs.Default()
	c.Log.Format = "json"
	c.Connectors.Telegram.Token = configs.NewSecret("TELEGRAM_BOT_TOKEN", token)
	for name, tc := range map[string]struct {
		attr slog.Attr
		want string
	}{
		"a time":          {slog.Duration("in", 901_234_567), `"in":"901ms"`},
		"a long time":     {slog.Duration("in", 90*time.Second), `"in":"1m30s"`},
		"a short time":    {slog.Duration("in", 1500*time.Nanosecond), `"in":"1.5µs"`},
		"no time":         {slog.Duration("in", 0), `"in":"0s"`},
		"in a group":      {slog.Group("g", slog.Duration("in", time.Second)), `"g":{"in":"1s"}`},
		"a secret":        {slog.String("k", "x"+token), `"k":"x[`},
		"a secret error":  {slog.Any("err", errors.New(token)), `"err":"[`},
		"a secret inside": {slog.Group("g", slog.String("k", token)), `"g":{"k":"[`},
		"a number":        {slog.Int("n", 7), `"n":7`},
		"an id":           {slog.Any("agent", claybot.AgentID("a\x1b[1m")), `"agent":"a\u001b[1m"`},
		"a secret id":     {slog.Any("message", claybot.MessageID(token)), `"message":"[`},
		"control":         {slog.String("k", "a\x00\n\x1b\x7f\u009b2Jé"), `"k":"a\u0000\n\u001b\\x7f\\x9b2Jé"`},
		"control in err":  {slog.Any("err", errors.New("\u0085")), `"err":"\\x85"`},
	} {
		for _, how := range []string{"in the line", "with"} {
			var b strings.Builder
			log := newLog(&b, c)
			if how == "with" {
				log.With(tc.attr).Info("hello " + token)
			} else {
				log.Info("hello "+token, tc.attr)
			}
			if got := b.String(); !strings.Contains(got, tc.want) || strings.Contains(got, token) {
				t.Errorf("%s %s: %s, want %s", name, how, got, tc.want)
			}
		}
	}
}

// After a reload the log, and loggers that were made before it, hide the new secrets and the old ones.
func TestLogAfterReload(t *testing.T) {
	var b strings.Builder
	before, after := configs.Default(), configs.Default()
	before.Connectors.Telegram.Token = configs.NewSecret("TELEGRAM_BOT_TOKEN", "1:the-old-one")
	after.Connectors.Telegram.Token = configs.NewSecret("file:token", "1:the-new-one")
	log := newLog(&b, before)
	part := log.With("part", "x")
	part.Info("made")
	hideAlso(log, after)
	for _, l := range []*slog.Logger{log, part, log.WithGroup("g")} {
		l.Info("1:the-old-one", "k", "1:the-new-one")
	}
	if got := b.String(); strings.Contains(got, "the-") || strings.Count(got, "[file:token]") != 3 || strings.Count(got, "[TELEGRAM_BOT_TOKEN]") != 3 {
		t.Error(got)
	}
}

// Attributes and groups of loggers are in the order in which they were added.
func TestLogOfLoggers(t *testing.T) {
	var b strings.Builder
	log := newLog(&b, configs.Default()).With("a", 1)
	inner := log.WithGroup("g").With("b", 2)
	inner.Debug("not written")
	inner.Info("one", "c", 3)
	log.Info("two", "c", 3)
	got := b.String()
	for _, want := range []string{`"msg":"one","a":1,"g":{"b":2,"c":3}}`, `"msg":"two","a":1,"c":3}`} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// On a terminal no text of a person can move the cursor, and the headers
// of the exporter are secrets.
func TestLogOnTerminal(t *testing.T) {
	c := configs.Default()
	c.Log.Format = "text"
	c.Telemetry.OTLP.Headers = map[string]configs.Secret{"Api-Key": configs.NewSecret("env:KEY", "not-a-real-key")}
	var b strings.Builder
	newLog(&b, c).With("agent", claybot.AgentID("\x1b[2J\u009b2J")).Info("hello", "name", "a\x1b]0;x\a\r\nb\u0090", "err", errors.New("not-a-real-key \x7f"))
	got := strings.TrimSuffix(b.String(), "\n")
	if strings.ContainsFunc(got, unicode.IsControl) || strings.Contains(got, "not-a-real-key") {
		t.Errorf("got %q", got)
	}
}
