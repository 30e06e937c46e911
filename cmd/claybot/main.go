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
	"slices"
	"strings"
	_ "time/tzdata" // zones of tasks, also on machines without a zone database

	"github.com/alecthomas/kong"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
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

// cli is the command line: its flags and its groups of commands, in the order of the help.
type cli struct {
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`
	settingFlags
	daemonCommands
	messageCommands
	questionCommands
	toolCommands
	scheduleCommands
	storeCommands
	accessCommands
}

// daemonCLI is the part of cli that serve needs. kong reads the tags of all commands, which
// is a good part of the start.
type daemonCLI struct {
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`
	settingFlags
	Serve serveCmd `cmd:"" help:"Run the daemon."`
}

type (
	// settingFlags override settings of the configuration.
	settingFlags struct {
		Config   string `short:"c" placeholder:"FILE" help:"Configuration file. Default: $$CLAYBOT_CONFIG, else claybot.yaml if there is one."`
		DataDir  string `placeholder:"DIR" help:"Data directory. Default: $$CLAYBOT_DATA_DIR, else .claybot."`
		HTTP     string `name:"http" placeholder:"ADDR" help:"Listen address of the web page, or off. Default: $$CLAYBOT_HTTP_ADDR, else 127.0.0.1:8420."`
		Access   string `placeholder:"MODE" help:"Access mode: pairing, allowlist or open."`
		Model    string `placeholder:"NAME" help:"Name of the model, or demo."`
		Log      string `placeholder:"FORM" help:"Log format: json or text. Default: text on a terminal, else json."`
		LogLevel string `placeholder:"LEVEL" help:"Log level: debug, info, warn or error."`
	}
	daemonCommands struct {
		Serve   serveCmd   `cmd:"" help:"Run the daemon."`
		Chat    chatCmd    `cmd:"" help:"Chat in the terminal; starts a daemon if none is running."`
		Demo    demoCmd    `cmd:"" help:"Play a demo with a daemon, emulated platforms and scripted users; needs no accounts and no network."`
		Stop    stopCmd    `cmd:"" help:"Stop the running daemon, and wait until it has ended."`
		Service serviceCmd `cmd:"" help:"Run claybot as a service of this machine."`
		Status  statusCmd  `cmd:"" help:"Show the status of the running daemon."`
		Health  healthCmd  `cmd:"" name:"healthcheck" help:"Check that the daemon responds, for container probes; exit with 1 if it doesn't."`
		Nodes   nodesCmd   `cmd:"" help:"List cluster members."`
		Doctor  doctorCmd  `cmd:"" help:"Diagnose this installation; needs no running daemon."`
		Slack   slackCmd   `cmd:"" help:"Set up a Slack app."`
		Texts   textsCmd   `cmd:"" help:"List the texts of claybot that the configuration can replace; needs no running daemon."`
	}
	messageCommands struct {
		Agents  agentsCmd  `cmd:"" help:"List the agents of the running daemon; stop, reset or delete one."`
		Inbox   inboxCmd   `cmd:"" help:"List the waiting messages of an agent, or drop them."`
		Parked  parkedCmd  `cmd:"" help:"List messages of faulty agents, or drop them."`
		Runs    runsCmd    `cmd:"" help:"List runs; show, follow or cancel one."`
		Undo    undoCmd    `cmd:"" help:"Undo the side effects of a run."`
		Why     whyCmd     `cmd:"" help:"Trace a message from receipt to reply."`
		Outbox  outboxCmd  `cmd:"" help:"List the outbox; retry or drop a delivery."`
		Usage   usageCmd   `cmd:"" help:"Show token usage and cost."`
		Budgets budgetsCmd `cmd:"" help:"Show budgets and what is left of them; extend a budget."`
	}
	questionCommands struct {
		Questions questionsCmd `cmd:"" help:"List pending questions; show one."`
		Answer    answerCmd    `cmd:"" help:"Answer a question."`
		Approve   approveCmd   `cmd:"" help:"Approve an action of an agent."`
		Deny      denyCmd      `cmd:"" help:"Deny an action of an agent."`
		Rules     rulesCmd     `cmd:"" help:"List standing approvals, or remove one."`
		Graph     graphCmd     `cmd:"" help:"Show agent graphs."`
	}
	toolCommands struct {
		Tools      toolsCmd      `cmd:"" help:"List the tools of agents."`
		Workspaces workspacesCmd `cmd:"" help:"List workspaces; remove one."`
		Skills     skillsCmd     `cmd:"" help:"List skills; allow or forbid one."`
		Notes      notesCmd      `cmd:"" help:"Read notes; write, delete or restore one."`
		MCP        mcpCmd        `cmd:"" name:"mcp" help:"Serve agents over the Model Context Protocol; manage MCP servers."`
		Relay      relayCmd      `cmd:"" name:"egress-relay" hidden:"" help:"Run the egress relay inside the network of a workspace."`
	}
	scheduleCommands struct {
		Cron      cronCmd      `cmd:"" help:"List scheduled tasks; create, edit or run one."`
		Heartbeat heartbeatCmd `cmd:"" help:"List heartbeat tasks, or run them."`
		Reminders remindersCmd `cmd:"" help:"List the reminders of an agent."`
	}
	storeCommands struct {
		Export  exportCmd  `cmd:"" help:"Export the store, or one agent, to a data directory."`
		Import  importCmd  `cmd:"" help:"Import a data directory into the configured store, which must be empty."`
		Migrate migrateCmd `cmd:"" help:"Migrate the schema of the PostgreSQL database to this version and exit; run it before an upgrade with long migrations."`
		Restore restoreCmd `cmd:"" help:"Restore a damaged database of a data directory from the newest verified copy."`
	}
	accessCommands struct {
		Forget  forgetCmd  `cmd:"" help:"Erase what claybot keeps of a person."`
		Pair    pairCmd    `cmd:"" help:"Manage access: list, approve, deny or revoke users and groups."`
		Token   tokenCmd   `cmd:"" help:"Create API tokens; list, rotate or revoke them."`
		Open    openCmd    `cmd:"" help:"Print a new login link for the web page."`
		Version versionCmd `cmd:"" help:"Print the version."`
	}
)

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

// load reads the configuration and returns its warnings.
func (e *env) load() (configs.Config, []configs.Warning, error) {
	environ := os.Environ()
	if err := configs.CheckNames(environ); err != nil {
		return configs.Config{}, nil, configError{err}
	}
	for i, entry := range environ {
		environ[i], _, _ = strings.Cut(entry, "=")
	}
	c, warnings, err := configs.Load(e.Config, e.lookup, environ...)
	if err != nil {
		return c, nil, configError{err}
	}
	if err := c.Override(configs.Override{
		DataDir: e.DataDir, HTTP: e.HTTP, Access: e.Access, Log: e.Log, LogLevel: e.LogLevel, Model: e.Model,
	}); err != nil {
		return c, nil, usageError{err}
	}
	c.Source.Warnings = slices.Concat(warnings, c.UnknownTools(builtin), c.UnknownGroups(tools.GroupNames()), c.WrongTexts(texts.IDs(), texts.Replaceable))
	return c, c.Source.Warnings, nil
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
	var d daemonCLI
	grammar := any(&c)
	if args[0] == "serve" {
		grammar = &d
	}
	parser, err := kong.New(grammar,
		kong.Name("claybot"),
		kong.Description("Connects AI agents to chats and never loses a message."),
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
	if grammar == &d {
		c.settingFlags = d.settingFlags
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

// An interruptedError reports an end by Ctrl-C that the user has already seen.
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
