package storagetest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/claybot/claybot/storage"
)

// roleTests are about the roles of people.
var roleTests = []storeTest{
	{"roles", func(b *bed) {
		b.equal("none", b.roles(), "")
		b.equal("a new owner", b.role("telegram/1", storage.RoleOwner), "user owner")
		b.equal("once more", b.role("telegram/1", storage.RoleOwner), "owner owner")
		b.equal("an operator", b.role("slack/T1/U2", storage.RoleOperator), "user operator")
		b.again()
		b.equal("kept", b.roles(), "slack/T1/U2 operator by ann, telegram/1 owner by ann")
		b.equal("taken", b.role("slack/T1/U2", storage.RoleUser), "operator user")
		b.equal("of a user", b.role("slack/T1/U2", storage.RoleUser), "user user")
		b.equal("the last owner", b.role("telegram/1", storage.RoleOperator), "the wrong state")
		b.equal("by another name", b.role("discord/5", storage.RoleUser, "telegram/1"), "the wrong state")
		b.equal("stays", b.roles(), "telegram/1 owner by ann")
		b.equal("to another identity", b.role("slack/U1", storage.RoleOwner, "telegram/1", "discord/5"), "owner owner")
		b.equal("moved", b.roles(), "slack/U1 owner by ann")
		b.equal("another owner", b.role("telegram/3", storage.RoleOwner), "user owner")
		b.equal("of two", b.role("slack/U1", storage.RoleOperator), "owner operator")
		b.again()
		b.equal("two", b.roles(), "slack/U1 operator by ann, telegram/3 owner by ann")
		var log []string
		for _, c := range ok(b.RoleChanges(b.ctx))(b) {
			log = append(log, fmt.Sprintf("%s %s>%s", c.Who, c.Before, c.After))
			b.equal("by", c.By, "ann")
			b.equal("at", c.At != 0, true)
		}
		b.equal("what changed, the latest first", strings.Join(log, ", "), "slack/U1 owner>operator, telegram/3 user>owner, slack/U1 owner>owner, "+
			"slack/T1/U2 operator>user, slack/T1/U2 user>operator, telegram/1 user>owner")
	}},
	{"a role ends with the access", func(b *bed) {
		g := storage.Grant{Connector: "telegram", Subject: "1", At: 5, Anew: true}
		ok(b.Grant(b.ctx, g))(b)
		b.equal("the only owner", b.role("telegram/1", storage.RoleOwner), "user owner")
		ok(b.Grant(b.ctx, g))(b) // comes again
		b.equal("stays", b.roles(), "telegram/1 owner by ann")
		b.noError(b.Revoke(b.ctx, "telegram", "1"))
		b.again()
		b.equal("gone, also of the last one", b.roles(), "")
		last := ok(b.RoleChanges(b.ctx))(b)[0]
		b.equal("noted", fmt.Sprint(last.By, ": ", last.Who, " ", last.Before, ">", last.After), "revoked access: telegram/1 owner>user")
		b.equal("by the list", b.role("telegram/2", storage.RoleOperator), "user operator")
		ok(b.Grant(b.ctx, storage.Grant{Connector: "telegram", Subject: "2", At: 5}))(b)
		b.equal("more access", b.roles(), "telegram/2 operator by ann")
		b.noError(b.Revoke(b.ctx, "telegram", "2"))
		b.equal("from before", b.role("telegram/3", storage.RoleOperator), "user operator")
		ok(b.Grant(b.ctx, storage.Grant{Connector: "telegram", Subject: "3", At: 5, Anew: true}))(b)
		b.equal("new access has no role from before", b.roles(), "")
		b.equal("the last owner, by the list", b.role("telegram/4", storage.RoleOwner), "user owner")
		b.noError(b.Revoke(b.ctx, "telegram", "4"))
		b.again()
		b.equal("gone without a grant", b.roles(), "")
		b.is(b.Revoke(b.ctx, "telegram", "4"), storage.ErrNotFound)
	}},
	{"the last owner of several changes at once", func(b *bed) {
		const owners = 4
		for i := range owners {
			b.equal("an owner", b.role(fmt.Sprint("telegram/", i), storage.RoleOwner), "user owner")
		}
		var all sync.WaitGroup
		for i := range owners {
			all.Go(func() {
				_, _ = b.SetRole(b.ctx, storage.RoleChange{By: "ann", Who: fmt.Sprint("telegram/", i), After: storage.RoleUser})
			})
		}
		all.Wait()
		b.equal("one stays", strings.Count(b.roles(), "owner"), 1)
		b.equal("all changes are kept", len(ok(b.RoleChanges(b.ctx))(b)), 2*owners-1)
	}},
	{"a role with a message", func(b *bed) {
		b.equal("an owner", b.role("telegram/1", storage.RoleOwner), "user owner")
		p := storage.Posting{To: b.agent, Message: userMessage("c1"), Skip: "command", Role: &storage.RoleChange{By: "ann", Who: "telegram/2", After: storage.RoleOperator}}
		done := b.deliver(p)
		b.equal("stored", fmt.Sprint(done.Role.Before, " ", done.Role.After), "user operator")
		_, number, err := b.Roles(b.ctx)
		b.noError(err)
		b.equal("the newest change", done.Role.Number, number)
		b.equal("taken", b.role("telegram/2", storage.RoleUser), "operator user")
		b.again()
		again := b.deliver(p)
		b.equal("a duplicate", fmt.Sprint(again.Added, again.Role), "false <nil>")
		b.equal("stays taken", b.roles(), "telegram/1 owner by ann")
		p.Message, p.Role = userMessage("c2"), &storage.RoleChange{By: "ann", Who: "telegram/1", After: storage.RoleUser}
		_, err = b.Post(b.ctx, p)
		b.is(err, storage.ErrState)
		p.Role = nil
		b.equal("nothing was stored", b.deliver(p).Added, true)
		b.equal("the last owner", b.roles(), "telegram/1 owner by ann")
	}},
	{"the roles of some", func(b *bed) {
		for _, who := range []string{"1", "2", "3"} {
			b.role("telegram/"+who, storage.RoleOperator)
		}
		some, number, err := b.Roles(b.ctx, "telegram/3", "slack/1", "telegram/1")
		b.noError(err)
		b.equal("of two", fmt.Sprint(len(some), some[0].Who, some[1].Who, number), "2telegram/1telegram/33")
	}},
	{"a person is erased while roles that they gave are taken", func(b *bed) {
		const given = 50
		who := func(i int) string { return fmt.Sprint("telegram/", i) }
		for i := range given {
			ok(b.SetRole(b.ctx, storage.RoleChange{By: "telegram/ann", Who: who(i), After: storage.RoleOperator}))(b)
		}
		var all sync.WaitGroup
		for i := range given {
			all.Go(func() {
				if _, err := b.SetRole(b.ctx, storage.RoleChange{By: "bob", Who: who(i), After: storage.RoleUser}); err != nil {
					b.Error(err)
				}
			})
		}
		all.Go(func() {
			if _, err := b.Erase(b.ctx, storage.Person{Owners: []string{"telegram/ann"}}, false); err != nil {
				b.Error(err)
			}
		})
		all.Wait()
		b.equal("no role comes back", b.roles(), "")
		for _, c := range ok(b.RoleChanges(b.ctx))(b) {
			b.equal("erased from the changes", c.By == "telegram/ann", false)
		}
	}},
	{"a person with a role is erased", func(b *bed) {
		b.equal("ann", b.role("telegram/ann", storage.RoleOwner), "user owner")
		ok(b.SetRole(b.ctx, storage.RoleChange{By: "telegram/ann", Who: "telegram/bob", After: storage.RoleOperator}))(b)
		p := storage.Person{Owners: []string{"telegram/ann"}}
		ok(b.Erase(b.ctx, p, true))(b)
		b.equal("only counted", b.roles(), "telegram/ann owner by ann, telegram/bob operator by telegram/ann")
		ok(b.Erase(b.ctx, p, false))(b)
		b.again()
		b.equal("bob stays", b.roles(), "telegram/bob operator by an erased person")
		left := ok(b.RoleChanges(b.ctx))(b)
		b.equal("changes", fmt.Sprint(len(left), left[0].Who, " ", left[0].By), "1telegram/bob an erased person")
	}},
}

// role sets a role and returns what it was and is, or the error.
func (b *bed) role(who string, to storage.Role, others ...string) string {
	b.Helper()
	c, err := b.SetRole(b.ctx, storage.RoleChange{By: "ann", Who: who, After: to, Others: others})
	if err != nil {
		b.is(err, storage.ErrState)
		return "the wrong state"
	}
	return fmt.Sprint(c.Before, " ", c.After)
}

// roles returns all roles in words.
func (b *bed) roles() string {
	b.Helper()
	var all []string
	grants, _, err := b.Roles(b.ctx)
	b.noError(err)
	for _, g := range grants {
		all = append(all, fmt.Sprintf("%s %s by %s", g.Who, g.Role, g.By))
	}
	return strings.Join(all, ", ")
}
