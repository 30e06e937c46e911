package cron

import (
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/platforms"
)

// The words of a route.
const (
	nowhere     = "none"
	agentPrefix = "agent:"
)

// A target is the destination of a task's output. The zero target is the route
// of the task's agent; a task's own agent has none.
type target struct {
	agent   claybot.AgentID // gets the final text
	place   claybot.Route
	nowhere bool // asked for by name
}

// parseRoute reads none, agent:<id>, and connector/channel with the thread behind
// it, or connector:channel.
func parseRoute(text string) (t target, err error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return t, nil
	case text == nowhere:
		return target{nowhere: true}, nil
	case strings.HasPrefix(text, agentPrefix):
		t.agent = claybot.AgentID(strings.TrimSpace(text[len(agentPrefix):]))
		return t, t.agent.Validate()
	}
	bad := fmt.Errorf("%q is not one of connector/channel, agent:<id> and none", text)
	i := strings.IndexAny(text, "/:")
	if i <= 0 || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return t, bad
	}
	parts := strings.Split(text[i+1:], "/")
	for _, p := range parts {
		if p == "" {
			return t, bad
		}
	}
	n := 1
	if len(parts) > 1 && platforms.InTwoParts(parts[0], parts[1]) {
		n = 2
	}
	t.place = claybot.Route{Connector: text[:i], ChannelID: strings.Join(parts[:n], "/"), ThreadID: strings.Join(parts[n:], "/")}
	return t, nil
}
