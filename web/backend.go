package web

// A Backend is the system as operators see it, the base of the API and the pages. It
// has one contract for each resource; a handler takes only those that it needs.
// Methods return storage.ErrNotFound for an unknown id, storage.ErrState when the
// state of the resource does not allow the call, and a Refusal when the call is refused.
type Backend struct {
	Agents     Agents
	Control    AgentControl
	Settings   Settings
	Privacy    Privacy
	Inboxes    Inboxes
	Reminders  Reminders
	Runs       Runs
	Starter    Starter
	RunControl RunControl
	Outbox     Outbox
	Questions  Questions
	Files      Files
	Pairing    Pairing
	Grants     Grants
	People     People
	Directory  Directory
	System     System
	// Configuration is nil where there is no file to change, and Nodes where none are shown.
	Configuration Configuration
	Nodes         Nodes
	Setup         Setup // nil: the page sets nothing up
	Flows         Flows // nil where there can be none, as FlowRuns
	FlowRuns      FlowRuns
	FlowEditor    FlowEditor
}

// Tooling is what agents work with: tools, workspaces, MCP servers, skills and notes.
// The zero Tooling shows none.
type Tooling struct {
	Tools       Tools
	Workspaces  Workspaces
	Servers     Servers
	Skills      Skills
	Notes       Notes
	NoteHistory NoteHistory
}

// Off reports whether there is nothing to show.
func (t Tooling) Off() bool { return t.Tools == nil }

// A Refusal is an error that is shown to the caller in these words.
type Refusal string

func (r Refusal) Error() string { return string(r) }
