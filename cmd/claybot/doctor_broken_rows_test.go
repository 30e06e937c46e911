package main

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/claybot/claybot/connectors/discord/discordtest"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
)

// brokenFiles cannot be read as settings.
var brokenFiles = []brokenSetup{
	{name: "no file", breaks: func(_ *testing.T, b *setupBench) { b.path += ".other" }, code: "config-missing", says: "no such file", next: "claybot config init", checks: true, serves: true},
	{name: "a folder instead of the file", breaks: func(_ *testing.T, b *setupBench) { b.path = b.dir }, code: "config-unreadable", says: "is a directory", next: "-c", checks: true, serves: true},
	{name: "a list without an end", file: "agents: [", code: "config-not-yaml", says: "claybot.yaml:1:", next: "claybot doctor", checks: true, serves: true, chat: sameCause},
	{name: "a tab", file: "model:\n\tname: gpt-5\n", code: "config-not-yaml", says: "claybot.yaml:2:", next: "correct it", checks: true, serves: true, chat: sameCause},
	{name: "bytes that are no text", file: "model:\n  name: \"\xff\xfe\"\n", code: "config-not-yaml", says: "claybot.yaml:2: not a text in UTF-8", next: "correct it", checks: true, serves: true, chat: sameCause},
	{name: "a list at the root", file: "- telegram\n", code: "config-not-yaml", says: `want lines such as "access: pairing", found a list`, next: "correct it", checks: true, serves: true, chat: sameCause},
	{name: "two documents", file: "access: pairing\n---\naccess: allowlist\n", code: "config-not-yaml", says: "a second document begins here", next: "correct it", checks: true, serves: true, chat: sameCause},
	{name: "a variable of the store that is mistyped", env: map[string]string{"CLAYBOT_STORAGE_UR": "postgres://x"}, code: "config-refused", says: "perhaps CLAYBOT_STORAGE_URL is meant", next: "correct it", checks: true, serves: true},
	{name: "a variable of the store that is invalid", env: map[string]string{"CLAYBOT_STORAGE_LISTEN": "perhaps"}, code: "config-refused", says: "CLAYBOT_STORAGE_LISTEN", next: "correct it", checks: true, serves: true},
	{name: "no home", env: map[string]string{"CLAYBOT_DATA_DIR": "~/claybot", "HOME": unset}, code: "config-refused", says: "HOME", next: "correct it", checks: true, serves: true},
}

