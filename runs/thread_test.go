package runs_test

import (
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
)

// The thread of a run is that of the message that it answers.
func TestThread(t *testing.T) {
	in := func(thread string, silent bool) claybot.AgentMessage {
		return claybot.AgentMessage{Type: claybot.MessageUser, Silent: silent, Context: claybot.MessageContext{ThreadID: thread}}
	}
	agent := claybot.Agent{Descriptor: claybot.Descriptor{Type: claybot.AgentUser, Connector: "slack", ChannelID: "C1", UserID: "U1"}}
	for _, test := range []struct {
		messages []claybot.AgentMessage
		want     string
	}{
		{nil, ""},
		{[]claybot.AgentMessage{in("", false)}, ""},
		{[]claybot.AgentMessage{in("1", false), in("2", false)}, "2"},
		{[]claybot.AgentMessage{in("1", false), in("2", true)}, "1"},
	} {
		turn := runs.Turn{Agent: agent, Messages: test.messages}
		if got := turn.Route().ThreadID; got != test.want {
			t.Errorf("%d messages: %q, want %q", len(test.messages), got, test.want)
		}
	}
}
