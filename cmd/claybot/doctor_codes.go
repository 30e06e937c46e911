package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage/postgres"
)

// A doctorCode is a kind of finding. Its code stays the same when the words of findings change, so
// that scripts and monitoring can rely on it.
type doctorCode struct {
	code  string
	means string
	next  string // the next step of findings that have none of their own
	chats bool   // operators read of it in their chats while the daemon runs
}

const inChats = true

// codeOf returns a code of the catalogue.
func codeOf(code string) doctorCode {
	i := slices.IndexFunc(doctorCodes, func(c doctorCode) bool { return c.code == code })
	if i < 0 {
		return doctorCode{code: code}
	}
	return doctorCodes[i]
}

// nextOf returns the next step of a code; empty if each finding has its own.
func nextOf(code string) string {
	return codeOf(code).next
}

// configCode returns the code of a configuration that cannot be read.
func configCode(err error) string {
	var text *configs.TextError
	switch {
	case errors.As(err, &text):
		return "config-not-yaml"
	case errors.As(err, new(*configs.LocalError)):
		return "local-refused"
	case errors.Is(err, fs.ErrNotExist):
		return "config-missing"
	case errors.Is(err, configs.ErrMisnamed):
		return "config-misnamed"
	case errors.As(err, new(*fs.PathError)), errors.Is(err, errIrregular):
		return "config-unreadable"
	}
	return "config-refused"
}

// unsafeCode returns the code of a data directory that claybot refuses.
func unsafeCode(dir string) string {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
	case info.Mode()&fs.ModeSymlink != 0:
		return "data-dir-link"
	case !info.IsDir():
		return "data-dir-not-directory"
	case info.Mode().Perm()&0o022 != 0:
		return "data-dir-open-to-others"
	}
	return "data-dir-unusable"
}

// refused records why a platform did not accept the credentials of a connector, or did not answer.
func (d *doctor) refused(err error) bool {
	if p := (*connectors.PermanentError)(nil); errors.As(err, &p) {
		return d.problem(overview.RefusalCode(p), p.Err.Error(), p.Fix)
	}
	return d.problem("connector-failing", reason(err), keepsTrying)
}

const correctConfig = "correct it, then run: claybot doctor"

