package people_test

import (
	"slices"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
)

// Access that is listed for a former id of a chat holds for the one that it has, and for no other.
func TestAccessFollowsMoves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, allow, channel string
		want                 bool
	}{
		{"with its team", "slack:T1/C1", "T1/C9", true},
		{"without its team", "slack:C1", "T1/C9", true},
		{"by the id in between", "slack:C5", "T1/C9", true},
		{"a late message", "slack:C9", "T1/C1", true},
		{"another channel", "slack:C1", "T1/C2", false},
		{"another workspace", "slack:T2/C1", "T1/C9", false},
		{"another connector", "telegram:C1", "T1/C9", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			moves := people.NewMoves(nil)
			for _, x := range [][2]string{{"T1/C1", "T1/C5"}, {"T1/C5", "T1/C9"}, {"T1/C1", "T1/C9"}, {"T1/C9", "T1/C1"}} {
				if err := moves.Note(t.Context(), "slack", x[0], x[1]); err != nil {
					t.Fatal(err)
				}
			}
			g := people.NewGate(nil, func() people.Access { return people.Access{Mode: people.AccessAllowlist, Allow: []string{tt.allow}} }, moves)
			if got := g.Allowed(claybot.User("slack", tt.channel, "U1"), true); got != tt.want {
				t.Errorf("allowed: %v", got)
			}
		})
	}
}

// Renamed names what the configuration has to change; damaged marks say nothing.
func TestRenamed(t *testing.T) {
	t.Parallel()
	moves := people.MovesOf([]string{
		`{"connector":"slack","from":"T1/C1","to":"T1/C5"}`, `{"connector":"slack","from":"T1/C5","to":"T1/C9"}`,
		`{"connector":"telegram","from":"-100","to":"-1000000000100"}`, `{`, `{"connector":"slack"}`,
		`{"connector":"ring","from":"a","to":"b"}`, `{"connector":"ring","from":"b","to":"a"}`,
	})
	got := moves.Renamed([]string{"slack:C1", "slack:T1/C5", "slack:C9", "telegram:-100", "telegram", "discord:-100"})
	want := []people.Renamed{{"slack:C1", "slack:C9"}, {"slack:T1/C5", "slack:T1/C9"}, {"telegram:-100", "telegram:-1000000000100"}}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := moves.Named("telegram:-100"); got != "telegram:-1000000000100" {
		t.Errorf("named %s", got)
	}
}
