package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/lmittmann/tint"

	"github.com/claybot/claybot/configs"
)

// newLog makes the log: JSON lines for machines, colours on a terminal. Known
// secrets never get through it, whoever put them into a line.
func newLog(w io.Writer, c configs.Config) *slog.Logger {
	format := c.Log
	if format == "" {
		format = "json"
		if isTerminal(w) {
			format = "text"
		}
	}
	var h slog.Handler
	if format == "text" {
		h = tint.NewTextHandler(w, &tint.Options{Level: c.LogLevel, TimeFormat: time.TimeOnly, NoColor: !isTerminal(w)})
	} else {
		h = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: c.LogLevel})
	}
	return slog.New(&redactor{Handler: h, hide: strings.NewReplacer(hidden(c)...)})
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// hidden lists the live secrets, each followed by what is printed in its place.
func hidden(c configs.Config) []string {
	var pairs []string
	add := func(s configs.Secret) {
		if v := s.Value(); len(v) >= 6 {
			pairs = append(pairs, v, "["+s.String()+"]")
		}
	}
	add(c.Telegram.Token)
	add(c.Slack.BotToken)
	add(c.Slack.AppToken)
	for _, p := range c.Profiles {
		add(p.Model.Key)
		for _, h := range p.Model.Headers {
			add(h)
		}
	}
	for _, h := range c.OTLP.Headers {
		add(h)
	}
	return pairs
}

// A redactor is the last handler before the log's writer: it replaces secrets
// in messages and in every attribute.
type redactor struct {
	slog.Handler
	hide *strings.Replacer
}

func (r *redactor) Handle(ctx context.Context, rec slog.Record) error {
	clean := slog.NewRecord(rec.Time, rec.Level, r.hide.Replace(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(r.attr(a))
		return true
	})
	return r.Handler.Handle(ctx, clean)
}

func (r *redactor) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = r.attr(a)
	}
	return &redactor{r.Handler.WithAttrs(clean), r.hide}
}

func (r *redactor) WithGroup(name string) slog.Handler {
	return &redactor{r.Handler.WithGroup(name), r.hide}
}

// readable leaves out what nobody reads: less than a millisecond of a longer
// time.
func readable(d time.Duration) time.Duration {
	if d.Abs() < time.Millisecond {
		return d
	}
	return d.Round(time.Millisecond)
}

// text is a value without secrets, and without the control characters that
// neither handler escapes: some terminals obey them.
func (r *redactor) text(s string) string {
	s = r.hide.Replace(s)
	if !strings.ContainsFunc(s, rawControl) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if rawControl(c) {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// rawControl reports DEL and the control characters above ASCII.
func rawControl(c rune) bool { return c >= 0x7f && c <= 0x9f }

func (r *redactor) attr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(r.text(v.String()))
	case slog.KindDuration: // a bare number of nanoseconds is for nobody
		a.Value = slog.StringValue(readable(v.Duration()).String())
	case slog.KindGroup:
		group := v.Group()
		clean := make([]slog.Attr, len(group))
		for i, g := range group {
			clean[i] = r.attr(g)
		}
		a.Value = slog.GroupValue(clean...)
	case slog.KindAny: // errors and structs: as text, so that nothing hides in them
		if err, ok := v.Any().(error); ok {
			a.Value = slog.StringValue(r.text(err.Error()))
		} else if s := reflect.ValueOf(v.Any()); s.Kind() == reflect.String { // an id: some are chosen outside
			a.Value = slog.StringValue(r.text(s.String()))
		}
	default: // numbers and times hold no secret
	}
	return a
}