// doctorCodes are the codes of all findings; docs/doctor.md lists them.
var doctorCodes = []doctorCode{
	{postgres.CodeOK, "nothing is wrong", "", false},

	{"fix-failed", "claybot doctor --fix could not mend a finding", "do the next step of the finding by hand", false},

	{"config-missing", "the configuration file does not exist", "create it with: claybot config init, or name another one with -c", inChats},
	{"config-misnamed", "the configuration file has a name that claybot does not read", correctConfig, false},
	{"config-unreadable", "the configuration file cannot be read", "let this user read it, or name another file with -c", inChats},
	{"config-not-yaml", "the configuration file is not a YAML text", correctConfig, inChats},
	{"config-refused", "a setting does not let claybot start", correctConfig, inChats},
	{configs.CodeKey, "the file has a key that claybot does not know", "correct it; claybot config show lists all keys", inChats},
	{configs.CodeValue, "the value of a setting is not valid", "correct it, then run: claybot config check", inChats},
	{configs.CodeSecret, "a secret stands in the file itself", "put it into a file or a variable, and write file:PATH or env:NAME instead", inChats},
	{configs.CodeMissing, "a token or key that the configuration names cannot be read", "set the variable, or put the secret into the file as its only line", inChats},
	{configs.CodeTool, "a rule names a tool that does not exist", "", false},
	{configs.CodeVariable, "claybot does not read an environment variable that looks like one of its own", "unset it", false},
	{"workflow-refused", "the file of a workflow has a fault, so that all workflows stay as they were", "correct the file; claybot flow check lists all faults", false},
	{"access-open", "anyone may use the bot", "", false},
	{"access-unlimited", "anyone may use the bot, as often as they like", "", false},
	{"http-exposed", "the web page would be open to other machines without encryption", "", false},
	{"http-unusable", "the web page, or the listener of metrics, cannot listen at its address", "", inChats},
	{"proxy-without-host", "there is a proxy, and claybot does not know its host name", "", false},
	{"budget-none", "no budget limits a person", "", false},

	{"data-dir-unreadable", "this user cannot read the data directory", "", false},
	{"data-dir-not-directory", "the data directory is a file", "set another directory with CLAYBOT_DATA_DIR", false},
	{"data-dir-link", "the data directory is a symbolic link", "", false},
	{"data-dir-open-to-others", "other users may write to the data directory", "", false},
	{"data-dir-unusable", "claybot cannot use the data directory", "set another directory with CLAYBOT_DATA_DIR", false},
	{"data-dir-unfinished", "the data directory is an unfinished copy", "", false},
	{"data-dir-not-creatable", "claybot cannot create the data directory", "", false},
	{"data-dir-not-writable", "claybot cannot write to the data directory", "", false},
	{"files-open-to-others", "other users can read private files", "", false},
	{"disk-full", "less than 100 MiB are free", "", inChats},
	{"disk-low", "less than 1 GiB is free", "", inChats},
	{"disk-slow", "a synced write takes more than 50 ms", "", false},
	{"disk-unknown", "the free space cannot be determined", "look at it with: df", false},
	{"limits-low", "memory or open files are short for the configured number of runs", "", false},
	{"crashed", "claybot crashed the last time", "", false},
	{"record-unreadable", "claybot cannot read one of its own records", "read the log: claybot service logs, or the output of claybot serve", false},
	{"token-may-approve", "an API token is older than the scope approve", "", false},

	{"database-missing", "the database is gone", "", false},
	{"database-damaged", "the database is damaged", "", inChats},
	{"database-newer", "a newer claybot has migrated the database", "", false},
	{"database-locked", "another process has locked the database", "", false},
	{"database-unreadable", "the database cannot be opened", "", false},
	{"restore-interrupted", "claybot restore was interrupted", "", false},
	{"history-damaged", "the history of an agent has damaged lines", "put their folders from a backup in place while claybot is stopped; otherwise claybot moves the damaged lines to the quarantine when it next uses these agents", inChats},
	{"history-unreadable", "the history of an agent cannot be read", "let the user who runs claybot read and write them; claybot keeps the messages of these agents until then", inChats},
	{"copies-off", "claybot makes no copies of its database", "", false},
	{"copies-unreadable", "the copies of the database cannot be read", "let this user read the folder copies of the data directory", false},

	{"database-url-empty", "the storage URL has no value", "", false},
	{"database-unreachable", "the PostgreSQL server does not answer, or refuses claybot", databaseNext, false},
	{"database-unencrypted", "the connection to the server can be read or changed on the way", "", false},
	{"database-server", "claybot cannot use this server", databaseNext, false},
	{"database-durability", "the server may lose what it confirmed", "", false},
	{"database-schema", "claybot cannot use the tables", databaseNext, false},
	{"database-rights", "the role lacks rights", databaseNext, false},
	{"database-distant", "the server is far away", databaseNext, false},
	{"database-slow", "a commit takes more than 20 ms", "run the doctor again while the server is less busy", false},
	{"database-timeouts", "limits of the server interrupt claybot", databaseNext, false},
	{"database-connections", "the server has too few connections", databaseNext, false},
	{"database-pooler", "a pooler stands before the server that claybot is not set up for", databaseNext, false},
	{"database-notifications", "notifications of the server do not arrive", "", false},
	{"clock-off", "clocks are more than a second apart", databaseNext, false},
	{"workflows-differ", "cluster members have different workflows", "give all members the same files in the folder flows", false},
	{"members-same-name", "cluster members have the same name", "", false},
	{"members-versions", "cluster members run different versions", "", false},
	{"files-url-wrong", "files.url is not valid", "correct files.url; see docs/configuration.md", false},
	{"files-url-unused", "files.url has no effect", "", false},
	{"files-unusable", "claybot cannot use the bucket", "correct the files group of the configuration", false},

	{"daemon-silent", "the daemon does not answer", "", false},
	{"daemon-starting", "the daemon has not started all of its parts yet", "wait; then ask again with: claybot healthcheck --ready", false},
	{"daemon-unwell", "the daemon reports a fault", "read its log: claybot service logs, or the output of claybot serve", inChats},
	{"parking-full", "too many messages wait for agents that cannot be used", "mend what the log names, or drop the messages of an agent with: claybot parked drop", false},
	{"agent-unusable", "the files of an agent cannot be used", "list its waiting messages with: claybot parked", false},
	{"check-failing", "a check of the daemon failed", "read its log: claybot service logs, or the output of claybot serve", inChats},
	{"relay-failing", "the receiver of a relay or the collector of traces takes nothing", "look at its address in the configuration, and whether its server runs; claybot status shows what waits for it", inChats},
	{"node-stopped", "an operator has stopped a part of claybot", "", false},
	{"restart-pending", "a setting waits for a restart", "restart claybot: claybot stop, then claybot serve; a service with: claybot service restart", false},
	{"skills-missing", "the folder of skills does not exist", "make the folder, or name another one: claybot config set skills_dir DIR", false},
	{"mcp-failing", "an MCP server does not work", "look whether its server runs, and at its entry in the group mcp of the configuration; then: claybot mcp list", inChats},
	{"mcp-program-missing", "this machine lacks what an MCP server with where: host runs", "", inChats},
	{"connector-failing", "a connector does not work", "correct that; then look whether it works with: claybot doctor --online", inChats},
	{"webhook-refused", "claybot refused requests to a webhook", "correct the secret or the scheme of their source; see docs/webhooks.md", false},

	{"connector-off", "a connector is off because of its settings", "", false},
	{"credential-missing", "a token or key is not set or cannot be read", "", false},
	{configs.CodeQuoted, "a token or key contains spaces or quotes", "", false},
	{configs.CodeMalformed, "a token or key does not have its form", "", false},
	{"credential-refused", "the service refuses a token or key", "copy it again from the service", inChats},
	{"telegram-privacy-on", "the bot does not see all messages of a group", "", false},
	{"telegram-not-admin", "reactions need the bot to be an administrator", "", false},
	{"telegram-webhook-set", "a webhook blocks the polls of a bot", "", false},
	{"telegram-webhook-elsewhere", "Telegram sends the updates of a bot to another address than claybot's", "", false},
	{"telegram-webhook-failing", "Telegram cannot deliver updates to claybot", "", false},
	{"slack-scopes-missing", "the app lacks scopes, so some functions do nothing", "", false},
	{"slack-socket-mode-on", "Slack sends the app's messages to sockets, not to claybot's address", "", false},
	{"slack-token-unused", "a token is not used", "", false},
	{"slack-not-installed", "no workspace has installed the Slack app, or one has removed it", "", false},
	{"discord-intent-off", "the Message Content intent is off", "", false},
	{configs.CodeTemplate, "a template of a webhook is not valid", "", false},
	{"webhook-no-secret", "a webhook has no secret", "", false},
	{"http-off", "a webhook needs the HTTP server, which is off", "", false},
	{"chat-renamed", "the configuration names a chat by a former id", "", false},
	{"outbox-stuck", "messages wait for more than an hour to be sent", "", false},
	{"route-dead", "a chat refuses the bot", "let the bot in again; the route works again when a person writes there", false},

	{"model-demo", "the demo model answers", "", false},
	{"model-off", "the model is off because of its settings", "", false},
	{"model-no-key", "calls to the model use no key", "", false},
	{"model-unreachable", "the server of a model does not answer", "look whether model.base_url is right and the server runs; then: claybot setup model", inChats},
	{"model-not-listed", "the provider does not list a model that agents ask", "", false},
	{"model-no-list", "the address of a model has no list of models, so it may be wrong", "", false},
	{"model-failing", "the model does not answer the daemon", "look at it with: claybot setup model", inChats},

	{"time-zone-unknown", "this machine does not know a time zone", "", inChats},
	{"task-wrong", "a task file is not valid", "", false},
	{"docker-unusable", "Docker does not work", "start Docker, or set workspaces.provider to off", inChats},
	{"docker-network-host", "containers reach whatever this machine reaches", "", false},
	{"local-commands", "commands run on this machine", "", false},
	{"local-refused", "commands on this machine are not safe", "set workspaces.provider to docker or off", inChats},
}

const databaseNext = "correct that, then run: claybot doctor"
