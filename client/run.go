package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/claybot/claybot"
)

// A Message is what an agent is to do. It is for Agent, or for the agent of a Thread, which is an id of your choice:
// the first message creates that agent, which remembers the earlier ones. With neither, a new agent gets it.
type Message struct {
	Agent  claybot.AgentID
	Thread string
	Text   string // at most 100,000 characters
	// Key makes a repeated message the same one, also after a restart of the caller: 1 to 128 letters, digits and
	// . _ : -. Without it, Start chooses one, so that its own tries are one message.
	Key string
	// Engine is that of the run, or flow: and the name of a workflow; empty: that of the agent.
	Engine string
	// Stateless: the run sees nothing of earlier runs, and later ones nothing of it.
	Stateless bool
}

// Started is a message that the daemon has stored, and will process whatever happens to it.
type Started struct {
	Run   claybot.RunID    `json:"runId"`
	Agent claybot.AgentID  `json:"agentId"`
	State claybot.RunState `json:"state"`
}

// An Output is what a run came to, or of a run that has not ended, what it has so far.
type Output struct {
	Run    claybot.RunID     `json:"runId"`
	State  claybot.RunState  `json:"state"`
	Text   string            `json:"output"` // of the last reply, whole
	Usage  claybot.Usage     `json:"token_usage"`
	Result json.RawMessage   `json:"result"` // of a graph, an object
	Error  *claybot.RunError `json:"error"`  // of a run that failed
}

// retryTries is how often retried makes a request, with retryPause in between.
const (
	retryTries = 5
	retryPause = time.Second
)

// retried makes a request that may be repeated, again while the daemon cannot be reached or is busy.
func retried(ctx context.Context, request func() error) error {
	for try := 1; ; try++ {
		err := request()
		var refused *Error
		final := errors.As(err, &refused) && refused.Status < 500 && refused.Status != http.StatusTooManyRequests
		if err == nil || final || try == retryTries || ctx.Err() != nil {
			return err
		}
		pause := retryPause
		if refused != nil {
			pause = max(pause, refused.Retry)
		}
		claybot.Sleep(ctx, pause)
	}
}

// Start hands a message to the daemon. It tries again while the daemon cannot be reached or is busy, with the same
// key: there is one run all the same.
func (c *Client) Start(ctx context.Context, m Message) (out Started, err error) {
	in := struct {
		Agent     claybot.AgentID   `json:"agentId,omitempty"`
		Thread    map[string]string `json:"descriptor,omitempty"`
		Text      string            `json:"text,omitempty"`
		Key       string            `json:"idempotencyKey"`
		Engine    string            `json:"engine,omitempty"`
		Stateless bool              `json:"stateless,omitempty"`
	}{Agent: m.Agent, Text: m.Text, Key: cmp.Or(m.Key, string(claybot.NewID())), Engine: m.Engine, Stateless: m.Stateless}
	if m.Thread != "" {
		in.Thread = map[string]string{"channelId": m.Thread}
	}
	err = retried(ctx, func() error { return c.Call(ctx, http.MethodPost, "/agents/runs", in, &out) })
	return out, err
}

// Output returns what a run came to.
func (c *Client) Output(ctx context.Context, run claybot.RunID) (out Output, err error) {
	err = c.Call(ctx, http.MethodGet, "/agents/runs/"+url.PathEscape(string(run))+"/output", nil, &out)
	return out, err
}

// Ask starts a message and waits for the end of its run, also while that waits for a person; bound ctx to wait for
// less. A run that failed or was canceled has that State, and no error of Ask. With an error, Run is set if the message
// was started: Follow and Output go on from there.
func (c *Client) Ask(ctx context.Context, m Message) (Output, error) {
	s, err := c.Start(ctx, m)
	if err != nil {
		return Output{}, err
	}
	for _, err := range c.Follow(ctx, s.Run, 0) {
		if err != nil {
			return Output{Run: s.Run}, fmt.Errorf("follow run %s: %w", s.Run, err)
		}
	}
	var out Output
	err = retried(ctx, func() (err error) {
		out, err = c.Output(ctx, s.Run)
		return err
	})
	if err != nil {
		return Output{Run: s.Run}, fmt.Errorf("read the output of run %s: %w", s.Run, err)
	}
	return out, nil
}
