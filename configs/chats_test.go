package configs

import (
	"slices"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
)

// A profile of a chat holds by each id that the chat has or had; one that names the present id
// wins, also for an agent that was left at a former one.
func TestFollow(t *testing.T) {
	c, _ := load(t, `
access: {allow: [telegram:-100]}
agents:
  narrow: {match: [telegram:-100, telegram:-300], tools: []}
  present: {match: [telegram:-400]}
  speaker: {match: [slack], send_to: [telegram:-500]}
`, nil)
	c.Follow(people.MovesOf([]string{
		`{"connector":"telegram","from":"-100","to":"-200"}`, `{"connector":"telegram","from":"-300","to":"-400"}`,
		`{"connector":"telegram","from":"-600","to":"-400"}`,
	}))
	for channel, want := range map[string]string{"-100": "narrow", "-200": "narrow", "-400": "present", "-600": "present", "-9": "default"} {
		if got := c.Profile(claybot.User("telegram", channel, "7")).Name; got != want {
			t.Errorf("%s has the profile %s, want %s", channel, got, want)
		}
	}
	chats := c.Chats()
	for _, want := range []string{"telegram:-100", "telegram:-300", "telegram:-400", "telegram:-500"} {
		if !slices.Contains(chats, want) {
			t.Errorf("%s is not in %q", want, chats)
		}
	}
}
