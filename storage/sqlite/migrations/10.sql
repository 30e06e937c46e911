-- Messages whose agent cannot be used: they wait here until it can.
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
