package agentsystem_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// A role holds while its person has access, and the configuration, the page and people without
// access keep theirs.
func TestRoles(t *testing.T) {
	t.Parallel()
	pairing(t, func(r *rig) {
		r.access = people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:ann", "chat:bob"}, Trusted: []string{"web"}}
		r.society.Identities = func(owner string) []string {
			if owner == "chat/ann" || owner == "phone/5" {
				return []string{"chat/ann", "phone/5"}
			}
			return nil
		}
		r.start()
		dir := r.system.People
		set := func(who string, role storage.Role, want error) {
			r.Helper()
			if _, err := dir.SetRole(r.Context(), who, role, "test"); !errors.Is(err, want) {
				r.Errorf("%s of %s: %v, want %v", role, who, err, want)
			}
		}
		is := func(who string, want storage.Role) {
			r.Helper()
			if got := dir.RoleOfPerson(who); got != want || dir.IsOperator(who) != (want != storage.RoleUser) {
				r.Errorf("%s is %s, an operator %v; want %s", who, got, dir.IsOperator(who), want)
			}
		}
		set("chat/eve", storage.RoleOperator, people.ErrNoAccess)
		set("chat/boss", storage.RoleUser, people.ErrRoleConfigured)
		set("web/operator", storage.RoleOwner, people.ErrRoleOfConsole)
		set("web/token:ci", storage.RoleOwner, people.ErrNoPerson)
		set("chat/bob", storage.RoleOwner, nil)
		set("chat/bob", storage.RoleUser, people.ErrLastOwner)
		set("chat/ann", storage.RoleOwner, nil)
		is("phone/5", storage.RoleOwner) // the same person
		set("chat/bob", storage.RoleOperator, nil)
		is("chat/bob", storage.RoleOperator)
		is("chat/boss", storage.RoleOperator)
		is("web/operator", storage.RoleOwner)
		r.crash()
		r.start()
		dir = r.system.People
		is("chat/bob", storage.RoleOperator)
		r.access.Allow = []string{"chat:ann"}
		is("chat/bob", storage.RoleUser)
		if err := dir.Allow(r.Context(), "chat", "bob"); err != nil {
			r.Fatal(err)
		}
		is("chat/bob", storage.RoleUser) // new access, not the role from before
	})
}

// An operator who was asked about a budget, and is none any more, does not extend it.
func TestFormerOperatorExtendsNoBudget(t *testing.T) {
	banking(t, talks(100), func(b *bank) {
		b.start()
		role := func(to storage.Role) {
			b.Helper()
			if _, err := b.system.People.SetRole(b.Context(), "chat/bob", to, "test"); err != nil {
				b.Fatal(err)
			}
		}
		role(storage.RoleOperator)
		b.operators = b.system.People.Operators()
		b.post(bob, msg("hi", "hi"))
		synctest.Wait()
		b.rules = []budgets.Rule{{Per: budgets.PerOwner, Every: budgets.EveryMonth, Unit: storage.UnitMicroUSD, Limit: 3000, Hard: true}}
		b.say("first")
		synctest.Wait()
		if got := b.press(ann, b.open()[0].ID, "approve"); !got.OK {
			b.Fatalf("pressed: %+v", got)
		}
		q := b.open()[0]
		role(storage.RoleUser)
		if got := b.press(bob, q.ID, "approve"); got.OK {
			b.Error("a former operator extended a budget")
		}
		role(storage.RoleOperator)
		if got := b.press(bob, q.ID, "approve"); !got.OK {
			b.Errorf("an operator cannot extend a budget: %+v", got)
		}
	})
}

