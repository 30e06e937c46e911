package sqlite

import (
	_ "embed"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/claybot/claybot"
)

//go:embed testdata/v3.sql
var frozenV3 string

// TestUpgradeV3 opens a file from before agents knew each other. The frozen
// text is never edited.
func TestUpgradeV3(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.db")
	c, err := connect(t.Context(), path, writerPragmas)
	if err != nil {
		t.Fatal(err)
	}
	// Three wrote in one millisecond, a2 last; a4 never did, a5 is damaged.
	rows := `PRAGMA user_version = 3;
		INSERT INTO agents (id, key, descriptor, last_user_at, n, waiting, first_n, first_at, last_at, due_at, wake_at) VALUES
			('a1', '["user","tg","1","U1"]', '{"type":"user","connector":"tg","channelId":"1","userId":"U1"}', 50, 1, 0, 0, 0, 0, NULL, NULL),
			('a2', '["user","tg","2","U1"]', '{"type":"user","connector":"tg","channelId":"2","userId":"U1"}', 50, 2, 1, 2, 50, 50, 50, 50),
			('a3', '["user","tg","3","U/2"]', '{"type":"user","connector":"tg","channelId":"3","userId":"U/2"}', 50, 1, 0, 0, 0, 0, NULL, NULL),
			('a4', '["user","tg","4","U1"]', '{"type":"user","connector":"tg","channelId":"4","userId":"U1"}', 0, 0, 0, 0, 0, 0, NULL, NULL),
			('a5', '["user","tg","5","U1"]', '{', 50, 0, 0, 0, 0, 0, NULL, NULL);
		INSERT INTO runs (id, agent, state, last_seq, started, ended) VALUES ('r1', 'a1', 'SUCCEEDED', 1, 20, 30);
		INSERT INTO messages (id, agent, n, type, at, run, body, crc) VALUES
			('m1', 'a2', 1, 'user', 50, 'r', '{}', 0), ('m2', 'a1', 1, 'user', 50, 'r', '{}', 0), ('m3', 'a3', 1, 'user', 50, 'r', '{}', 0);`
	for _, script := range []string{frozenV3, rows} {
		if err := c.control(script); err != nil {
			t.Fatal(err)
		}
	}
	body, crc := stored(t, textMessage("m4"))
	if _, err := c.exec("INSERT INTO messages (id, agent, n, type, at, body, crc) VALUES ('m4', 'a2', 2, 'user', 50, ?, ?)", body, crc); err != nil {
		t.Fatal(err)
	}
	// The figures of a released version count themselves.
	const count = `UPDATE counters SET n = CASE name WHEN 'agents' THEN 5 ELSE 1 END;
		INSERT INTO counters VALUES ('run:SUCCEEDED', 1)`
	if err := c.control(count); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to upgrade
		db := openAt(t, path)
		for _, tt := range []struct {
			owners []string
			want   []claybot.AgentID
		}{
			{nil, []claybot.AgentID{"a2", "a3", "a1"}},
			{[]string{"tg/U1"}, []claybot.AgentID{"a2", "a1"}},
			{[]string{"tg/U/2"}, []claybot.AgentID{"a3"}},
		} {
			var got []claybot.AgentID
			for e, err := range db.Foreground(t.Context(), tt.owners) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e.ID)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("foreground of %v: got %v, want %v", tt.owners, got, tt.want)
			}
		}
		if run, err := db.LastRun(t.Context(), "a1"); err != nil || run.ID != "r1" || run.Awaiting != nil {
			t.Errorf("last run %+v, %v", run, err)
		}
		acquired, _, err := db.Acquire(t.Context(), "new", time.Second, 9, 10)
		if err != nil || len(acquired) != 1 || acquired[0].Lease.Agent != "a2" || len(acquired[0].Waiting) != 1 {
			t.Fatalf("acquired %+v, %v", acquired, err)
		}
		// A re-indexed agent gets what the file could not know.
		a := claybot.Agent{ID: "a4", Descriptor: claybot.User("tg", "4", "U1"), CreatedAt: 7}
		if err := db.IndexAgents(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if e, err := db.IndexedAgentByID(t.Context(), "a4"); err != nil || e.CreatedAt != 7 {
			t.Errorf("entry %+v, %v", e, err)
		}
		checkFigures(t, db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
