package main

import (
	"errors"
	"io/fs"
	"os"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage/postgres"
)

// A doctorCode is a kind of finding. Its code stays the same when the words of findings change, so
// that scripts and monitoring can rely on it.
type doctorCode struct {
	code  string
	means string
	next  string // the next step of findings that have none of their own
}

// nextOf returns the next step of a code; empty if each finding has its own.
func nextOf(code string) string {
	for _, c := range doctorCodes {
		if c.code == code {
			return c.next
		}
	}
	return ""
}

// configCode returns the code of a configuration that cannot be read.
func configCode(err error) string {
	var text *configs.TextError
	switch {
	case errors.As(err, &text):
		return "config-not-yaml"
	case errors.Is(err, fs.ErrNotExist):
		return "config-missing"
	case errors.Is(err, configs.ErrMisnamed):
		return "config-misnamed"
	case errors.As(err, new(*fs.PathError)):
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
		return d.problem("credential-refused", p.Err.Error(), p.Fix)
	}
	return d.warn("platform-silent", reason(err), "")
}

const correctConfig = "correct it, then run: claybot doctor (nothing else was checked)"

// doctorCodes are the codes of all findings; docs/doctor.md lists them.
var doctorCodes = []doctorCode{
	{postgres.CodeOK, "nothing is wrong", ""},

	{"fix-failed", "claybot doctor --fix could not mend a finding", "do the next step of the finding by hand"},

	{"config-missing", "the configuration file that you named does not exist", "create it with: claybot config init, or name another one with -c"},
	{"config-misnamed", "the configuration file has a name that claybot does not read", correctConfig},
	{"config-unreadable", "the configuration file cannot be read", "let this user read it, or name another file with -c"},
	{"config-not-yaml", "the configuration file is not a YAML text", correctConfig},
	{"config-refused", "a setting does not let claybot start", correctConfig},
	{configs.CodeKey, "the file has a key that claybot does not know", "correct it; claybot config show lists all keys"},
	{configs.CodeValue, "the value of a setting is not valid", "correct it, then run: claybot config check"},
	{configs.CodeSecret, "a secret stands in the file itself", "put it into a file or a variable, and write file:PATH or env:NAME instead"},
	{configs.CodeMissing, "a token or key that the configuration names cannot be read", "set the variable, or put the secret into the file as its only line"},
	{configs.CodeTool, "a rule names a tool that does not exist", ""},
	{configs.CodeVariable, "claybot does not read an environment variable that looks like one of its own", "unset it"},
	{"access-open", "anyone may use the bot", ""},
	{"access-unlimited", "anyone may use the bot, as often as they like", ""},
	{"http-exposed", "the web page would be open to other machines without encryption", ""},
	{"http-unusable", "the web page cannot listen at its address", ""},
	{"proxy-without-host", "there is a proxy, and claybot does not know its host name", ""},
	{"budget-none", "no budget limits a person", ""},

	{"data-dir-unreadable", "this user cannot read the data directory", ""},
	{"data-dir-not-directory", "the data directory is a file", "set another directory with CLAYBOT_DATA_DIR"},
	{"data-dir-link", "the data directory is a symbolic link", ""},
	{"data-dir-open-to-others", "other users may write to the data directory", ""},
	{"data-dir-unusable", "claybot cannot use the data directory", "set another directory with CLAYBOT_DATA_DIR"},
	{"data-dir-unfinished", "the data directory is an unfinished copy", ""},
	{"data-dir-not-creatable", "claybot cannot create the data directory", ""},
	{"data-dir-not-writable", "claybot cannot write to the data directory", ""},
	{"files-open-to-others", "other users can read private files", ""},
	{"disk-full", "less than 100 MiB are free", ""},
	{"disk-low", "less than 1 GiB is free", ""},
	{"disk-slow", "a synced write takes more than 50 ms", ""},
	{"disk-unknown", "the free space cannot be determined", "look at it with: df"},
	{"limits-low", "memory or open files are short for the configured number of runs", ""},
	{"crashed", "claybot crashed the last time", ""},
	{"record-unreadable", "claybot cannot read one of its own records", "read the log: claybot service logs, or the output of claybot serve"},
	{"token-may-approve", "an API token is older than the scope approve", ""},

	{"database-missing", "the database is gone", ""},
	{"database-damaged", "the database is damaged", ""},
	{"database-newer", "a newer claybot has migrated the database", ""},
	{"database-locked", "another process has locked the database", ""},
	{"database-unreadable", "the database cannot be opened", ""},
	{"restore-interrupted", "claybot restore was interrupted", ""},
	{"history-damaged", "the history of an agent has damaged lines", ""},
	{"history-unreadable", "the history of an agent cannot be read", ""},
	{"copies-off", "claybot makes no copies of its database", ""},
	{"copies-unreadable", "the copies of the database cannot be read", "let this user read the folder copies of the data directory"},

	{"database-url-empty", "the storage URL has no value", ""},
	{"database-unreachable", "the PostgreSQL server does not answer, or refuses claybot", databaseNext},
	{"database-unencrypted", "the connection to the server can be read or changed on the way", ""},
	{"database-server", "claybot cannot use this server", databaseNext},
	{"database-durability", "the server may lose what it confirmed", ""},
	{"database-schema", "claybot cannot use the tables", databaseNext},
	{"database-rights", "the role lacks rights", databaseNext},
	{"database-distant", "the server is far away", databaseNext},
	{"database-slow", "a commit takes more than 20 ms", "run the doctor again while the server is less busy"},
	{"database-timeouts", "limits of the server interrupt claybot", databaseNext},
	{"database-connections", "the server has too few connections", databaseNext},
	{"database-pooler", "a pooler stands before the server that claybot is not set up for", databaseNext},
	{"database-notifications", "notifications of the server do not arrive", ""},
	{"clock-off", "clocks are more than a second apart", databaseNext},
	{"members-same-name", "cluster members have the same name", ""},
	{"members-versions", "cluster members run different versions", ""},
	{"files-url-wrong", "files.url is not valid", "correct files.url; see docs/configuration.md"},
	{"files-url-unused", "files.url has no effect", ""},
	{"files-unusable", "claybot cannot use the bucket", "correct the files group of the configuration"},

	{"daemon-silent", "the daemon does not answer", ""},
	{"daemon-unwell", "the daemon reports a fault", "read its log: claybot service logs, or the output of claybot serve"},
	{"agent-unusable", "the files of an agent cannot be used", "list its waiting messages with: claybot parked"},
	{"check-failing", "a check of the daemon failed", "read its log: claybot service logs, or the output of claybot serve"},
	{"sink-failing", "a sink of events does not take them", "look at it with: claybot status"},
	{"mcp-failing", "an MCP server does not work", "look at it with: claybot mcp list"},
	{"connector-failing", "a connector does not work", "correct that; then look at it with: claybot status"},
	{"webhook-refused", "claybot refused requests to a webhook", "correct the secret or the scheme of their source; see docs/webhooks.md"},

	{"connector-off", "a connector is off because of its settings", ""},
	{"credential-missing", "a token or key is not set or cannot be read", ""},
	{"credential-quoted", "a token or key contains spaces or quotes", ""},
	{"credential-malformed", "a token or key does not have its form", ""},
	{"credential-refused", "the service refuses a token or key", "copy it again from the service"},
	{"platform-silent", "a service did not answer the doctor", "run the doctor again; if it stays so, look at the network and at the status page of the service"},
	{"telegram-privacy-on", "the bot does not see all messages of a group", ""},
	{"telegram-not-admin", "reactions need the bot to be an administrator", ""},
	{"telegram-webhook-set", "a webhook blocks the polls of a bot", ""},
	{"telegram-webhook-elsewhere", "Telegram sends the updates of a bot to another address than claybot's", ""},
	{"telegram-webhook-failing", "Telegram cannot deliver updates to claybot", ""},
	{"slack-scopes-missing", "the app lacks scopes, so some functions do nothing", ""},
	{"slack-token-unused", "a token is not used", ""},
	{"discord-intent-off", "the Message Content intent is off", ""},
	{"webhook-template", "a template of a webhook is not valid", ""},
	{"webhook-no-secret", "a webhook has no secret", ""},
	{"http-off", "a webhook needs the HTTP server, which is off", ""},
	{"chat-renamed", "the configuration names a chat by a former id", ""},
	{"outbox-stuck", "messages wait for more than an hour to be sent", ""},
	{"route-dead", "a chat refuses the bot", "let the bot in again; the route works again when a person writes there"},

	{"model-demo", "the demo model answers", ""},
	{"model-off", "the model is off because of its settings", ""},
	{"model-no-key", "calls to the model use no key", ""},
	{"model-unreachable", "the server of a model does not answer", "look whether model.base_url is right and the server runs; then: claybot setup model"},
	{"model-not-listed", "the provider does not list a model that agents ask", ""},
	{"model-no-list", "the address of a model has no list of models, so it may be wrong", ""},
	{"model-failing", "the model does not answer the daemon", "look at it with: claybot setup model"},

	{"time-zone-unknown", "this machine does not know a time zone", ""},
	{"task-wrong", "a task file is not valid", ""},
	{"docker-unusable", "Docker does not work", "start Docker, or set workspaces.provider to off"},
	{"docker-network-host", "containers reach whatever this machine reaches", ""},
	{"local-commands", "commands run on this machine", ""},
	{"local-refused", "commands on this machine are not safe", "set workspaces.provider to docker or off"},
}

const databaseNext = "correct that, then run: claybot doctor"
