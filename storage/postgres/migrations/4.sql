-- step concurrently: claims change with every message in a cluster, and an index of what
-- changes would have each change write all indexes.
DROP INDEX CONCURRENTLY IF EXISTS claims_node;
-- step concurrently
DROP INDEX CONCURRENTLY IF EXISTS claims_at;
