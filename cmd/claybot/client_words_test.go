package main

import (
	"errors"
	"testing"

	api "github.com/claybot/claybot/client"
)

// TestHintsAreCommands: the command line names commands where the API names paths, and says nothing twice.
func TestHintsAreCommands(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  api.Error
		want string
	}{
		{"a list", api.Error{Fix: "GET /agents/runs lists all runs."}, "No. claybot runs lists all runs."},
		{"workflows", api.Error{Fix: "GET /flows lists all flows."}, "No. claybot flow lists all flows."},
		{"access", api.Error{Fix: "GET /pairing lists who has."}, "No. claybot pair list lists who has."},
		{"servers", api.Error{Fix: "GET /servers lists all servers."}, "No. claybot mcp list lists all servers."},
		{"parked", api.Error{Fix: "GET /parked lists the agents."}, "No. claybot parked lists the agents."},
		{"a key in a path", api.Error{Fix: "GET /workspaces lists all workspaces. In a path, escape the slashes of a key as %2F."}, "No. claybot workspaces lists all workspaces."},
		{"an id in a path", api.Error{Fix: "GET /outbox lists them. In a path, escape the slashes of an id as %2F."}, "No. claybot outbox lists them."},
		{"settings", api.Error{Fix: "GET /config lists the keys, and GET /config/history the changes."}, "No. claybot config show lists the keys, and claybot config history the changes."},
		{"a field that the message names", api.Error{
			Message: "No: payload.total is missing; want number. Nothing was stored.",
			Fields:  map[string]string{"payload.total": "is missing; want number"},
		}, "No: payload.total is missing; want number. Nothing was stored."},
		{"a field", api.Error{Message: "Some values are invalid.", Fields: map[string]string{"a": "13 is not valid."}}, "Some values are invalid. a: 13 is not valid."},
		{"a field without a full stop", api.Error{Message: "No.", Fields: map[string]string{"a": "is empty"}, Fix: "Give it."}, "No. a: is empty. Give it."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.err.Code = "refused"
			if tt.err.Message == "" {
				tt.err.Message = "No."
			}
			err := refused(&tt.err)
			if r := (*refusal)(nil); !errors.As(err, &r) || r.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