// brokenValues are settings that are not taken.
var brokenValues = []brokenSetup{
	{name: "a mistyped key", file: "telegarm: {}\n", code: "config-key-unknown", says: "telegarm: unknown key; the connector telegram is off until this is corrected; did you mean telegram?", next: "correct it", checks: true, chat: sameCause},
	{name: "a key of another program", file: "frobnicate: 1\n", code: "config-key-unknown", says: "frobnicate: unknown key", next: "claybot config show", checks: true},
	{name: "a key twice", file: "access: pairing\naccess: open\n", code: "config-value", says: "was given in line 1 already", next: "claybot config check", checks: true},
	{name: "a word for a number", file: "node: {max_runs: many}\n", code: "config-value", says: "node.max_runs: ", next: "claybot config check", checks: true},
	{name: "a mode that does not exist", file: "access: opne\n", code: "config-value", says: "did you mean open?", next: "claybot config check", checks: true, chat: sameCause},
	{name: "a time zone that does not exist", file: "cron: {timezone: Europe/Nowhere}\n", code: "config-value", says: "Europe/Nowhere", next: "claybot config check", checks: true},
	{name: "an amount in words", file: "budgets: [{per: all, every: day, usd: five}]\n", code: "config-value", says: "five", next: "claybot config check", checks: true, chat: sameCause},
	{name: "a provider that does not exist", file: "model: {provider: opnai, name: gpt-5}\n", code: "config-value", says: "did you mean openai?", next: "claybot config check", checks: true, chat: sameCause},
	{name: "an address of a model without http", file: "model: {base_url: '127.0.0.1:9900/v1', name: llama3}\n", code: "config-value", says: "model.base_url", next: "claybot config check", checks: true, chat: sameCause},
	{name: "a tool that does not exist", file: "agents: {default: {approve: [shel]}}\n", code: "config-tool-unknown", says: "did you mean shell?", next: "claybot tools", checks: true},
	{name: "a mistyped variable", env: map[string]string{"TELEGRAM_TOKEN": "1234567:FAKE"}, code: "config-variable-unknown", says: "did you mean TELEGRAM_BOT_TOKEN?", next: "set TELEGRAM_BOT_TOKEN instead", checks: true},
	{name: "a mistyped variable of claybot", env: map[string]string{"CLAYBOT_MODLE": "gpt-5"}, code: "config-variable-unknown", says: "did you mean CLAYBOT_MODEL?", next: "set CLAYBOT_MODEL instead", checks: true},
	{name: "a connector of no type", file: "connectors: {sales: {type: telegarm, token: 'env:HOME'}}\n", code: "config-value", says: "did you mean telegram?", next: "claybot config check", checks: true, chat: sameCause},
	{name: "open access by the file", file: "access: open\n", code: "access-open", says: "anyone who finds", next: "claybot config set access.mode pairing", checks: true},
	{name: "open access", env: map[string]string{"CLAYBOT_ACCESS": "open"}, code: "access-open", says: "anyone who finds", next: "CLAYBOT_ACCESS=pairing", checks: true},
	{name: "open access without a limit", file: "access: open\n", code: "access-unlimited", says: "nothing limits how many messages", next: "limits.runs_per_minute"},
	{name: "a proxy without a name", env: map[string]string{"CLAYBOT_HTTP_ADDR": "127.0.0.1:0"}, file: "http: {trusted_proxies: [10.0.0.5]}\n", code: "proxy-without-host", says: "http_hosts is not", next: "http_hosts", checks: true},
	{name: "a page that is open to the network", env: map[string]string{"CLAYBOT_HTTP_ADDR": "0.0.0.0:0"}, code: "http-exposed", says: "would be reachable from other machines without encryption", next: "http.tls_cert", checks: true, serves: true},
	{name: "a port that is taken", breaks: func(t *testing.T, b *setupBench) { b.env["CLAYBOT_HTTP_ADDR"] = takenAddress(t) }, code: "http-unusable", says: "another program uses that port", next: "set CLAYBOT_HTTP_ADDR to another one"},
	{name: "an address without a port", env: map[string]string{"CLAYBOT_HTTP_ADDR": "localhost"}, code: "config-value", says: "CLAYBOT_HTTP_ADDR", next: "claybot config check", checks: true},
}

// takenAddress is an address at which another program listens.
func takenAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// inData writes files of the data directory, by name.
func inData(all map[string]string) func(*testing.T, *setupBench) {
	return func(t *testing.T, b *setupBench) {
		for name, text := range all {
			b.write(t, "data/"+name, text)
		}
	}
}

// modeOfData makes a data directory with a mode.
func modeOfData(mode os.FileMode) func(*testing.T, *setupBench) {
	return func(t *testing.T, b *setupBench) {
		b.write(t, "data/boots.json", "{}")
		if err := os.Chmod(b.data, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(b.data, "boots.json"), 0o644); err != nil { //nolint:gosec // that is what is broken
			t.Fatal(err)
		}
	}
}

