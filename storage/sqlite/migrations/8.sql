-- What agents remember: notes by path, their versions, and an index of their words.
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
