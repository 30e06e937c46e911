package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

// TestCheckGoesOn checks all agents although the files of some cannot be read.
func TestCheckGoesOn(t *testing.T) {
	h := newHouse(t, said("one"))
	s := open(t, h.config())
	var ids []claybot.AgentID
	for _, user := range []string{"a", "b", "c", "d"} {
		a := agentFor(t, s, claybot.User("telegram", "1", user))
		appendTo(t, s, a.ID, said("hello"))
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	path := func(id claybot.AgentID) string { return filepath.Join(h.dir, "agents", string(id), "history.jsonl") }
	for _, id := range ids[:2] {
		if err := os.Remove(path(id)); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path(id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	last := ids[len(ids)-1]
	writeFile(t, path(last), []byte(strings.Replace(readFile(t, path(last)), "hello", "jello", 1)))
	got, err := s.Check(t.Context(), 0)
	if err != nil || got.Agents != 5 || !slices.Equal(got.Damaged, []claybot.AgentID{last}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if len(got.Unread) != 2 || got.Unread[0].Agent != ids[0] || got.Unread[1].Agent != ids[1] || !strings.Contains(got.Unread[0].String(), "is a directory") {
		t.Errorf("unread: %v", got.Unread)
	}
}
