package connectors_test

import (
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

func TestInterpret(t *testing.T) {
	for _, tc := range []struct {
		text, prefixes string
		want           claybot.AgentMessage
		ours           bool
	}{
		{"/context", "/", claybot.AgentMessage{Type: claybot.MessageCommand, Command: "context"}, true},
		{"/compact", "/", claybot.AgentMessage{Type: claybot.MessageCommand, Command: "compact"}, true},
		{"  /Tasks \n", "/", claybot.AgentMessage{Type: claybot.MessageCommand, Command: "tasks"}, true},
		{"/tasks of today", "/", claybot.AgentMessage{Type: claybot.MessageCommand, Command: "tasks", Text: "of today"}, true},
		{"!compact", "!/", claybot.AgentMessage{Type: claybot.MessageCommand, Command: "compact"}, true},
		{"!compact", "/", claybot.AgentMessage{Type: claybot.MessageUser, Text: "!compact"}, true},
		{"/context@Me", "/", claybot.AgentMessage{Type: claybot.MessageCommand, Command: "context"}, true},
		{"/context@other", "/", claybot.AgentMessage{Type: claybot.MessageCommand, Command: "context"}, false},
		{"/new\nplan my week", "/", claybot.AgentMessage{Type: claybot.MessageReset, Text: "plan my week"}, true},
		{"/stop all", "/", claybot.AgentMessage{Type: claybot.MessageCancel, Text: "all"}, true},
		{"/plan", "/", claybot.AgentMessage{Type: claybot.MessageCommand, Command: "plan"}, true},
		{"/plan book a room", "/", claybot.AgentMessage{Type: claybot.MessageUser, Text: "book a room", Engine: claybot.EnginePlan}, true},
		{"!plan\nbook a room", "!/", claybot.AgentMessage{Type: claybot.MessageUser, Text: "book a room", Engine: claybot.EnginePlan}, true},
		{"/undo", "/", claybot.AgentMessage{Type: claybot.MessageCommand, Command: "undo"}, true},
		{"/undo r1", "/", claybot.AgentMessage{Type: claybot.MessageCommand, Command: "undo", Text: "r1"}, true},
		{"/approve abcd always", "/", claybot.AgentMessage{Type: claybot.MessageCommand, Command: "approve", Text: "abcd always"}, true},
		{"/deny abcd too dear", "/", claybot.AgentMessage{Type: claybot.MessageCommand, Command: "deny", Text: "abcd too dear"}, true},
		{"/contexts", "/", claybot.AgentMessage{Type: claybot.MessageUser, Command: "unknown", Text: "/contexts"}, true},
		{"/Weather@Me in  Rome", "/", claybot.AgentMessage{Type: claybot.MessageUser, Command: "unknown", Text: "/Weather in  Rome"}, true},
		{"/make-tea\nnow", "/", claybot.AgentMessage{Type: claybot.MessageUser, Command: "unknown", Text: "/make-tea\nnow"}, true},
		{"/weather@other", "/", claybot.AgentMessage{Type: claybot.MessageUser, Text: "/weather@other"}, true},
		{"/etc/hosts is missing", "/", claybot.AgentMessage{Type: claybot.MessageUser, Text: "/etc/hosts is missing"}, true},
		{"!allow me to explain", "!/", claybot.AgentMessage{Type: claybot.MessageUser, Command: "allow", Text: "!allow me to explain"}, true},
		{"/allow telegram:1", "!/", claybot.AgentMessage{Type: claybot.MessageCommand, Command: "allow", Text: "telegram:1"}, true},
		{"!important", "!/", claybot.AgentMessage{Type: claybot.MessageUser, Command: "unknown", Text: "!important"}, true},
		{"!important, this", "!/", claybot.AgentMessage{Type: claybot.MessageUser, Text: "!important, this"}, true},
		{"/", "/", claybot.AgentMessage{Type: claybot.MessageUser, Text: "/"}, true},
		{"", "/", claybot.AgentMessage{Type: claybot.MessageUser}, true},
		{"context", "/", claybot.AgentMessage{Type: claybot.MessageUser, Text: "context"}, true},
	} {
		in := claybot.AgentMessage{Type: claybot.MessageUser, Text: tc.text, FirstHand: true}
		got, ours := connectors.Interpret(in, tc.prefixes, "me")
		if got.Type != tc.want.Type || got.Command != tc.want.Command || got.Text != tc.want.Text || got.Engine != tc.want.Engine || ours != tc.ours {
			t.Errorf("%q = %s %q %q, ours %v", tc.text, got.Type, got.Command, got.Text, ours)
		}
	}
}

// What a menu offers is a command, and what it says fits into a menu.
func TestCommandsAreUnderstood(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range connectors.Commands {
		m, ours := connectors.Interpret(claybot.AgentMessage{Type: claybot.MessageUser, Text: "/" + c.Name, FirstHand: true}, "/", "")
		if m.Type == claybot.MessageUser || !ours {
			t.Errorf("/%s is not a command", c.Name)
		}
		if seen[c.Name] || c.Help == "" || len(c.Help) > 100 || c.Name != strings.ToLower(c.Name) || len(c.Name) > 32 {
			t.Errorf("%+v fits into no menu", c)
		}
		seen[c.Name] = true
	}
}

func FuzzInterpret(f *testing.F) {
	for _, s := range []string{"/context", "/compact now", "!tasks@me", "/new\n x", "/stop", "hello", "/\xff", "//", "/@me"} {
		f.Add(s, "/!", "me")
	}
	f.Fuzz(func(t *testing.T, text, prefixes, self string) {
		m, ours := connectors.Interpret(claybot.AgentMessage{Type: claybot.MessageUser, Text: text, FirstHand: true}, prefixes, self)
		switch m.Type {
		case claybot.MessageUser:
			named := m.Command == "pair" || m.Command == "allow"
			if m.Command != connectors.Unknown && m.Text != text || named && strings.HasPrefix(strings.TrimSpace(text), "/") || m.Command != "" && !named && m.Command != connectors.Unknown || !ours {
				t.Errorf("%q is not a command and became %+v, ours %v", text, m, ours)
			}
		case claybot.MessageCommand:
			if m.Command == "" || m.Command != strings.ToLower(m.Command) {
				t.Errorf("%q became the command %q", text, m.Command)
			}
		case claybot.MessageReset, claybot.MessageCancel:
			if len(m.Text) >= len(text) {
				t.Errorf("%q became %+v", text, m)
			}
		default:
			t.Errorf("%q became %s", text, m.Type)
		}
	})
}
