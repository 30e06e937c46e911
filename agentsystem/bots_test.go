package agentsystem_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
)

// Another bot needs access by its id beside that of its channel, under open access too; what
// it writes is no command and no approval, and ten of its messages an hour start runs.
func TestOtherBots(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		access       people.Access
		group, heard bool
	}{
		{"in an allowed channel", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:g"}}, true, false},
		{"listed elsewhere", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:B1"}}, true, false},
		{"listed in an allowed channel", people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:g", "chat:B1"}}, true, true},
		{"open access", people.Access{Mode: people.AccessOpen}, true, false},
		{"listed under open access", people.Access{Mode: people.AccessOpen, Allow: []string{"chat:B1"}}, true, true},
		{"a direct chat", people.Access{Mode: people.AccessPairing}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				r.access = tt.access
				r.start()
				d := claybot.User("chat", "g", "B1")
				write := func(id string) {
					m := msg(id, id)
					m.Context.Group, m.From, m.FirstHand = tt.group, claybot.NewBot("B1", "CI"), false
					r.post(d, m)
					after(time.Second)
				}
				write("a")
				if got := r.chat.seen(); (len(got) == 1) != tt.heard || len(r.mind.asked()) != len(got) {
					t.Fatalf("people see %q", got)
				}
				if !tt.heard {
					return
				}
				for i := range 12 {
					write(fmt.Sprint("b", i))
				}
				if n, seen := len(r.mind.asked()), r.chat.seen(); n != 10 || len(seen) != 10 {
					t.Errorf("%d runs, people see %q", n, seen)
				}
				if got := r.receipt("b11").Skipped; got != inbox.SkippedBot {
					t.Errorf("skipped %q", got)
				}
				after(time.Hour)
				write("c")
				if n := len(r.mind.asked()); n != 11 {
					t.Errorf("%d runs after an hour", n)
				}
			})
		})
	}
}

// Revoking a bot drops what it wrote, although its group has access; the members' messages run.
func TestRevokeBot(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.access = people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:g"}}
		r.start()
		if err := r.system.People.Allow(r.Context(), "chat", "B1"); err != nil {
			t.Fatal(err)
		}
		r.mind.hold("work", time.Hour)
		m := msg("work", "work")
		m.Context.Group, m.From, m.FirstHand = true, claybot.NewBot("B1", "CI"), false
		r.post(claybot.User("chat", "g", "B1"), m)
		m.ID, m.Text = "more", "more"
		after(time.Second)
		r.post(claybot.User("chat", "g", "B1"), m)
		of := msg("of a member", "of a member")
		of.Context.Group = true
		r.post(claybot.User("chat", "g", "u"), of)
		after(time.Second)
		if err := r.system.Control.Revoke(r.Context(), "chat", "B1"); err != nil {
			t.Fatal(err)
		}
		after(2 * time.Hour)
		if got := r.receipt("more").Skipped; got != inbox.SkippedRevoked {
			t.Errorf("what waited: skipped %q", got)
		}
		r.wants("re: of a member")
	})
}
