package web

// A Backend is the system as operators see it: what the API and the pages stand
// on, one contract for each resource, so that each handler takes those that it needs.
// Methods that name something return storage.ErrNotFound when it is not there,
// storage.ErrState when it is not in the state for what was asked, and a Refusal when
// it is not to be done.
type Backend struct {
	Agents    Agents
	Control   AgentControl
	Settings  Settings
	Inboxes   Inboxes
	Reminders Reminders
	Runs      Runs
	Starter   Starter
	Undos     Undos
	Outbox    Outbox
	Questions Questions
	Files     Files
	Access    Access
	System    System
}

// Tooling is what agents work with. The zero Tooling is that of a daemon that shows
// none of it.
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
