-- Money: what is counted of a call, where it was spent, and budgets.
ALTER TABLE spent ADD COLUMN written   INTEGER NOT NULL DEFAULT 0; -- input written to the provider's cache
ALTER TABLE spent ADD COLUMN reasoning INTEGER NOT NULL DEFAULT 0; -- output that nobody reads
ALTER TABLE spent ADD COLUMN unpriced  INTEGER NOT NULL DEFAULT 0; -- calls that are not in cost
ALTER TABLE spent ADD COLUMN connector TEXT NOT NULL DEFAULT '';   -- of the agent, or of its root
ALTER TABLE spent ADD COLUMN channel   TEXT NOT NULL DEFAULT '';   -- connector:channelId
ALTER TABLE spent_days ADD COLUMN written   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spent_days ADD COLUMN reasoning INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spent_days ADD COLUMN unpriced  INTEGER NOT NULL DEFAULT 0;
UPDATE spent SET
	connector = coalesce(json_extract(a.descriptor, '$.connector'), ''),
	channel = coalesce(json_extract(a.descriptor, '$.connector') || ':' || json_extract(a.descriptor, '$.channelId'), '')
	FROM agents own JOIN agents a ON a.id = coalesce(own.root, own.id) WHERE own.id = spent.agent AND json_valid(a.descriptor);
-- Until now a call without a price was one that cost nothing.
UPDATE spent SET unpriced = calls WHERE cost = 0 AND input + output > 0 AND model <> 'demo';
UPDATE spent_days SET unpriced = calls WHERE cost = 0 AND input + output > 0 AND model <> 'demo';

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
