package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

// The kinds of calls, each as often as it stands here.
var lifeCalls = []string{
	nodes.Start, nodes.Start, nodes.Start, nodes.Start, nodes.Stop, nodes.Stop, nodes.Stop, nodes.Restart, nodes.Restart, nodes.Restart, nodes.Test,
	"set", "set", "set", "set", "unset", "unset", "revert", "harmless", "edit", "edit", "half", "break", "hangup", "all", "list",
}

// work makes calls until there were enough of them. What a call is follows from its number and the
// seed alone.
func (r *lifeRig) work(ctx context.Context, until int) error {
	for ctx.Err() == nil {
		n, ok := r.take(until)
		if !ok {
			return nil
		}
		rng := rand.New(rand.NewPCG(uint64(r.seed), uint64(1000+n)))
		if r.strikes[n] {
			r.count("kill")
			if err := r.strike(ctx, time.Duration(rng.IntN(40))*time.Millisecond); err != nil {
				return fmt.Errorf("call %d: %w", n, err)
			}
			continue
		}
		if err := r.call(ctx, rng, lifeCalls[rng.IntN(len(lifeCalls))]); err != nil {
			return fmt.Errorf("call %d: %w", n, err)
		}
	}
	return context.Cause(ctx)
}

func (r *lifeRig) call(ctx context.Context, rng *rand.Rand, kind string) error {
	p := r.parts[rng.IntN(len(r.parts))]
	for changes := kind == "set" || kind == "unset" || kind == "edit" || kind == "half" || kind == "break"; changes && p.config == "" || kind == "break" && p.broken == ""; {
		p = r.parts[rng.IntN(len(r.parts))]
	}
	form := ""
	if len(p.forms) > 0 {
		form = p.forms[rng.IntN(len(p.forms))]
	}
	switch kind {
	case "set":
		return r.set(ctx, p, form)
	case "unset":
		return r.set(ctx, p, "")
	case "revert":
		return r.revert(ctx, rng.IntN(6))
	case "harmless":
		_, err := r.request(ctx, kind, http.MethodPut, "/config/log_level", web.ConfigValue{Value: []string{"info", "debug"}[rng.IntN(2)]}, nil)
		return err
	case "edit", "half":
		if rng.IntN(4) == 0 {
			form = ""
		}
		return r.edit(ctx, kind, p, form, time.Duration(rng.IntN(30))*time.Millisecond)
	case "break":
		return r.edit(ctx, kind, p, p.broken, 0)
	case "hangup":
		r.life.RLock()
		defer r.life.RUnlock()
		r.count(kind)
		return r.process.cmd.Process.Signal(syscall.SIGHUP)
	case "all":
		call := []string{nodes.Stop, nodes.Start, nodes.Start}[rng.IntN(3)]
		for _, p := range r.parts {
			if err := r.order(ctx, p, call); err != nil {
				return err
			}
		}
		return nil
	case "list":
		_, err := r.request(ctx, kind, http.MethodGet, []string{"/nodes", "/config", "/config/history", "/status"}[rng.IntN(4)], nil, nil)
		return err
	}
	return r.order(ctx, p, kind)
}

// order starts, stops, restarts or tests a node.
func (r *lifeRig) order(ctx context.Context, p *part, call string) error {
	var s *setting[bool]
	if call == nodes.Start || call == nodes.Stop {
		s = p.stopped.begin(call == nodes.Stop)
	}
	o, err := r.request(ctx, call, http.MethodPost, "/nodes/"+p.key.Kind+"/"+url.PathEscape(p.key.Name)+"/"+call, nil, nil)
	if s != nil {
		s.ended(o)
	}
	return err
}

// set sets the key of a part, or removes it.
func (r *lifeRig) set(ctx context.Context, p *part, form string) error {
	method, kind, body := http.MethodPut, "set", any(web.ConfigValue{Value: form})
	value := ""
	if form == "" {
		method, kind, body = http.MethodDelete, "unset", nil
	} else {
		value = form
	}
	s := p.value.begin(value)
	o, err := r.request(ctx, kind, method, "/config/"+p.config, body, nil)
	s.ended(o)
	return err
}

