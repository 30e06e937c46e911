package main

import (
	"os"
	"strings"
	"testing"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/discord"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/telegram"
	"github.com/claybot/claybot/connectors/webchat"
	"github.com/claybot/claybot/connectors/webhook"
)

func is[T any](c any) bool {
	_, ok := c.(T)
	return ok
}

// The table of docs/connectors.md says what the connectors implement, in the rows that an
// interface decides.
func TestAbilities(t *testing.T) {
	b, err := os.ReadFile("../../docs/connectors.md")
	if err != nil {
		t.Fatal(err)
	}
	columns := []any{(*slack.Connector)(nil), (*telegram.Connector)(nil), (*discord.Connector)(nil), (*webchat.Chat)(nil), (*webhook.Connector)(nil)}
	for what, has := range map[string]func(any) bool{
		"earlier messages of a thread":       is[connectors.Historian],
		"files go out":                       is[connectors.FileSender],
		"answers grow":                       func(c any) bool { return is[connectors.Streamer](c) || is[connectors.Previewer](c) },
		"typing sign":                        is[connectors.Typer],
		"a status line":                      is[connectors.Statuser],
		"the agent reacts":                   is[connectors.Reactor],
		"reactions tell how far":             is[connectors.Marker],
		"what claybot answers to a command":  is[connectors.Whisperer],
		"a link to a message":                is[connectors.Linker],
		"such a send is repeated":            is[connectors.Resender],
		"only one member of a cluster reads": is[connectors.Exclusive],
	} {
		_, rest, found := strings.Cut(string(b), "\n| "+what)
		line, _, _ := strings.Cut(rest, "\n")
		cells := strings.Split(line, "|")
		if !found || len(cells) != len(columns)+2 {
			t.Errorf("%q: the row has %d cells", what, len(cells))
			continue
		}
		for i, c := range columns {
			if yes := !strings.HasPrefix(strings.TrimSpace(cells[i+1]), "–"); yes != has(c) {
				t.Errorf("%q of %T: the table says %v, the code %v", what, c, yes, has(c))
			}
		}
	}
}
