package agentsystem_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// A role ends when the configuration gives its person no access any more, also while claybot does not
// run, and access that comes back does not bring it back. Where the connector is gone and the person
// still listed, it stays.
func TestRoleEndsWithTheList(t *testing.T) {
	t.Parallel()
	for name, apply := range map[string]func(r *rig){
		"by a reload": func(r *rig) {
			if err := r.system.Reschedule(r.Context()); err != nil {
				r.Fatal(err)
			}
		},
		"by a start": func(r *rig) { r.crash(); r.start() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listed(t, func(r *rig, _ *roleStore) {
				r.access.Allow = []string{"chat:ann", "chat:bob", "gone:5", "gone:6"}
				r.give("chat/bob", storage.RoleOwner)
				r.give("gone/5", storage.RoleOperator)
				r.give("gone/6", storage.RoleOperator)
				r.access.Allow = []string{"chat:ann", "gone:5"}
				apply(r)
				r.access.Allow = []string{"chat:ann", "chat:bob", "gone:5", "gone:6"}
				apply(r)
				dir := r.system.People
				for who, want := range map[string]storage.Role{"chat/bob": storage.RoleUser, "gone/5": storage.RoleOperator, "gone/6": storage.RoleUser} {
					if got := dir.RoleOfPerson(who); got != want {
						t.Errorf("%s is %s, want %s", who, got, want)
					}
				}
				changes, err := dir.RoleChanges(r.Context())
				if err != nil || len(changes) != 5 || changes[1].Who != "chat/bob" || changes[1].By != "ended access" || changes[1].Before != storage.RoleOwner {
					t.Errorf("the changes are %+v, %v", changes, err)
				}
			})
		})
	}
}

// On Discord, where the ids of people and channels look alike, only a person who wrote to claybot, or
// asked for access, gets a role.
func TestNoRoleForAChannel(t *testing.T) {
	t.Parallel()
	const writer, channel, asker = "200000000000000001", "500000000000000001", "200000000000000002"
	bubble(t, func(r *rig) {
		r.instances = map[string]string{"chat": "discord"}
		r.access = people.Access{Mode: people.AccessPairing, Allow: []string{"chat:" + writer, "chat:" + channel}}
		r.start()
		hello := msg("1", "hello")
		hello.From, hello.Context = claybot.Sender{UserID: writer}, claybot.MessageContext{Group: true}
		r.post(claybot.User("chat", "900000000000000001/"+channel, writer), hello)
		ask := msg("2", "hello")
		ask.From = claybot.Sender{UserID: asker, Name: "Asker"}
		r.post(claybot.User("chat", "400000000000000002", asker), ask)
		synctest.Wait()
		if _, err := r.system.People.Approve(r.Context(), r.codeIn(r.chat.seen())); err != nil {
			t.Fatal(err)
		}
		for who, want := range map[string]error{writer: nil, asker: nil, channel: people.ErrMayBeChannel, "900000000000000001/" + channel: people.ErrNoPerson} {
			_, err := r.system.People.SetRole(r.Context(), "chat/"+who, storage.RoleOperator, "test")
			if !errors.Is(err, want) {
				t.Errorf("a role for %s: %v, want %v", who, err, want)
			}
		}
		if _, err := r.system.People.SetRole(r.Context(), "chat/"+channel, storage.RoleUser, "test"); err != nil {
			t.Errorf("to take a role: %v", err)
		}
	})
}

// /help names what the role of its reader allows in the chat where they ask.
func TestHelpOfRoles(t *testing.T) {
	t.Parallel()
	listed(t, func(r *rig, _ *roleStore) {
		page := claybot.User("web", "main", "operator")
		for i, tt := range []struct {
			role        storage.Role
			in          claybot.Descriptor
			pair, roles bool
		}{
			{storage.RoleUser, private("bob"), false, false},
			{storage.RoleOperator, private("bob"), true, false},
			{storage.RoleOwner, private("bob"), true, true},
			{storage.RoleOwner, page, true, false},
		} {
			r.give("chat/bob", tt.role)
			m := command(fmt.Sprint("m", i), "help")
			m.From = claybot.Sender{UserID: tt.in.UserID}
			r.post(tt.in, m)
			synctest.Wait()
			got := ""
			for _, part := range r.receipt(m.ID).Replies {
				got += part.Text
			}
			if strings.Contains(got, "/pair: ") != tt.pair || strings.Contains(got, "/pair role: ") != tt.roles {
				t.Errorf("%s of %s reads %s", tt.role, tt.in.OwnerID(), got)
			}
		}
	})
}
