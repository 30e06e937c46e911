package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

// What a daemon may have more after many calls than without any: pools and caches, and what works at that
// moment. A leak of every call is far above.
const (
	moreFiles    = 12
	moreSockets  = 40
	moreRoutines = 60
)

// figures are what a daemon holds.
type figures struct {
	files, sockets, routines int
	stacks                   string // of the goroutines
}

func (f figures) String() string {
	return fmt.Sprintf("%d files, %d sockets, %d goroutines", f.files, f.sockets, f.routines)
}

// above says what is more than it may be.
func (f figures) above(plain figures) string {
	if f.files > plain.files+moreFiles || f.sockets > plain.sockets+moreSockets || f.routines > plain.routines+moreRoutines {
		return fmt.Sprintf("the daemon has %v; without calls, it has %v", f, plain)
	}
	return ""
}

// look ends a round: it looks whether all is as the calls and the file say, sets everything back to
// the beginning, and looks again, and what the daemon holds.
func (r *lifeRig) look(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(r.dir, "claybot.yaml"))
	if err != nil {
		return err
	}
	for _, p := range r.parts {
		value, _ := configs.Written(text, p.config)
		if p.config != "" && !slices.Contains(p.value.possible(), value) {
			r.story("%s is %q in the file; by the calls it can be %q", p.config, value, p.value.possible())
		}
		p.value.is(value)
	}
	if err := r.states(ctx, text); err != nil {
		return err
	}
	for _, p := range r.parts {
		if p.config != "" {
			if err := r.set(ctx, p, p.forms[0]); err != nil {
				return err
			}
		}
		if err := r.order(ctx, p, nodes.Start); err != nil {
			return err
		}
	}
	if text, err = os.ReadFile(filepath.Join(r.dir, "claybot.yaml")); err != nil {
		return err
	}
	for _, p := range r.parts {
		if value, _ := configs.Written(text, p.config); p.config != "" && value != p.forms[0] {
			r.story("%s is %q after it was set to %q", p.config, value, p.forms[0])
		}
	}
	if err := r.states(ctx, text); err != nil {
		return err
	}
	return r.measure(ctx, false)
}

// states waits until every node has the state that it must have, and no connection and no process is there
// of one that does not run.
func (r *lifeRig) states(ctx context.Context, text []byte) error {
	began, late := time.Now(), false
	return r.comes(ctx, func() (wrong string, err error) {
		c, err := openConsole(r.dir)
		if err != nil {
			return "", err
		}
		defer c.Close()
		var list web.NodeList
		if err := c.call(ctx, http.MethodGet, "/nodes", &list); err != nil {
			return "", err
		}
		var all []string
		for _, p := range r.parts {
			got, why := "", ""
			if i := slices.IndexFunc(list.Nodes, func(n nodes.View) bool { return n.Key == p.key }); i >= 0 {
				got, why = list.Nodes[i].State, list.Nodes[i].Text
			}
			may := make([]string, 0, 2)
			for _, stopped := range p.stopped.possible() {
				may = append(may, p.state(text, stopped))
			}
			if p.key.Kind == nodes.Profile && got == nodes.Waiting || p.key.Kind == nodes.Model && got == nodes.Failed {
				got = nodes.Running // the model refuses some requests, for which the profile waits
			}
			if !slices.Contains(may, got) {
				value, _ := configs.Written(text, p.config)
				all = append(all, fmt.Sprintf("%s is %q (%s), not %q, by %q", p.key, got, why, may, value))
				continue
			}
			p.stopped.is(got == nodes.Stopped)
			if n := p.connections(); n > 0 && got != nodes.Running {
				all = append(all, fmt.Sprintf("%s is %q and has %d connections", p.key, got, n))
				if !late && time.Since(began) > lifeRest {
					r.story("%s is %q and has %d connections after %v", p.key, got, n, lifeRest)
					late = true
				}
			}
			if n, want := children(r.dir), number(got == nodes.Running); p.config == "mcp.child" && n != want {
				all = append(all, fmt.Sprintf("%s is %q and has %d processes", p.key, got, n))
			}
		}
		return strings.Join(all, "; "), nil
	})
}

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (p *part) connections() int {
	if p.door == nil {
		return 0
	}
	return p.door.count()
}

// measure waits until the daemon holds no more than one without calls, while people are quiet; with first,
// this is the one without calls.
func (r *lifeRig) measure(ctx context.Context, first bool) error {
	r.hush.Lock()
	defer r.hush.Unlock()
	if first {
		least, err := r.figures(ctx)
		for range 20 {
			if err != nil || !pause(ctx, 100*time.Millisecond) {
				return errors.Join(err, context.Cause(ctx))
			}
			var f figures
			if f, err = r.figures(ctx); f.routines < least.routines {
				least = f
			}
		}
		r.plain = least
		return err
	}
	var last figures
	began := len(r.stories)
	err := r.comes(ctx, func() (string, error) {
		f, err := r.figures(ctx)
		last = f
		return f.above(r.plain), err
	})
	if len(r.stories) > began {
		fmt.Println(last.stacks[:min(len(last.stacks), 6000)])
	} else {
		fmt.Printf("lifecycle: after calls, the daemon has %v\n", last)
	}
	return err
}

// comes waits until nothing is wrong any more. What stays so is a story.
func (r *lifeRig) comes(ctx context.Context, look func() (wrong string, err error)) error {
	began, last := time.Now(), ""
	for {
		wrong, err := look()
		switch {
		case err == nil && wrong == "":
			if took := time.Since(began); took > lifeSlow {
				fmt.Printf("lifecycle: after %v, no more: %s\n", took.Round(time.Second), last)
			}
			return nil
		case time.Since(began) > lifeLimit:
			if err == nil {
				r.story("%s", wrong)
			}
			return err
		case wrong != "":
			last = wrong
		}
		if !pause(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// figures reads what the daemon holds.
func (r *lifeRig) figures(ctx context.Context) (f figures, err error) {
	dir := fmt.Sprintf("/proc/%d/fd", r.process.cmd.Process.Pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return f, err
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		switch {
		case err != nil: // it is closed by now
		case strings.HasPrefix(to, "socket:"):
			f.sockets++
		default:
			f.files++
		}
	}
	c, err := openConsole(r.dir)
	if err != nil {
		return f, err
	}
	defer c.Close()
	req, err := c.Request(ctx, http.MethodGet, "/debug/pprof/goroutine?debug=1", nil)
	if err != nil {
		return f, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return f, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return f, err
	}
	first, rest, _ := strings.Cut(string(b), "\n")
	f.stacks = rest
	_, total, _ := strings.Cut(first, "total ")
	f.routines, err = strconv.Atoi(total)
	return f, err
}

// children counts the processes of MCP servers that the daemon on a directory has started.
func children(dir string) (n int) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is valid
	for _, name := range all {
		b, err := os.ReadFile(name)
		if err == nil && bytes.Contains(b, []byte(childMark+"="+dir+"\x00")) {
			n++
		}
	}
	return n
}
