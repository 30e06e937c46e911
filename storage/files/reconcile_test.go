package files

import (
	"context"
	"iter"
	"os"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// countedIndex counts how often all of it is read.
type countedIndex struct {
	endsIndex
	read int
}

func (m *countedIndex) IndexedAgents(ctx context.Context) iter.Seq2[storage.IndexEntry, error] {
	m.read++
	return m.endsIndex.IndexedAgents(ctx)
}

// Open read the directories and the index rows of all agents, which took two seconds for
// 100,000. It does so only if something has changed since both were compared.
func TestOpenComparesOnce(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Dir: dir, Index: new(countedIndex), FS: hastyFS{}}
	index := cfg.Index.(*countedIndex)
	settle := func(s *Store) { // the folder counts as unchanged
		t.Helper()
		stamp := ""
		for stamp == "" {
			if _, _, ok := folderOf(stat(t, s.root)); !ok {
				t.Skip("this system does not tell when a folder was changed")
			}
			stamp = s.stamp()
		}
	}
	reopen := func(what string, compares int) *Store {
		t.Helper()
		index.read = 0
		s := open(t, cfg)
		if index.read != compares {
			t.Errorf("%s: compared %d times, want %d", what, index.read, compares)
		}
		return s
	}
	s := reopen("an empty directory", 1)
	a := agentFor(t, s, someone)
	settle(s)
	closed := func() {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	closed()
	s = reopen("after an orderly end", 0)
	agentFor(t, s, claybot.User("t", "c", "2"))
	settle(s)
	s = reopen("after a kill", 1)
	s = reopen("after another one", 0)
	agentFor(t, s, claybot.User("t", "c", "3"))
	settle(s)
	if err := s.SaveEnds(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = reopen("after a kill behind SaveEnds", 0)
	closed()
	if err := os.Rename(s.dir(a.ID), dir+"/elsewhere"); err != nil {
		t.Fatal(err)
	}
	s = reopen("without a directory", 1)
	if _, err := index.IndexedDescriptor(t.Context(), a.ID); err == nil {
		t.Error("the index has an agent without a directory")
	}
	closed()
	if err := os.Rename(dir+"/elsewhere", s.dir(a.ID)); err != nil {
		t.Fatal(err)
	}
	s = reopen("with another directory", 1)
	if again := agentFor(t, s, someone); again.ID != a.ID {
		t.Errorf("the agent is %s, want %s", again.ID, a.ID)
	}
	settle(s)
	closed()
	delete(index.marks, stampKey)
	s = reopen("with an older index", 1)
	done := s.stamps.change()
	agentFor(t, s, claybot.User("t", "c", "4"))
	settle(s)
	closed()
	done()
	reopen("after an end while an agent was made", 1)
}

func stat(t *testing.T, name string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
