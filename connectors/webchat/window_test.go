package webchat

import (
	"slices"
	"testing"

	"github.com/claybot/claybot"
)

// TestWindows are those with an open stream, and not those with a run alone.
func TestWindows(t *testing.T) {
	c := New(Config{Name: "page"})
	c.Observe(claybot.Route{Connector: "page", ChannelID: "other", UserID: "bob"}, claybot.Event{Run: "r", Seq: 1, Type: claybot.EventRunStarted})
	if got := c.Windows(); len(got) != 0 {
		t.Errorf("there is no reader, and there are %v", got)
	}
	where := topic{"main", "ann"}
	a, b := c.hub.join(where, func() {}), c.hub.join(where, func() {})
	want := []claybot.Route{{Connector: "page", ChannelID: "main", UserID: "ann"}}
	if got := c.Windows(); !slices.Equal(got, want) {
		t.Errorf("windows %v, want %v", got, want)
	}
	c.hub.leave(where, a)
	if got := c.Windows(); !slices.Equal(got, want) {
		t.Errorf("after one went: %v, want %v", got, want)
	}
	c.hub.leave(where, b)
	if got := c.Windows(); len(got) != 0 {
		t.Errorf("all went, and there are %v", got)
	}
}
