-- The unfinished runs of workflows are counted anew: those that began before there were
-- counters of them are in none. Of the name of a dry run, a word about it follows.
DELETE FROM counters WHERE name GLOB 'flow/*';
INSERT INTO counters (name, n)
	SELECT 'flow/' || substr(name, 1, instr(name || ' ', ' ') - 1) || kind || '0' AS counter, sum(iif(kind = '/open/', open, paused)) FROM (
		SELECT CASE WHEN json_valid(descriptor) THEN descriptor ->> '$.name' END AS name,
			iif(first_n > 0, waiting, 0) + (run IS NOT NULL AND resume_at IS NULL) AS open,
			run IS NOT NULL AND resume_at IS NOT NULL AS paused
		FROM agents WHERE type = 'flow'
	) CROSS JOIN (SELECT '/open/' AS kind UNION ALL SELECT '/waiting/')
	WHERE name <> '' GROUP BY counter;
