package overview

import (
	"slices"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// TestWorthShowing: nodes that are there come first, and a process that joined again
// after an outage is one line.
func TestWorthShowing(t *testing.T) {
	node := func(id, name string, started, seen int64, state storage.MemberState) storage.Member {
		return storage.Member{ID: id, Name: name, State: state, Started: claybot.Time(started), Seen: claybot.Time(seen)}
	}
	all := []storage.Member{
		node("b2", "b", 20, 90, storage.MemberLost), // before an outage
		node("b3", "b", 20, 99, storage.MemberLive), // the same process
		node("c1", "c", 30, 40, storage.MemberLost), // twice lost
		node("c2", "c", 30, 50, storage.MemberLost), // killed
		node("b1", "b", 10, 15, storage.MemberGone), // the process before
		node("a1", "a", 5, 99, storage.MemberDraining),
	}
	var got []string
	for _, n := range worthShowing(all) {
		got = append(got, n.ID)
	}
	if want := []string{"b3", "a1", "c2", "b1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
