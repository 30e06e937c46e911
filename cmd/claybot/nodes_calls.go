package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/web"
)

// A nodeDesk implements web.Nodes.
type nodeDesk struct{ *daemon }

// followEvery is how often a member looks what operators have stopped by others.
const followEvery = 2 * time.Second

// replace puts the connectors of the roster in force. Of several callers, the last one has what
// all of them changed.
func (d *daemon) replace(ctx context.Context) {
	d.replacing <- struct{}{}
	defer func() { <-d.replacing }()
	d.system.Replace(ctx, d.roster.all()...)
	d.roster.started()
}

// followOrders applies what operators stop and start by other members, until ctx is done.
func (d *daemon) followOrders(ctx context.Context) {
	if d.stores.shared == nil {
		return
	}
	for connectors.Sleep(ctx, followEvery) {
		switch changed, err := d.stores.orders.Read(ctx); {
		case err != nil && ctx.Err() == nil:
			d.log.Debug("failed to read which nodes are stopped, retrying", "err", err)
		case changed:
			d.applyOrders(ctx)
		}
	}
}

// applyOrders ends what is stopped, and begins what is not.
func (d *daemon) applyOrders(ctx context.Context) {
	d.tooling.servers.apply()
	for _, s := range d.tooling.servers.manager.Status() {
		if s.State == mcp.StateWaiting { // perhaps for workspaces that were stopped
			_ = d.tooling.servers.manager.Retry(s.Name) // it may be gone just now
		}
	}
	d.listeners.relay.Retry()
	d.replace(ctx)
	if err := d.system.Reschedule(ctx); err != nil {
		d.log.Error("failed to start agents that were stopped; they start in a while", "err", err)
	}
}

// CallNode implements web.Nodes.
func (d nodeDesk) CallNode(ctx context.Context, k nodes.Key, call, by string) (done web.NodeDone, err error) {
	if all := []string{nodes.Start, nodes.Stop, nodes.Restart, nodes.Test}; !slices.Contains(all, call) {
		return done, web.Refusal(fmt.Sprintf("nodes have no call %.40q; the calls are %s", call, join(", ", all...)))
	}
	n, err := d.node(ctx, k)
	if err != nil {
		return done, err
	}
	if !n.Has(call) {
		return done, web.Refusal(cannot(n, call))
	}
	switch call {
	case nodes.Test:
		return d.test(ctx, n)
	case nodes.Restart:
		if n.Stopped != nil {
			return done, web.Refusal(fmt.Sprintf("%s is stopped; start it: claybot nodes start %s", k, k))
		}
		if done, err = d.restart(ctx, k); err == nil && done.OK {
			d.log.Info("node restarted", "node", k.String(), "by", by)
		}
		return done, err
	}
	changed, done, word := false, web.NodeDone{OK: true}, "node started"
	if call == nodes.Stop {
		done.Text, word = stopped(k), "node stopped"
		changed, err = d.stores.orders.Stop(ctx, k, by)
	} else {
		d.tests.forget(k)
		done.Text = k.String() + " is started."
		changed, err = d.stores.orders.Start(ctx, k)
	}
	if err != nil {
		return done, err //nolint:wrapcheck // it says what failed
	}
	if changed {
		d.log.Info(word, "node", k.String(), "by", by) //nolint:sloglint // one of two constants
		d.applyOrders(context.WithoutCancel(ctx))
	}
	return done, nil
}

// node returns one node; storage.ErrNotFound.
func (d nodeDesk) node(ctx context.Context, k nodes.Key) (nodes.View, error) {
	if k.Kind == nodes.Agent {
		return d.agentNode(ctx, claybot.AgentID(k.Name))
	}
	all, err := d.Nodes(ctx)
	if err != nil {
		return nodes.View{}, err
	}
	i := slices.IndexFunc(all, func(n nodes.View) bool { return n.Key == k })
	if i < 0 {
		return nodes.View{}, storage.ErrNotFound
	}
	return all[i], nil
}

// nothingToAsk ends what is said of a node without a test.
const nothingToAsk = " has nothing to ask; claybot nodes shows how it does"

// cannot says why a node has no such call.
func cannot(n nodes.View, call string) string {
	switch {
	case call == nodes.Test:
		return n.Key.String() + nothingToAsk
	case call == nodes.Restart && restartFor(n) != "":
		return n.Key.String() + " has nothing to restart: " + restartFor(n)
	case n.Kind == nodes.Connector && len(n.Can) == 0:
		return n.Key.String() + " is how operators reach claybot, and stays"
	case n.Kind == nodes.Flow:
		return n.Key.String() + " follows its file: move it out of the folder flows to stop the workflow"
	case len(n.Can) == 0:
		return n.Key.String() + " follows the configuration: change it with claybot config"
	}
	return fmt.Sprintf("%s has no %s, only: %s", n.Key, call, join(", ", n.Can...))
}