// revert undoes a change of the file, the newest for 0.
func (r *lifeRig) revert(ctx context.Context, back int) error {
	var all web.ConfigChanges
	o, err := r.request(ctx, "list", http.MethodGet, "/config/history", nil, &all)
	if err != nil || o != done || back >= len(all.Changes) {
		return err
	}
	c := all.Changes[back]
	p, value := named(r.parts, c.Key), ""
	if c.Before != nil {
		value = *c.Before
	}
	path := fmt.Sprintf("/config/history/%d/revert", c.N)
	if p == nil {
		_, err := r.request(ctx, "revert", http.MethodPost, path, nil, nil)
		return err
	}
	s := p.value.begin(value)
	o, err = r.request(ctx, "revert", http.MethodPost, path, nil, nil)
	s.ended(o)
	return err
}

// edit changes the file beside the daemon: by a file in its place, or by halves with a pause.
func (r *lifeRig) edit(ctx context.Context, kind string, p *part, form string, between time.Duration) error {
	r.file.Lock()
	defer r.file.Unlock()
	r.count(kind)
	name := filepath.Join(r.dir, "claybot.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	next, value := []byte(nil), ""
	if form == "" {
		next, err = configs.Unset(text, p.config)
	} else {
		next, err = configs.Set(text, p.config, form)
		value = form
	}
	if err != nil {
		return err
	}
	s := p.value.begin(value)
	defer s.ended(done)
	if kind != "half" {
		if err := os.WriteFile(name+".rig", next, 0o600); err != nil {
			return err
		}
		return os.Rename(name+".rig", name)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(next[:len(next)/2])
	pause(ctx, between)
	_, err2 := f.Write(next[len(next)/2:])
	return errors.Join(err, err2, f.Close())
}

// request makes one request, when there is a daemon. The outcome is unknown where a kill came before the
// answer. What takes too long, and an error of the daemon itself, are stories.
func (r *lifeRig) request(ctx context.Context, kind, method, path string, in, out any) (outcome, error) {
	c, err := openConsole(r.dir)
	for ; err != nil; c, err = openConsole(r.dir) {
		if !pause(ctx, 20*time.Millisecond) {
			return refused, context.Cause(ctx)
		}
	}
	defer c.Close()
	if strings.HasPrefix(path, "/config") && method != http.MethodGet {
		r.file.RLock()
		defer r.file.RUnlock()
	}
	var body io.Reader
	if in != nil {
		b, _ := json.Marshal(in) // strings always marshal
		body = bytes.NewReader(b)
	}
	limited, cancel := context.WithTimeout(ctx, lifeCall)
	defer cancel()
	req, err := c.Request(limited, method, path, body)
	if err != nil {
		return refused, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	var answer []byte
	if err == nil {
		answer, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close() // it was read
	}
	switch {
	case ctx.Err() != nil:
		return unheard, context.Cause(ctx)
	case limited.Err() != nil:
		r.story("%s %s has no answer after %v", method, path, lifeCall)
		return unheard, nil
	case err != nil:
		r.count(kind + " cut off")
		return unheard, nil
	case resp.StatusCode == http.StatusServiceUnavailable:
		r.count(kind + " while it ends or is busy")
		return unheard, nil
	case resp.StatusCode >= http.StatusInternalServerError:
		r.story("%s %s: status %d: %s", method, path, resp.StatusCode, answer)
		return unheard, nil
	case resp.StatusCode >= http.StatusBadRequest:
		r.count(kind + " refused")
		return refused, nil
	}
	r.count(kind)
	if out != nil {
		err = json.Unmarshal(answer, out)
	}
	return done, err
}

func (r *lifeRig) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally[what]++
}

func (r *lifeRig) counts() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(r.tally)) {
		all = append(all, fmt.Sprintf("%s %d", what, r.tally[what]))
	}
	return strings.Join(all, ", ")
}
