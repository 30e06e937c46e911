package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func (l *link) list(ctx context.Context, c *live) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	all, err := l.pages(ctx, c)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("the server did not list its tools within %s", listTimeout)
		}
		return fmt.Errorf("list the tools: %w", err)
	}
	return l.decide(ctx, all, nil)
}

// pages reads the whole list.
func (l *link) pages(ctx context.Context, c *live) ([]*sdk.Tool, error) {
	if r := c.session.InitializeResult(); r == nil || r.Capabilities == nil || r.Capabilities.Tools == nil {
		return nil, nil // it has none
	}
	var all []*sdk.Tool
	cursor := ""
	for range maxPages {
		page, err := awaited(ctx, func() (*sdk.ListToolsResult, error) {
			return c.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		})
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			if t != nil {
				all = append(all, t)
			}
		}
		if cursor = page.NextCursor; cursor == "" || len(all) > maxPinned {
			return all, nil
		}
	}
	return nil, fmt.Errorf("the list has more than %d pages", maxPages)
}

// decide says which of the listed tools agents have, and remembers new ones.
// Those for which accept holds are remembered as they are now. One at a time.
func (l *link) decide(ctx context.Context, all []*sdk.Tool, accept func(raw, full, print string) bool) error {
	if err := l.turn.Take(ctx); err != nil {
		return err
	}
	defer l.turn.Give()
	pins, err := l.pins(ctx)
	if err != nil {
		return err
	}
	before := maps.Clone(pins)
	v := verdict{link: l, pins: pins, first: l.server.Trusted && len(pins) == 0, accept: accept, raw: make(map[string]bool)}
	pins[listedOnce] = "yes"
	for _, t := range all {
		v.judge(t)
	}
	if over := len(v.tools) - MaxTools; over > 0 {
		v.tools = v.tools[:MaxTools]
		v.off = append(v.off, OffTool{Tool: fmt.Sprintf("(%d more)", over), Why: fmt.Sprintf("a server may have %d tools", MaxTools)})
	}
	slices.SortFunc(v.tools, func(a, b *tool) int { return cmp.Compare(a.spec.Name, b.spec.Name) })
	if !maps.Equal(before, pins) {
		if err := l.pin(ctx, pins); err != nil {
			return err
		}
	}
	if len(v.off) > MaxTools {
		v.off = append(v.off[:MaxTools], OffTool{Tool: fmt.Sprintf("(%d more)", len(v.off)-MaxTools), Why: "for such reasons"})
	}
	l.publish(all, v)
	return nil
}

func (l *link) publish(all []*sdk.Tool, v verdict) {
	sum := sha256.New()
	for _, t := range v.tools {
		_, _ = fmt.Fprintf(sum, "%s %s\n", t.spec.Name, t.print) // a hash takes everything
	}
	print := hex.EncodeToString(sum.Sum(nil))
	l.mu.Lock()
	changed := l.print != print
	l.listing = listing{tools: v.tools, off: v.off, listed: all, print: print}
	l.mu.Unlock()
	for _, o := range v.off {
		if o.Changed {
			l.m.log().Warn("MCP tool new or changed; disabled until it is allowed", "server", l.server.Name, "tool", o.Tool)
		}
	}
	if changed {
		l.m.changed()
	}
}

// listedOnce is among the accepted tools once a server has listed any, or none. No
// tool has this name.
const listedOnce = ""

// pinsKey is where the accepted tools of a server are remembered: a JSON object
// of their hashes by the server's own names.
func (l *link) pinsKey() string { return "mcp/" + l.server.Name + "/tools" }

func (l *link) pins(ctx context.Context) (map[string]string, error) {
	pins := make(map[string]string)
	text, err := l.m.cfg.Pins.Checkpoint(ctx, l.pinsKey())
	if err != nil {
		return nil, fmt.Errorf("what was accepted of the server cannot be read: %w", err)
	}
	if text == "" {
		return pins, nil
	}
	if err := json.Unmarshal([]byte(text), &pins); err != nil || pins == nil {
		return nil, errors.New("what was accepted of the server is damaged")
	}
	return pins, nil
}

func (l *link) pin(ctx context.Context, pins map[string]string) error {
	text, err := json.Marshal(pins)
	if err == nil {
		err = l.m.cfg.Pins.SetCheckpoint(ctx, l.pinsKey(), string(text))
	}
	if err != nil {
		return fmt.Errorf("what was accepted of the server cannot be kept: %w", err)
	}
	return nil
}

type memoryPins struct {
	mu  sync.Mutex
	all map[string]string
}

func (p *memoryPins) Checkpoint(_ context.Context, key string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[key], nil
}

func (p *memoryPins) SetCheckpoint(_ context.Context, key, value string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = make(map[string]string)
	}
	p.all[key] = value
	return nil
}

// offHash stands for what is shown of the tools that an operator may allow; empty
// for none.
func offHash(off []OffTool) string {
	sum := sha256.New()
	none := true
	for _, o := range off {
		if o.Changed {
			none = false
			_, _ = fmt.Fprintf(sum, "%q %s\n", o.Tool, o.Hash) // a hash takes everything
		}
	}
	if none {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// allow accepts what changed tools say of themselves, as it was shown.
func (l *link) allow(ctx context.Context, tool, hash string) ([]string, error) {
	l.mu.Lock()
	all, off := l.listed, l.off
	l.mu.Unlock()
	switch now := offHash(off); {
	case now == "":
		return nil, fmt.Errorf("no tool of the MCP server %s waits to be allowed", l.server.Name)
	case now != hash:
		return nil, fmt.Errorf("what the MCP server %s says of its tools has changed since you saw it; look again, then allow it", l.server.Name)
	}
	var accepted []string
	err := l.decide(ctx, all, func(raw, full, print string) bool {
		shown := slices.ContainsFunc(off, func(o OffTool) bool { return o.Changed && o.Tool == plain(raw, maxRaw) && o.Hash == print })
		ok := shown && (tool == "" || tool == raw || tool == full || tool == plain(raw, maxRaw))
		if ok {
			accepted = append(accepted, full)
		}
		return ok
	})
	if err != nil {
		return nil, err
	}
	if len(accepted) == 0 {
		return nil, fmt.Errorf("no tool %.80q of the MCP server %s waits to be allowed", tool, l.server.Name)
	}
	return accepted, nil
}
