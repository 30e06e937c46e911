-- step concurrently: messages in the order of their arrival, for their removal by age.
DROP INDEX CONCURRENTLY IF EXISTS messages_arrived;
-- step concurrently
CREATE INDEX CONCURRENTLY messages_arrived ON messages (rowid);
