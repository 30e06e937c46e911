package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot"
)

const (
	// stillEvery is the time between signs of life of a call.
	stillEvery = 10 * time.Second
	// waitDefault is how many seconds a call of ask_agent waits: the official library for TypeScript gives up after
	// 60, also while it hears of progress.
	waitDefault = 50
	waitMost    = 3600
	// metaKey is the name of a request in the _meta of a call, for clients that have one; it counts as requestId.
	metaKey = "idempotencyKey"
)

func (d desk) ask(ctx context.Context, r *sdk.CallToolRequest, in askArgs) (*sdk.CallToolResult, any, error) {
	if named, ok := r.Params.GetMeta()[metaKey].(string); ok && in.RequestID == "" {
		in.RequestID = named
	}
	wait, err := in.check()
	if err != nil {
		return nil, nil, err
	}
	ctx, c, done := d.connection(ctx, r)
	defer done()
	got, again, err := d.start(ctx, r, in)
	if err != nil {
		return nil, nil, err
	}
	end, err := d.await(ctx, got.Run, wait, progress(ctx, r))
	if err != nil {
		return nil, nil, err
	}
	if end.Agent == "" {
		end.Agent = got.Agent
	}
	switch {
	case again.key == "": // it has a name
	case end.State.Ended():
		d.repeats.send(c, d.log, again)
	default:
		d.repeats.remember(ctx, d.log, d.who, got.Run, again)
	}
	return answer(end), nil, nil
}

// check returns how long to wait, or what is wrong with the arguments.
func (in askArgs) check() (time.Duration, error) {
	switch {
	case strings.TrimSpace(in.Text) == "":
		return 0, errors.New("text is empty")
	case len(in.Text) > maxAsk:
		return 0, fmt.Errorf("text has %d bytes; the limit is %d", len(in.Text), maxAsk)
	case in.Agent != "" && in.Conversation != "":
		return 0, errors.New("give agent or conversation, not both")
	case len(in.Conversation) > 100 || len(in.RequestID) > 200:
		return 0, errors.New("conversation has at most 100 bytes, requestId 200")
	}
	if in.Agent != "" {
		if err := claybot.AgentID(in.Agent).Validate(); err != nil {
			return 0, fmt.Errorf("agent: %w; list_agents lists them", err)
		}
	}
	return waitOf(in.Wait, waitDefault)
}

func waitOf(seconds *int, standard int) (time.Duration, error) {
	if seconds == nil {
		seconds = &standard
	}
	if *seconds < 0 || *seconds > waitMost {
		return 0, fmt.Errorf("wait is 0 to %d seconds", waitMost)
	}
	return time.Duration(*seconds) * time.Second, nil
}

// start hands the request to its agent. A repeated one leads to the run of the first.
func (d desk) start(ctx context.Context, r *sdk.CallToolRequest, in askArgs) (Asked, request, error) {
	q := Ask{Agent: claybot.AgentID(in.Agent), Conversation: in.Conversation, Text: in.Text}
	if in.RequestID != "" {
		q.Key = hashed(d.who, in.Agent, in.Conversation, in.RequestID)
		got, err := d.agents.Ask(ctx, q)
		return got, request{}, err
	}
	base := hashed(d.who, in.Agent, in.Conversation, in.Text, "same")
	session := r.Session.ID()
	anySession := in.Agent != "" || in.Conversation != ""
	for {
		again, known, err := d.repeats.find(ctx, base, session, func(session string) bool { return anySession || !d.over.connected(session) })
		if err != nil {
			return Asked{}, request{}, fmt.Errorf("look up earlier requests: %w", err)
		}
		if known && d.repeats.sent(ctx, again.key) {
			continue
		}
		q.Key = again.key
		got, err := d.agents.Ask(ctx, q)
		if err != nil || !known {
			return got, again, err
		}
		if info, err := d.agents.Run(ctx, got.Run); err != nil || !info.State.Ended() || info.Ended > claybot.At(time.Now().Add(-repeatWindow)) {
			return got, again, err
		}
		d.repeats.forget(d.log, again) // it ended long ago
	}
}

func hashed(parts ...string) string {
	b, _ := json.Marshal(parts) // strings always marshal
	sum := sha256.Sum256(b)
	return "mcp:" + hex.EncodeToString(sum[:16])
}

