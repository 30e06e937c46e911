CREATE TABLE counters (
	name TEXT PRIMARY KEY,
	n    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters SELECT 'agents', count(*) FROM agents;
INSERT INTO counters SELECT 'waiting', count(*) FROM messages WHERE run IS NULL AND skipped IS NULL;
INSERT INTO counters SELECT 'run:' || state, count(*) FROM runs GROUP BY state;
INSERT INTO counters SELECT 'send:' || state, count(*) FROM outbox GROUP BY state;
INSERT INTO counters SELECT 'ambiguous', count(*) FROM outbox WHERE state = 'ambiguous';
