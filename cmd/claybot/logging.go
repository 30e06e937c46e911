package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmittmann/tint"

	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

// newLog returns the log: JSON lines, or colours on a terminal. It removes known secrets from
// every line. It logs an unresponsive database in plain words, and not every second
// (cluster.Quiet).
func newLog(w io.Writer, c configs.Config) *slog.Logger {
	format := c.Log.Format
	if format == "" {
		format = "json"
		if isTerminal(w) {
			format = "text"
		}
	}
	var h slog.Handler
	level := new(slog.LevelVar)
	level.Set(c.Log.Level)
	if format == "text" {
		h = tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !isTerminal(w)})
	} else {
		h = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})
	}
	hide, about := new(hiding), &nodeLog{lines: make(map[nodes.Key][]web.NodeLine)}
	hide.add(c)
	return slog.New(&lateHandler{root: cluster.Quiet(&redactor{Handler: &nodeHandler{Handler: h, log: about}, hide: hide}), hide: hide, level: level, nodes: about})
}

// A hiding replaces the secrets of all configurations so far: an error may still name one that
// is not in force any more.
type hiding struct {
	mu    sync.Mutex
	pairs []string
	by    atomic.Pointer[strings.Replacer]
}

func (h *hiding) add(c configs.Config) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for pair := range slices.Chunk(hidden(c), 2) {
		if !slices.Contains(h.pairs, pair[0]) {
			h.pairs = append(h.pairs, pair...)
		}
	}
	h.by.Store(strings.NewReplacer(h.pairs...))
}

// Replace replaces the secrets in a text.
func (h *hiding) Replace(s string) string { return h.by.Load().Replace(s) }

// hideAlso has a log of newLog remove the secrets of c as well.
func hideAlso(log *slog.Logger, c configs.Config) {
	if l, ok := log.Handler().(*lateHandler); ok {
		l.hide.add(c)
	}
}

// setLevel has a log of newLog, and all loggers made from it, use the level of c.
func setLevel(log *slog.Logger, c configs.Config) {
	if l, ok := log.Handler().(*lateHandler); ok {
		l.level.Set(c.Log.Level)
	}
}

// A lateHandler adds the attributes of loggers to the root handler when a record is written:
// most loggers of messages and runs never write one.
type lateHandler struct {
	root  slog.Handler
	hide  *hiding        // of the root
	level *slog.LevelVar // of the root
	nodes *nodeLog       // of the root
	outer *lateHandler   // nil for the root
	attrs []slog.Attr
	group string // opened, where there are no attrs

	once  sync.Once
	built slog.Handler
}

// Enabled implements slog.Handler.
func (l *lateHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return l.root.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l *lateHandler) Handle(ctx context.Context, rec slog.Record) error {
	return l.handler().Handle(ctx, rec)
}

// handler returns the root handler with the attributes and groups.
func (l *lateHandler) handler() slog.Handler {
	l.once.Do(func() {
		switch {
		case l.outer == nil:
			l.built = l.root
		case l.attrs != nil:
			l.built = l.outer.handler().WithAttrs(l.attrs)
		default:
			l.built = l.outer.handler().WithGroup(l.group)
		}
	})
	return l.built
}

// WithAttrs implements slog.Handler.
func (l *lateHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lateHandler{root: l.root, hide: l.hide, level: l.level, nodes: l.nodes, outer: l, attrs: attrs}
}

