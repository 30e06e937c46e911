package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

const (
	nodeLines     = 30  // that are kept of a node
	nodeLogs      = 500 // nodes of which lines are kept
	nodeLineRunes = 400
)

// A nodeLog keeps the last lines of the log about each node.
type nodeLog struct {
	mu    sync.Mutex
	lines map[nodes.Key][]web.NodeLine // the oldest first
}

// add keeps a line, in the place of an earlier line that says the same.
func (l *nodeLog) add(k nodes.Key, line web.NodeLine) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, known := l.lines[k]
	if !known && len(l.lines) >= nodeLogs {
		delete(l.lines, l.oldest())
	}
	if i := slices.IndexFunc(all, func(x web.NodeLine) bool { return x.Level == line.Level && x.Text == line.Text }); i >= 0 {
		line.Times += all[i].Times
		all = slices.Delete(all, i, i+1)
	}
	all = append(all, line)
	l.lines[k] = all[max(0, len(all)-nodeLines):]
}

// oldest is the node that has had no line for the longest time. The caller holds the lock.
func (l *nodeLog) oldest() (k nodes.Key) {
	var since time.Time
	for of, all := range l.lines {
		if at := all[len(all)-1].At; since.IsZero() || at.Before(since) {
			k, since = of, at
		}
	}
	return k
}

// of returns the lines about a node, the newest first.
func (l *nodeLog) of(k nodes.Key) []web.NodeLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.lines[k])
	slices.Reverse(all)
	return all
}

// NodeLog implements web.Nodes.
func (d nodeDesk) NodeLog(_ context.Context, k nodes.Key) ([]web.NodeLine, error) {
	if l, ok := d.log.Handler().(*lateHandler); ok {
		return l.nodes.of(k), nil
	}
	return nil, nil
}

// A nodeHandler gives lines about nodes to a nodeLog, and all of them to the handler behind it. It stands behind
// the redactor, so that no secret comes here.
type nodeHandler struct {
	slog.Handler
	log *nodeLog
	of  nodes.Key // by the attributes of the logger
}

// Handle implements slog.Handler.
func (h *nodeHandler) Handle(ctx context.Context, rec slog.Record) error {
	k, line := h.of, web.NodeLine{At: rec.Time, Level: strings.ToLower(rec.Level.String()), Text: rec.Message, Times: 1}
	rec.Attrs(func(a slog.Attr) bool {
		switch found, is := nodeOfAttr(a); {
		case is && k == (nodes.Key{}):
			k = found
		case a.Key == "by":
			line.Text += " by " + a.Value.String()
		case a.Key == "err" || a.Key == "error" || a.Key == "reason":
			line.Text += ": " + a.Value.String()
		}
		return true
	})
	if k != (nodes.Key{}) {
		line.Text = connectors.OneLine(line.Text, nodeLineRunes)
		h.log.add(k, line)
	}
	return h.Handler.Handle(ctx, rec)
}

// WithAttrs implements slog.Handler.
func (h *nodeHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := &nodeHandler{h.Handler.WithAttrs(attrs), h.log, h.of}
	for _, a := range attrs {
		if k, is := nodeOfAttr(a); is && next.of == (nodes.Key{}) {
			next.of = k
		}
	}
	return next
}

// WithGroup implements slog.Handler.
func (h *nodeHandler) WithGroup(name string) slog.Handler {
	return &nodeHandler{h.Handler.WithGroup(name), h.log, h.of}
}

// nodeAttrs are the attributes that name nodes, with what makes keys of their values.
var nodeAttrs = map[string]func(name string) nodes.Key{
	"connector": keyOfConnector, "server": ofKind(nodes.MCP), "relay": ofKind(nodes.Relay), "flow": ofKind(nodes.Flow), "profile": ofKind(nodes.Profile), "model": ofKind(nodes.Model),
	"node": func(name string) nodes.Key {
		kind, name, _ := strings.Cut(name, "/")
		return nodes.Key{Kind: kind, Name: name}
	},
}

// ofKind returns what names nodes of a kind.
func ofKind(kind string) func(string) nodes.Key {
	return func(name string) nodes.Key { return nodes.Key{Kind: kind, Name: name} }
}

// nodeOfAttr returns the node that an attribute names. It makes no text of the others, most of which are no names.
func nodeOfAttr(a slog.Attr) (k nodes.Key, is bool) {
	of := nodeAttrs[a.Key]
	if of == nil {
		return k, false
	}
	k = of(a.Value.String())
	return k, k.Name != ""
}
