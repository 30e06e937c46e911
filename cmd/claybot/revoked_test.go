package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/tools/skills"
)

// approvals are what an operator approves in the tests below, by the key of
// files.Revoked. All but the agent's rules and skills are people.
var approvals = []string{"person/telegram/gone", "person/telegram/stays", "person/telegram/back", "rule/a/gone", "rule/a/stays", "skill/gone", "skill/stays"}

// revocable is the database as the daemon has it.
func (l *life) revocable() *revocable {
	return &revocable{DB: l.keeper.db, agents: l.keeper.agents, dir: l.dir, log: slog.New(slog.DiscardHandler)}
}

func (l *life) theAgent() claybot.AgentID {
	l.Helper()
	a, err := l.keeper.agents.AgentFor(l.Context(), claybot.User("telegram", "C1", "U1"))
	if err != nil {
		l.Fatal(err)
	}
	return a.ID
}

// approve approves something, or revokes it.
func (l *life) approve(key string, yes bool) {
	l.Helper()
	db, ctx := l.revocable(), l.Context()
	what, of, _ := strings.Cut(key, "/")
	_, name, _ := strings.Cut(of, "/")
	var err error
	switch {
	case what == "person" && yes:
		_, err = db.Grant(ctx, storage.Grant{Connector: "telegram", Subject: name, At: claybot.Now()})
	case what == "person":
		err = db.Revoke(ctx, "telegram", name)
	case what == "skill":
		pin := ""
		if yes {
			b, merr := json.Marshal(skills.Pin{Hash: "hash", At: claybot.Now()})
			pin, err = string(b), merr
		}
		if err == nil {
			err = db.SetCheckpoint(ctx, key, pin)
		}
	default:
		all, serr := db.AgentSettings(ctx)
		if serr != nil {
			l.Fatal(serr)
		}
		s := all[l.theAgent()]
		if s.Approved = append(slices.Clone(s.Approved), name); !yes {
			s.Approved = slices.DeleteFunc(s.Approved, func(rule string) bool { return rule == name })
		}
		s.ApprovedBy = map[string]claybot.Approving{}
		for _, rule := range s.Approved {
			s.ApprovedBy[rule] = claybot.Approving{At: claybot.Now()}
		}
		err = db.SaveAgentSettings(ctx, l.theAgent(), s)
	}
	if err != nil {
		l.Fatal(err)
	}
}

// approved lists what is approved.
func (l *life) approved() (keys []string) {
	l.Helper()
	db, ctx := l.revocable(), l.Context()
	grants, err := db.Grants(ctx)
	for _, g := range grants {
		keys = append(keys, personKey(g.Connector, g.Subject))
	}
	settings, serr := db.AgentSettings(ctx)
	for _, rule := range settings[l.theAgent()].Approved {
		keys = append(keys, "rule/a/"+rule)
	}
	for _, name := range []string{"gone", "stays"} {
		text, merr := db.Checkpoint(ctx, skillPrefix+name)
		if merr != nil {
			l.Fatal(merr)
		}
		if text != "" {
			keys = append(keys, skillPrefix+name)
		}
	}
	if err != nil || serr != nil {
		l.Fatal(err, serr)
	}
	slices.Sort(keys)
	return keys
}

