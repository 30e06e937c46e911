// Package discord connects claybot to Discord: events come over the gateway, everything else
// goes over the REST API.
//
// Receiving: the gateway has no acknowledgement. Discord keeps the events of a session for some
// minutes and sends them again, from the sequence number that a resume names. So claybot stores
// the session with the number of the last event before which every one is stored (keeper), after
// the commits of their messages; heartbeats name no later event. A process that is killed resumes
// there and gets the rest again; messages have the ids of Discord, so none is stored twice. When
// Discord does not resume, the connector reads what was missed in the known conversations over REST
// (backfill). Until then it stores the new session as one with a gap before it: a restart resumes the
// session, which alone has what was written in new conversations, and reads the gap again.
//
// Events are handled in lanes, one for each person in a channel; a message that cannot be stored is
// tried until it is, and holds up its lane alone. No more than a thousand events wait; beyond that,
// the gateway is not read.
//
// Interactions (buttons, menus, forms, commands) are acknowledged to Discord within its three
// seconds, after the commit. Their tokens are capabilities for 15 minutes: they are part of
// addresses, which no error or log line has.
//
// Sending: every message has a nonce that follows from its id, and enforce_nonce: a send without
// an answer that is repeated within some minutes is not doubled, and claybot looks it up in the
// channel before. Limits are those that the responses name.
//
// The gateway is claybot's own, on the WebSocket library that Slack's connector uses. discordgo
// keeps session and sequence to itself, counts an event as handled when it was read, and answers
// an ended session by starting another one: a message that was read and not stored would be lost.
// disgo begins with a stored session, and names in heartbeats what was read, not what is stored.
//
// Only cmd and tests import this package.
package discord
