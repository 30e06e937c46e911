-- From this version on, every page of the file ends in a checksum. An earlier claybot
-- would not keep it up, so the number of the schema keeps it out. Open rewrites a file
-- whose pages have none. The id is "clay": what file(1) tells the file by.
PRAGMA application_id = 1668047225;