// TestRevokedStaysRevoked puts a state of the database back that approves what was
// revoked since. It stays revoked, and what was approved again stays approved.
func TestRevokedStaysRevoked(t *testing.T) {
	for name, tt := range map[string]struct {
		// back puts saved in the place of the database of an unused directory.
		back func(t *testing.T, dir, saved string)
		want []string
	}{
		"claybot restore": {func(t *testing.T, dir, saved string) {
			out := new(strings.Builder)
			if code := run([]string{"restore", "--data-dir", dir, saved}, strings.NewReader(""), out, os.Stderr); code != exitOK {
				t.Fatalf("exit code %d", code)
			}
			for _, what := range []string{"person telegram:gone;", "rule gone of agent ", "skill gone."} {
				if !strings.Contains(out.String(), what) {
					t.Errorf("the output does not say %q:\n%s", what, out)
				}
			}
		}, []string{"stays", "back"}},
		"by hand": {func(t *testing.T, dir, saved string) { move(t, saved, filepath.Join(dir, "claybot.db")) }, []string{"stays", "back"}},
		"by hand, and not noticed": {func(t *testing.T, dir, saved string) {
			move(t, saved, filepath.Join(dir, "claybot.db"))
			drop(t, dir, "boots.json")
		}, []string{"stays", "back"}},
		"without the file all is revoked that it may have had": {func(t *testing.T, dir, saved string) {
			if err := os.WriteFile(filepath.Join(dir, "revoked.json"), []byte("damaged"), 0o600); err != nil {
				t.Fatal(err)
			}
			move(t, saved, filepath.Join(dir, "claybot.db"))
		}, nil},
		"nothing": {func(*testing.T, string, string) {}, []string{"stays", "back"}},
		"a damaged file alone": {func(t *testing.T, dir, _ string) {
			if err := os.WriteFile(filepath.Join(dir, "revoked.json"), []byte("damaged"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, []string{"stays", "back"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := begin(t, t.TempDir())
			for _, key := range approvals {
				l.approve(key, true)
			}
			saved := filepath.Join(t.TempDir(), "claybot-20260101T000000Z.db")
			if err := l.keeper.db.Backup(t.Context(), saved, 0); err != nil {
				t.Fatal(err)
			}
			for _, key := range approvals {
				if !strings.HasSuffix(key, "stays") {
					l.approve(key, false)
				}
			}
			l.approve("person/telegram/back", true)
			l.end()
			tt.back(t, l.dir, saved)
			next := begin(t, l.dir)
			var want []string
			for _, key := range approvals {
				if slices.ContainsFunc(tt.want, func(end string) bool { return strings.HasSuffix(key, "/"+end) }) {
					want = append(want, key)
				}
			}
			slices.Sort(want)
			if got := next.approved(); !slices.Equal(got, want) {
				t.Errorf("approved: %q, want %q", got, want)
			}
		})
	}
}

// A process that is killed between the file and the row has revoked.
func TestRevokeCutShort(t *testing.T) {
	l := begin(t, t.TempDir())
	l.approve("person/telegram/gone", true)
	l.approve("person/telegram/stays", true)
	l.revocable().note([]string{personKey("telegram", "gone")}, nil)
	next := begin(t, l.killed())
	if got := next.approved(); !slices.Equal(got, []string{"person/telegram/stays"}) {
		t.Errorf("approved: %q", got)
	}
	if r, err := files.ReadRevoked(next.dir); err != nil || len(r.At) != 1 {
		t.Errorf("the file has %+v, %v", r, err)
	}
}

// What cannot be written to the file is revoked in the database all the same.
func TestRevokeWithoutFile(t *testing.T) {
	l := begin(t, t.TempDir())
	l.approve("person/telegram/gone", true)
	if err := os.Mkdir(filepath.Join(l.dir, "revoked.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.revocable().Revoke(context.WithoutCancel(t.Context()), "telegram", "gone"); err != nil {
		t.Error(err)
	}
	if got := l.approved(); len(got) != 0 {
		t.Errorf("approved: %q", got)
	}
}

// A role that a message in a chat takes is recorded outside of the database, as one that the command
// line takes, and one that it gives is not.
func TestRoleOfAChatIsRevoked(t *testing.T) {
	l := begin(t, t.TempDir())
	db, to := l.revocable(), l.theAgent()
	for i, role := range []storage.Role{storage.RoleOperator, storage.RoleUser, storage.RoleOperator} {
		c := &storage.RoleChange{By: "telegram/1", Who: "telegram/gone", After: role}
		m := claybot.AgentMessage{ID: claybot.MessageID("m" + string(rune('0'+i))), Type: claybot.MessageCommand, Command: "pair"}
		if _, err := db.Post(t.Context(), storage.Posting{To: to, Message: m, Skip: "command", Role: c}); err != nil {
			t.Fatal(err)
		}
		r, err := files.ReadRevoked(l.dir)
		if _, taken := r.At[roleKey(storage.RoleOperator, c.Who)]; err != nil || taken != (role == storage.RoleUser) {
			t.Errorf("after %s, the file has %+v, %v", role, r, err)
		}
	}
}
