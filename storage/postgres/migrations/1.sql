-- The tables of package storage/relational. Times are unix milliseconds by the clock
-- of the server, texts compare by their bytes. What many transactions add to is
-- left in sums, so that they do not wait for each other, and added up later.
CREATE TABLE schema_versions (
	version INTEGER PRIMARY KEY,
	oldest  INTEGER NOT NULL, -- schema version of the oldest binary that can work with it
	at      TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE agents (
	id           TEXT COLLATE "C" PRIMARY KEY,
	key          TEXT COLLATE "C" NOT NULL UNIQUE,
	descriptor   TEXT NOT NULL,
	state        TEXT, -- the mutable part; null: as an agent begins
	last_user_at BIGINT NOT NULL DEFAULT 0,
	usage        TEXT NOT NULL DEFAULT '{}',
	n            BIGINT NOT NULL DEFAULT 0, -- number of its newest message
	waiting      BIGINT NOT NULL DEFAULT 0, -- how many messages wait
	first_n      BIGINT NOT NULL DEFAULT 0, -- the oldest of them
	first_at     BIGINT NOT NULL DEFAULT 0,
	last_at      BIGINT NOT NULL DEFAULT 0, -- the newest arrival
	urgent_n     BIGINT NOT NULL DEFAULT 0, -- newest message that is due at once
	hold_at      BIGINT NOT NULL DEFAULT 0, -- not due before: an album may be incomplete
	due_at       BIGINT,
	wake_at      BIGINT,
	node         TEXT COLLATE "C",
	token        BIGINT NOT NULL DEFAULT 0,
	run          TEXT COLLATE "C", -- the unfinished run
	type         TEXT COLLATE "C",
	owner        TEXT COLLATE "C",
	parent       TEXT COLLATE "C", -- of a subagent
	root         TEXT COLLATE "C",
	created_at   BIGINT NOT NULL DEFAULT 0,
	last_user_n  BIGINT NOT NULL DEFAULT 0, -- place of its newest user message among those of all agents
	resume_at    BIGINT, -- its run is paused until then
	busy         BIGINT NOT NULL DEFAULT 0, -- it has a run, or something that will start one
	records      BIGINT NOT NULL DEFAULT 0  -- number of its newest record
) WITH (fillfactor = 80);
CREATE INDEX agents_wake ON agents (wake_at, node) WHERE wake_at IS NOT NULL;
CREATE INDEX agents_held ON agents (node) WHERE node IS NOT NULL;
CREATE INDEX agents_parent ON agents (parent, created_at) WHERE parent IS NOT NULL;
CREATE INDEX agents_root ON agents (root, created_at) WHERE root IS NOT NULL;
CREATE INDEX agents_listed ON agents (last_user_at, last_user_n, created_at, id);
CREATE INDEX agents_background ON agents (type, last_user_at, last_user_n, created_at, id) WHERE type <> 'user';
CREATE INDEX agents_owned ON agents (owner, last_user_at, last_user_n, created_at, id) WHERE owner IS NOT NULL;
CREATE INDEX agents_below ON agents (parent, last_user_at, last_user_n, created_at, id) WHERE parent IS NOT NULL;
CREATE INDEX agents_busy ON agents (last_user_at, last_user_n, created_at, id) WHERE busy = 1;

CREATE TABLE messages (
	rowid    BIGINT GENERATED ALWAYS AS IDENTITY,
	id       TEXT COLLATE "C" NOT NULL UNIQUE,
	agent    TEXT COLLATE "C" NOT NULL,
	n        BIGINT NOT NULL,
	type     TEXT COLLATE "C" NOT NULL,
	at       BIGINT NOT NULL, -- arrival
	album    TEXT COLLATE "C",
	run      TEXT COLLATE "C",
	skipped  TEXT COLLATE "C",
	silent   BIGINT NOT NULL DEFAULT 0,
	awaited  TEXT, -- who waits for how its run ends
	reserved TEXT COLLATE "C", -- the id that a run which begins with it has
	body     TEXT NOT NULL,
	crc      BIGINT NOT NULL
);
CREATE UNIQUE INDEX messages_waiting ON messages (agent, n) WHERE run IS NULL AND skipped IS NULL;
CREATE INDEX messages_agent ON messages (agent, n);
CREATE INDEX messages_awaited ON messages (agent, run) WHERE awaited IS NOT NULL;
CREATE UNIQUE INDEX messages_reserved ON messages (reserved) WHERE reserved IS NOT NULL;
CREATE INDEX messages_pending ON messages (reserved) WHERE reserved IS NOT NULL AND run IS NULL AND skipped IS NULL;
CREATE INDEX messages_oldest ON messages (at) WHERE run IS NULL AND skipped IS NULL AND silent = 0;

CREATE TABLE keys (
	n       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	key     TEXT COLLATE "C" NOT NULL UNIQUE,
	at      BIGINT NOT NULL,
	message TEXT COLLATE "C" -- that has the key
);

CREATE TABLE settings (
	agent TEXT COLLATE "C" PRIMARY KEY,
	body  TEXT NOT NULL
);

CREATE TABLE runs (
	rowid    BIGINT GENERATED ALWAYS AS IDENTITY,
	id       TEXT COLLATE "C" PRIMARY KEY,
	agent    TEXT COLLATE "C" NOT NULL,
	state    TEXT COLLATE "C" NOT NULL,
	last_seq BIGINT NOT NULL DEFAULT 0,
	attempts BIGINT NOT NULL DEFAULT 0,
	cancel   TEXT,
	draft    TEXT,
	messages TEXT NOT NULL DEFAULT '[]',
	outcome  TEXT NOT NULL DEFAULT '{}',
	started  BIGINT NOT NULL,
	ended    BIGINT NOT NULL DEFAULT 0,
	pruned   BIGINT NOT NULL DEFAULT 0, -- 1: its events are gone
	awaiting TEXT -- of a paused run
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX one_unfinished_run ON runs (agent) WHERE state IN ('PENDING', 'RUNNING', 'AWAITING');
CREATE INDEX runs_prunable ON runs (ended) WHERE ended > 0 AND pruned = 0;
CREATE INDEX runs_pruned ON runs (ended) WHERE pruned = 1;
CREATE INDEX runs_agent ON runs (agent, rowid);
CREATE INDEX runs_by_agent ON runs (agent, id);
CREATE INDEX runs_ended ON runs (state, id) WHERE ended > 0;
CREATE INDEX runs_amiss ON runs (agent, state, id) WHERE state IN ('FAILED', 'CANCELED');

CREATE TABLE events (
	run  TEXT COLLATE "C" NOT NULL,
	seq  BIGINT NOT NULL,
	v    BIGINT NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	at   BIGINT NOT NULL,
	data TEXT,
	PRIMARY KEY (run, seq)
);

CREATE TABLE questions (
	id    TEXT COLLATE "C" PRIMARY KEY,
	run   TEXT COLLATE "C" NOT NULL,
	agent TEXT COLLATE "C" NOT NULL,
	asked BIGINT NOT NULL,
	open  BIGINT NOT NULL, -- 1: its run is paused for it, and nobody has answered
	body  TEXT NOT NULL
);
CREATE INDEX questions_open ON questions (asked, id) WHERE open = 1;
CREATE INDEX questions_open_agent ON questions (agent, asked, id) WHERE open = 1;
CREATE INDEX questions_run ON questions (run);

CREATE TABLE outbox (
	n        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id       TEXT COLLATE "C" NOT NULL UNIQUE,
	dest     TEXT COLLATE "C" NOT NULL,
	origin   TEXT COLLATE "C", -- the run or the message it answers
	state    TEXT COLLATE "C" NOT NULL,
	open     BIGINT NOT NULL,
	at       BIGINT NOT NULL,
	attempts BIGINT NOT NULL DEFAULT 0,
	tried_at BIGINT NOT NULL DEFAULT 0,
	due_at   BIGINT NOT NULL DEFAULT 0,
	receipt  TEXT COLLATE "C",
	cause    TEXT,
	body     TEXT NOT NULL,
	crc      BIGINT NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX outbox_open ON outbox (dest, n) WHERE open = 1;
CREATE INDEX outbox_dest ON outbox (dest, n);
CREATE INDEX outbox_origin ON outbox (origin) WHERE origin IS NOT NULL;
CREATE INDEX outbox_unsent ON outbox (n) WHERE open = 1;
CREATE INDEX outbox_failed ON outbox (n) WHERE state = 'failed';
CREATE INDEX outbox_failed_dest ON outbox (dest, n) WHERE state = 'failed';

CREATE TABLE grants (
	connector TEXT COLLATE "C" NOT NULL,
	subject   TEXT COLLATE "C" NOT NULL,
	name      TEXT NOT NULL,
	at        BIGINT NOT NULL,
	PRIMARY KEY (connector, subject)
);

CREATE TABLE pairings (
	rowid     BIGINT GENERATED ALWAYS AS IDENTITY,
	code      TEXT COLLATE "C" PRIMARY KEY,
	connector TEXT COLLATE "C" NOT NULL,
	channel   TEXT COLLATE "C" NOT NULL,
	"user"    TEXT COLLATE "C" NOT NULL,
	name      TEXT NOT NULL,
	at        BIGINT NOT NULL,
	expires   BIGINT NOT NULL,
	UNIQUE (connector, "user")
);

CREATE TABLE marks (
	key   TEXT COLLATE "C" PRIMARY KEY,
	value TEXT NOT NULL
);

CREATE TABLE counters (
	name TEXT COLLATE "C" PRIMARY KEY,
	n    BIGINT NOT NULL
);

CREATE TABLE ledger (
	n         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	task      TEXT COLLATE "C" NOT NULL,
	instant   TEXT COLLATE "C" NOT NULL,
	attempt   BIGINT NOT NULL,
	manual    BIGINT NOT NULL,
	planned   BIGINT NOT NULL,
	quiet     BIGINT NOT NULL,
	recovered BIGINT NOT NULL,
	entered   BIGINT NOT NULL,
	message   TEXT COLLATE "C" UNIQUE, -- null: it does not run
	reason    TEXT, -- why it does not
	state     TEXT COLLATE "C", -- from here on: how its run ended
	started   BIGINT NOT NULL DEFAULT 0,
	ended     BIGINT NOT NULL DEFAULT 0,
	cost      BIGINT NOT NULL DEFAULT 0,
	error     TEXT,
	UNIQUE (task, instant, attempt)
);
CREATE INDEX ledger_task ON ledger (task, n);
CREATE INDEX ledger_scheduled ON ledger (task, n) WHERE manual = 0;
CREATE INDEX ledger_entered ON ledger (entered);

CREATE TABLE reminders (
	agent   TEXT COLLATE "C" NOT NULL,
	id      TEXT COLLATE "C" NOT NULL,
	due     BIGINT NOT NULL,
	note    TEXT NOT NULL,
	made    BIGINT NOT NULL,
	context TEXT NOT NULL,
	route   TEXT,
	PRIMARY KEY (agent, id)
);
CREATE INDEX reminders_due ON reminders (due);

CREATE TABLE documents (
	scope TEXT COLLATE "C" NOT NULL,
	path  TEXT COLLATE "C" NOT NULL,
	text  TEXT NOT NULL,
	size  BIGINT NOT NULL, -- bytes
	at    BIGINT NOT NULL,
	PRIMARY KEY (scope, path)
);

CREATE TABLE sinks (
	name TEXT COLLATE "C" PRIMARY KEY
);

CREATE TABLE relays (
	run          TEXT COLLATE "C" NOT NULL,
	sink         TEXT COLLATE "C" NOT NULL,
	seq          BIGINT NOT NULL, -- the sink knows the events up to here
	since        BIGINT, -- time of the oldest event it does not know; null: it knows all
	published_at BIGINT,
	PRIMARY KEY (run, sink)
);
CREATE INDEX relays_backlog ON relays (sink, since, run) WHERE since IS NOT NULL;

CREATE TABLE spent (
	day       TEXT COLLATE "C" NOT NULL, -- in UTC
	agent     TEXT COLLATE "C" NOT NULL,
	owner     TEXT COLLATE "C" NOT NULL,
	model     TEXT COLLATE "C" NOT NULL,
	type      TEXT COLLATE "C" NOT NULL,
	connector TEXT COLLATE "C" NOT NULL DEFAULT '', -- of the agent, or of its root
	channel   TEXT COLLATE "C" NOT NULL DEFAULT '', -- connector:channelId
	input     BIGINT NOT NULL,
	output    BIGINT NOT NULL,
	cached    BIGINT NOT NULL,
	written   BIGINT NOT NULL DEFAULT 0, -- input written to the provider's cache
	reasoning BIGINT NOT NULL DEFAULT 0, -- output that nobody reads
	cost      BIGINT NOT NULL,
	unpriced  BIGINT NOT NULL DEFAULT 0, -- calls that are not in cost
	calls     BIGINT NOT NULL,
	tools     BIGINT NOT NULL,
	estimated BIGINT NOT NULL,
	runs      BIGINT NOT NULL, -- each is counted in one row
	PRIMARY KEY (day, agent, owner, model)
);
CREATE INDEX spent_agent ON spent (agent, day);

CREATE TABLE spent_days ( -- sums of spent, for who does not ask by agent or owner
	day       TEXT COLLATE "C" NOT NULL,
	model     TEXT COLLATE "C" NOT NULL,
	type      TEXT COLLATE "C" NOT NULL,
	input     BIGINT NOT NULL,
	output    BIGINT NOT NULL,
	cached    BIGINT NOT NULL,
	written   BIGINT NOT NULL DEFAULT 0,
	reasoning BIGINT NOT NULL DEFAULT 0,
	cost      BIGINT NOT NULL,
	unpriced  BIGINT NOT NULL DEFAULT 0,
	calls     BIGINT NOT NULL,
	tools     BIGINT NOT NULL,
	estimated BIGINT NOT NULL,
	runs      BIGINT NOT NULL,
	PRIMARY KEY (day, model, type)
);

CREATE TABLE latencies (
	day    TEXT COLLATE "C" NOT NULL,
	what   TEXT COLLATE "C" NOT NULL,
	bucket BIGINT NOT NULL,
	n      BIGINT NOT NULL,
	PRIMARY KEY (day, what, bucket)
);

-- What transactions add to counters, spent, spent_days and latencies: rows of these
-- tables by their names, as JSON. Each table_now is the table with what is left here.
CREATE TABLE sums (
	n    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	body JSON NOT NULL
);
CREATE VIEW counters_now AS
	SELECT name, n FROM counters
	UNION ALL SELECT r.name, r.n FROM sums, json_populate_recordset(NULL::counters, sums.body -> 'counters') r;
CREATE VIEW spent_now AS
	SELECT * FROM spent
	UNION ALL SELECT r.* FROM sums, json_populate_recordset(NULL::spent, sums.body -> 'spent') r;
CREATE VIEW spent_days_now AS
	SELECT day, model, type, input, output, cached, written, reasoning, cost, unpriced, calls, tools, estimated, runs FROM spent_days
	UNION ALL SELECT r.day, r.model, r.type, r.input, r.output, r.cached, r.written, r.reasoning, r.cost, r.unpriced, r.calls, r.tools, r.estimated, r.runs
		FROM sums, json_populate_recordset(NULL::spent, sums.body -> 'spent') r;
CREATE VIEW latencies_now AS
	SELECT day, what, bucket, n FROM latencies
	UNION ALL SELECT r.day, r.what, r.bucket, r.n FROM sums, json_populate_recordset(NULL::latencies, sums.body -> 'latencies') r;

CREATE TABLE workspaces ( -- where tools act, and when they are removed
	node      TEXT COLLATE "C" NOT NULL,
	provider  TEXT COLLATE "C" NOT NULL,
	key       TEXT COLLATE "C" NOT NULL,
	agent     TEXT COLLATE "C" NOT NULL, -- empty: of no single agent
	state     TEXT COLLATE "C" NOT NULL, -- running, terminating, idle or removed
	image     TEXT NOT NULL,
	platform  TEXT NOT NULL,
	last_used BIGINT NOT NULL, -- times in milliseconds
	ttl       BIGINT NOT NULL, -- milliseconds; 0: it stays
	data      BIGINT NOT NULL, -- 1: its removal takes the data as well
	tries     BIGINT NOT NULL, -- removals that failed
	next_try  BIGINT NOT NULL, -- 0: at once
	problem   TEXT NOT NULL,
	changed   BIGINT NOT NULL, -- when state became what it is
	version   BIGINT NOT NULL, -- counts the writes
	PRIMARY KEY (node, provider, key)
);
CREATE INDEX workspaces_removed ON workspaces (changed) WHERE state = 'removed';

CREATE TABLE budgets (
	key       TEXT COLLATE "C" PRIMARY KEY, -- with its period
	period    TEXT COLLATE "C" NOT NULL, -- 2026-01-31, 2026-01, run or always
	name      TEXT NOT NULL, -- for people
	unit      TEXT COLLATE "C" NOT NULL, -- microUSD or tokens
	hard      BIGINT NOT NULL,
	most      BIGINT NOT NULL, -- the limit when it was used last
	extension BIGINT NOT NULL DEFAULT 0,
	spent     BIGINT NOT NULL DEFAULT 0,
	reserved  BIGINT NOT NULL DEFAULT 0,
	unpriced  BIGINT NOT NULL DEFAULT 0,
	used_at   BIGINT NOT NULL
);
CREATE INDEX budgets_used ON budgets (used_at);

CREATE TABLE reservations (
	id        TEXT COLLATE "C" PRIMARY KEY,
	node      TEXT COLLATE "C" NOT NULL,
	run       TEXT COLLATE "C" NOT NULL,
	tokens    BIGINT NOT NULL,
	micro_usd BIGINT NOT NULL,
	unpriced  BIGINT NOT NULL,
	keys      TEXT NOT NULL, -- of the budgets, as JSON
	at        BIGINT NOT NULL
);
CREATE INDEX reservations_node ON reservations (node);

CREATE TABLE extensions (
	id  TEXT COLLATE "C" PRIMARY KEY,
	key TEXT COLLATE "C" NOT NULL,
	by  BIGINT NOT NULL,
	who TEXT NOT NULL,
	at  BIGINT NOT NULL
);
CREATE INDEX extensions_key ON extensions (key);

CREATE TABLE memories ( -- what agents remember: notes by path
	n       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	scope   TEXT COLLATE "C" NOT NULL,
	path    TEXT COLLATE "C" NOT NULL,
	title   TEXT NOT NULL,
	text    TEXT NOT NULL,
	size    BIGINT NOT NULL,
	tainted BIGINT NOT NULL,
	version BIGINT NOT NULL, -- the newest one
	words   TSVECTOR, -- of path and text, without accents
	UNIQUE (scope, path)
);
CREATE INDEX memories_words ON memories USING gin (words);

CREATE TABLE memory_versions (
	version BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	scope   TEXT COLLATE "C" NOT NULL,
	path    TEXT COLLATE "C" NOT NULL,
	gone    BIGINT NOT NULL,
	text    TEXT NOT NULL,
	agent   TEXT COLLATE "C" NOT NULL,
	run     TEXT COLLATE "C" NOT NULL,
	call    TEXT COLLATE "C" NOT NULL,
	by      TEXT NOT NULL,
	tainted BIGINT NOT NULL,
	at      BIGINT NOT NULL
);
CREATE INDEX memory_versions_note ON memory_versions (scope, path, version);

-- What an agent remembers: its history, its files, long results of its tools.
CREATE TABLE records (
	agent TEXT COLLATE "C" NOT NULL,
	n     BIGINT NOT NULL,
	body  TEXT NOT NULL,
	crc   BIGINT NOT NULL,
	PRIMARY KEY (agent, n)
);

CREATE TABLE attachments (
	agent TEXT COLLATE "C" NOT NULL,
	id    TEXT COLLATE "C" NOT NULL,
	body  TEXT NOT NULL, -- the reference
	place TEXT COLLATE "C" NOT NULL, -- rows of chunks, or the key in the store of files
	PRIMARY KEY (agent, id)
);
CREATE INDEX attachments_place ON attachments (place);

CREATE TABLE chunks (
	file  TEXT COLLATE "C" NOT NULL, -- place of the attachment
	part  BIGINT NOT NULL,
	bytes BYTEA NOT NULL,
	PRIMARY KEY (file, part)
);
ALTER TABLE chunks ALTER COLUMN bytes SET STORAGE EXTERNAL; -- most files are compressed already

CREATE TABLE results (
	agent TEXT COLLATE "C" NOT NULL,
	name  TEXT COLLATE "C" NOT NULL,
	text  TEXT NOT NULL,
	PRIMARY KEY (agent, name)
);

CREATE TABLE quarantine ( -- agents that were deleted; their records, files and results stay for a while
	agent      TEXT COLLATE "C" NOT NULL,
	at         BIGINT NOT NULL,
	descriptor TEXT NOT NULL,
	state      TEXT,
	PRIMARY KEY (agent, at)
);
CREATE INDEX quarantine_at ON quarantine (at);

-- Who shares the store, and who has what only one may have.
CREATE TABLE nodes (
	id       TEXT COLLATE "C" PRIMARY KEY,
	name     TEXT NOT NULL,
	addr     TEXT NOT NULL,
	version  TEXT NOT NULL,
	started  BIGINT NOT NULL,
	seen     BIGINT NOT NULL,
	until    BIGINT NOT NULL, -- end of its beat; 0: it has left
	draining BIGINT NOT NULL,
	working  BIGINT NOT NULL,
	max_runs BIGINT NOT NULL,
	skew     BIGINT NOT NULL
);

CREATE TABLE claims (
	name  TEXT COLLATE "C" PRIMARY KEY,
	node  TEXT COLLATE "C" NOT NULL, -- empty: nobody
	token BIGINT NOT NULL,
	at    BIGINT NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX claims_node ON claims (node) WHERE node <> '';
CREATE INDEX claims_at ON claims (at);

-- Small files that people and programs share: tasks, the heartbeat, credentials. A
-- change counts up n of tree_clock first, so versions become visible in order.
CREATE TABLE tree (
	path    TEXT COLLATE "C" PRIMARY KEY,
	body    BYTEA,           -- NULL: removed
	version BIGINT NOT NULL,
	at      BIGINT NOT NULL
);
CREATE INDEX tree_version ON tree (version);

CREATE TABLE tree_clock (
	one    BIGINT PRIMARY KEY CHECK (one = 1),
	n      BIGINT NOT NULL,
	pruned BIGINT NOT NULL -- up to here it is not known any more what was removed
);
INSERT INTO tree_clock (one, n, pruned) VALUES (1, 1, 0);
