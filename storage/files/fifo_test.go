package files

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// TestFIFO puts a FIFO, whose open waits for a second process, in the place of a file of
// one agent: each call that needs the file fails at once with the class of an agent, and
// works again without the FIFO.
func TestFIFO(t *testing.T) {
	const kept = "abcdefghijklmnopqrstuvwx"
	use := func(s *Store, id claybot.AgentID) error {
		a, err := s.AgentFor(t.Context(), someone)
		if err != nil {
			return err
		}
		if a.ID != id {
			t.Errorf("got agent %s, want %s", a.ID, id)
		}
		l := storage.Lease{Agent: id, Token: 1}
		h, err := s.OpenHistory(t.Context(), l)
		if err != nil {
			return err
		}
		defer h.Close()
		if err := h.Append(t.Context(), said("more")); err != nil {
			return err
		}
		if err := s.SaveState(t.Context(), l, claybot.AgentState{Engine: "plan"}); err != nil {
			return err
		}
		if _, err := s.Records(t.Context(), id); err != nil {
			return err
		}
		_, r, err := s.OpenFile(t.Context(), id, kept)
		if err != nil {
			return err
		}
		return r.Close()
	}
	for _, name := range []string{"descriptor.json", "state.json", "state.json.new", "history.jsonl", "attachments/" + kept + ".json", "attachments/" + kept} {
		t.Run(strings.ReplaceAll(name, "/", " "), func(t *testing.T) {
			cfg := Config{Dir: t.TempDir(), Index: &memoryIndex{}}
			s := open(t, cfg)
			a := agentFor(t, s, someone)
			if _, err := s.SaveFile(t.Context(), a.ID, claybot.FileReference{ID: kept, Name: "a.txt"}, strings.NewReader("bytes"), 100); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			path := cfg.Dir + "/agents/" + string(a.ID) + "/" + name
			err := os.Rename(path, path+".kept")
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			release := time.AfterFunc(time.Minute, func() { // so that a failure ends
				t.Error("a call waits for the other end of the FIFO")
				if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
					_ = f.Close()
				}
			})
			defer release.Stop()
			s = open(t, cfg)
			if err := use(s, a.ID); storage.ClassOf(err) != storage.ClassAgent {
				t.Errorf("got %v, want an error of the agent", err)
			}
			agentFor(t, s, claybot.User("t", "other", "person"))
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if err := os.Rename(path+".kept", path); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if err := use(s, a.ID); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}
