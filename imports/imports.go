// Package imports reads what the directory of another program has that claybot has a place for: its
// model, accounts, people, texts, notes, tasks, skills and MCP servers.
//
// It changes nothing, and starts nothing. Files are read within the directory alone: a link that leads
// out of it is reported and not followed. What cannot be read, or has no place in claybot, is reported
// as Left, with a reason that holds no secret; the rest is found anyway.
//
// Its subfolders are the programs. The package and its subfolders must not import a store or the daemon.
package imports

import "github.com/claybot/claybot/connectors"

// A Find is what a directory has. It may hold secrets, which only Secret.Text has.
type Find struct {
	Program   string // as people write it
	Slug      string // as commands and names of notes write it
	Dir       string
	Workspace string // the folder of its texts; empty for none

	Model     *Model  // nil for none
	Fallback  []Model // asked after Model
	Accounts  []Account
	Listed    bool     // every account answers the people of Allow alone
	Allow     []string // connector:id
	Prompt    string
	PromptOf  []string // the files that Prompt is made of
	Notes     []Note
	Tasks     []Task
	Heartbeat *connectors.HeartbeatTask // nil for none
	Servers   []Server
	Skills    []string // folders of skills, as paths; of two skills with one name, the first counts
	Left      []Left
}

// A Left is something that is not imported.
type Left struct{ What, Why string }

// Leave notes that something is not imported.
func (f *Find) Leave(what, why string) { f.Left = append(f.Left, Left{what, why}) }

// A Secret is a secret itself, or the name of the variable of the environment that holds it.
type Secret struct{ Text, Env string }

// Given reports whether there is one.
func (s Secret) Given() bool { return s.Text != "" || s.Env != "" }

// A Model is a model and how it is reached.
type Model struct {
	Provider string // openai, openai-responses or anthropic
	BaseURL  string // empty: the provider's own
	Name     string
	Key      Secret // not given: it needs none
}

// An Account is a bot on a platform.
type Account struct {
	Connector string
	Secrets   []Setting
}

// A Setting is a secret with the name under which claybot has it: a key of the configuration, a variable
// or a header.
type Setting struct {
	Key    string
	Secret Secret
}

// A Note is a text that agents keep.
type Note struct{ Path, Text string }

// A Task is a scheduled task. Its ID is that of the other program. Its route may be empty although it
// answers in a chat there: then Chat is true, and the chat is the person's own.
type Task struct {
	connectors.TaskSpec
	ID   string
	Chat bool
}

// A Server is an MCP server: a command or an address.
type Server struct {
	Name    string
	Command []string
	Dir     string
	URL     string
	Secrets []Setting // variables of the command, or headers of the address
}
