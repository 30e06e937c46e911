package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/web"
)

// restart ends a node and starts it again. Of what does not run by itself, it ends what is kept from before.
func (d *daemon) restart(ctx context.Context, k nodes.Key) (web.NodeDone, error) {
	ctx = context.WithoutCancel(ctx)
	d.tests.forget(k)
	text := " is started anew."
	switch k.Kind {
	case nodes.MCP:
		d.tooling.servers.restart(k.Name)
		text = " is started anew; claybot nodes shows whether it connects."
	case nodes.Relay:
		d.listeners.relay.Retry()
		text = " is tried again now, and so are the other relays that wait after a failure."
	case nodes.Model:
		d.renewModel(k.Name)
		text = " is started anew: the next call asks all of its routes and keys, also those that rest after a failure."
	case nodes.Workspace:
		ctx, cancel := context.WithTimeout(ctx, renewTime)
		defer cancel()
		if err := d.tooling.workspaces.manager.Renew(ctx, k.Name); err != nil {
			return web.NodeDone{Text: err.Error()}, nil //nolint:nilerr // it says so
		}
		text = " is started anew: workspaces in which nothing ran have ended, and open again with their files at their next use."
	default:
		err := d.system.Restart(ctx, k.Name)
		d.roster.started()
		if err != nil {
			return web.NodeDone{Text: k.String() + " does not end; it starts anew once it has"}, nil //nolint:nilerr // it says so
		}
	}
	return web.NodeDone{OK: true, Text: k.String() + text}, nil
}

// renewTime bounds how long a provider of workspaces may take to end those that are not used.
const renewTime = time.Minute

// renewModel ends the rests of the model of a node.
func (d *daemon) renewModel(name string) {
	c := d.config.Load()
	keys := modelKeys(c)
	for _, p := range c.Agents.Profiles {
		if keys[fingerprint(p.Model)] == name {
			d.models.renew(p.Model)
		}
	}
}

// restartFor says what to do in place of a restart of a node that keeps nothing between two uses; empty for
// other nodes.
func restartFor(n nodes.View) string {
	switch n.Kind {
	case nodes.Agent:
		return fmt.Sprintf("claybot agents stop %[1]s ends its runs, and claybot agents reset %[1]s begins a new conversation", n.Name)
	case nodes.Profile:
		return "each run of its agents reads it again; to restart its model or an MCP server, name that: claybot nodes restart model/NAME"
	case nodes.Tools, nodes.Memory, nodes.Skills:
		return "each call reads it again; agents cannot use it after claybot nodes stop, and can again after claybot nodes start"
	}
	return ""
}

// failedTests are the tests of connectors and relays that have failed since these last worked. Other kinds
// have states that know it. The zero value is ready for use.
type failedTests struct {
	mu  sync.Mutex
	all map[nodes.Key]failedTest
}

type failedTest struct {
	at   time.Time
	text string
}

// note keeps how a test has ended. What says nothing about a connector changes nothing.
func (f *failedTests) note(n nodes.View, err error) {
	_, refused := errors.AsType[*connectors.PermanentError](err)
	switch {
	case err == nil:
		f.forget(n.Key)
	case n.Kind == nodes.Relay, refused:
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.all == nil {
			f.all = make(map[nodes.Key]failedTest)
		}
		f.all[n.Key] = failedTest{time.Now(), err.Error()}
	}
}

func (f *failedTests) forget(k nodes.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, k)
}

// settle says of a running node, which last worked at a time, that its last test has failed after that.
func (f *failedTests) settle(n *nodes.View, worked time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch t, failed := f.all[n.Key]; {
	case failed && worked.After(t.at):
		delete(f.all, n.Key)
	case failed && n.State == nodes.Running:
		n.State, n.Text = nodes.Failed, t.text
	}
}

// servers are what tried asks; see mcp.Manager.
type servers interface {
	Status() []mcp.ServerStatus
	Retry(server string) error
}

// tried returns the status of a server once it does not start any more. One that waits for its next try is
// tried now.
func tried(ctx context.Context, m servers, name string) (mcp.ServerStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, mcp.ConnectTime)
	defer cancel()
	var since time.Time // of the state that a new try follows
	for {
		i, all := 0, m.Status()
		for i < len(all) && all[i].Name != name {
			i++
		}
		if i == len(all) {
			return mcp.ServerStatus{}, storage.ErrNotFound
		}
		switch s := all[i]; {
		case s.State == mcp.StateStarting:
			since = s.Since
		case s.State != mcp.StateWaiting || !since.IsZero() && s.Since.After(since):
			return s, nil
		case since.IsZero():
			since = s.Since
			if err := m.Retry(name); err != nil {
				return s, fmt.Errorf("retry %s: %w", name, err)
			}
		}
		if !connectors.Sleep(ctx, 100*time.Millisecond) {
			return mcp.ServerStatus{}, fmt.Errorf("the server is not connected after %s, and is still tried: claybot nodes shows how it does", mcp.ConnectTime)
		}
	}
}
