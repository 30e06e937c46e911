package connectors_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/claybot/claybot/connectors"
)

// One bot is one connector, which may start again.
func TestBots(t *testing.T) {
	var bots connectors.Bots
	for _, err := range []error{bots.Take("slack/T1/U1", "slack"), bots.Take("slack/T1/U1", "slack"), bots.Take("slack/T1/U2", "work"), (*connectors.Bots)(nil).Take("slack/T1/U1", "work")} {
		if err != nil {
			t.Error(err)
		}
	}
	err := bots.Take("slack/T1/U1", "work")
	var stop *connectors.PermanentError
	if !errors.As(err, &stop) || !strings.Contains(err.Error(), "the connectors slack and work are the same bot (slack/T1/U1)") {
		t.Errorf("a second connector of one bot: %v", err)
	}
}
