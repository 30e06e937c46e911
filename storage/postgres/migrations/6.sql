-- The unfinished runs of workflows are counted anew: those that began before there were
-- counters of them are in none. Until this is committed, no member changes an agent, so
-- none counts meanwhile. Of the name of a dry run, a word about it follows.
LOCK TABLE agents IN SHARE MODE;
DELETE FROM counters WHERE name LIKE 'flow/%';
INSERT INTO counters (name, n)
	SELECT 'flow/' || flow || kind || '0', sum(CASE kind WHEN '/open/' THEN open ELSE paused END) FROM (
		SELECT substring(descriptor from '"name":"([^" \\]+)') AS flow,
			CASE WHEN first_n > 0 THEN waiting ELSE 0 END + (run IS NOT NULL AND resume_at IS NULL)::int AS open,
			(run IS NOT NULL AND resume_at IS NOT NULL)::int AS paused
		FROM agents WHERE type = 'flow'
	) load CROSS JOIN (VALUES ('/open/'), ('/waiting/')) kinds (kind)
	WHERE flow IS NOT NULL GROUP BY flow, kind;
