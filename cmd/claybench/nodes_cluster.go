package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// nodeNames are what the nodes of the rig are called.
var nodeNames = []string{"a", "b", "c"}

// A cluster is nodes over one database, each with its own network to it.
type cluster struct {
	bin   string
	db    *database
	env   []string      // of every node
	lease time.Duration // 0: that which nodes have by default
	nodes []*node
	// direct leaves the wires out, which take processor time.
	direct bool
}

// A node is one place where a process of the daemon lives, dies and comes back.
type node struct {
	*cluster
	name string
	dir  string
	wire *postgrestest.Proxy
	door *door
	p    *process // nil while it is dead
	// away says that nothing may wait for it: it is dead, frozen or cut off.
	away atomic.Bool
}

// openCluster prepares nodes below dir, with a configuration each; none is
// started. The first are those that nodeNames begins with.
func openCluster(dir, bin string, db *database, n int, lease time.Duration, config string, env ...string) (*cluster, error) {
	c := &cluster{bin: bin, db: db, env: env, lease: lease}
	for _, name := range nodeNames[:n] {
		x := &node{cluster: c, name: name, dir: filepath.Join(dir, "node-"+name), door: newDoor()}
		x.away.Store(true)
		if err := os.MkdirAll(x.dir, 0o700); err != nil {
			return nil, errors.Join(err, c.close())
		}
		if err := os.WriteFile(filepath.Join(x.dir, "claybot.yaml"), []byte(config), 0o600); err != nil {
			return nil, errors.Join(err, c.close())
		}
		w, err := postgrestest.StartProxy(db.Addr())
		if err != nil {
			return nil, errors.Join(err, c.close())
		}
		x.wire = w
		c.nodes = append(c.nodes, x)
	}
	return c, nil
}

// startAll starts the nodes one after the other and gets tokens for their doors.
func (c *cluster) startAll(ctx context.Context) error {
	for _, n := range c.nodes {
		if err := n.start(ctx); err != nil {
			return err
		}
		if err := n.login(ctx); err != nil {
			return err
		}
	}
	return nil
}

// login gets a token: that of the first node, where the others take it.
func (n *node) login(ctx context.Context) error {
	if first := n.nodes[0]; first != n {
		n.door.token = first.door.token
		if _, err := n.door.call(ctx, http.MethodGet, "/status", nil); err == nil {
			return nil
		}
	}
	return n.door.login(ctx, n.bin, n.p, "operate")
}

func (n *node) environment() []string {
	store := n.db.local(n.name)
	if !n.direct {
		store = n.db.through(n.wire.Addr(), n.name)
	}
	env := append([]string{
		"CLAYBOT_STORAGE_URL=" + store, "CLAYBOT_NODE_NAME=" + n.name, "CLAYBOT_HTTP_ADDR=127.0.0.1:0",
	}, n.env...)
	if n.lease > 0 {
		env = append(env, "CLAYBOT_NODE_LEASE="+n.lease.String())
	}
	return env
}

// start runs the node and waits until it is ready.
func (n *node) start(ctx context.Context) error {
	p, err := start(ctx, n.bin, n.dir, n.environment()...)
	if err != nil {
		return err
	}
	if err := p.waitReady(readyLimit); err != nil {
		err = errors.Join(err, p.kill())
		return fmt.Errorf("node %s: %w\n%s", n.name, err, lastLines(p.log.String(), 5))
	}
	base := "http://" + p.addr
	n.door.base.Store(&base)
	n.p = p
	n.away.Store(false)
	return nil
}

// kill ends the node as kill -9 does.
func (n *node) kill() error {
	if n.p == nil {
		return nil
	}
	n.away.Store(true)
	err := n.p.kill()
	n.p = nil
	return err
}

// term ends the node in order.
func (n *node) term() error {
	if n.p == nil {
		return nil
	}
	n.away.Store(true)
	p := n.p
	n.p = nil
	if err := p.term(); err != nil {
		return fmt.Errorf("orderly end of node %s: %w\n%s", n.name, err, p.log)
	}
	return nil
}

// freeze stops the process where it is; thaw lets it go on.
func (n *node) freeze() error {
	n.away.Store(true)
	return n.p.cmd.Process.Signal(syscall.SIGSTOP)
}

func (n *node) thaw() error {
	err := n.p.cmd.Process.Signal(syscall.SIGCONT)
	n.away.Store(false)
	return err
}

// alive reports whether the process is there, and has not ended by itself.
func (n *node) alive() bool {
	if n.p == nil {
		return false
	}
	select {
	case err := <-n.p.ended:
		n.p.ended <- err
		return false
	default:
		return true
	}
}

// close ends everything.
func (c *cluster) close() error {
	var all []error
	for _, n := range c.nodes {
		if n.p != nil {
			_ = n.p.cmd.Process.Signal(syscall.SIGCONT) // a frozen one is killed as well
		}
		all = append(all, n.kill(), n.wire.Close())
		n.door.close()
	}
	return errors.Join(all...)
}
