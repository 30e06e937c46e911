package files

import (
	"bytes"
	"context"
	"io/fs"
	"iter"
	"maps"
	"os"
	"reflect"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/storagetest"
)

func TestAgents(t *testing.T) {
	storagetest.TestAgents(t, func(t *testing.T) storagetest.AgentsUnderTest {
		dir, index := t.TempDir(), &memoryIndex{}
		s := open(t, Config{Dir: dir, Index: index, FS: hastyFS{}})
		tokens := int64(0)
		return storagetest.AgentsUnderTest{
			Agents: s,
			Lease: func(id claybot.AgentID) storage.Lease {
				tokens++
				return storage.Lease{Agent: id, Node: "n", Token: tokens}
			},
			Release: func(storage.Lease) {},
			Whole: func(id claybot.AgentID) (all []claybot.RecordType) {
				data, err := os.ReadFile(dir + "/agents/" + string(id) + "/history.jsonl")
				if err != nil {
					t.Error(err)
				}
				for line := range bytes.Lines(data) {
					rec, err := decodeLine(bytes.TrimSuffix(line, []byte("\n")))
					if err != nil {
						t.Error(err)
					}
					all = append(all, rec.Type)
				}
				return all
			},
			Reopen: func() storagetest.Agents {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				s = open(t, Config{Dir: dir, Index: index, FS: hastyFS{}})
				return s
			},
		}
	})
}

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	if cfg.Index == nil {
		cfg.Index = &memoryIndex{}
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

var someone = claybot.User("telegram", "-100", "7")

func agentFor(t testing.TB, s *Store, d claybot.Descriptor) claybot.Agent {
	t.Helper()
	a, err := s.AgentFor(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func openHistory(t testing.TB, s *Store, id claybot.AgentID, token int64) storage.History {
	t.Helper()
	h, err := s.OpenHistory(t.Context(), storage.Lease{Agent: id, Node: "n", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func appendTo(t testing.TB, s *Store, id claybot.AgentID, records ...claybot.Record) {
	t.Helper()
	h := openHistory(t, s, id, 1)
	if err := h.Append(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func records(t testing.TB, s *Store, id claybot.AgentID) []claybot.Record {
	t.Helper()
	r, err := s.Records(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func said(text string) claybot.Record {
	return claybot.Record{Type: claybot.RecordUser, At: 1, Run: "r1", MessageID: claybot.MessageID(text), Text: text}
}

// texts are those of records, but for notes of what is lost.
func texts(records []claybot.Record) (out []string) {
	for _, r := range records {
		if !isLoss(r) {
			out = append(out, r.Text)
		}
	}
	return out
}

func wantTexts(t *testing.T, when string, got []claybot.Record, want ...string) {
	t.Helper()
	if got := texts(got); !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
		t.Errorf("%s: got %q, want %q", when, got, want)
	}
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeFile(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// quarantined returns the contents of the quarantine.
func quarantined(t testing.TB, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir + "/quarantine")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, readFile(t, dir+"/quarantine/"+e.Name()))
	}
	return out
}

// A hastyFS does not wait for the disk, for tests in which nothing crashes.
type hastyFS struct{ osFS }

type hastyFile struct{ File }

func (hastyFile) Sync() error        { return nil }
func (hastyFS) SyncDir(string) error { return nil }
func (h hastyFS) Open(name string, flag int) (File, error) {
	f, err := h.osFS.Open(name, flag)
	if err != nil {
		return nil, err
	}
	return hastyFile{f}, nil
}

var _ FS = hastyFS{}

// A memoryIndex is an index without a disk. Like the real one it refuses a
// descriptor that another agent has.
type memoryIndex struct {
	mu   sync.Mutex
	byID map[claybot.AgentID]storage.IndexEntry
	fail error // of the next IndexAgents
	own  map[claybot.AgentID]claybot.Settings
	cut  error // of all SaveAgentSettings
}

func (m *memoryIndex) IndexedAgent(_ context.Context, d claybot.Descriptor) (claybot.AgentID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, e := range m.byID {
		if e.Descriptor.Key() == d.Key() {
			return id, nil
		}
	}
	return "", storage.ErrNotFound
}

func (m *memoryIndex) IndexedAgentByID(_ context.Context, id claybot.AgentID) (storage.IndexEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byID[id]; ok {
		return e, nil
	}
	return storage.IndexEntry{}, storage.ErrNotFound
}

func (m *memoryIndex) IndexedDescriptor(ctx context.Context, id claybot.AgentID) (claybot.Descriptor, error) {
	e, err := m.IndexedAgentByID(ctx, id)
	return e.Descriptor, err
}

func (m *memoryIndex) IndexAgents(ctx context.Context, agents ...claybot.Agent) error {
	for _, a := range agents {
		if id, err := m.IndexedAgent(ctx, a.Descriptor); err == nil && id != a.ID {
			return fs.ErrExist
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fail; err != nil {
		m.fail = nil
		return err
	}
	if m.byID == nil {
		m.byID = make(map[claybot.AgentID]storage.IndexEntry)
	}
	for _, a := range agents {
		m.byID[a.ID] = storage.IndexEntry{CreatedAt: a.CreatedAt, ID: a.ID, Descriptor: a.Descriptor, LastUserAt: a.State.LastUserAt, Usage: a.State.Usage}
	}
	return nil
}

func (m *memoryIndex) UnindexAgent(_ context.Context, id claybot.AgentID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byID, id)
	delete(m.own, id)
	return nil
}

func (m *memoryIndex) IndexedAgents(context.Context) iter.Seq2[storage.IndexEntry, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	entries := make([]storage.IndexEntry, 0, len(m.byID))
	for _, e := range m.byID {
		entries = append(entries, e)
	}
	return func(yield func(storage.IndexEntry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (m *memoryIndex) ChannelAgents(ctx context.Context, connector, channel string) (entries []storage.IndexEntry, err error) {
	for e := range m.IndexedAgents(ctx) {
		if e.Descriptor.Connector == connector && e.Descriptor.ChannelID == channel {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

func (m *memoryIndex) AgentSettings(context.Context) (map[claybot.AgentID]claybot.Settings, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.own), nil
}

func (m *memoryIndex) SaveAgentSettings(_ context.Context, id claybot.AgentID, s claybot.Settings) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch _, ok := m.byID[id]; {
	case m.cut != nil:
		return m.cut
	case !ok:
		return storage.ErrNotFound
	case reflect.DeepEqual(s, claybot.Settings{}):
		delete(m.own, id)
		return nil
	}
	if m.own == nil {
		m.own = make(map[claybot.AgentID]claybot.Settings)
	}
	m.own[id] = s
	return nil
}

var _ Index = (*memoryIndex)(nil)
