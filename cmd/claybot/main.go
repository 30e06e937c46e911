// Command claybot is the daemon that connects AI agents to chats, and the
// commands that talk to it.
//
// main parses flags and wires the parts together; everything it does is in the
// packages below. It is the only place that knows all implementations.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	_ "time/tzdata" // zones of tasks, also on machines without a zone database

	"github.com/alecthomas/kong"

	"github.com/claybot/claybot/storage"
)

// version is set by the build.
var version = "dev"

// The exit codes, part of the interface for service managers and scripts.
const (
	exitOK      = 0
	exitError   = 1
	exitUsage   = 2
	exitConfig  = 3
	exitLocked  = 4
	exitDamaged = 5
	// exitInterrupted is what shells make of an end by Ctrl-C.
	exitInterrupted = 130
)

// cli is the command line.
type cli struct {
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	Config   string `short:"c" placeholder:"FILE" help:"Configuration file. Default: $$CLAYBOT_CONFIG, else claybot.yaml if there is one."`
	DataDir  string `placeholder:"DIR" help:"Data directory. Default: $$CLAYBOT_DATA_DIR, else .claybot."`
	HTTP     string `name:"http" placeholder:"ADDR" help:"Address of the web page, or off. Default: $$CLAYBOT_HTTP_ADDR, else 127.0.0.1:8420."`
	Access   string `placeholder:"MODE" help:"Who may speak: pairing, allowlist or open."`
	Model    string `placeholder:"NAME" help:"The model to ask, or demo."`
	Log      string `placeholder:"FORM" help:"json or text. Default: text on a terminal, else json."`
	LogLevel string `placeholder:"LEVEL" help:"debug, info, warn or error."`

	Serve   serveCmd   `cmd:"" help:"Run the daemon."`
	Chat    chatCmd    `cmd:"" help:"Chat in the terminal, with the running daemon or with one of its own."`
	Demo    demoCmd    `cmd:"" help:"Watch claybot work: daemon, emulated platforms and scripted people. No accounts, no network."`
	Status  statusCmd  `cmd:"" help:"Show how the running daemon is doing."`
	Health  healthCmd  `cmd:"" name:"healthcheck" help:"Check that the daemon responds, for container probes; exits with 1 if not."`
	Nodes   nodesCmd   `cmd:"" help:"List the processes that share the store."`
	Doctor  doctorCmd  `cmd:"" help:"Look for what is wrong with this installation; needs no running daemon."`
	Agents  agentsCmd  `cmd:"" help:"List the agents of the running daemon; stop, reset or delete one."`
	Inbox   inboxCmd   `cmd:"" help:"Show what waits for an agent, or drop it."`
	Parked  parkedCmd  `cmd:"" help:"List messages whose agents cannot be used, or drop them."`
	Runs    runsCmd    `cmd:"" help:"List runs; show, follow or cancel one."`
	Undo    undoCmd    `cmd:"" help:"Take back what a run did."`
	Why     whyCmd     `cmd:"" help:"Tell what became of a message, and why there is no reply."`
	Outbox  outboxCmd  `cmd:"" help:"List messages on their way out; retry or drop one."`
	Usage   usageCmd   `cmd:"" help:"Show what models took, in tokens and money."`
	Budgets budgetsCmd `cmd:"" help:"Show what may be spent and what is left; extend a budget."`

	Questions questionsCmd `cmd:"" help:"List what agents ask; show one question."`
	Answer    answerCmd    `cmd:"" help:"Answer a question."`
	Approve   approveCmd   `cmd:"" help:"Approve an action that an agent asks for."`
	Deny      denyCmd      `cmd:"" help:"Deny an action that an agent asks for."`
	Rules     rulesCmd     `cmd:"" help:"List what was approved for good, or have an agent ask again."`
	Graph     graphCmd     `cmd:"" help:"Show the graphs by which agents work."`

	Tools      toolsCmd      `cmd:"" help:"List the tools of agents."`
	Workspaces workspacesCmd `cmd:"" help:"List the workspaces in which tools act; remove one."`
	Skills     skillsCmd     `cmd:"" help:"List skills; allow or forbid one."`
	Notes      notesCmd      `cmd:"" help:"Show what agents have noted; write, delete or revert a note."`

	MCP   mcpCmd   `cmd:"" name:"mcp" help:"Offer agents to other programs by the Model Context Protocol; look after servers of tools."`
	Relay relayCmd `cmd:"" name:"egress-relay" hidden:"" help:"Runs inside the network of a workspace."`

	Cron      cronCmd      `cmd:"" help:"List scheduled tasks; add, change or run one."`
	Heartbeat heartbeatCmd `cmd:"" help:"List the tasks of the heartbeat, or run them."`
	Reminders remindersCmd `cmd:"" help:"List what an agent will be reminded of."`

	Export  exportCmd  `cmd:"" help:"Copy all that is stored into a data directory, or the files of one agent."`
	Import  importCmd  `cmd:"" help:"Copy a data directory into the store that is configured, which is empty."`
	Migrate migrateCmd `cmd:"" help:"Bring the schema of the PostgreSQL database to this version and exit; run it before an upgrade with long migrations."`

	Restore restoreCmd `cmd:"" help:"Restore a damaged database of a data directory from the newest verified copy."`

	Pair    pairCmd    `cmd:"" help:"Decide who may speak with the bot."`
	Token   tokenCmd   `cmd:"" help:"Make tokens for programs that use the API; list, rotate or revoke them."`
	Open    openCmd    `cmd:"" help:"Print a fresh login link for the web page."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// env is what commands use of the process around them.
type env struct {
	*cli
	in       io.Reader
	out, err io.Writer
	lookup   func(string) (string, bool)
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main with its surroundings as arguments. It returns the exit code.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	var c cli
	code := -1
	switch {
	case len(args) == 0: // a mistake, so the help goes where mistakes go
		run([]string{"--help"}, in, errs, errs)
		return exitUsage
	case args[0] == "help":
		args = append(args[1:], "--help")
	}
	parser, err := kong.New(&c,
		kong.Name("claybot"),
		kong.Description("Connects AI agents to chats, and loses nothing."),
		kong.Writers(out, errs),
		kong.Vars{"version": "claybot " + version},
		kong.Exit(func(n int) { code = n }),
		kong.UsageOnError(),
	)
	if err != nil {
		fmt.Fprintln(errs, "claybot:", err)
		return exitError
	}
	ctx, err := parser.Parse(args)
	if code >= 0 { // --help was printed
		return code
	}
	if err == nil {
		err = emptyFlag(parser.Model.Flags)
	}
	if err != nil {
		fmt.Fprintf(errs, "claybot: %v\nTry: claybot --help\n", err)
		return exitUsage
	}
	err = ctx.Run(&env{cli: &c, in: in, out: out, err: errs, lookup: os.LookupEnv})
	if err != nil && !errors.Is(err, errSilent) {
		fmt.Fprintln(errs, "claybot:", err)
	}
	return exitCode(err)
}

// emptyFlag refuses a setting of the command line without a value: what holds without
// the flag may allow more.
func emptyFlag(flags []*kong.Flag) error {
	for _, f := range flags {
		if f.Set && f.Target.Kind() == reflect.String && strings.TrimSpace(f.Target.String()) == "" {
			return fmt.Errorf("--%s: has no value; leave the flag out or give it one", f.Name)
		}
	}
	return nil
}

// errSilent ends a command with exit code 1 that has said everything itself.
var errSilent = errors.New("failed")

// A usageError is a mistake on the command line.
type usageError struct{ error }

// A configError is a configuration with which nothing can start.
type configError struct{ error }

// An interruptedError is an end that somebody asked for by Ctrl-C, and was told of.
type interruptedError struct{}

func (interruptedError) Error() string { return "interrupted" }
func (interruptedError) Unwrap() error { return errSilent }

func (e configError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var usage usageError
	var config configError
	var interrupted interruptedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &interrupted):
		return exitInterrupted
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, storage.ErrLocked):
		return exitLocked
	case errors.Is(err, storage.ErrDamaged):
		return exitDamaged
	case errors.As(err, &config):
		return exitConfig
	}
	return exitError
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(e *env) error {
	_, err := fmt.Fprintln(e.out, "claybot", version)
	return err
}
