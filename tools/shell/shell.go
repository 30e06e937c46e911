// Package shell are the tools with which an agent runs commands in its workspace: shell, and
// process_list, process_log, process_input and process_stop for those in the background.
//
// Background processes belong to the workspace and to this process of claybot: they end with
// either. Their list and logs are files of the workspace.
//
// Only cmd imports it.
package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace"
)

// Name is the name of the tool.
const Name = "shell"

// The limits of a command whose profile names none.
const (
	DefaultWall = time.Hour
	DefaultIdle = 60 * time.Second
	maxLimit    = 24 * time.Hour
	maxCommand  = 100_000 // bytes
)

const description = "Runs a command with /bin/sh in your workspace, and returns its exit code and the end of its output. " +
	"An exit code other than 0 is a result, not an error. The command has no input: one that waits for some is ended. " +
	"A long output is kept whole in a file, whose name is in the result. A server, or what takes very long, is started with background: true."

// Tools are the tools of this package, on the workspace that open finds for a
// call. A nil error of open comes with a workspace; its errors are as those of a
// workspace.
//
// network is the mode of the network that this workspace has, see
// workspace.Network. What a command says that had one is text of strangers. With
// all of it, the command can send away what it read: a run that has read texts of
// strangers asks first. nil is workspace.NetworkFull.
func Tools(open func(ctx context.Context, env tools.Env) (workspace.Workspace, error), network func(env tools.Env) string) []tools.Tool {
	if network == nil {
		network = func(tools.Env) string { return workspace.NetworkFull }
	}
	type input struct {
		Command string `json:"command" jsonschema:"the command, as it would be typed"`
		Dir     string `json:"cwd,omitempty" jsonschema:"the folder in which it begins; that of the workspace when absent"`
		Wall    *int64 `json:"timeout,omitempty" jsonschema:"seconds after which it is ended, 1 to 86400; 0 for no limit; 3600 when absent"`
		Idle    *int64 `json:"idle_timeout,omitempty" jsonschema:"seconds without any output after which it is ended, 1 to 86400; 0 for no limit; 60 when absent"`
		Beside  bool   `json:"background,omitempty" jsonschema:"true: it goes on without limits of time and the call returns at once; process_list, process_log, process_input and process_stop are for it"`
	}
	reaches := func(env tools.Env, _ json.RawMessage) tools.Class {
		switch network(env) {
		case "", workspace.NetworkNone, workspace.NetworkAllow:
			return tools.Inside
		}
		return tools.Outward
	}
	s := tools.Spec{
		Tool:    llm.Tool{Name: Name, Description: description},
		Effect:  tools.Once,
		Class:   tools.Inside,
		Timeout: maxLimit + 10*time.Minute, // opening the workspace takes time as well
		Scopes:  []string{tools.ScopeShell},
		Whole:   "command",
		Subject: subject,
		Reaches: reaches,
		Listed:  func(env tools.Env, _ json.RawMessage) bool { return !env.Tainted },
	}
	shell := tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		if strings.TrimSpace(in.Command) == "" || len(in.Command) > maxCommand || strings.ContainsRune(in.Command, 0) {
			return tools.Result{}, invalid("field command: want 1 to %d bytes, without NUL", maxCommand)
		}
		wall, err := limit("timeout", in.Wall, DefaultWall)
		if err != nil {
			return tools.Result{}, err
		}
		idle, err := limit("idle_timeout", in.Idle, DefaultIdle)
		if err != nil {
			return tools.Result{}, err
		}
		w, err := open(ctx, env)
		if err != nil {
			return tools.Result{}, tools.WorkspaceFault(err)
		}
		if in.Beside {
			if in.Wall != nil || in.Idle != nil {
				return tools.Result{}, invalid("field background: a background process has no limits of time; leave out timeout and idle_timeout, and end it with %s", processStop)
			}
			id, err := background(ctx, w, in.Command, in.Dir)
			if err != nil {
				return tools.Result{}, tools.WorkspaceFault(err)
			}
			return tools.Result{Text: fmt.Sprintf("process %s is started; see its output with %s", id, processLog), What: fmt.Sprintf(texts.DidStart, cut(in.Command))}, nil
		}
		strange := LetsIn(network(env))
		r, err := w.Exec(ctx, workspace.Command{Shell: in.Command, Dir: in.Dir, Wall: wall, Idle: idle})
		if err != nil {
			return tools.Result{Untrusted: strange}, tools.WorkspaceFault(err) // which has the end of the output
		}
		return tools.Result{Text: describe(r), What: fmt.Sprintf(texts.DidRun, cut(in.Command)), Untrusted: strange}, nil
	})
	return append([]tools.Tool{shell}, kit{open, network, reaches, new(writers)}.tools()...)
}

// LetsIn reports whether a command with a mode of network may read texts of strangers.
func LetsIn(mode string) bool { return mode != "" && mode != workspace.NetworkNone }

// subject is what rules are about: the command as it is, and where it begins
// elsewhere, with that in front. No * of a pattern goes over that, so what is allowed
// in the folder of the workspace is not allowed in one with other settings.
func subject(args json.RawMessage) string {
	var in struct {
		Command string `json:"command"`
		Dir     string `json:"cwd"`
	}
	_ = json.Unmarshal(args, &in) // no command: no subject
	if in.Dir == "" || in.Command == "" {
		return in.Command
	}
	return "cd '" + strings.ReplaceAll(in.Dir, "'", `'\''`) + "' && " + in.Command
}

func invalid(format string, args ...any) error {
	return &tools.Fault{Code: tools.FaultArguments, Text: fmt.Sprintf(format, args...)}
}

func limit(field string, seconds *int64, absent time.Duration) (time.Duration, error) {
	if seconds == nil {
		return absent, nil
	}
	if *seconds < 0 || *seconds > int64(maxLimit/time.Second) {
		return 0, invalid("field %s: %d, want 1 to %d seconds, or 0 for no limit", field, *seconds, int64(maxLimit/time.Second))
	}
	return time.Duration(*seconds) * time.Second, nil
}

func describe(r workspace.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "exit code %d", r.ExitCode)
	if r.Reason != "" {
		fmt.Fprintf(&b, ", %s", r.Reason)
	}
	fmt.Fprintf(&b, ", after %s\n", r.Took.Round(10*time.Millisecond))
	switch {
	case r.Whole != "":
		fmt.Fprintf(&b, "[%d bytes of output; this is its end, the file %s has %s]\n", r.Bytes, r.Whole, part(r.Bytes))
	case r.Output == "":
		b.WriteString("(no output)")
	}
	b.WriteString(r.Output)
	return b.String()
}

func part(bytes int64) string {
	if bytes > workspace.MaxWhole {
		return fmt.Sprintf("the first %d", workspace.MaxWhole)
	}
	return "all of it"
}

func cut(command string) string {
	line, _, more := strings.Cut(strings.TrimSpace(command), "\n")
	if runes := []rune(line); len(runes) > 80 {
		line, more = string(runes[:80]), true
	}
	if more {
		line += "…"
	}
	return line
}
