package agentsystem_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A pooledLine is a polling line that sends by a pool.
type pooledLine struct {
	pollingLine
	*connectors.Pool
}

func (p pooledLine) CloseIdleConnections() { p.Pool.Rest() }

func (p pooledLine) Send(ctx context.Context, o claybot.Outgoing) (string, error) {
	resp, err := p.Pool.RoundTrip(new(http.Request))
	if err != nil {
		return "", err
	}
	if err := resp.Body.Close(); err != nil {
		return "", err
	}
	return p.line.Send(ctx, o)
}

// A dialer is a transport that keeps a connection until it is told to close it.
type dialer struct{ opened, closed int }

func (d *dialer) RoundTrip(*http.Request) (*http.Response, error) {
	if d.opened == d.closed {
		d.opened++
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func (d *dialer) CloseIdleConnections() { d.closed = d.opened }

// A node that stands by sends all its messages over one connection, which ends with the node.
func TestStandbyKeepsItsConnection(t *testing.T) {
	p, d := new(polls), new(dialer)
	var standby pooledLine
	prepare := func(c *clusterRig) {
		c.line = func(m *member, l *line) connectors.Connector {
			x := p.line(m, l).(pollingLine)
			if m.name == "node1" {
				return x
			}
			standby = pooledLine{x, connectors.NewPool(d, nil)}
			return standby
		}
	}
	nodesInBubble(t, 2, prepare, func(c *clusterRig) {
		after(5 * time.Second)
		if got := c.nodes[1].line.Health(); got.State != connectors.StateStandby {
			t.Fatalf("node2: %+v", got)
		}
		for _, text := range []string{"one", "two"} {
			if _, err := standby.Send(c.Context(), claybot.Outgoing{ID: text, Text: text, Route: claybot.Route{Connector: "chat", ChannelID: "ann"}}); err != nil {
				t.Fatal(err)
			}
		}
		if d.opened != 1 {
			t.Errorf("two messages opened %d connections, want 1", d.opened)
		}
		c.nodes[1].stop()
		if d.closed != d.opened {
			t.Error("the connection outlives its node")
		}
	})
}
