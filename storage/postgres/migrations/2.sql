-- Messages whose agent cannot be used: they wait here until it can.
CREATE TABLE parked (
	n          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- order of arrival
	id         TEXT COLLATE "C" NOT NULL UNIQUE,
	key        TEXT COLLATE "C" NOT NULL, -- of the descriptor
	episode    TEXT COLLATE "C" NOT NULL, -- id of the first message that was parked with it
	at         BIGINT NOT NULL,
	cause      TEXT NOT NULL,             -- for operators
	descriptor TEXT NOT NULL,
	body       TEXT NOT NULL,
	crc        BIGINT NOT NULL
);
CREATE INDEX parked_key ON parked (key, n);
