package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/tools"
)

// A Manager keeps servers connected and knows their tools. It is safe for
// concurrent use.
type Manager struct {
	cfg        Config
	generation atomic.Uint64
	nodes      *nodes.Set[*link]

	mu    sync.Mutex
	links []*link // by name
}

// New makes a Manager; Run connects it. A server whose settings are wrong is
// never connected, and Status says why.
func New(cfg Config) *Manager {
	if cfg.Pins == nil {
		cfg.Pins = new(memoryPins)
	}
	m := &Manager{cfg: cfg, nodes: nodes.NewSet(nodes.Kind[*link]{Work: work, Alone: true})}
	m.Set(cfg.Servers)
	return m
}

// Set makes servers those that are there. One whose settings are the same stays as it
// is, with its connection. All others end; a new one of the same name starts when the
// former one has ended.
func (m *Manager) Set(servers []Server) {
	m.mu.Lock()
	was := m.links
	m.links = nil
	next := make(map[string]*link)
	for _, s := range servers {
		l := m.nodes.Configuration(s.Name)
		if l == nil || next[s.Name] != nil || !reflect.DeepEqual(l.server, s) {
			l = newLink(m, s)
		}
		if next[s.Name] == nil {
			next[s.Name] = l
		} else {
			l.refuse(fmt.Errorf("the name %s is given twice", s.Name))
		}
		m.links = append(m.links, l)
	}
	slices.SortStableFunc(m.links, func(a, b *link) int { return strings.Compare(a.server.Name, b.server.Name) })
	changed := !slices.Equal(was, m.links)
	m.nodes.Reconcile(context.Background(), next)
	m.mu.Unlock()
	if changed {
		m.changed()
	}
}

// Run connects all servers at once, again whenever one is lost, and ends within
// a few seconds of ctx, with all processes that it started. It runs once.
func (m *Manager) Run(ctx context.Context) error {
	return m.nodes.Run(ctx) //nolint:wrapcheck // the cause of ctx
}

// work keeps a server connected, unless it is refused or stopped. Its start is over at once: Status says how it does.
func work(ctx context.Context, _ string, l *link, up func()) error {
	if l.refused != nil {
		return l.refused
	}
	up()
	if !l.server.Stopped {
		l.run(ctx)
	}
	return nil
}

// all is the present links.
func (m *Manager) all() []*link {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.links
}

// Probe connects all servers at once, lists their tools, and disconnects. The status of a server has an
// error if that failed. It is for a Manager that does not Run.
func (m *Manager) Probe(ctx context.Context) []ServerStatus {
	var wg sync.WaitGroup
	for _, l := range m.all() {
		if l.refused == nil {
			wg.Go(func() { l.down(StateStopped, l.probe(ctx)) })
		}
	}
	wg.Wait()
	return m.Status()
}

// Relist has the servers list their tools again that are connected for some time. One that does not is
// connected anew, and its status says why.
func (m *Manager) Relist(after time.Duration) {
	for _, l := range m.all() {
		l.mu.Lock()
		settled := l.live != nil && time.Since(l.since) >= after
		l.mu.Unlock()
		if settled {
			select {
			case l.kick <- struct{}{}:
			default: // it does so already
			}
		}
	}
}

// Tools is the present list of tools, those of the named servers or, with nil,
// of all, in an order that stays. A server that is down keeps its tools: calls
// of them fail at once.
func (m *Manager) Tools(servers []string) []tools.Tool {
	var all []tools.Tool
	for _, l := range m.all() {
		if servers == nil || slices.Contains(servers, l.server.Name) {
			for _, t := range l.offered() {
				all = append(all, t)
			}
		}
	}
	return all
}

// Ready waits for servers that were not connected yet since they were set up, at most as
// long as that may take, if a tool with one of the full names may be theirs.
func (m *Manager) Ready(ctx context.Context, names []string) {
	ctx, cancel := context.WithTimeout(ctx, ConnectTime)
	defer cancel()
	for _, l := range m.all() {
		if l.refused != nil || l.server.Stopped || !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, l.server.Name+"_") }) {
			continue
		}
		select {
		case <-l.tried:
		case <-ctx.Done():
		}
	}
}

// Generation changes whenever Tools does.
func (m *Manager) Generation() uint64 { return m.generation.Load() }

func (m *Manager) changed() {
	m.generation.Add(1)
	if m.cfg.Changed != nil {
		m.cfg.Changed()
	}
}

// The states of a server.
const (
	StateStarting  = "starting"
	StateConnected = "connected"
	StateWaiting   = "waiting" // for the next try to connect
	StateLogin     = "login"   // an operator must log in: claybot mcp login
	StateRefused   = "refused" // its settings are wrong
	StateStopped   = "stopped" // by an operator, or as claybot is
)

// A ServerStatus is how one server is doing. All of its words are clean.
type ServerStatus struct {
	Name      string    `json:"name"`
	Transport string    `json:"transport"`
	Target    string    `json:"target"` // the program, or the host of the address
	State     string    `json:"state"`
	Since     time.Time `json:"since,omitzero"` // of the state
	Says      string    `json:"says,omitempty"` // its own name and version
	Tools     []string  `json:"tools"`          // that agents may have, by their full names
	Off       []OffTool `json:"off,omitempty"`
	// OffHash stands for all of Off that an operator may allow; empty for none.
	OffHash   string `json:"offHash,omitempty"`
	Restarts  int    `json:"restarts"` // since the start of the daemon
	LastError string `json:"lastError,omitempty"`
	Stderr    string `json:"stderr,omitempty"` // the end of what it wrote there
}

// An OffTool is a tool that no agent has.
type OffTool struct {
	Tool string `json:"tool"` // by the server's own name, cleaned
	Why  string `json:"why"`
	// Changed: an operator may allow it. What it says of itself now is Now, for all
	// of which, also where that was too long to show, Hash stands.
	Changed bool   `json:"changed,omitempty"`
	Now     string `json:"now,omitempty"`
	Hash    string `json:"hash,omitempty"`
}

// Status is the status of all servers, by name.
func (m *Manager) Status() []ServerStatus {
	links := m.all()
	all := make([]ServerStatus, len(links))
	for i, l := range links {
		all[i] = l.status()
	}
	return all
}

// Allow accepts what a tool of a server, by the server's own name or by its full
// one, says of itself; without a tool all changed ones. hash is the OffHash of what
// the operator saw: with another one nothing is accepted. It returns the tools that
// were accepted. ErrUnknown is about the server; that nothing waits to be allowed,
// or something else by now, are other errors, in words for the operator.
func (m *Manager) Allow(ctx context.Context, server, tool, hash string) ([]string, error) {
	l := m.link(server)
	if l == nil {
		return nil, ErrUnknown
	}
	return l.allow(ctx, tool, hash)
}

// Retry connects a server now that waits for its next try. The error is
// ErrUnknown.
func (m *Manager) Retry(server string) error {
	l := m.link(server)
	if l == nil {
		return ErrUnknown
	}
	select {
	case l.retry <- struct{}{}:
	default: // it will, already
	}
	return nil
}

func (m *Manager) link(server string) *link {
	links := m.all()
	i := slices.IndexFunc(links, func(l *link) bool { return l.server.Name == server && l.refused == nil })
	if i < 0 {
		return nil
	}
	return links[i]
}

func (m *Manager) log() *slog.Logger {
	if m.cfg.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return m.cfg.Log
}
