package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

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
		return
	}
	if i := slices.IndexFunc(all, func(x web.NodeLine) bool { return x.Level == line.Level && x.Text == line.Text }); i >= 0 {
		line.Times += all[i].Times
		all = slices.Delete(all, i, i+1)
	}
	all = append(all, line)
	l.lines[k] = all[max(0, len(all)-nodeLines):]
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
		case a.Key == "err" || a.Key == "error" || a.Key == "by" || a.Key == "reason":
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

// nodeAttrs are the attributes that name nodes, with their kinds.
var nodeAttrs = map[string]string{"server": nodes.MCP, "sink": nodes.Relay, "flow": nodes.Flow, "profile": nodes.Profile, "model": nodes.Model}

// nodeOfAttr returns the node that an attribute names.
func nodeOfAttr(a slog.Attr) (k nodes.Key, is bool) {
	name := a.Value.String()
	switch kind := nodeAttrs[a.Key]; {
	case name == "":
	case a.Key == "connector":
		return keyOfConnector(name), true
	case a.Key == "node":
		kind, name, is := strings.Cut(name, "/")
		return nodes.Key{Kind: kind, Name: name}, is
	case kind != "":
		return nodes.Key{Kind: kind, Name: name}, true
	}
	return k, false
}
