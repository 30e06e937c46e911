DROP INDEX messages_user;
CREATE INDEX messages_agent ON messages (agent, n);
