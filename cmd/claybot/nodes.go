package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/tools/mcp"
	"github.com/claybot/claybot/web"
)

type nodesCmd struct {
	List    nodesListCmd    `cmd:"" default:"withargs" eg:"nodes\nnodes list --mermaid" help:"List what is configured: connectors, schedules, workflows, profiles, models, groups of tools, MCP servers, workspaces, notes, skills and relays, and stopped agents."`
	Start   nodesStartCmd   `cmd:"" eg:"nodes start telegram" help:"Start a stopped node."`
	Stop    nodesStopCmd    `cmd:"" eg:"nodes stop telegram\nnodes stop mcp/github\nnodes stop tools/web\nnodes stop model/gpt-5-mini" help:"Stop a node until it is started again, also after a restart of the daemon."`
	Restart nodesRestartCmd `cmd:"" eg:"nodes restart telegram" help:"End a node and start it again."`
	Test    nodesTestCmd    `cmd:"" eg:"nodes test model/gpt-5-mini" help:"Ask the platform, server or model of a node whether it works."`
}

type (
	nodesListCmd struct {
		JSON    bool `name:"json" help:"Print JSON."`
		Mermaid bool `help:"Print a Mermaid flowchart."`
	}
	nodeArg struct {
		Node string `arg:"" help:"Name of the node, or kind/name, as nodes lists them, or agent/ID."`
	}
	nodesStartCmd   struct{ nodeArg }
	nodesStopCmd    struct{ nodeArg }
	nodesRestartCmd struct{ nodeArg }
	nodesTestCmd    struct{ nodeArg }
)

// Run lists the nodes.
func (c nodesListCmd) Run(e *env) error {
	return show(e, c.JSON, to("/nodes"), func(out web.NodeList) error {
		if c.Mermaid {
			return e.text(nodes.Mermaid(out.Nodes))
		}
		rows := each(out.Nodes, func(n nodes.View) []string {
			return []string{n.Kind, n.Name, n.Type, n.State, usesOf(n), nodeNote(n)}
		})
		return e.list("KIND,NAME,TYPE,STATE,USES,NOTE", "No nodes.\n", rows)
	})
}

// nodeNote is what a node says, with the next step and the code of the finding about it.
func nodeNote(n nodes.View) string {
	note := connectors.OneLine(join("; ", n.Text, n.Next), 600)
	if n.Code != "" {
		note += " [" + n.Code + "]"
	}
	return note
}

// usesOf names what a node uses, as kind/name,name.
func usesOf(n nodes.View) string {
	var b strings.Builder
	for i, k := range n.Uses {
		switch {
		case i == 0:
			b.WriteString(k.String())
		case k.Kind == n.Uses[i-1].Kind:
			b.WriteString("," + k.Name)
		default:
			b.WriteString(" " + k.String())
		}
	}
	return b.String()
}

// Run starts a node.
func (c nodesStartCmd) Run(e *env) error { return c.call(e, nodes.Start) }

// Run stops a node.
func (c nodesStopCmd) Run(e *env) error { return c.call(e, nodes.Stop) }

// Run restarts a node.
func (c nodesRestartCmd) Run(e *env) error { return c.call(e, nodes.Restart) }

// Run tests a node.
func (c nodesTestCmd) Run(e *env) error { return c.call(e, nodes.Test) }

// nodeTimeout bounds the calls of nodes: the daemon may wait for a server as long as its connection may take.
const nodeTimeout = mcp.ConnectTime + callTimeout

// call finds the node, and calls it.
func (c nodeArg) call(e *env, call string) error {
	k, err := c.key(e)
	if err != nil {
		return err
	}
	path := "/nodes/" + strings.Join([]string{k.Kind, url.PathEscape(k.Name), call}, "/")
	var done web.NodeDone
	err = e.callWithin(nodeTimeout, "POST", path, nil, &done)
	if no, is := errors.AsType[*refusal](err); is && no.status == http.StatusNotFound && k.Kind == nodes.Agent {
		return usageError{fmt.Errorf("no agent has the id %q; claybot agents list shows all", k.Name)}
	}
	switch {
	case err != nil && strings.Contains(err.Error(), nothingToAsk):
		return usageError{err}
	case err != nil:
		return err
	case !done.OK:
		return errors.New(k.String() + ": " + done.Text)
	case call == nodes.Test:
		done.Text = k.String() + ": " + done.Text
	}
	return e.text(done.Text + "\n")
}

// key returns the node that is meant. Agents are not listed, and named by their kind.
func (c nodeArg) key(e *env) (nodes.Key, error) {
	if id, is := strings.CutPrefix(c.Node, nodes.Agent+"/"); is {
		return nodes.Key{Kind: nodes.Agent, Name: id}, nil
	}
	all, err := ask[web.NodeList](e, "GET", to("/nodes"), nil)
	if err != nil {
		return nodes.Key{}, err
	}
	n, err := nodes.Find(all.Nodes, c.Node, configs.Nearest)
	if err != nil {
		return nodes.Key{}, usageError{err}
	}
	return n.Key, nil
}
