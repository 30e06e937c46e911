package web

import (
	"context"
	"net/http"
	"time"
)

// Configuration reads and changes the configuration file of the daemon.
type Configuration interface {
	// Configuration returns the keys with their values in force.
	Configuration(ctx context.Context) (ConfigView, error)
	// ChangeConfig changes one key where the result is valid, and applies it. It returns
	// ErrConfigStale for a change that is based on another version of the file.
	ChangeConfig(ctx context.Context, c ConfigEdit) (ConfigChanged, error)
	// ConfigHistory lists the changes, the oldest first.
	ConfigHistory(ctx context.Context) ([]ConfigChange, error)
	// RevertConfig undoes the change with a number, from 1, unless its key has changed again.
	RevertConfig(ctx context.Context, n int, by, version string) (ConfigChanged, error)
}

// ErrConfigStale is of a change that is based on another version of the file.
var ErrConfigStale error = &Problem{
	Status: http.StatusPreconditionFailed, Code: "stale", Message: "The configuration file has been changed meanwhile; nothing was changed.",
	Fix: "Read it again, and repeat the change on what it says now.",
}

// A ConfigView is the configuration of the daemon.
type ConfigView struct {
	File    string      `json:"file" doc:"Path of the file."`
	Version string      `json:"version" doc:"Version of the text of the file, for If-Match."`
	Broken  string      `json:"broken,omitempty" doc:"Why the file cannot be read. Until that is right, the configuration before is in force."`
	Keys    []ConfigKey `json:"keys"`

	Kinds []ConfigKind      `json:"-"` // of which entries can be added, for the form of the page
	Items map[string]string `json:"-"` // the entries of lists by their keys, such as relay.crm, as Value of a ConfigKey
}

// A ConfigKind is a kind of part that can be added.
type ConfigKind struct {
	Name   string
	Group  string      // of the file
	List   bool        // Group is a list, whose entries have no names
	Fields []ConfigKey // Key is relative to the entry
	Main   int         // the first so many fields are those that most entries set
}

// A ConfigKey is a key of the configuration.
type ConfigKey struct {
	Key     string   `json:"key"`
	Value   string   `json:"value" doc:"As the file would say it; empty for none. A secret is its reference, or (secret)."`
	Text    string   `json:"-"` // the value without the quotes of YAML, for a form of kind text
	Origin  string   `json:"origin" doc:"default, a flag, a variable of the environment, or file:line."`
	Refused bool     `json:"refused,omitempty" doc:"The value there is not valid."`
	Restart bool     `json:"restart,omitempty" doc:"The value waits for a restart."`
	InForce string   `json:"in_force,omitempty" doc:"Of a value that waits for a restart: the one until then; - for none."`
	Kind    string   `json:"kind" doc:"truth, word, number, secret, list, text, or group: YAML within braces."`
	Words   []string `json:"words,omitempty" doc:"The values of a truth or a word."`
	Limits  string   `json:"limits,omitempty" doc:"The limits of a number, such as 1..100."`
	Help    string   `json:"help,omitempty"`
	Default string   `json:"default,omitempty" doc:"What holds without the key, in words."`
}

// A ConfigValue is the new value of a key.
type ConfigValue struct {
	Value  string `json:"value,omitempty" doc:"As in the file: a list is [a, b]. Of a secret, a reference: env:NAME or file:path."`
	Secret string `json:"secret,omitempty" doc:"Instead of value: a secret, which is stored in a file of its own and never shown."`
}

// A ConfigEntry is a new entry of a kind.
type ConfigEntry struct {
	Name   string            `json:"name,omitempty" doc:"Its name in the file; of a relay, a budget, a fallback or a search engine, leave it out: the list has no names, and that of a relay is a field."`
	Fields map[string]string `json:"fields" doc:"Its values by key, such as token of telegram. A list is a, b or [a, b]. Of a secret, a reference, or the secret itself, which is stored in a file of its own and never shown."`
}

// A ConfigEdit is a change of one key; without Value and Secret, it is removed from the file.
type ConfigEdit struct {
	Key    string
	Value  *string
	Text   bool // Value is the text itself, and no YAML
	Secret string
	// Kind makes the change a new entry, of which Key is the name; Fields are its values by key. A secret there that
	// is no reference is stored as Secret.
	Kind    string
	Fields  map[string]string
	By      string // who makes it
	Version string // of the file that it is based on; empty: any
}

// Removes reports whether the change takes the key out of the file.
func (c ConfigEdit) Removes() bool { return c.Value == nil && c.Secret == "" && c.Kind == "" }

// A ConfigChange is a change in the history of the file.
type ConfigChange struct {
	N      int       `json:"n" doc:"Its number, from 1; 0 where the history could not be written, so that nothing undoes it."`
	At     time.Time `json:"at"`
	By     string    `json:"by" doc:"The login, or the user of the system on the command line."`
	Key    string    `json:"key"`
	Before *string   `json:"before" doc:"null: not set."`
	After  *string   `json:"after" doc:"null: not set."`
}

// A ConfigChanged is what came of a change.
type ConfigChanged struct {
	Version  string         `json:"version" doc:"Version of the file with the change."`
	Changes  []ConfigChange `json:"changes"`
	Restart  []string       `json:"restart,omitempty" doc:"Settings that take effect with a restart."`
	Wins     []string       `json:"wins,omitempty" doc:"Flags and variables that set the key as well, and win over the file."`
	Warnings []string       `json:"warnings,omitempty"`
}

// A ConfigChanges is the history of the file.
type ConfigChanges struct {
	Changes []ConfigChange `json:"changes" doc:"Newest first."`
}