// A role that another member gave or took counts for the next command, at once.
func TestRolesElsewhere(t *testing.T) {
	inPair(t, 1, func(p *pair) {
		command := func(id string) string {
			p.Helper()
			m := claybot.AgentMessage{ID: claybot.MessageID(id), Type: claybot.MessageCommand, Command: "pair", FirstHand: true, From: claybot.Sender{UserID: "bob"}}
			if err := p.desk.Post(p.Context(), bob, m); err != nil {
				p.Fatal(err)
			}
			got, err := p.db.Receipt(p.Context(), m.ID)
			if err != nil {
				p.Fatal(err)
			}
			return got.Message.Command
		}
		for n, x := range []struct {
			role storage.Role
			want string
		}{{storage.RoleUser, "unknown"}, {storage.RoleOperator, "pair"}, {storage.RoleUser, "unknown"}, {storage.RoleOwner, "pair"}} {
			if _, err := p.mill.People.SetRole(p.Context(), "chat/bob", x.role, "test"); err != nil {
				p.Fatal(err)
			}
			if got := command(fmt.Sprint("m", n)); got != x.want {
				p.Errorf("as %s, /pair is %s", x.role, got)
			}
		}
		if _, err := p.mill.People.SetRole(p.Context(), "chat/ann", storage.RoleOperator, "test"); err != nil {
			p.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !p.desk.People.IsOperator("chat/ann") {
			p.Error("after two seconds, another member does not know of a role")
		}
	})
}

// Owners who cannot act do not count as the last one: without access, on a connector that is not
// configured, and ids that no person writes by have no role.
func TestLastOwnerActs(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.access = people.Access{Mode: people.AccessOpen, Trusted: []string{"web", "terminal", "api"}}
		r.instances = map[string]string{"chat": "telegram"}
		r.start()
		dir := r.system.People
		for _, x := range []struct {
			who  string
			role storage.Role
			want error
		}{
			{"web/alice", storage.RoleOwner, people.ErrNoPerson},
			{"api/ci", storage.RoleOwner, people.ErrNoPerson},
			{"terminal/bob", storage.RoleOwner, people.ErrNoPerson},
			{"chat/-12", storage.RoleOwner, people.ErrNoPerson},
			{"chat/00", storage.RoleOwner, people.ErrNoPerson},
			{"chat/0012", storage.RoleOwner, nil},
			{"gone/5", storage.RoleOwner, nil},
			{"chat/12", storage.RoleUser, people.ErrLastOwner},
			{"gone/5", storage.RoleUser, nil},
			{"chat/13", storage.RoleOwner, nil},
			{"chat/12", storage.RoleUser, nil},
		} {
			if _, err := dir.SetRole(r.Context(), x.who, x.role, "test"); !errors.Is(err, x.want) {
				r.Errorf("%s of %s: %v, want %v", x.role, x.who, err, x.want)
			}
		}
		if _, err := dir.SetRole(r.Context(), "chat/14", storage.RoleOwner, "test"); err != nil {
			r.Fatal(err)
		}
		r.access = people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:13"}, Trusted: []string{"web", "terminal"}}
		if _, err := dir.SetRole(r.Context(), "chat/13", storage.RoleUser, "test"); !errors.Is(err, people.ErrLastOwner) || !dir.Holds("chat/14") {
			r.Errorf("an owner without access counts: %v", err)
		}
	})
}

// A login of the page reaches claybot over the network, so no role is changed there; an owner changes
// them in the terminal and on chat platforms.
func TestNoRoleOnThePage(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.access = people.Access{Mode: people.AccessAllowlist, Allow: []string{"chat:ann", "chat:bob"}, Trusted: []string{"web", "terminal"}}
		r.start()
		orders := func(id string, d claybot.Descriptor, user string, role storage.Role) string {
			r.Helper()
			m := command(id, "pair")
			m.Text, m.From = "role chat:"+user+" "+string(role), claybot.Sender{UserID: d.UserID}
			r.post(d, m)
			synctest.Wait()
			return r.receipt(m.ID).Replies[0].Text
		}
		page := claybot.User("web", "main", "operator")
		got := orders("m1", page, "bob", storage.RoleOwner)
		if r.system.People.RoleOfPerson("chat/bob") != storage.RoleUser || !strings.Contains(got, "in a chat app, as an owner, or use `claybot people role`") {
			r.Errorf("the page makes an owner: %s", got)
		}
		got = orders("m2", claybot.User("terminal", "main", "operator"), "bob", storage.RoleOwner)
		if r.system.People.RoleOfPerson("chat/bob") != storage.RoleOwner {
			r.Errorf("the terminal makes no owner: %s", got)
		}
		got = orders("m3", private("bob"), "ann", storage.RoleOperator)
		if r.system.People.RoleOfPerson("chat/ann") != storage.RoleOperator {
			r.Errorf("an owner makes no operator: %s", got)
		}
		got = orders("m4", page, "ann", storage.RoleUser)
		if r.system.People.RoleOfPerson("chat/ann") != storage.RoleOperator {
			r.Errorf("the page takes a role: %s", got)
		}
	})
}
