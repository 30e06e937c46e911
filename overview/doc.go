// Package overview shows what the system does and has done: its status and health, the
// traces of messages, and the lists of agents, inboxes, runs, outgoing and parked
// messages. Operators, the API, the dashboard and read-only chat commands such as
// /status use it.
//
// It changes nothing, dispatching never needs it, and it starts no goroutines.
package overview
