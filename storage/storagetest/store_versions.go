package storagetest

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// versionTests are about what nodes that share a store must hear of each other:
// what each keeps in memory, and what money the dead have set aside.
var versionTests = []storeTest{
	{"what is kept in memory", shared(func(b *bed) {
		store, known := b.Store.(storage.Versions)
		if !known {
			b.Fatal("a store that is shared does not tell of changes")
		}
		version := func() storage.Version { return ok(store.Versions(b.ctx))(b) }
		v := version()
		dead := false // whether dead routes change
		grows := func(what string, access, settings bool) {
			b.Helper()
			now := version()
			b.equal(what, []bool{now.Access > v.Access, now.Settings > v.Settings, now.DeadRoutes > v.DeadRoutes}, []bool{access, settings, dead})
			v = now
		}
		grows("nothing was changed", false, false)
		bob := storage.Grant{Connector: "telegram", Subject: "bob"}
		ok(b.Grant(b.ctx, bob))(b)
		grows("a grant", true, false)
		b.noError(b.Revoke(b.ctx, bob.Connector, bob.Subject))
		grows("a revoke", true, false)
		b.is(b.Revoke(b.ctx, bob.Connector, bob.Subject), storage.ErrNotFound)
		grows("a revoke of an unknown person", false, false)
		b.equal("role", b.role("telegram/bob", storage.RoleOperator), "user operator")
		grows("a role", true, false)
		b.equal("role", b.role("telegram/bob", storage.RoleOperator), "operator operator")
		grows("the same role", false, false)
		b.equal("role", b.role("telegram/bob", storage.RoleUser), "operator user")
		grows("a role that was taken", true, false)
		b.noError(b.SaveAgentSettings(b.ctx, b.agent, claybot.Settings{Model: "large"}))
		grows("settings", false, true)
		b.noError(b.SaveAgentSettings(b.ctx, b.agent, claybot.Settings{}))
		grows("no settings", false, true)
		b.is(b.SaveAgentSettings(b.ctx, "nobody", claybot.Settings{Model: "large"}), storage.ErrNotFound)
		grows("settings of an unknown agent", false, false)
		for _, key := range []string{storage.CheckpointVoices + "/a", "another"} {
			b.noError(b.SetCheckpoint(b.ctx, key, "x"))
			now := version()
			b.equal("the checkpoint "+key, now.Voices > v.Voices, key != "another")
			v = now
		}
		mark := storage.Checkpoint{Key: storage.CheckpointDead + "telegram/1", Value: "{}"}
		ok(b.Enqueue(b.ctx, reply("o1")))(b)
		b.noError(b.attempt("o1"))
		grows("an attempt", false, false)
		dead = true
		b.resolve("o1", storage.Resolution{State: claybot.SendFailed, Mark: mark})
		grows("a dead route", false, false)
		b.noError(b.SetCheckpoints(b.ctx, map[string]string{mark.Key: "", "other": "x"}))
		grows("a route that works again", false, false)
		b.noError(b.SetCheckpoint(b.ctx, storage.CheckpointMoved+"telegram/-1", "-100"))
		grows("a chat with a new id", false, false)
		dead = false
		b.noError(b.SetCheckpoints(b.ctx, map[string]string{"other": ""}))
		grows("another checkpoint", false, false)
	})},
	{"money of dead nodes", shared(func(b *bed) {
		all := dollars("all", 100, true)
		for _, node := range []string{"lives", "dies", "leaves", "me"} {
			b.renewMember(storage.Member{ID: node, Name: node})
			r := aside("by "+node, 10, 0, all)
			r.Node = node
			b.noError(b.Reserve(b.ctx, r))
		}
		b.equal("all are there", ok(b.Abandoned(b.ctx, "me"))(b), 0)
		b.noError(b.Leave(b.ctx, "leaves"))
		b.equal("one has left", ok(b.Abandoned(b.ctx, "me"))(b), 1)
		time.Sleep(ttl - time.Second)
		b.renewMember(storage.Member{ID: "lives", Name: "lives"})
		b.renewMember(storage.Member{ID: "me", Name: "me"})
		time.Sleep(time.Second)
		b.equal("one has died", ok(b.Abandoned(b.ctx, "me"))(b), 1)
		b.equal("once", ok(b.Abandoned(b.ctx, "lives"))(b), 0)
		b.budget("all", figures{100, 0, 20, 20, 0})
		b.equal("booked late", len(ok(b.Book(b.ctx, "by dies", storage.Amount{MicroUSD: 1}))(b)), 0)
		b.equal("booked in time", len(ok(b.Book(b.ctx, "by lives", storage.Amount{MicroUSD: 1}))(b)), 1)
		b.budget("all", figures{100, 0, 21, 10, 0})
	})},
}
