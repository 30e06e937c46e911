package files

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/claybot/claybot"
)

// TestSentBytesOfUnusableAgents: what cannot be read of an agent holds up no other agent of
// its owner, and counts again once it can be read.
func TestSentBytesOfUnusableAgents(t *testing.T) {
	for name, hurt := range map[string]func(dir string) error{
		"newer state": func(dir string) error { return os.WriteFile(dir+"/state.json", []byte(`{"v":3}`), 0o600) },
		"irregular reference": func(dir string) error {
			return syscall.Mkfifo(dir+"/attachments/"+string(claybot.NewID())+".json", 0o600)
		},
		"irregular directory": func(dir string) error {
			if err := os.RemoveAll(dir + "/attachments"); err != nil {
				return err
			}
			return os.WriteFile(dir+"/attachments", nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, index := t.TempDir(), &memoryIndex{}
			s := open(t, Config{Dir: dir, Index: index})
			healthy, sick := agentFor(t, s, someone), agentFor(t, s, claybot.User("telegram", "-100", "8"))
			for _, a := range []claybot.Agent{healthy, sick} {
				if _, err := s.SaveFile(t.Context(), a.ID, claybot.FileReference{Name: "f", Sent: true}, strings.NewReader("hello"), 9); err != nil {
					t.Fatal(err)
				}
			}
			if err := hurt(dir + "/agents/" + string(sick.ID)); err != nil {
				t.Fatal(err)
			}
			s = open(t, Config{Dir: dir, Index: index})
			want := int64(5)
			if name == "irregular reference" {
				want = 10
			}
			for range 2 {
				if n, err := s.SentBytes(t.Context(), sick.ID, healthy.ID); n != want || err != nil {
					t.Errorf("got %d, %v, want %d", n, err, want)
				}
			}
			if _, known := s.sent.get(sick.ID); known {
				t.Error("an incomplete count is kept")
			}
		})
	}
}

// TestSentBytesIsCached: a counted agent is not loaded again, and a deleted one does not count.
func TestSentBytesIsCached(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	a := agentFor(t, s, someone)
	if _, err := s.SaveFile(t.Context(), a.ID, claybot.FileReference{Name: "f", Sent: true}, strings.NewReader("hello"), 9); err != nil {
		t.Fatal(err)
	}
	count := func(want int64) {
		t.Helper()
		if n, err := s.SentBytes(t.Context(), a.ID); n != want || err != nil {
			t.Errorf("got %d, %v, want %d", n, err, want)
		}
	}
	count(5)
	r, err := s.residents.pin(a.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.gate.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	count(5) // though the gate is closed
	r.gate.leave()
	s.residents.unpin(r)
	if err := s.Delete(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	count(0)
}
