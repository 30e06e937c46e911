// Package connectorstest is the suite of tests that every connector passes, each check
// against an emulator of the connector's platform in a synctest bubble of its own.
//
// A connector passes it with a Harness, which adapts its emulator. What a connector or its
// platform cannot do, the Harness lists with the reason; docs/connectors.md shows the checks
// and the reasons of all connectors, and Run compares its column.
//
// Only tests import this package.
package connectorstest

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// A Harness adapts a connector to the suite.
type Harness struct {
	// Name is the name of the connector, and of its column in docs/connectors.md.
	Name string
	// Open makes an empty platform. It is called in the bubble of a check, which calls
	// Close at its end.
	Open func(t *testing.T) *Platform
	// Unstorable is an error of storage.ClassMessage.
	Unstorable error
	// Lacks gives, by the name of a check, the reason why it does not apply: the end of a
	// sentence that begins with the name of the connector.
	Lacks map[string]string
}

// A Chat is a conversation: a direct one with user N, or group N.
type Chat struct {
	Group bool
	N     int
}

// Ann and Bob are direct chats with users 1 and 2, Team is a group.
var (
	Ann  = Chat{N: 1}
	Bob  = Chat{N: 2}
	Team = Chat{Group: true, N: 1}
)

// A Written is what user User writes in a chat; Mention puts the bot's name before the text.
type Written struct {
	Chat    Chat
	User    int
	Text    string
	Mention bool
	File    *File
}

// A File is the content of a file, in either direction.
type File struct {
	Name string
	Data string
}

// A Platform is an emulator in the terms of the suite. Optional functions are nil if the
// checks that need them are in Lacks.
type Platform struct {
	// Connector makes a connector that knows nothing of an earlier one, as after a restart.
	Connector func() connectors.Connector
	Close     func()
	// Secrets must show in no error and, together with Logs, in no log line.
	Secrets []string
	Logs    func() string

	// User is the id of a user, Route where the answers to a user in a chat go.
	User  func(n int) string
	Route func(c Chat, user int) claybot.Route

	// Write lets a user write. It does not wait for the connector.
	Write func(w Written)
	// Edit changes, and Unsend deletes, the newest message that Write made. Optional.
	Edit   func(text string)
	Unsend func()
	// Unacked counts what the platform will deliver again.
	Unacked func() int
	// Redeliver is the longest time until it does.
	Redeliver time.Duration

	// Unknown delivers something that the connector has never heard of, Malformed something
	// that it cannot read. Optional.
	Unknown   func()
	Malformed func()

	// Shown returns the texts of the bot that a chat shows, oldest first, as people read them.
	Shown func(c Chat) []string
	// Sends counts the calls that send or edit.
	Sends func() int
	// Delete lets a user delete a message of the bot. Optional.
	Delete func(c Chat, receipt string)

	// The next send to a chat fails. Limit refuses it, and all others to that chat for the
	// time. Lose does it and gives no answer, Drop does not do it and gives none. Unreach
	// fails before anything is sent. Refuse refuses its content, Kill refuses the chat from
	// then on. Optional.
	Limit   func(c Chat, d time.Duration)
	Lose    func(c Chat)
	Drop    func(c Chat)
	Unreach func(c Chat)
	Refuse  func(c Chat)
	Kill    func(c Chat)

	// Down makes the platform unreachable, or reachable again. Revoke makes it refuse the
	// token. Optional.
	Down   func(down bool)
	Revoke func()
	// Hang makes the platform answer nothing for a minute or longer, while connections stay
	// open. Optional.
	Hang func()

	// Files returns the files that the bot sent to a chat. LoseFile makes the next download
	// impossible for good. Optional.
	Files    func(c Chat) []File
	LoseFile func()
	// Reactions returns the reactions of the bot to a message of a user, in any names. Optional.
	Reactions func(c Chat, message string) []string
	// React lets a user add 👍 to a message, or remove it. Optional.
	React func(c Chat, user int, message string, removed bool)
	// Status returns the status that people see at a message of a user. Optional.
	Status func(c Chat, message string) string
	// Command lets a user choose a command of the platform, such as status, and Alone returns the texts
	// of the bot that this user alone sees. Optional.
	Command func(c Chat, user int, name string)
	Alone   func(user int) []string
	// Press lets a user press a button. Optional.
	Press func(c Chat, user int, receipt, label string)
}

// A check is one test of the suite.
type check struct {
	group string // in the table
	name  string
	run   func(w *world)
}

// checks are all of them, in the order of the table.
var checks = slices.Concat(intake, sends, extras, extremes, life)

// Run runs all checks that h does not lack, and compares what it lacks with
// docs/connectors.md.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(h.Lacks)) {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.name == name }) {
			t.Errorf("Lacks names %q, which is no check", name)
		}
	}
	t.Run("table", func(t *testing.T) { compare(t, h) })
	for _, c := range checks {
		if h.Lacks[c.name] != "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{T: t, h: h, p: h.Open(t), inbox: newInbox()}
				defer w.close()
				w.conn = w.p.Connector()
				c.run(w)
			})
		})
	}
}

// need fails a check whose harness neither has a function nor says so.
func (w *world) need(has ...bool) {
	w.Helper()
	if slices.Contains(has, false) {
		w.Fatalf("the harness cannot do this; name %q in its Lacks", w.Name()[strings.LastIndex(w.Name(), "/")+1:])
	}
}