// WithGroup implements slog.Handler.
func (l *lateHandler) WithGroup(name string) slog.Handler {
	return &lateHandler{root: l.root, hide: l.hide, level: l.level, nodes: l.nodes, outer: l, group: name}
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// secretsOf are the live secrets of a configuration.
func secretsOf(c configs.Config) []configs.Secret {
	all := []configs.Secret{
		c.Transcription.Key, c.Speech.Key,
		c.Storage.Files.AccessKey, c.Storage.Files.SecretKey, c.Storage.Files.SessionToken, c.Storage.URL, passwordOf(c.Storage.URL),
	}
	all = append(all, c.Connectors.Secrets()...)
	all = append(all, c.Model.Secrets()...)
	for _, p := range c.Agents.Profiles {
		all = append(all, p.Model.Secrets()...)
		for _, v := range p.Workspace.Env {
			all = append(all, v.Value)
		}
	}
	for _, s := range c.Tools.Web.Search {
		all = append(all, s.Key)
	}
	for _, s := range c.Tools.MCP {
		all = append(all, s.Remote.Token)
		all = slices.AppendSeq(slices.AppendSeq(all, maps.Values(s.Process.Secrets)), maps.Values(s.Remote.Headers))
		if s.Remote.OAuth != nil {
			all = append(all, s.Remote.OAuth.ClientSecret)
		}
	}
	return slices.AppendSeq(all, maps.Values(c.Telemetry.OTLP.Headers))
}

// passwordOf returns the password in an address, because it may be logged without the rest
// of the address. It returns none if the password equals another part of the address, as in
// test setups: every line would match.
func passwordOf(address configs.Secret) configs.Secret {
	u, err := url.Parse(address.Value())
	if err != nil {
		return configs.Secret{}
	}
	password, _ := u.User.Password()
	if strings.Contains(u.User.Username()+"/"+u.Host+"/"+u.Path, password) {
		return configs.Secret{}
	}
	return configs.NewSecret(address.String(), password)
}

// leastSecret is the length, in bytes, below which a value is too common to redact.
const leastSecret = 6

// hidden lists the live secrets, each followed by its replacement.
func hidden(c configs.Config) []string {
	var pairs []string
	for _, s := range secretsOf(c) {
		if v := s.Value(); len(v) >= leastSecret {
			pairs = append(pairs, v, "["+s.String()+"]")
		}
	}
	return pairs
}

// concealed is hidden with the encodings in which a program may print a secret: base64,
// hexadecimal, and escaped for a URL or for JSON.
func concealed(c configs.Config) []string {
	pairs := hidden(c)
	for _, s := range secretsOf(c) {
		v := s.Value()
		if len(v) < leastSecret {
			continue
		}
		quoted, _ := json.Marshal(v) // a string always marshals
		for _, form := range []string{
			base64.StdEncoding.EncodeToString([]byte(v)), base64.RawURLEncoding.EncodeToString([]byte(v)),
			hex.EncodeToString([]byte(v)), url.QueryEscape(v), strings.Trim(string(quoted), `"`),
		} {
			pairs = append(pairs, form, "["+s.String()+"]")
		}
	}
	return pairs
}

// A redactor is the last handler before the writer of the log: it replaces secrets in
// messages and attributes.
type redactor struct {
	slog.Handler
	hide *hiding
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

// readable rounds longer times to milliseconds.
func readable(d time.Duration) time.Duration {
	if d.Abs() < time.Millisecond {
		return d
	}
	return d.Round(time.Millisecond)
}

// text removes secrets, and escapes the control characters that neither handler escapes and
// some terminals obey.
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
	case slog.KindDuration: // nanoseconds are unreadable
		a.Value = slog.StringValue(readable(v.Duration()).String())
	case slog.KindGroup:
		group := v.Group()
		clean := make([]slog.Attr, len(group))
		for i, g := range group {
			clean[i] = r.attr(g)
		}
		a.Value = slog.GroupValue(clean...)
	case slog.KindAny: // errors and strings of other types: as text, so that no secret hides in them
		if err, ok := v.Any().(error); ok {
			a.Value = slog.StringValue(r.text(err.Error()))
		} else if s := reflect.ValueOf(v.Any()); s.Kind() == reflect.String { // an ID: some come from outside
			a.Value = slog.StringValue(r.text(s.String()))
		}
	default: // numbers and times hold no secret
	}
	return a
}