// newDatabase makes a database, and changes its file.
func newDatabase(change func([]byte) []byte) func(*testing.T, *setupBench) {
	return func(t *testing.T, b *setupBench) {
		b.write(t, "data/boots.json", "{}")
		path := filepath.Join(b.data, "claybot.db")
		db, err := sqlite.Open(t.Context(), path, sqlite.Config{})
		if err == nil {
			err = db.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, change(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// laterDatabase is an empty database of SQLite whose tables have version 9999
// (sqlite.org/fileformat2.html, read 2026-11-29).
func laterDatabase() string {
	b := make([]byte, 4096)
	copy(b, "SQLite format 3\x00\x10\x00\x01\x01\x00\x40\x20\x20")
	for at, n := range map[int]uint32{24: 1, 28: 1, 40: 1, 44: 4, 56: 1, 60: 9999, 92: 1, 96: 3046000} {
		binary.BigEndian.PutUint32(b[at:], n)
	}
	copy(b[100:], "\x0d\x00\x00\x00\x00\x10\x00\x00") // a page without rows
	return string(b)
}

// brokenDirectories are data directories.
var brokenDirectories = []brokenSetup{
	{name: "a file instead of the data directory", breaks: func(t *testing.T, b *setupBench) { b.write(t, "data", "") }, code: "data-dir-not-directory", says: "is a file", next: "CLAYBOT_DATA_DIR", serves: true},
	{name: "a file above the data directory", env: map[string]string{"CLAYBOT_DATA_DIR": "$DIR/claybot.yaml/data"}, code: "data-dir-not-creatable", says: "is a file", next: "CLAYBOT_DATA_DIR"},
	{name: "a link instead of the data directory", breaks: func(t *testing.T, b *setupBench) {
		if err := os.Symlink(t.TempDir(), b.data); err != nil {
			t.Fatal(err)
		}
	}, code: "data-dir-link", says: "could point elsewhere", next: "name the directory itself and run: chmod 700", serves: true},
	{name: "a data directory that others may write to", breaks: modeOfData(0o777), code: "data-dir-open-to-others", says: "writable by group or others", next: "chmod 700", serves: true},
	{name: "a data directory that others may read", breaks: modeOfData(0o755), code: "files-open-to-others", says: "other users of this machine can read", next: "chmod 700"},
	{name: "a copy that is not finished", breaks: func(t *testing.T, b *setupBench) {
		if err := os.Mkdir(b.data, 0o700); err == nil {
			err = files.Prepare(b.data)
			if err != nil {
				t.Fatal(err)
			}
		}
	}, code: "data-dir-unfinished", says: "a copy that was not finished", next: "copy again", serves: true},
	{name: "a database that is none", breaks: inData(map[string]string{"claybot.db": string(make([]byte, 4096)) + "x"}), code: "database-damaged", says: "the file is damaged", next: "claybot restore"},
	{name: "a database of a later version", breaks: inData(map[string]string{"claybot.db": laterDatabase()}), code: "database-newer", says: "its schema is version 9999", next: "newer version of claybot"},
	{name: "a damaged page of the database", breaks: newDatabase(func(text []byte) []byte {
		clear(text[4096*2 : 4096*4])
		return text
	}), code: "database-damaged", says: "the file is damaged", next: "keep a copy of the whole data directory"},
	{name: "agents without a database", breaks: inData(map[string]string{"agents/a1/state.json": "{}"}), code: "database-missing", says: "the file is missing although there are agents", next: "claybot restore"},
	{name: "a line of a history that is damaged", breaks: inData(map[string]string{"agents/a1b2c3d4e5f6g7h8i9j0k1l2/history.jsonl": "{\"type\":\"user\"}\n{\"ty\n"}), code: "history-damaged", says: "damaged lines in the histories of a1b2c3d4e5f6g7h8i9j0k1l2", next: "from a backup"},
	{name: "a folder instead of a history", breaks: inData(map[string]string{"agents/a1b2c3d4e5f6g7h8i9j0k1l2/history.jsonl/x": ""}), code: "history-unreadable", says: "it is no regular file", next: "claybot keeps the messages"},
	{name: "a restore that was interrupted", breaks: inData(map[string]string{"claybot.db.restoring": ""}), code: "restore-interrupted", says: "a restore was interrupted", next: "claybot restore"},
	{name: "a boot record that is none", breaks: inData(map[string]string{"boots.json": "x"}), code: "record-unreadable", says: "boot record", next: "the next start"},
	{name: "crashes", breaks: inData(map[string]string{"boots.json": `{"unclean":3}`}), code: "crashed", says: "claybot crashed 3 times in a row", next: "read the end of its log"},
	{name: "a clock that is behind", breaks: inData(map[string]string{"boots.json": `{"started":4102444800000,"closed":true}`}), code: "clock-off", says: "claybot was started at 2100-01-01", next: "NTP"},
	{name: "API tokens that are none", breaks: inData(map[string]string{"web.tokens.json": "x"}), code: "record-unreadable", says: "cannot read the API tokens", next: "claybot"},
	{name: "no copies", file: "storage: {copies: 0}\n", breaks: inData(map[string]string{"boots.json": "{}"}), code: "copies-off", says: "makes no copies", next: "storage.copies"},
	{name: "a daemon that does not answer", breaks: silentDaemon, code: "daemon-silent", says: "it does not answer", next: "claybot healthcheck"},
	{name: "a schedule that never comes", breaks: inData(map[string]string{"cron/news/TASK.md": "---\nuid: k3v9q2m7x1c8b4n6t5r0w2zp\nschedule: 0 0 31 2 *\n---\nSummarize the news.\n"}), code: "task-wrong", says: "never comes: there is no such day", next: "claybot cron edit"},
	{name: "a schedule that is none", breaks: inData(map[string]string{"cron/news/TASK.md": "---\nuid: k3v9q2m7x1c8b4n6t5r0w2zp\nschedule: every day\n---\nSummarize the news.\n"}), code: "task-wrong", says: "schedule", next: "claybot cron edit"},
	{name: "a task of a connector that is not configured", breaks: inData(map[string]string{"cron/news/TASK.md": "---\nuid: k3v9q2m7x1c8b4n6t5r0w2zp\nevery: 1h\nroute: telegram/1\n---\nNews.\n"}), code: "task-wrong", says: `no connector "telegram" is configured`, next: "claybot cron edit"},
}

// silentDaemon holds the data directory, and answers no request.
func silentDaemon(t *testing.T, b *setupBench) {
	lock, err := files.Lock(b.data)
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(b.data, "claybot.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(); _ = lock.Close() })
	go func() {
		for {
			c, err := l.Accept() // ends with the listener
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
}

// brokenCredentials are tokens and keys, by their form.
var brokenCredentials = []brokenSetup{
	{name: "a secret in the file", file: "telegram: {token: '1234567:FAKE-telegram-token-for-tests-only'}\n", code: "config-secret-in-file", says: "a secret must not stand in the file", next: "env:NAME", checks: true, chat: sameCause},
	{name: "a variable that is not set", file: "telegram: {token: 'env:MY_TOKEN'}\n", code: "config-secret-missing", says: "the environment variable \"MY_TOKEN\" is not set", next: "set the variable", checks: true, chat: "its token is missing or not valid"},
	{name: "a file of a secret that is missing", file: "telegram: {token: 'file:token.txt'}\n", code: "config-secret-missing", says: "the secret's file cannot be read", next: "into the file", checks: true},
	{name: "a file of a secret with two lines", file: "telegram: {token: 'file:token.txt'}\n", breaks: func(t *testing.T, b *setupBench) { b.write(t, "token.txt", "FAKE\nFAKE\n") }, code: "config-secret-missing", says: "does not hold exactly one line", next: "only line", checks: true},
	{name: "a folder instead of a file of a secret", file: "telegram: {token: 'file:data'}\n", breaks: inData(map[string]string{"boots.json": "{}"}), code: "config-secret-missing", says: "is not a file of one line", next: "only line", checks: true},
	{name: "a part of a token of Telegram", env: map[string]string{"TELEGRAM_BOT_TOKEN": "1234567"}, code: "credential-malformed", says: "TELEGRAM_BOT_TOKEN is malformed", next: "@BotFather"},
	{name: "a token in quotes", env: map[string]string{"TELEGRAM_BOT_TOKEN": "\"1234567:FAKE-telegram-token-for-tests-only\""}, code: "credential-quoted", says: "TELEGRAM_BOT_TOKEN contains spaces or quotes", next: "without them"},
	{name: "the tokens of Slack swapped", env: map[string]string{"SLACK_BOT_TOKEN": "xapp-FAKE", "SLACK_APP_TOKEN": "xoxb-FAKE"}, code: "credential-malformed", says: "SLACK_BOT_TOKEN is malformed", next: "api.slack.com"},
	{name: "one token of Slack", env: map[string]string{"SLACK_BOT_TOKEN": "xoxb-FAKE"}, code: "credential-missing", says: "SLACK_APP_TOKEN is not set", next: "api.slack.com"},
	{name: "a refresh token without its client", env: map[string]string{"SLACK_REFRESH_TOKEN": "xoxe-1-FAKE", "SLACK_CLIENT_SECRET": "FAKE", "SLACK_APP_TOKEN": "xapp-FAKE"}, code: "credential-missing", says: "SLACK_CLIENT_ID is missing", next: "Client ID"},
	{name: "workspaces that cannot install an app", file: "slack: {install: on, client_id: '1.2'}\n", env: map[string]string{"SLACK_CLIENT_SECRET": "FAKE"}, code: "config-value", says: "install: on needs receive: http", next: "claybot config check"},
	{name: "a part of a token of Discord", env: map[string]string{"DISCORD_BOT_TOKEN": "OTAw"}, code: "credential-malformed", says: "DISCORD_BOT_TOKEN is malformed", next: "discord.com/developers"},
	{name: "the same bot twice", env: map[string]string{"TELEGRAM_BOT_TOKEN": telegramtest.Token}, file: "connectors: {copy: {type: telegram, token: 'env:TELEGRAM_BOT_TOKEN'}}\n", code: "config-value", says: "have the same token", next: "claybot config check"},
	{name: "a webhook without a secret", env: map[string]string{"CLAYBOT_HTTP_ADDR": "127.0.0.1:0"}, file: "connectors: {ci: {type: webhook}}\n", code: "webhook-no-secret", says: "it has no secret", next: "connectors.ci.secret"},
	{name: "a webhook without the server", env: map[string]string{"HOOK": "FAKE"}, file: "connectors: {ci: {type: webhook, secret: 'env:HOOK'}}\n", code: "http-off", says: "the HTTP server is off", next: "http.addr"},
	{name: "a template that is none", env: map[string]string{"HOOK": "FAKE"}, file: "connectors: {ci: {type: webhook, secret: 'env:HOOK', prompt: '{{.x'}}\n", code: "webhook-template", says: "the connector ci is off", next: "correct the template"},
	{name: "no model", code: "model-demo", says: "it is the demo model", next: "claybot setup model"},
	{name: "a model without a key", file: "model: {base_url: 'https://llm.example/v1', name: m}\n", code: "model-no-key", says: "use no key", next: "OPENAI_API_KEY"},
	{name: "a key with a space", env: map[string]string{"OPENAI_API_KEY": "sk-FAKE key"}, code: "credential-quoted", says: "OPENAI_API_KEY contains spaces or quotes", next: "without them"},
}

const dockerFile = "workspaces: {provider: docker}\n"

// brokenServices are parts around claybot.
var brokenServices = []brokenSetup{
	{name: "no Docker", file: dockerFile, code: "docker-unusable", says: "Docker", next: "Docker"},
	{name: "an address of Docker that is none", file: dockerFile, env: map[string]string{"DOCKER_HOST": "what://is:this"}, code: "docker-unusable", says: "cannot be used", next: "DOCKER_HOST"},
	{name: "containers on the network of the machine", file: "workspaces: {provider: docker, network: host-unsafe}\n", code: "docker-network-host", says: "reach whatever this machine reaches", next: "workspaces.network"},
	{name: "commands on the machine for anyone", file: "access: open\nworkspaces: {provider: local, network: full}\n", code: "local-refused", says: "anyone could run commands on this machine", next: "CLAYBOT_ACCESS=pairing", checks: true, serves: true, chat: sameCause},
	{name: "a folder of skills that is missing", file: "skills_dir: gone\n", code: "skills-missing", says: "gone, which skills_dir names, does not exist", next: "skills_dir"},
	{name: "a program that this machine does not have", file: "mcp: {notes: {command: [$DIR/notes-server, FAKE-argument], where: host}}\n", code: "mcp-program-missing", says: "/notes-server cannot be run: no such file or directory", next: "claybot nodes test mcp/notes", chat: sameCause},
	{name: "a program that may not be run", file: "mcp: {notes: {command: [$DIR/notes-server], where: host}}\n", breaks: func(t *testing.T, b *setupBench) { b.write(t, "notes-server", "#!/bin/sh\n") }, code: "mcp-program-missing", says: "/notes-server cannot be run: permission denied", next: "correct mcp.notes"},
	{name: "a script without its interpreter", file: "mcp: {notes: {command: [$DIR/notes-server], where: host}}\n", breaks: func(t *testing.T, b *setupBench) {
		b.write(t, "notes-server", "#!"+b.dir+"/no-interpreter -x\n")
		if err := os.Chmod(filepath.Join(b.dir, "notes-server"), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}, code: "mcp-program-missing", says: "/no-interpreter: no such file or directory", next: "install it"},
	{name: "a program whose folder is missing", file: "mcp: {notes: {command: [/bin/sh], dir: $DIR/gone, where: host}}\n", code: "mcp-program-missing", says: "/gone cannot be used: no such file or directory", next: "correct mcp.notes"},
	{name: "files without a database", env: map[string]string{"CLAYBOT_FILES_URL": "s3://bucket/prefix"}, code: "files-url-unused", says: "files.url has no effect", next: "storage.url"},
	{name: "a storage URL that is not set", file: "storage: {url: 'env:DATABASE'}\n", code: "database-url-empty", says: "which cannot be read", next: "storage.url"},
	{name: "a storage URL that is none", env: map[string]string{"CLAYBOT_STORAGE_URL": "postgres://user:FAKE@host:port/x"}, code: "database-unreachable", says: "the storage URL cannot be understood", next: "postgres://user:password@host:5432/database"},
	{name: "a database that does not answer", env: map[string]string{"CLAYBOT_STORAGE_URL": "postgres://user:FAKE@127.0.0.1:1/claybot"}, code: "database-unreachable", says: "cannot be reached", next: "look whether the server is up"},
}

var online = []string{"--online"}

// brokenAnswers are found by asking.
var brokenAnswers = []brokenSetup{
	{name: "a token that Telegram refuses", chat: "its token is refused", flags: online, env: map[string]string{"TELEGRAM_BOT_TOKEN": "1234567:FAKE-another-token-for-the-tests"}, breaks: withTelegram(nil), code: "credential-refused", says: "the bot token is refused", next: "@BotFather"},
	{name: "Telegram is down", flags: online, env: map[string]string{"TELEGRAM_API_URL": "http://127.0.0.1:1"}, breaks: withTelegram(nil), code: "connector-failing", says: "telegram", next: "look at the network"},
	{name: "a webhook of another program", flags: online, breaks: withTelegram(func(s *telegramtest.Server) { s.SetWebhook("https://other.example/FAKE-secret") }), code: "telegram-webhook-set", says: "a webhook leads its updates to other.example", next: "start claybot"},
	{name: "updates that go elsewhere", flags: online, file: "http: {addr: '127.0.0.1:0', public_url: 'https://bot.example'}\ntelegram: {receive: webhook}\n", env: map[string]string{"CLAYBOT_HTTP_ADDR": unset}, breaks: withTelegram(func(s *telegramtest.Server) { s.SetWebhook("https://other.example/x") }), code: "telegram-webhook-elsewhere", says: "other.example, not to https://bot.example/hooks/telegram", next: "start claybot"},
	{name: "updates that do not arrive", flags: online, file: "http: {addr: '127.0.0.1:0', public_url: 'https://bot.example'}\ntelegram: {receive: webhook}\n", env: map[string]string{"CLAYBOT_HTTP_ADDR": unset}, breaks: withTelegram(func(s *telegramtest.Server) {
		s.BreakWebhook("https://bot.example/hooks/telegram", telegramtest.CertificateFailure)
		s.Say(7, 7, "hello")
	}), code: "telegram-webhook-failing", says: "cannot deliver them to bot.example: SSL error", next: "valid certificate"},
	{name: "groups that the bot does not hear", file: "agents: {room: {context: 5, match: ['telegram:-100']}}\naccess: {mode: pairing, allow: ['telegram:-100']}\n", breaks: withTelegram(func(s *telegramtest.Server) { s.Say(-100, 8, "hello") }), code: "telegram-privacy-on", says: "its privacy mode is on", next: "/setprivacy"},
	{name: "a bot token that Slack refuses", chat: "its token is refused", flags: online, env: map[string]string{"SLACK_BOT_TOKEN": "xoxb-FAKE"}, breaks: withSlack(nil), code: "credential-refused", says: "slack refuses SLACK_BOT_TOKEN: invalid_auth", next: "api.slack.com"},
	{name: "an app token that Slack refuses", flags: online, env: map[string]string{"SLACK_APP_TOKEN": "xapp-FAKE"}, breaks: withSlack(nil), code: "credential-refused", says: "slack refuses SLACK_APP_TOKEN", next: "api.slack.com"},
	{name: "a scope that the app lacks", flags: online, breaks: withSlack(func(s *slacktest.Server) { s.Lack("reactions:write", true) }), code: "slack-scopes-missing", says: "lacks the scopes reactions:write", next: "OAuth & Permissions"},
	{name: "Socket Mode beside requests", flags: online, file: "http: {addr: '127.0.0.1:0', public_url: 'https://bot.example'}\nslack: {receive: http}\n", env: map[string]string{"CLAYBOT_HTTP_ADDR": unset, "SLACK_SIGNING_SECRET": "FAKE-secret"}, breaks: withSlack(nil), code: "slack-socket-mode-on", says: "Slack sends no requests", next: "slack.receive: socket"},
	{name: "an app that no workspace has installed", flags: online, file: "http: {addr: '127.0.0.1:0', public_url: 'https://bot.example'}\nslack: {receive: http, install: on, client_id: '1.2'}\n", env: map[string]string{"CLAYBOT_HTTP_ADDR": unset, "SLACK_CLIENT_SECRET": "FAKE-secret", "SLACK_SIGNING_SECRET": "FAKE-secret"}, code: "slack-not-installed", says: "no workspace has installed the app", next: "claybot slack install"},
	{name: "an app that sends requests", flags: online, breaks: withSlack(func(s *slacktest.Server) { s.Push("https://bot.example/x", "FAKE-secret", nil) }), code: "credential-refused", says: "socket mode is switched off", next: "switch it on"},
	{name: "a token that Discord refuses", chat: "its token is refused", env: map[string]string{"DISCORD_BOT_TOKEN": discordtest.TokenOf("900000000000000009")}, breaks: withDiscord(nil), code: "credential-refused", says: "the bot token is refused", next: "reset it"},
	{name: "an intent that is off", breaks: withDiscord(func(s *discordtest.Server) { s.Forbid(false) }), code: "discord-intent-off", says: "Message Content intent is off", next: "Privileged Gateway Intents"},
	{name: "a key that the provider refuses", flags: online, breaks: withModel(openaitest.Config{Key: "sk-another"}), code: "credential-refused", says: "refuses OPENAI_API_KEY", next: "claybot setup model", chat: sameCause},
	{name: "a model that the provider does not have", flags: online, env: map[string]string{"CLAYBOT_MODEL": "gpt-55"}, breaks: withModel(openaitest.Config{Models: []string{"gpt-5", "gpt-5-mini"}}), code: "model-not-listed", says: "did you mean gpt-5?", next: "claybot setup model"},
	{name: "a path that the provider does not have", flags: online, breaks: func(t *testing.T, b *setupBench) {
		withModel(openaitest.Config{})(t, b)
		b.env["OPENAI_BASE_URL"] += "/v2"
	}, code: "model-no-list", says: "404", next: "model.base_url"},
	{name: "a server of a model that does not run", flags: online, env: map[string]string{"OPENAI_API_KEY": "sk-FAKE", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, code: "model-unreachable", says: "127.0.0.1:1", next: "model.base_url", chat: sameCause},
	{name: "an MCP server that does not run", flags: online, file: "mcp: {notes: {url: 'http://127.0.0.1:1/s/FAKE-secret/mcp'}}\n", code: "mcp-failing", says: "connect", next: "mcp", chat: sameCause},
	{name: "a relay whose receiver does not run", flags: online, env: map[string]string{"HOOK": "FAKE-secret"}, file: "relay: [{name: crm, url: 'http://127.0.0.1:1/hook/FAKE-path', secret: 'env:HOOK'}]\n", code: "relay-failing", says: "127.0.0.1:1 does not answer", next: "look at its address"},
	{name: "a collector that does not run", flags: online, file: "otlp: {endpoint: 'http://127.0.0.1:1'}\n", code: "relay-failing", says: "127.0.0.1:1 does not answer", next: "look at its address"},
}
