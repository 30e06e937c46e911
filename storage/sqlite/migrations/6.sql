-- Workspaces: where tools act, and when they are removed.
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
