CREATE TABLE agents (
	id           TEXT PRIMARY KEY,
	key          TEXT NOT NULL UNIQUE,
	descriptor   TEXT NOT NULL,
	last_user_at INTEGER NOT NULL DEFAULT 0,
	usage        TEXT NOT NULL DEFAULT '{}',
	n            INTEGER NOT NULL DEFAULT 0, -- number of its newest message
	waiting      INTEGER NOT NULL DEFAULT 0, -- how many messages wait
	first_n      INTEGER NOT NULL DEFAULT 0, -- the oldest of them
	first_at     INTEGER NOT NULL DEFAULT 0,
	last_at      INTEGER NOT NULL DEFAULT 0, -- the newest arrival
	urgent_n     INTEGER NOT NULL DEFAULT 0, -- newest message that is due at once
	hold_at      INTEGER NOT NULL DEFAULT 0, -- not due before: an album may be incomplete
	due_at       INTEGER,
	wake_at      INTEGER,
	node         TEXT,
	token        INTEGER NOT NULL DEFAULT 0,
	run          TEXT                        -- the unfinished run
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_wake ON agents (wake_at, node) WHERE wake_at IS NOT NULL;

CREATE TABLE messages (
	id      TEXT NOT NULL UNIQUE,
	agent   TEXT NOT NULL,
	n       INTEGER NOT NULL,
	type    TEXT NOT NULL,
	at      INTEGER NOT NULL, -- arrival
	album   TEXT,
	run     TEXT,
	skipped TEXT,
	body    TEXT NOT NULL,
	crc     INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX messages_waiting ON messages (agent, n) WHERE run IS NULL AND skipped IS NULL;
CREATE INDEX messages_user ON messages (agent, n) WHERE type = 'user';

CREATE TABLE keys (
	n   INTEGER PRIMARY KEY,
	key TEXT NOT NULL UNIQUE,
	at  INTEGER NOT NULL
) STRICT;

CREATE TABLE runs (
	id       TEXT PRIMARY KEY,
	agent    TEXT NOT NULL,
	state    TEXT NOT NULL,
	last_seq INTEGER NOT NULL DEFAULT 0,
	attempts INTEGER NOT NULL DEFAULT 0,
	cancel   TEXT,
	draft    TEXT,
	messages TEXT NOT NULL DEFAULT '[]',
	outcome  TEXT NOT NULL DEFAULT '{}',
	started  INTEGER NOT NULL,
	ended    INTEGER NOT NULL DEFAULT 0,
	pruned   INTEGER NOT NULL DEFAULT 0 -- 1: its events are gone
) STRICT;
CREATE UNIQUE INDEX one_unfinished_run ON runs (agent) WHERE state IN ('PENDING', 'RUNNING', 'AWAITING');
CREATE INDEX runs_prunable ON runs (ended) WHERE ended > 0 AND pruned = 0;

CREATE TABLE events (
	run  TEXT NOT NULL,
	seq  INTEGER NOT NULL,
	v    INTEGER NOT NULL,
	type TEXT NOT NULL,
	at   INTEGER NOT NULL,
	data TEXT,
	PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
	n        INTEGER PRIMARY KEY AUTOINCREMENT,
	id       TEXT NOT NULL UNIQUE,
	dest     TEXT NOT NULL,
	origin   TEXT, -- the run or the message it answers
	state    TEXT NOT NULL,
	open     INTEGER NOT NULL,
	at       INTEGER NOT NULL,
	attempts INTEGER NOT NULL DEFAULT 0,
	tried_at INTEGER NOT NULL DEFAULT 0,
	due_at   INTEGER NOT NULL DEFAULT 0,
	receipt  TEXT,
	cause    TEXT,
	body     TEXT NOT NULL,
	crc      INTEGER NOT NULL
) STRICT;
CREATE INDEX outbox_open ON outbox (dest, n) WHERE open = 1;
CREATE INDEX outbox_dest ON outbox (dest, n);
CREATE INDEX outbox_origin ON outbox (origin) WHERE origin IS NOT NULL;

CREATE TABLE grants (
	connector TEXT NOT NULL,
	subject   TEXT NOT NULL,
	name      TEXT NOT NULL,
	at        INTEGER NOT NULL,
	PRIMARY KEY (connector, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE pairings (
	code      TEXT PRIMARY KEY,
	connector TEXT NOT NULL,
	channel   TEXT NOT NULL,
	user      TEXT NOT NULL,
	name      TEXT NOT NULL,
	at        INTEGER NOT NULL,
	expires   INTEGER NOT NULL,
	UNIQUE (connector, user)
) STRICT;

CREATE TABLE marks (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE counters (
	name TEXT PRIMARY KEY,
	n    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters SELECT 'agents', count(*) FROM agents;
INSERT INTO counters SELECT 'waiting', count(*) FROM messages WHERE run IS NULL AND skipped IS NULL;
INSERT INTO counters SELECT 'run:' || state, count(*) FROM runs GROUP BY state;
INSERT INTO counters SELECT 'send:' || state, count(*) FROM outbox GROUP BY state;
INSERT INTO counters SELECT 'ambiguous', count(*) FROM outbox WHERE state = 'ambiguous';
DROP INDEX messages_user;
CREATE INDEX messages_agent ON messages (agent, n);
ALTER TABLE agents ADD COLUMN type TEXT;
ALTER TABLE agents ADD COLUMN owner TEXT;
ALTER TABLE agents ADD COLUMN parent TEXT; -- of a subagent
ALTER TABLE agents ADD COLUMN root TEXT;
ALTER TABLE agents ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN last_user_n INTEGER NOT NULL DEFAULT 0; -- place of its newest user message among those of all agents
ALTER TABLE agents ADD COLUMN resume_at INTEGER; -- its run is paused until then
UPDATE agents SET
	type = descriptor ->> 'type',
	owner = (descriptor ->> 'connector') || '/' || (descriptor ->> 'userId'),
	last_user_n = coalesce((SELECT max(m.rowid) FROM messages m WHERE m.agent = agents.id AND m.type = 'user'), 0)
WHERE json_valid(descriptor);
CREATE INDEX agents_foreground ON agents (owner, last_user_at, last_user_n) WHERE type = 'user';
CREATE INDEX agents_parent ON agents (parent, created_at) WHERE parent IS NOT NULL;
CREATE INDEX agents_root ON agents (root, created_at) WHERE root IS NOT NULL;

ALTER TABLE messages ADD COLUMN silent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN awaited TEXT; -- who waits for how its run ends
CREATE INDEX messages_user ON messages (agent, n) WHERE type = 'user';
CREATE INDEX messages_awaited ON messages (agent, run) WHERE awaited IS NOT NULL;

ALTER TABLE runs ADD COLUMN awaiting TEXT; -- of a paused run
CREATE INDEX runs_agent ON runs (agent);
CREATE INDEX runs_pruned ON runs (ended) WHERE pruned = 1;

CREATE TABLE ledger (
	n         INTEGER PRIMARY KEY,
	task      TEXT NOT NULL,
	instant   TEXT NOT NULL,
	attempt   INTEGER NOT NULL,
	manual    INTEGER NOT NULL,
	planned   INTEGER NOT NULL,
	quiet     INTEGER NOT NULL,
	recovered INTEGER NOT NULL,
	entered   INTEGER NOT NULL,
	message   TEXT UNIQUE,      -- null: it does not run
	reason    TEXT,             -- why it does not
	state     TEXT,             -- from here on: how its run ended
	started   INTEGER NOT NULL DEFAULT 0,
	ended     INTEGER NOT NULL DEFAULT 0,
	cost      INTEGER NOT NULL DEFAULT 0,
	error     TEXT,
	UNIQUE (task, instant, attempt)
) STRICT;
CREATE INDEX ledger_task ON ledger (task, n);
CREATE INDEX ledger_scheduled ON ledger (task, n) WHERE manual = 0;
CREATE INDEX ledger_entered ON ledger (entered);

CREATE TABLE reminders (
	agent   TEXT NOT NULL,
	id      TEXT NOT NULL,
	due     INTEGER NOT NULL,
	note    TEXT NOT NULL,
	made    INTEGER NOT NULL,
	context TEXT NOT NULL,
	route   TEXT,
	PRIMARY KEY (agent, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX reminders_due ON reminders (due);

CREATE TABLE documents (
	scope TEXT NOT NULL,
	path  TEXT NOT NULL,
	text  TEXT NOT NULL,
	size  INTEGER NOT NULL, -- bytes
	at    INTEGER NOT NULL,
	PRIMARY KEY (scope, path)
) STRICT, WITHOUT ROWID;
