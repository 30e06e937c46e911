package main

import (
	"github.com/alecthomas/kong"
)

// cli is the table of flags and commands. Help, completion and the manual page come from
// it: group is the heading below which the help lists a command, eg its examples, one a
// line, without the name of the program.
type cli struct {
	ShowVersion  kong.VersionFlag `name:"version" group:"Global flags:" help:"Print the version."`
	settingFlags `group:"Global flags:"`
	talkCommands `group:"Talk to agents:"`
	setCommands  `group:"Set up:"`
	runCommands  `group:"Run the daemon:"`
	lookCommands `group:"Look:"`
	mendCommands `group:"Mend and move:"`
	codeCommands `group:"For developers:"`
}

// daemonCLI is the part of cli that serve needs. kong reads the tags of all commands, which
// is a good part of the start.
type daemonCLI struct {
	ShowVersion  kong.VersionFlag `name:"version" group:"Global flags:" help:"Print the version."`
	settingFlags `group:"Global flags:"`
	Serve        serveCmd `cmd:"" eg:"serve\nserve --http 0.0.0.0:8420 --log json" help:"Run the daemon."`
}

type (
	// settingFlags override settings of the configuration.
	settingFlags struct {
		Config   string `short:"c" placeholder:"FILE" help:"Configuration file. Default: $$CLAYBOT_CONFIG, else claybot.yaml if there is one."`
		DataDir  string `placeholder:"DIR" help:"Data directory. Default: $$CLAYBOT_DATA_DIR, else .claybot."`
		HTTP     string `name:"http" placeholder:"ADDR" help:"Listen address of the web page, or off. Default: $$CLAYBOT_HTTP_ADDR, else 127.0.0.1:8420."`
		Access   string `placeholder:"MODE" values:"pairing,allowlist,open" help:"Access mode: pairing, allowlist or open."`
		Model    string `placeholder:"NAME" help:"Name of the model, or demo."`
		Log      string `placeholder:"FORM" values:"json,text" help:"Log format: json or text. Default: text on a terminal, else json."`
		LogLevel string `placeholder:"LEVEL" values:"debug,info,warn,error" help:"Log level: debug, info, warn or error."`
	}
	talkCommands struct {
		Chat      chatCmd      `cmd:"" eg:"chat\nchat -m 'What is on my list today?'" help:"Chat in the terminal; starts a daemon if none is running."`
		Open      openCmd      `cmd:"" eg:"open\nopen --browser" help:"Print a new login link for the web page, and how to reach the page from here."`
		Questions questionsCmd `cmd:"" help:"List pending questions; show one."`
		Answer    answerCmd    `cmd:"" eg:"answer QUESTION Berlin" help:"Answer a question."`
		Approve   approveCmd   `cmd:"" eg:"approve QUESTION\napprove QUESTION --scope session" help:"Approve an action of an agent."`
		Deny      denyCmd      `cmd:"" eg:"deny QUESTION Ask me on Monday." help:"Deny an action of an agent."`
	}
	setCommands struct {
		Setup     setupCmd     `cmd:"" eg:"setup\nsetup telegram\nsetup --model-key env:OPENAI_API_KEY --telegram-token file:token.txt" help:"Set up the model, Telegram, Slack, Discord, a budget and workspaces, step by step, until a first reply is seen."`
		Conf      configCmd    `cmd:"" name:"config" help:"Check, show and change the configuration."`
		Slack     slackCmd     `cmd:"" help:"Set up a Slack app."`
		Pair      pairCmd      `cmd:"" help:"Manage access: list, approve, deny or revoke users and groups."`
		People    peopleCmd    `cmd:"" help:"List people with their access, role, agents and budgets; show one, or change a role."`
		Token     tokenCmd     `cmd:"" help:"Create API tokens; list, rotate or revoke them."`
		Cron      cronCmd      `cmd:"" help:"List scheduled tasks; create, edit or run one."`
		Heartbeat heartbeatCmd `cmd:"" help:"List heartbeat tasks, or run them."`
		Skills    skillsCmd    `cmd:"" help:"List skills; allow or forbid one."`
		Notes     notesCmd     `cmd:"" help:"Read notes; write, delete or restore one."`
		Rules     rulesCmd     `cmd:"" help:"List standing approvals, or remove one."`
		Texts     textsCmd     `cmd:"" eg:"texts pairing\ntexts --language de" help:"List the texts of claybot that the configuration can replace; needs no running daemon."`
	}
	runCommands struct {
		Serve   serveCmd   `cmd:"" eg:"serve\nserve --http 0.0.0.0:8420 --log json" help:"Run the daemon."`
		Stop    stopCmd    `cmd:"" eg:"stop" help:"Stop the running daemon, and wait until it has ended."`
		Service serviceCmd `cmd:"" help:"Run claybot as a service of this machine."`
		Health  healthCmd  `cmd:"" eg:"healthcheck --ready" name:"healthcheck" help:"Check that the daemon responds, for container probes; exit with 1 if it doesn't."`
		Migrate migrateCmd `cmd:"" eg:"migrate --check\nmigrate" help:"Migrate the schema of the PostgreSQL database to this version and exit; run it before an upgrade with long migrations."`
		Relay   relayCmd   `cmd:"" name:"egress-relay" hidden:"" help:"Run the egress relay inside the network of a workspace."`
	}
	lookCommands struct {
		Status     statusCmd     `cmd:"" eg:"status\nstatus --json" help:"Show the status of the running daemon."`
		Nodes      nodesCmd      `cmd:"" help:"List what is configured; start, stop, restart or test it."`
		Flow       flowCmd       `cmd:"" help:"List workflows; check, show or start one."`
		Members    membersCmd    `cmd:"" eg:"members" help:"List cluster members."`
		Agents     agentsCmd     `cmd:"" help:"List the agents of the running daemon; stop, reset or delete one."`
		Runs       runsCmd       `cmd:"" help:"List runs; show, follow or cancel one."`
		Inbox      inboxCmd      `cmd:"" help:"List the waiting messages of an agent, or drop them."`
		Outbox     outboxCmd     `cmd:"" help:"List the outbox; retry or drop a delivery."`
		Reminders  remindersCmd  `cmd:"" eg:"reminders AGENT" help:"List the reminders of an agent."`
		Tools      toolsCmd      `cmd:"" eg:"tools --agent AGENT" help:"List the tools of agents."`
		Workspaces workspacesCmd `cmd:"" help:"List workspaces; remove one."`
		Usage      usageCmd      `cmd:"" eg:"usage --by day,model --days 7" help:"Show token usage and cost."`
		Budgets    budgetsCmd    `cmd:"" help:"Show budgets and what is left of them; extend a budget."`
	}
	mendCommands struct {
		Doctor  doctorCmd  `cmd:"" eg:"doctor\ndoctor --online\ndoctor --fix" help:"Diagnose this installation; needs no running daemon."`
		Why     whyCmd     `cmd:"" eg:"why https://example.slack.com/archives/C012ABC/p1700000000000100\nwhy RUN" help:"Trace a message from receipt to reply."`
		Parked  parkedCmd  `cmd:"" help:"List messages of faulty agents, or drop them."`
		Undo    undoCmd    `cmd:"" eg:"undo RUN" help:"Undo the side effects of a run."`
		Export  exportCmd  `cmd:"" eg:"export backup\nexport --agent AGENT agent" help:"Export the store, or one agent, to a data directory."`
		Import  importCmd  `cmd:"" help:"Import a data directory, or what another program has: OpenClaw or picoclaw."`
		Restore restoreCmd `cmd:"" eg:"restore" help:"Restore a damaged database of a data directory from the newest verified copy."`
		Forget  forgetCmd  `cmd:"" eg:"forget telegram:123456789" help:"Erase what claybot keeps of a person."`
	}
	codeCommands struct {
		Demo       demoCmd       `cmd:"" eg:"demo\ndemo --scene tools" help:"Play a demo with a daemon, emulated platforms and scripted users; needs no accounts and no network."`
		MCP        mcpCmd        `cmd:"" name:"mcp" help:"Serve agents over the Model Context Protocol; manage MCP servers."`
		Graph      graphCmd      `cmd:"" help:"Show agent graphs."`
		Completion completionCmd `cmd:"" eg:"completion bash > ~/.local/share/bash-completion/completions/claybot" help:"Print the script that completes commands and flags in bash, zsh or fish."`
		Man        manCmd        `cmd:"" eg:"man > claybot.1" help:"Print the manual page."`
		Licenses   licensesCmd   `cmd:"" eg:"licenses --names\nlicenses golang.org/x/net" help:"Print the licences of what claybot is linked with."`
		Complete   completeCmd   `cmd:"" hidden:"" passthrough:"" help:"Complete a command line; the scripts of completion call it."`
		Version    versionCmd    `cmd:"" eg:"version" help:"Print the version."`
	}
)
