package files

import (
	"context"
	"errors"
	"iter"
	"os"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// countedIndex counts how often all of it is read, and may fail to remove agents.
type countedIndex struct {
	endsIndex
	read    int
	refused error // of UnindexAgent
}

func (m *countedIndex) UnindexAgent(ctx context.Context, id claybot.AgentID) error {
	if m.refused != nil {
		return m.refused
	}
	return m.endsIndex.UnindexAgent(ctx, id)
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
	settle(t, s)
	closed := func() {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	closed()
	s = reopen("after an orderly end", 0)
	agentFor(t, s, claybot.User("t", "c", "2"))
	settle(t, s)
	s = reopen("after a kill", 1)
	s = reopen("after another one", 0)
	agentFor(t, s, claybot.User("t", "c", "3"))
	settle(t, s)
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
	settle(t, s)
	closed()
	delete(index.marks, stampKey)
	s = reopen("with an older index", 1)
	done := s.stamps.change()
	agentFor(t, s, claybot.User("t", "c", "4"))
	settle(t, s)
	closed()
	done(new(error))
	reopen("after an end while an agent was made", 1)
}

// A deletion that failed in the index left it with an agent without a directory, and the
// stamp said that both agree, so no later Open mended it.
func TestOpenMendsFailedDeletion(t *testing.T) {
	index := &countedIndex{refused: errors.New("the disk is full")}
	cfg := Config{Dir: t.TempDir(), Index: index, FS: hastyFS{}}
	s := open(t, cfg)
	a := agentFor(t, s, someone)
	if err := s.Delete(t.Context(), a.ID); !errors.Is(err, index.refused) {
		t.Fatal(err)
	}
	settle(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	index.refused = nil
	s = open(t, cfg)
	if _, err := index.IndexedDescriptor(t.Context(), a.ID); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the index has an agent without a directory: %v", err)
	}
	settle(t, s)
	if err := s.Delete(t.Context(), a.ID); !errors.Is(err, storage.ErrNotFound) { // which is no failure
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	index.read = 0
	if open(t, cfg); index.read != 0 {
		t.Error("compared again")
	}
}

// A file system that counts seconds gave two changes one time, and the stamp of the first one
// hid the second.
func TestSettled(t *testing.T) {
	second := time.Unix(1_700_000_000, 0)
	for name, tt := range map[string]struct {
		changed time.Time
		age     time.Duration
		want    bool
	}{
		"just changed":                   {second.Add(1), 0, false},
		"a tick ago":                     {second.Add(1), 10 * time.Millisecond, false},
		"many ticks ago":                 {second.Add(1), 100 * time.Millisecond, true},
		"a second that is not over":      {second, 900 * time.Millisecond, false},
		"two seconds that are not over":  {second, 1900 * time.Millisecond, false},
		"seconds ago":                    {second, 3 * time.Second, true},
		"in the future of another clock": {second.Add(1), -time.Hour, false},
	} {
		if got := settled(tt.changed, tt.changed.Add(tt.age)); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// settle returns when the folder of the agents counts as unchanged.
func settle(t *testing.T, s *Store) {
	t.Helper()
	for stamp := ""; stamp == ""; stamp = s.stamp() {
		if _, _, ok := folderOf(stat(t, s.root)); !ok {
			if os.Getenv("CI") == "true" {
				t.Fatal("a skip of this test is a failure here")
			}
			t.Skip("this system does not tell when a folder was changed")
		}
	}
}

func stat(t *testing.T, name string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
