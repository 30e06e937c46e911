package dashboard

import (
	"testing"

	"github.com/claybot/claybot"
)

// Runs of workflows alone are marked as dry, not those of a chat with a person who is named so.
func TestRunRowDry(t *testing.T) {
	name := "order (" + claybot.FlowDryRun + ")"
	for _, test := range []struct {
		of   claybot.Descriptor
		want bool
	}{
		{claybot.Descriptor{Type: claybot.AgentUser, Name: name}, false},
		{claybot.Descriptor{}, false}, // its agent is gone
		{claybot.Descriptor{Type: claybot.AgentFlow, Name: "order"}, false},
		{claybot.Descriptor{Type: claybot.AgentFlow, Name: name}, true},
	} {
		if got := (runRow{Name: name, Of: test.of}).Dry(); got != test.want {
			t.Errorf("dry of %+v = %v", test.of, got)
		}
	}
}