// await waits for a run, and returns how it is doing when it ends, needs input, or wait is over.
func (d desk) await(ctx context.Context, run claybot.RunID, wait time.Duration, tell func(string)) (RunInfo, error) {
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	end, err := d.follow(within, run, tell)
	switch {
	case ctx.Err() != nil:
		return RunInfo{}, fmt.Errorf("the call ended and the run %s continues; run_status waits for its answer", run)
	case within.Err() != nil:
		return d.agents.Run(ctx, run)
	case err != nil:
		return RunInfo{}, fmt.Errorf("run %s continues, but following it failed: %w; run_status waits for its answer", run, err)
	}
	return end, nil
}

// follow waits for a run. It tells every stillEvery that the run continues: many clients
// give up a call of which they hear nothing for a minute.
func (d desk) follow(ctx context.Context, run claybot.RunID, tell func(string)) (RunInfo, error) {
	if ctx.Err() != nil {
		return RunInfo{}, ctx.Err()
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(stillEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				tell("still working")
			case <-ended:
				return
			}
		}
	})
	defer wg.Wait()
	defer close(ended)
	return d.agents.Follow(ctx, run, tell)
}

// progress tells the client what happens, if it asked for that. It may be used by
// several goroutines.
func progress(ctx context.Context, r *sdk.CallToolRequest) func(string) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func(string) {}
	}
	var mu sync.Mutex // the numbers of notifications grow
	step := 0.0
	return func(words string) {
		mu.Lock()
		defer mu.Unlock()
		step++
		// A client that is not told still gets the answer.
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: step, Message: plain(words, 300)})
	}
}

func answer(r RunInfo) *sdk.CallToolResult {
	out := &sdk.CallToolResult{StructuredContent: r}
	text := r.Text
	switch r.State {
	case claybot.RunSucceeded:
		if text == "" {
			text = "The agent ended without a text."
		}
	case claybot.RunFailed:
		out.IsError = true
		text = "The run failed: " + r.Error
	case claybot.RunCanceled:
		out.IsError = true
		text = "The run was canceled."
	case claybot.RunAwaiting:
		asks := "It does not say for what."
		if len(r.Asks) > 0 {
			asks = "It asks: " + strings.Join(r.Asks, "\n")
		}
		text = fmt.Sprintf("The agent %s needs input. %s\nAnyone allowed to answer does so in claybot (claybot questions); run_status with run %s shows how it goes on.", r.Agent, asks, r.ID)
	default:
		text = fmt.Sprintf("Still working: the run %s has no answer yet, and continues. Call run_status with run %s and wait %d to wait for the answer.", r.ID, r.ID, waitDefault)
	}
	out.Content = []sdk.Content{&sdk.TextContent{Text: text}}
	return out
}

func (d desk) status(ctx context.Context, r *sdk.CallToolRequest, in statusArgs) (*sdk.CallToolResult, any, error) {
	if in.Run == "" || len(in.Run) > 100 {
		return nil, nil, errors.New("run is not the id of a run")
	}
	wait, err := waitOf(in.Wait, 0)
	if err != nil {
		return nil, nil, err
	}
	ctx, c, done := d.connection(ctx, r)
	defer done()
	run := claybot.RunID(in.Run)
	info, err := d.agents.Run(ctx, run)
	if err == nil && !info.State.Ended() && wait > 0 {
		info, err = d.await(ctx, run, wait, progress(ctx, r))
	}
	if err != nil {
		return nil, nil, err
	}
	if info.State.Ended() {
		d.repeats.send(c, d.log, d.repeats.of(ctx, d.log, d.who, run))
	}
	out := answer(info)
	out.IsError = false // the question was how the run is doing, and that is known
	return out, nil, nil
}

func (d desk) stop(ctx context.Context, _ *sdk.CallToolRequest, in stopArgs) (*sdk.CallToolResult, any, error) {
	if in.Run == "" || len(in.Run) > 100 {
		return nil, nil, errors.New("run is not the id of a run")
	}
	run := claybot.RunID(in.Run)
	if err := d.agents.Cancel(ctx, run); err != nil {
		return nil, nil, err
	}
	d.repeats.forget(d.log, d.repeats.of(ctx, d.log, d.who, run)) // the same request again is a new one
	info, err := d.agents.Run(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	out := answer(info)
	if out.IsError = false; !info.State.Ended() {
		out.Content = []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("The run %s is being stopped.", run)}}
	}
	return out, nil, nil
}
