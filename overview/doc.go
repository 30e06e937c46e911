// Package overview shows what the system does and has done: its status and health,
// what became of a message and why, and the listings of agents, inboxes, runs,
// outgoing and parked messages. Operators, the API and the pages read it, and so do
// the chat commands that only answer, such as /status.
//
// It changes nothing, and dispatching never needs it. It starts no goroutines.
package overview
