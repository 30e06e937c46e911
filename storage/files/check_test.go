package files

import (
	"context"
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

// A halfwayIndex holds the creation of an agent up until a check has looked for it.
type halfwayIndex struct {
	*endsIndex
	creating, looked chan struct{} // each closed once
}

func (i halfwayIndex) IndexAgents(ctx context.Context, agents ...claybot.Agent) error {
	select {
	case <-i.creating:
	default:
		close(i.creating)
		<-i.looked
	}
	return i.endsIndex.IndexAgents(ctx, agents...)
}

func (i halfwayIndex) IndexedDescriptor(ctx context.Context, id claybot.AgentID) (claybot.Descriptor, error) {
	d, err := i.endsIndex.IndexedDescriptor(ctx, id)
	if err != nil {
		select {
		case <-i.looked:
		default:
			close(i.looked)
		}
	}
	return d, err
}

// TestCheckDuringCreation checks while an agent has its directory and no row yet: that
// is not damage.
func TestCheckDuringCreation(t *testing.T) {
	index := halfwayIndex{new(endsIndex), make(chan struct{}), make(chan struct{})}
	s := open(t, Config{Dir: t.TempDir(), Index: index, FS: hastyFS{}})
	created := make(chan error)
	go func() {
		_, err := s.AgentFor(t.Context(), claybot.User("telegram", "1", "a"))
		created <- err
	}()
	<-index.creating
	got, err := s.Check(t.Context(), 0)
	if err != nil || got.Agents != 1 || got.Rebuilt != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := <-created; err != nil {
		t.Error(err)
	}
}
