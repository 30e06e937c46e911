// Package nodes is what is configured, as the nodes of a graph: connectors, schedules, workflows, profiles,
// models, groups of tools, MCP servers, workspaces, notes, skills and relays.
//
// A View is what lists, the API and the map show of one: how it does, and what it uses. Orders keep which of
// them operators have stopped.
//
// Those that work by themselves, connectors (schedules are some), MCP servers and relays, are each a Node of a Set,
// and their life is the same:
//
//	state \ call   Configure           Start                Stop        Delete
//	Created        → Configured        ErrNotConfigured     -           → Deleted
//	Configured     the other settings  → Started            -           → Deleted
//	Started        the work anew       -                    → Stopped   ends, → Deleted
//	Stopped        the other settings  → Started            -           → Deleted
//	Deleted        ErrDeleted          ErrDeleted           -           -
//
// A call that has nothing to do, marked -, succeeds, as does a second one. A Started node whose work fails, at its
// start or later, is Stopped, with the error. Each call changes the state at once, in the order of the calls, and
// what it begins waits for the end of what it ends: a stint of work begins when all before it, of its name and of
// what Set.Reconcile ended with it, have ended, however long that takes. A Start waits for the stint, a Stop for its
// end.
//
// All others are settings that are read when they are used, and have no life of their own: profiles, models,
// groups of tools, notes, skills and workflows. Workspaces live as long as agents use them (package workspace).
//
// The package knows no kind; it must not import one.
package nodes
