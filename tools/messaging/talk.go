package messaging

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

func askAgent(a tools.Agents, d tools.Directory) tools.Tool {
	type input struct {
		To      string `json:"to" jsonschema:"id of the agent; list_agents tells it"`
		Text    string `json:"text" jsonschema:"the question, with all that the other needs to know"`
		Timeout string `json:"timeout,omitempty" jsonschema:"how long to wait, such as 90s or 10m (a bare number counts seconds); 10m when absent"`
	}
	s := spec("ask_agent", "Asks an existing agent a question and waits for its answer.", tools.Idempotent, scopeAgents)
	return tools.New(reaching(s, d, "to", tools.BothWays), func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		to, err := receiver("to", in.To)
		if err != nil {
			return tools.Result{}, err
		}
		text, err := tools.Required("text", in.Text, maxText)
		if err != nil {
			return tools.Result{}, err
		}
		wait, err := timeout("timeout", in.Timeout)
		if err != nil {
			return tools.Result{}, err
		}
		r, err := a.AskAgent(ctx, env, to, text, wait)
		r.What = fmt.Sprintf(texts.DidAskAgent, to)
		return r, err
	})
}

// parent is the word for the agent that started the caller.
const parent = "parent"

func receiver(field, s string) (string, error) {
	if strings.TrimSpace(s) == parent {
		return parent, nil
	}
	return agentID(field, s)
}

func sendAgentMessage(a tools.Agents, d tools.Directory) tools.Tool {
	type input struct {
		Text   string `json:"text" jsonschema:"the message"`
		To     string `json:"to,omitempty" jsonschema:"id of the agent, or parent for the one that started you; when absent, the agent of the chat that a person wrote in last"`
		Silent bool   `json:"silent,omitempty" jsonschema:"true: the other sees the message in its next turn but is not woken"`
	}
	s := spec("send_agent_message", "Sends a message to another agent and does not wait for an answer.", tools.Idempotent, scopeAgents)
	return tools.New(reaching(s, d, "to", tools.ToOther), func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		text, err := tools.Required("text", in.Text, maxText)
		if err != nil {
			return tools.Result{}, err
		}
		to := ""
		if strings.TrimSpace(in.To) != "" {
			if to, err = receiver("to", in.To); err != nil {
				return tools.Result{}, err
			}
		}
		id, err := a.SendAgentMessage(ctx, env, to, text, in.Silent)
		if err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Text: fmt.Sprintf("message sent to agent %s", id), What: fmt.Sprintf(texts.DidTellAgent, id)}, nil
	})
}

// maxLastText is how much of an agent's last words a list shows, in bytes.
const maxLastText = 200

func listAgents(d tools.Directory) tools.Tool {
	type output struct {
		Agents  []json.RawMessage `json:"agents"`
		LeftOut int               `json:"leftOut,omitempty"`
	}
	s := spec("list_agents", "Lists the agents you can reach: ids, names, who started whom, what each is doing and said last.", tools.ReadOnly, scopeAgents)
	return tools.New(s, func(ctx context.Context, env tools.Env, _ struct{}) (tools.Result, error) {
		all, err := d.ListAgents(ctx, env)
		if err != nil {
			return tools.Result{}, err
		}
		for i := range all {
			all[i].Name, all[i].LastText = tools.Short(all[i].Name, maxName), tools.Short(all[i].LastText, maxLastText)
		}
		var out output
		out.Agents, out.LeftOut, err = fit(all, func(i tools.AgentInfo) bool { return i.Self || i.State != "idle" })
		if err != nil {
			return tools.Result{}, err
		}
		return answer(out)
	})
}

func readAgentHistory(d tools.Directory) tools.Tool {
	type input struct {
		ID   string `json:"id" jsonschema:"id of the agent; list_agents tells it"`
		Last int    `json:"last,omitempty" jsonschema:"how many of the newest entries, 1 to 200; 20 when absent"`
	}
	s := spec("read_agent_history", "Reads the newest entries of another agent's conversation, the newest last. Long entries are shortened.", tools.ReadOnly, scopeAgents)
	return tools.New(reaching(s, d, "id", tools.FromOther), func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		id, err := agentID("id", in.ID)
		if err != nil {
			return tools.Result{}, err
		}
		if in.Last == 0 {
			in.Last = 20
		}
		if in.Last < 1 || in.Last > 200 {
			return tools.Result{}, fmt.Errorf("field last: %d, want 1 to 200", in.Last)
		}
		records, err := d.ReadAgentHistory(ctx, env, id, in.Last)
		if err != nil {
			return tools.Result{}, err
		}
		tainted := slices.ContainsFunc(records, func(r claybot.Record) bool { return r.Untrusted() })
		return tools.Result{Text: readable(records), Untrusted: tainted}, nil
	})
}

func stopAgent(a tools.Agents) tools.Tool {
	type input struct {
		ID string `json:"id" jsonschema:"id of an agent that you or one of your subagents started"`
	}
	s := spec("stop_agent", "Stops what one of your subagents is doing, and all that it started. It keeps its history and can be written to later.", tools.Idempotent, scopeAgents)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		id, err := agentID("id", in.ID)
		if err != nil {
			return tools.Result{}, err
		}
		n, err := a.StopAgent(ctx, env, id)
		what := fmt.Sprintf(texts.DidStopAgent, id)
		switch {
		case err != nil:
			return tools.Result{}, err
		case n == 0:
			return tools.Result{Text: fmt.Sprintf("agent %s was doing nothing", id)}, nil
		case n == 1:
			return tools.Result{Text: fmt.Sprintf("agent %s: 1 run stopped", id), What: what}, nil
		}
		return tools.Result{Text: fmt.Sprintf("agent %s: %d runs stopped", id, n), What: what}, nil
	})
}

// Limits of a timeout, and what is meant when there is none.
const (
	minTimeout = time.Second
	maxTimeout = 24 * time.Hour
)

// timeout reads an optional time limit; 0 when absent.
func timeout(field, s string) (time.Duration, error) {
	if strings.TrimSpace(s) == "" {
		return 0, nil
	}
	d, err := tools.ParseDuration(s, time.Second)
	if err != nil {
		return 0, fmt.Errorf("field %s: %.40q: %w", field, s, err)
	}
	if d < minTimeout || d > maxTimeout {
		return 0, fmt.Errorf("field %s: %.40q: want 1s to 24h", field, s)
	}
	return d, nil
}
