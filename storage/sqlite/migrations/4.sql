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