// stopped says what a stopped node means.
func stopped(k nodes.Key) string {
	switch k.Kind {
	case nodes.Schedule:
		return k.String() + " is stopped: nothing starts at its time until it is started again."
	case nodes.MCP, nodes.Tools:
		return k.String() + " is stopped: agents have none of its tools until it is started again."
	case nodes.Workspace:
		return k.String() + " is stopped: commands that run go on, and tools that need a workspace say so until it is started again."
	case nodes.Memory:
		return k.String() + " is stopped: agents can neither read nor write notes until it is started again; operators still can."
	case nodes.Skills:
		return k.String() + " is stopped: agents can use no skills, and people have none of their commands, until it is started again."
	case nodes.Relay:
		return k.String() + " is stopped: events for it wait, and are sent when it is started again."
	case nodes.Model, nodes.Profile:
		return k.String() + " is stopped: runs that have begun go on, and messages for its agents wait until it is started again."
	case nodes.Agent:
		return k.String() + " is stopped: a run that has begun goes on, and messages for it wait until it is started again."
	}
	return k.String() + " is stopped: nothing comes in, what was accepted goes on, and replies wait until it is started again."
}

// test asks what a node stands for whether it works.
func (d *daemon) test(ctx context.Context, n nodes.View) (done web.NodeDone, err error) {
	if n.Kind == nodes.MCP {
		err = d.testServer(ctx, n.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	switch n.Kind {
	case nodes.MCP:
		done.Text = "the server is connected and lists its tools"
	case nodes.Model:
		err = d.testModel(ctx, n.Name)
		done.Text = "the model answers"
	case nodes.Workspace:
		err = d.tooling.workspaces.manager.Check(ctx, n.Name)
		done.Text = "workspaces can be opened"
	case nodes.Relay:
		done.Text, err = receiverAnswer(ctx, receiversOf(*d.config.Load())["relay "+n.Name])
	default:
		v, verifies := d.configured(n.Name).(connectors.Verifier)
		if !verifies { // it went just now
			return done, storage.ErrNotFound
		}
		err = v.Verify(ctx)
		done.Text = "the platform takes the credentials"
		if n.Type == platforms.Webhook {
			done.Text = "its secret can be used; nothing was asked, because only a request of the sender shows whether it has the same one"
		}
	}
	if !errors.Is(ctx.Err(), context.Canceled) { // otherwise the operator has left
		d.tests.note(n, err)
	}
	done.OK = err == nil
	if err != nil {
		done.Text = err.Error()
	}
	return done, nil
}

// configured returns the connector of a name, or where that keeps its old settings, another one with those of the
// configuration, which does not run.
func (d *daemon) configured(name string) connectors.Connector {
	c := *d.config.Load()
	if s, there := c.Connectors.Instance(name); there && d.config.keeps(name) != nil {
		return d.make(c, configs.Instance{Name: name, Settings: s})
	}
	return d.roster.of(name)
}

// testServer connects a server now that waits for its next try, and waits for the result.
func (d *daemon) testServer(ctx context.Context, name string) error {
	switch s, err := tried(ctx, d.tooling.servers.manager, name); {
	case err != nil:
		return err
	case s.State == mcp.StateConnected:
		return nil
	case s.State == mcp.StateWaiting:
		return d.serverFault(s)
	default:
		return errors.New(cmp.Or(d.stores.nodeStopped(nodes.Key{Kind: nodes.MCP, Name: name}), join(": ", s.State, s.LastError)))
	}
}

// serverFault is why a server is not connected, with the next step where the cause is known.
func (d *daemon) serverFault(s mcp.ServerStatus) error {
	if err := missingPrograms(d.config.Load().Tools)[s.Name]; err != nil {
		return fmt.Errorf("%w; %s", err, programNext(s.Name))
	}
	return errors.New(s.LastError)
}

// testModel asks a model once, at its usual price.
func (d *daemon) testModel(ctx context.Context, name string) error {
	c := d.config.Load()
	keys := modelKeys(c)
	for _, p := range c.Agents.Profiles {
		switch {
		case keys[fingerprint(p.Model)] != name:
			continue
		case p.Model.Demo():
			return nil
		case p.Model.Off() != "":
			return errors.New(p.Model.Off())
		}
		err := askModel(ctx, p.Model)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("it has not answered within %s; a model that has to be loaded first takes longer", verifyTime)
		}
		if !errors.Is(ctx.Err(), context.Canceled) {
			d.models.of(p.Model).tested(err)
		}
		if _, problem := d.models.state(p.Model); err != nil && problem.code != "" {
			err = fmt.Errorf("%w; next: %s", err, cmp.Or(problem.next(), nextOf(problem.code)))
		}
		return err
	}
	return storage.ErrNotFound
}

// orderOf returns the order that stops a connector; nil for none.
func (d *daemon) orderOf(name string) *nodes.Order {
	return d.stores.orders.Stopped(keyOfConnector(name))
}

// relayStopped returns why an operator has stopped a relay of events; empty: none has.
func (s *stores) relayStopped(name string) string {
	return s.nodeStopped(nodes.Key{Kind: nodes.Relay, Name: name})
}

// nodeStopped returns why an operator has stopped a node, and how it is started; empty: none has.
func (s *stores) nodeStopped(k nodes.Key) string {
	if order := s.orders.Stopped(k); order != nil {
		return stoppedBy(*order) + "; " + nodes.Fix(k)
	}
	return ""
}

var _ web.Nodes = nodeDesk{}
