-- Lists by pages: agents, runs and outgoing messages in the order in which they are shown.
ALTER TABLE agents ADD COLUMN busy INTEGER NOT NULL DEFAULT 0; -- it has a run, or something that will start one
UPDATE agents SET busy = 1 WHERE run IS NOT NULL OR first_n > 0;
DROP INDEX agents_foreground;
CREATE INDEX agents_listed ON agents (last_user_at, last_user_n, created_at);
CREATE INDEX agents_background ON agents (type, last_user_at, last_user_n, created_at) WHERE type <> 'user';
CREATE INDEX agents_owned ON agents (owner, last_user_at, last_user_n, created_at) WHERE owner IS NOT NULL;
CREATE INDEX agents_below ON agents (parent, last_user_at, last_user_n, created_at) WHERE parent IS NOT NULL;
CREATE INDEX agents_busy ON agents (last_user_at, last_user_n, created_at) WHERE busy = 1;

CREATE INDEX runs_by_agent ON runs (agent, id);
CREATE INDEX runs_ended ON runs (state, id) WHERE ended > 0;
CREATE INDEX runs_amiss ON runs (agent, state, id) WHERE state IN ('FAILED', 'CANCELED');

CREATE INDEX outbox_unsent ON outbox (n) WHERE open = 1;
CREATE INDEX outbox_failed ON outbox (n) WHERE state = 'failed';
CREATE INDEX outbox_failed_dest ON outbox (dest, n) WHERE state = 'failed';

-- Messages: ids that they reserve for runs, and which one waits longest.
ALTER TABLE messages ADD COLUMN reserved TEXT; -- the id that a run which begins with it has
CREATE UNIQUE INDEX messages_reserved ON messages (reserved) WHERE reserved IS NOT NULL;
CREATE INDEX messages_pending ON messages (reserved) WHERE reserved IS NOT NULL AND run IS NULL AND skipped IS NULL;
CREATE INDEX messages_pending_agent ON messages (agent, reserved) WHERE reserved IS NOT NULL AND run IS NULL AND skipped IS NULL;
CREATE INDEX messages_oldest ON messages (at) WHERE run IS NULL AND skipped IS NULL AND silent = 0;

ALTER TABLE keys ADD COLUMN message TEXT; -- that has the key
UPDATE keys SET message = m.id
	FROM messages m, json_each(CASE WHEN json_valid(m.body) THEN m.body ELSE '{}' END, '$.keys') k
	WHERE k.value = keys.key;

CREATE TABLE settings (
	agent TEXT PRIMARY KEY,
	body  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE questions (
	id    TEXT PRIMARY KEY,
	run   TEXT NOT NULL,
	agent TEXT NOT NULL,
	asked INTEGER NOT NULL,
	open  INTEGER NOT NULL, -- 1: its run is paused for it, and nobody has answered
	body  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX questions_open ON questions (asked) WHERE open = 1;
CREATE INDEX questions_open_agent ON questions (agent, asked) WHERE open = 1;
CREATE INDEX questions_run ON questions (run);

CREATE TABLE sinks (
	name TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE relays (
	run          TEXT NOT NULL,
	sink         TEXT NOT NULL,
	seq          INTEGER NOT NULL, -- the sink knows the events up to here
	since        INTEGER,          -- time of the oldest event it does not know; null: it knows all
	published_at INTEGER,
	PRIMARY KEY (run, sink)
) STRICT, WITHOUT ROWID;
CREATE INDEX relays_backlog ON relays (sink, since) WHERE since IS NOT NULL;

CREATE TABLE spent (
	day       TEXT NOT NULL, -- in UTC
	agent     TEXT NOT NULL,
	owner     TEXT NOT NULL,
	model     TEXT NOT NULL,
	type      TEXT NOT NULL,
	input     INTEGER NOT NULL,
	output    INTEGER NOT NULL,
	cached    INTEGER NOT NULL,
	cost      INTEGER NOT NULL,
	calls     INTEGER NOT NULL,
	tools     INTEGER NOT NULL,
	estimated INTEGER NOT NULL,
	runs      INTEGER NOT NULL, -- each is counted in one row
	PRIMARY KEY (day, agent, owner, model)
) STRICT, WITHOUT ROWID;
CREATE INDEX spent_agent ON spent (agent, day);

CREATE TABLE spent_days ( -- sums of spent, for who does not ask by agent or owner
	day       TEXT NOT NULL,
	model     TEXT NOT NULL,
	type      TEXT NOT NULL,
	input     INTEGER NOT NULL,
	output    INTEGER NOT NULL,
	cached    INTEGER NOT NULL,
	cost      INTEGER NOT NULL,
	calls     INTEGER NOT NULL,
	tools     INTEGER NOT NULL,
	estimated INTEGER NOT NULL,
	runs      INTEGER NOT NULL,
	PRIMARY KEY (day, model, type)
) STRICT, WITHOUT ROWID;

CREATE TABLE latencies (
	day    TEXT NOT NULL,
	what   TEXT NOT NULL,
	bucket INTEGER NOT NULL,
	n      INTEGER NOT NULL,
	PRIMARY KEY (day, what, bucket)
) STRICT, WITHOUT ROWID;
