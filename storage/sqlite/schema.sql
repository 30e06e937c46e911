-- Generated from the migrations; see TestSchema.
PRAGMA application_id = 1668047225;
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
, type TEXT, owner TEXT, parent TEXT, root TEXT, created_at INTEGER NOT NULL DEFAULT 0, last_user_n INTEGER NOT NULL DEFAULT 0, resume_at INTEGER, busy INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
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
, silent INTEGER NOT NULL DEFAULT 0, awaited TEXT, reserved TEXT) STRICT;
CREATE UNIQUE INDEX messages_waiting ON messages (agent, n) WHERE run IS NULL AND skipped IS NULL;
CREATE TABLE keys (
	n   INTEGER PRIMARY KEY,
	key TEXT NOT NULL UNIQUE,
	at  INTEGER NOT NULL
, message TEXT) STRICT;
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
, awaiting TEXT) STRICT;
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
CREATE INDEX messages_agent ON messages (agent, n);
CREATE INDEX agents_parent ON agents (parent, created_at) WHERE parent IS NOT NULL;
CREATE INDEX agents_root ON agents (root, created_at) WHERE root IS NOT NULL;
CREATE INDEX messages_user ON messages (agent, n) WHERE type = 'user';
CREATE INDEX messages_awaited ON messages (agent, run) WHERE awaited IS NOT NULL;
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
CREATE UNIQUE INDEX messages_reserved ON messages (reserved) WHERE reserved IS NOT NULL;
CREATE INDEX messages_pending ON messages (reserved) WHERE reserved IS NOT NULL AND run IS NULL AND skipped IS NULL;
CREATE INDEX messages_pending_agent ON messages (agent, reserved) WHERE reserved IS NOT NULL AND run IS NULL AND skipped IS NULL;
CREATE INDEX messages_oldest ON messages (at) WHERE run IS NULL AND skipped IS NULL AND silent = 0;
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
	runs      INTEGER NOT NULL, written   INTEGER NOT NULL DEFAULT 0, reasoning INTEGER NOT NULL DEFAULT 0, unpriced  INTEGER NOT NULL DEFAULT 0, connector TEXT NOT NULL DEFAULT '', channel   TEXT NOT NULL DEFAULT '', -- each is counted in one row
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
	runs      INTEGER NOT NULL, written   INTEGER NOT NULL DEFAULT 0, reasoning INTEGER NOT NULL DEFAULT 0, unpriced  INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (day, model, type)
) STRICT, WITHOUT ROWID;
CREATE TABLE latencies (
	day    TEXT NOT NULL,
	what   TEXT NOT NULL,
	bucket INTEGER NOT NULL,
	n      INTEGER NOT NULL,
	PRIMARY KEY (day, what, bucket)
) STRICT, WITHOUT ROWID;
CREATE TABLE workspaces (
	node      TEXT NOT NULL,
	provider  TEXT NOT NULL,
	key       TEXT NOT NULL,
	agent     TEXT NOT NULL,    -- empty: of no single agent
	state     TEXT NOT NULL,    -- running, terminating, idle or removed
	image     TEXT NOT NULL,
	platform  TEXT NOT NULL,
	last_used INTEGER NOT NULL, -- times in milliseconds
	ttl       INTEGER NOT NULL, -- milliseconds; 0: it stays
	data      INTEGER NOT NULL, -- 1: its removal takes the data as well
	tries     INTEGER NOT NULL, -- removals that failed
	next_try  INTEGER NOT NULL, -- 0: at once
	problem   TEXT NOT NULL,
	changed   INTEGER NOT NULL, -- when state became what it is
	version   INTEGER NOT NULL, -- counts the writes
	PRIMARY KEY (node, provider, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX workspaces_removed ON workspaces (changed) WHERE state = 'removed';
CREATE TABLE budgets (
	key       TEXT PRIMARY KEY, -- with its period
	period    TEXT NOT NULL,    -- 2026-01-31, 2026-01, run or always
	name      TEXT NOT NULL,    -- for people
	unit      TEXT NOT NULL,    -- microUSD or tokens
	hard      INTEGER NOT NULL,
	most      INTEGER NOT NULL, -- the limit when it was used last
	extension INTEGER NOT NULL DEFAULT 0,
	spent     INTEGER NOT NULL DEFAULT 0,
	reserved  INTEGER NOT NULL DEFAULT 0,
	unpriced  INTEGER NOT NULL DEFAULT 0,
	used_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX budgets_used ON budgets (used_at);
CREATE TABLE reservations (
	id        TEXT PRIMARY KEY,
	node      TEXT NOT NULL,
	run       TEXT NOT NULL,
	tokens    INTEGER NOT NULL,
	micro_usd INTEGER NOT NULL,
	unpriced  INTEGER NOT NULL,
	keys      TEXT NOT NULL, -- of the budgets, as JSON
	at        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE extensions (
	id  TEXT PRIMARY KEY,
	key TEXT NOT NULL,
	by  INTEGER NOT NULL,
	who TEXT NOT NULL,
	at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX extensions_key ON extensions (key);
CREATE TABLE memories (
	n       INTEGER PRIMARY KEY,
	scope   TEXT NOT NULL,
	path    TEXT NOT NULL,
	title   TEXT NOT NULL,
	text    TEXT NOT NULL,
	size    INTEGER NOT NULL,
	tainted INTEGER NOT NULL,
	version INTEGER NOT NULL, -- the newest one
	UNIQUE (scope, path)
) STRICT;
CREATE TABLE memory_versions (
	version INTEGER PRIMARY KEY AUTOINCREMENT,
	scope   TEXT NOT NULL,
	path    TEXT NOT NULL,
	gone    INTEGER NOT NULL,
	text    TEXT NOT NULL,
	agent   TEXT NOT NULL,
	run     TEXT NOT NULL,
	call    TEXT NOT NULL,
	by      TEXT NOT NULL,
	tainted INTEGER NOT NULL,
	at      INTEGER NOT NULL
) STRICT;
CREATE INDEX memory_versions_note ON memory_versions (scope, path, version);
CREATE VIRTUAL TABLE memories_words USING fts5 (path, text, content = 'memories', content_rowid = 'n', tokenize = 'unicode61 remove_diacritics 2');
CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
	INSERT INTO memories_words (rowid, path, text) VALUES (new.n, new.path, new.text);
END;
CREATE TRIGGER memories_gone AFTER DELETE ON memories BEGIN
	INSERT INTO memories_words (memories_words, rowid, path, text) VALUES ('delete', old.n, old.path, old.text);
END;
CREATE TRIGGER memories_changed AFTER UPDATE OF path, text ON memories BEGIN
	INSERT INTO memories_words (memories_words, rowid, path, text) VALUES ('delete', old.n, old.path, old.text);
	INSERT INTO memories_words (rowid, path, text) VALUES (new.n, new.path, new.text);
END;
CREATE TABLE parked (
	n          INTEGER PRIMARY KEY, -- order of arrival
	id         TEXT NOT NULL UNIQUE,
	key        TEXT NOT NULL,       -- of the descriptor
	episode    TEXT NOT NULL,       -- id of the first message that was parked with it
	at         INTEGER NOT NULL,
	cause      TEXT NOT NULL,       -- for operators
	descriptor TEXT NOT NULL,
	body       TEXT NOT NULL,
	crc        INTEGER NOT NULL
) STRICT;
CREATE INDEX parked_key ON parked (key, n);
INSERT INTO counters VALUES ('agents', 0);
INSERT INTO counters VALUES ('ambiguous', 0);
INSERT INTO counters VALUES ('waiting', 0);
